"""What a program printed, as text for a reader: without control sequences, and no longer than it may be."""

import re
from collections.abc import Sequence

# Sequences for a terminal, in this order: operating system commands (titles, links), other strings, CSI (colours,
# cursor), and the short ones. None runs into the next one, so each character is looked at a few times at most.
_SEQUENCES = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|\x1b[PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
_WORD = re.compile(r"[^\W\d_]{3,}")
_STATES_MAX = 10_000
_OTHERS_MAX = 3  # of one line
_SILENT = re.compile("[\x00\x07\ufeff]")
_JOINERS = frozenset("\t\u200c\u200d")


def clean_text(text: str) -> str:
    """Text as a terminal would show it in the end, line by line.

    Escape sequences are removed. Of a line that was written over by carriage returns the last state is left, and
    the last of each other text that stood there: a bar of progress hides nothing. Backspaces remove what was before
    them. Any other character without a picture becomes U+FFFD.
    """
    text = _SILENT.sub("", without_sequences(text))
    return "\n".join(map(_clean_line, text.split("\n"))).rstrip()


def _clean_line(line: str) -> str:
    if line.isprintable():
        return line.rstrip()
    states = [state for state in line.split("\r") if state.strip()]
    if len(states) > 1:
        return "\n".join(_shown(state) for state in _last_of_each(states))
    return _shown(states[0] if states else "")


def _last_of_each(states: Sequence[str]) -> list[str]:
    """The last state of a line, and before it what else was printed there: it shares no word with that."""
    last = states[-1]
    words = frozenset(_WORD.findall(last))
    others: dict[frozenset[str], str] = {}
    for state in states[-_STATES_MAX:-1]:
        own = frozenset(_WORD.findall(state))
        if own and not own & words:
            others[own] = state
    return [*list(others.values())[-_OTHERS_MAX:], last]


def _shown(line: str) -> str:
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


def end_of(text: str, chars_max: int, whole: str | None = None, before: int = 0) -> str:
    """The last characters of a text, below a line that states where the ``whole`` is, if it is anywhere.

    Args:
        text: the text.
        chars_max: how many.
        whole: where all of it is, with the words for that.
        before: characters that stood in front of the text.
    """
    if len(text) <= chars_max and not before:
        return text
    if whole is None:
        return text[-chars_max:]
    tail = text[-(chars_max - len(left_out_line(before + len(text), whole))) :]
    return f"{left_out_line(before + len(text) - len(tail), whole)}{tail}".lstrip("\n")


def head_and_tail(text: str, chars_max: int, whole: str | None = None, within: int = 0) -> str:
    """A text, or its beginning and its end around a line with what is left out, and where the whole is.

    It is cut between lines where a line ends near the cut.

    Args:
        text: the text.
        chars_max: how long it may be.
        whole: as in `end_of`.
        within: characters that its middle has lost.
    """
    if len(text) <= chars_max:
        return text
    room = chars_max - len(left_out_line(within + len(text), whole))
    head, tail = text[: room // 2], text[-(room - room // 2) :]
    near = room // 4
    if (at := head.rfind("\n")) >= len(head) - near:
        head = head[:at]
    if 0 <= (at := tail.find("\n")) <= near:
        tail = tail[at + 1 :]
    return f"{head}{left_out_line(within + len(text) - len(head) - len(tail), whole)}{tail}"


def left_out_line(chars: int, whole: str | None) -> str:
    """The line that stands where a text is cut."""
    where = "" if whole is None else f", {whole}"
    return f"\n[… {chars} characters left out{where} …]\n"


def without_sequences(text: str) -> str:
    """A text without escape sequences for a terminal."""
    return _SEQUENCES.sub("", text)
