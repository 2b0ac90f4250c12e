"""What a program printed, as text for a reader: without control sequences, and no longer than it may be."""

import re

# Sequences for a terminal, in this order: operating system commands (titles, links), other strings, CSI (colours,
# cursor), and the short ones. None runs into the next one, so each character is looked at a few times at most.
_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
_SILENT = re.compile("[\x00\x07\ufeff]")
_JOINERS = frozenset("\t\u200c\u200d")
_LINE_CHARS_MAX = 300
_GROUP_HEADER = "Exception Group Traceback (most recent call last):"
_HEADER = re.compile(rf"^(?:Traceback \(most recent call last\):|  \+ {re.escape(_GROUP_HEADER)})$")
_NODE_ERROR = re.compile(r"^(?:Uncaught )?(?:[A-Z]\w*)?Error\b")
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?::|$)")


def clean_text(text: str) -> str:
    """Text as a terminal would show it in the end, line by line.

    Escape sequences are removed. Of a line that was written over by carriage returns the last state is left, and
    backspaces remove what was before them. Any other character without a picture becomes U+FFFD.
    """
    text = _SILENT.sub("", _SEQUENCES.sub("", text))
    return "\n".join(map(_clean_line, text.split("\n"))).rstrip()


def _clean_line(line: str) -> str:
    if line.isprintable():
        return line.rstrip()
    states = [state for state in line.split("\r") if state.strip()]
    line = states[-1] if states else ""
    if "\b" in line:
        line = _without_backspaces(line)
    return "".join(c if _is_shown(c) else "\N{REPLACEMENT CHARACTER}" for c in line).rstrip()


def _is_shown(character: str) -> bool:
    return character.isprintable() or character in _JOINERS or (character.isspace() and character > "\x9f")


def _without_backspaces(line: str) -> str:
    shown: list[str] = []
    for character in line:
        if character != "\b":
            shown.append(character)
        elif shown:
            shown.pop()
    return "".join(shown)


def end_of(text: str, chars_max: int) -> str:
    """The last characters of a text."""
    return text[-chars_max:]


def head_and_tail(text: str, chars_max: int) -> str:
    """A text, or its beginning and its end around a line that tells how much is left out.

    It is cut between lines where a line ends near the cut.
    """
    if len(text) <= chars_max:
        return text
    room = chars_max - len(_left_out(len(text)))
    head, tail = text[: room // 2], text[-(room - room // 2) :]
    near = room // 4
    if (at := head.rfind("\n")) >= len(head) - near:
        head = head[:at]
    if 0 <= (at := tail.find("\n")) <= near:
        tail = tail[at + 1 :]
    return f"{head}{_left_out(len(text) - len(head) - len(tail))}{tail}"


def _left_out(chars: int) -> str:
    return f"\n[… {chars} characters left out …]\n"


def error_line(stderr: str) -> str:
    """The line that says best why a program failed, at most 300 characters; empty if there is none.

    That is the first line of the last exception of a traceback, such as ``ValueError: boo``: a message may have
    further lines, and a group of exceptions ends with a frame. Of a Node.js program it is the line of its error.
    Otherwise it is the last line.
    """
    lines = [line.rstrip() for line in stderr.replace("\r", "\n").split("\n")]
    found = (
        _exception_line(lines)
        or _node_error_line(lines)
        or next((line.strip() for line in reversed(lines) if line.strip()), "")
    )
    text = "".join(c if c.isprintable() else " " for c in _SEQUENCES.sub("", found))
    return text if len(text) <= _LINE_CHARS_MAX else text[: _LINE_CHARS_MAX - 1] + "…"


def _node_error_line(lines: list[str]) -> str | None:
    """The error of a Node.js program: its version is the last line then."""
    last = next((line for line in reversed(lines) if line), "")
    if not last.startswith("Node.js v"):
        return None
    return next((line for line in lines if _NODE_ERROR.match(line)), None)


def _exception_line(lines: list[str]) -> str | None:
    header = next((at for at in range(len(lines) - 1, -1, -1) if _HEADER.match(lines[at])), None)
    if header is None:
        return None
    margin = "  | " if lines[header].endswith(_GROUP_HEADER) else ""
    for line in lines[header + 1 :]:
        if line.startswith(margin) and _EXCEPTION.match(line, len(margin)):
            return line[len(margin) :]
    return None
