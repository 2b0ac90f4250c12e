"""The line that explains best why a program failed, found in what it wrote to stderr.

The text of an exception may come from a file or a web page. It can have lines of its own, and they can have the
form of another error. So a line counts as the error of the program only where the interpreter writes it, and of
several such places the last one counts that shows a line of the program itself: the text of an exception that
imitates a traceback does not know which line of the program is at which number.
"""

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from proofbox.service.log_text import without_sequences
from proofbox.service.sandbox.port import Job

_LINE_CHARS_MAX = 300
_CODE_BYTES_MAX = 1024 * 1024  # of a longer program the lines are not compared
_GROUP = "  + Exception Group "
_GROUP_MARGIN = "  | "
# Behind what was written to the line before it; those of the members of a group are indented.
_HEADER = re.compile(r"(?:  \+ Exception Group |\S.*)?Traceback \(most recent call last\):$")
_FRAME = re.compile(r'  File ".*", line (\d{1,9}), in ')
CHAINS = frozenset(
    {
        "During handling of the above exception, another exception occurred:",
        "The above exception was the direct cause of the following exception:",
    }
)
"""What stands between the exceptions of a traceback, each of which led to the next one."""
_NODE_ENDS = re.compile(r"Node\.js v\d+\.\d+\.\d+\S*")
_NODE_PLACE = re.compile(r"\S.*:(\d{1,9})")
_NODE_FRAME = "    at "
_NODE_CARET = re.compile(r"\s*\^+")
_NODE_ERROR = re.compile(r"(?:Uncaught )?(?:[A-Z]\w*)?Error\b")
_BASH_ERROR = re.compile(r"\S+: line \d+: (?!warning: )\S")
_BASH_WHOLE = re.compile(r"\S+: line \d+: (?:(?:cd|pushd|exec): )?[^:]+: (?P<reason>[^:]+)")
_SYSTEM_REASONS = frozenset(map(os.strerror, errno.errorcode))
_EXPRESSION_ENDS = "(error token is "  # behind an expression that Bash cannot compute
_BASH_REASONS = _SYSTEM_REASONS | {"command not found"}


@dataclass(frozen=True, slots=True)
class _Error:
    """An error line that has the place of one.

    Attributes:
        text: the line.
        line: the number of the line of source code that is shown with it; 0 if none is.
        shown: that line.
        is_chained: the interpreter links it to the error before it.
    """

    text: str
    line: int = 0
    shown: str = ""
    is_chained: bool = False


def error_line(stderr: str, job: Job | None = None) -> str:
    """Finds the line that explains best why a program failed.

    Args:
        stderr: what there is of it.
        job: the program; None for one of our own.

    Returns:
        Of a Python program the first line of its last exception, such as ``ValueError: boo``, of a Node.js program
        that of its uncaught error, of a Bash program the last error that Bash itself reports, or the traceback of a
        Python program that it ran after that. Otherwise the last
        line that is not blank. At most 300 characters; empty if there is none.
    """
    lines = [line.rstrip() for line in without_sequences(stderr).replace("\r", "\n").split("\n")]
    language = "" if job is None else job.language
    searches: list[Callable[[], str | None]] = [
        lambda: _choose_error(_python_errors(lines), _code_lines(job, "python")),
        lambda: _choose_error(_node_errors(lines), _code_lines(job, "node")) if _is_node(lines) else None,
    ]
    if language != "python":
        searches.reverse()
    if language == "bash":
        searches.insert(0, lambda: _bash_error(lines))
    found = next((text for search in searches if (text := search())), None) or _last(lines)
    text = "".join(c if c.isprintable() else " " for c in found.strip())
    return text if len(text) <= _LINE_CHARS_MAX else text[: _LINE_CHARS_MAX - 1] + "…"


def _last(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line), "")


def _code_lines(job: Job | None, language: str) -> list[str]:
    if job is None or job.language != language or len(job.code) > _CODE_BYTES_MAX:
        return []
    return job.code.decode(errors="replace").split("\n")


def _choose_error(errors: Iterator[_Error], code: Sequence[str]) -> str | None:
    """The last error that shows a line of the program, with those that it is chained to; else the first one."""
    chosen: str | None = None
    follows = is_of_program = False
    for error in errors:
        shows = 0 < error.line <= len(code) and error.shown.strip() == code[error.line - 1].strip() != ""
        follows = shows or chosen is None or (follows and error.is_chained and not is_of_program)
        is_of_program = is_of_program or shows
        if follows:
            chosen = error.text
    return chosen


def _python_errors(lines: Sequence[str]) -> Iterator[_Error]:
    """The exceptions of tracebacks: everything that belongs to a frame is indented, the exception is not."""
    for at, header in enumerate(lines):
        if not _HEADER.match(header):
            continue
        margin = _GROUP_MARGIN if header.startswith(_GROUP) else ""
        below = (line.removeprefix(margin) for line in lines[at + 1 :] if line.startswith(margin.rstrip()))
        text = next((line for line in below if line and not line[0].isspace()), None)
        if text is None:
            continue
        text = _with_message(text, below)
        before = [line.removeprefix(margin) for line in lines[max(0, at - 2) : at]]
        is_chained = before[:1] != [] and before[0] in CHAINS
        frame = _FRAME.match(lines[at + 1].removeprefix(margin))
        shown = lines[at + 2].removeprefix(margin) if at + 2 < len(lines) else ""
        yield _Error(text, int(frame[1]) if frame else 0, shown, is_chained)


def _with_message(text: str, below: Iterator[str]) -> str:
    """An error line with its message, where that begins in a later line."""
    if not text.endswith(":"):
        return text
    more = next((line for line in below if line), "")
    return text if more in CHAINS or more.startswith(_NODE_FRAME) else f"{text} {more.strip()}".rstrip()


def _is_node(lines: Sequence[str]) -> bool:
    return _NODE_ENDS.fullmatch(_last(lines)) is not None


def _node_errors(lines: Sequence[str]) -> Iterator[_Error]:
    """The uncaught errors: below a place in a file, its line, and a mark below that line."""
    is_any = False
    for at in range(2, len(lines) - 1):
        place = _NODE_PLACE.fullmatch(lines[at - 2])
        if place is None or not _NODE_CARET.fullmatch(lines[at]):
            continue
        start = next((start for start in (at + 1, at + 2) if start < len(lines) and lines[start]), None)
        if start is not None:
            is_any = True
            yield _Error(_with_message(lines[start], iter(lines[start + 1 :])), int(place[1]), lines[at - 1])
    if not is_any and (plain := next((line for line in lines if _NODE_ERROR.match(line)), None)):
        yield _Error(plain)


def _bash_error(lines: Sequence[str]) -> str | None:
    """The last error of Bash itself, unless another interpreter reports one behind it.

    Bash writes names of files as they are, so what follows may be the rest of such a name. It is not where the line
    ends with a reason, and no later one does: behind the rest of a name the reason would come once more.
    """
    is_followed = has_reason = False
    for line in reversed(lines):
        is_followed = is_followed or _HEADER.match(line) is not None
        if _BASH_ERROR.match(line):
            return None if is_followed and not has_reason and _is_whole(line) else line
        has_reason = has_reason or line.rpartition(": ")[2] in _SYSTEM_REASONS or _EXPRESSION_ENDS in line
    return None


def _is_whole(line: str) -> bool:
    """Whether an error of Bash ends with the reason: neither the name nor what it was for has a colon."""
    found = _BASH_WHOLE.fullmatch(line)
    return found is not None and found["reason"] in _BASH_REASONS
