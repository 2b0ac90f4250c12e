"""Reads unified diffs, as programs and as language models write them.

What models get wrong is met as far as nothing has to be guessed: wrong or missing counts in a header, a header
without any line number, a blank line of context without its space.
"""

import re

from proofbox.service.react.hunks import Hunk, HunkHeaderError

HUNKS_MAX = 500
END_OF_FILE = "*** End of File"
"""Below a hunk of a ``*** Begin Patch`` patch: its last line is the last one of the file."""
HEADER = re.compile(r"@@\s*-(\d{1,9})(?:,(\d{1,9}))?(?:\s*\+(\d{1,9})(?:,(\d{1,9}))?)?\s*(?:@@.*)?")
_NO_ANCHOR = re.compile(r"[.…]*|-\S*\s+\+\S*")  # as "@@ ... @@" and "@@ -a,b +c,d @@" have
_BETWEEN_FILES = (
    *("diff ", "index ", "old mode ", "new mode ", "new file mode ", "similarity index ", "dissimilarity index "),
    *("Index: ", "====="),
)
_NOT_OF_TEXT = ("deleted file mode ", "rename ", "copy ", "GIT binary patch", "Binary files ")
_AFTER_HUNK = ("@@", *_BETWEEN_FILES, *_NOT_OF_TEXT)
_NO_FILE = "/dev/null"


def read_hunks(patch: str) -> list[Hunk]:
    """The hunks of a diff of one file, in their order.

    Raises:
        HunkHeaderError: it has none, one cannot be read, or it is of several files.
    """
    lines = patch.split("\n")
    if lines[-1] == "":
        lines.pop()
    hunks: list[Hunk] = []
    names: dict[str, None] = {}
    creates = False
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\r")
        if line.startswith("@@"):
            hunk, at = _read_hunk(lines, at)
            hunk.creates = creates and not hunk.old
            hunks.append(hunk)
            if len(hunks) > HUNKS_MAX:
                raise HunkHeaderError(f"the patch has more than {HUNKS_MAX} hunks; split it", at, line)
            continue
        _check_between_hunks(line, at + 1)
        if line.startswith("--- "):
            creates = _name(line) == _NO_FILE
        if line.startswith("+++ "):
            names[_name(line)] = None
        at += 1
        if len(names) > 1:
            raise HunkHeaderError("the patch is of several files; patch one at a time", at, line)
    if not hunks:
        raise HunkHeaderError(
            "the patch has no hunk (@@ -a,b +c,d @@); a whole text that begins with --- or +++ is written by "
            "react.write",
            1,
            lines[0] if lines else "",
        )
    return hunks


def _check_between_hunks(line: str, number: int) -> None:
    """Refuses a line that stands in no hunk and in no head of a file."""
    if line.startswith(_NOT_OF_TEXT) or (line.startswith("+++ ") and _name(line) == _NO_FILE):
        raise HunkHeaderError(
            f"line {number} of the patch deletes, renames or copies a file; react.patch changes lines of one text",
            number,
            line,
        )
    if line.strip() and not line.startswith(("---", "+++", *_BETWEEN_FILES)):
        raise HunkHeaderError(
            f"line {number} of the patch stands outside of any hunk; a hunk begins with @@ -a,b +c,d @@, and a "
            "whole text that begins with --- or holds a diff is written by react.write",
            number,
            line,
        )


def _name(line: str) -> str:
    """The file of a ``---`` or ``+++`` line, without time stamp and the b/ of git, which models often forget."""
    return line[4:].partition("\t")[0].strip().strip('"').removeprefix("b/")


def _read_hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    header = lines[at].rstrip("\r")
    match = HEADER.fullmatch(header)
    if match is None:
        return _read_unnumbered(lines, at)
    old_count = 1 if match[2] is None else int(match[2])
    new_count = 1 if match[4] is None else int(match[4])
    end = None if match[3] is None else _counted_end(lines, at + 1, old_count, new_count)
    if end is None:
        end = _scanned_end(lines, at + 1)
    hunk = Hunk(int(match[1]) if old_count == 0 else max(int(match[1]) - 1, 0))
    _read_lines(hunk, lines, at, end)
    if not hunk.old and old_count:
        raise HunkHeaderError(
            f"the hunk at line {at + 1} of the patch counts {old_count} old lines and has none", at + 1, header
        )
    return hunk, end


def _read_unnumbered(lines: list[str], at: int) -> tuple[Hunk, int]:
    """A hunk that is found by its lines: ``@@``, or ``@@ class A`` and ``@@ def f`` in lines of their own."""
    header_at, hunk = at, Hunk(None)
    while at < len(lines) and lines[at].startswith("@@") and (at == header_at or not HEADER.match(lines[at])):
        anchor = lines[at].strip().strip("@").strip()
        if not _NO_ANCHOR.fullmatch(anchor):
            hunk.anchors.append(anchor)
        at += 1
    end = _scanned_end(lines, at)
    _read_lines(hunk, lines, header_at, end, at)
    return hunk, end


def _read_lines(hunk: Hunk, lines: list[str], header_at: int, end: int, begin: int | None = None) -> None:
    """The lines of a hunk from ``begin``, by default after its header."""
    for number in range(header_at + 1 if begin is None else begin, end):
        _read_line(hunk, lines[number], number + 1)
    if not hunk.lines:
        raise HunkHeaderError(
            f"the hunk at line {header_at + 1} of the patch has no lines; each begins with a space, - or +",
            header_at + 1,
            lines[header_at].rstrip("\r"),
        )


def _counted_end(lines: list[str], at: int, old_left: int, new_left: int) -> int | None:
    """Where the lines that a header counts end; None if they are not what it counts."""
    while old_left or new_left:
        mark = _mark(lines[at]) if at < len(lines) else "?"
        if mark == "\\":
            at += 1
            continue
        old_left -= mark in " -"
        new_left -= mark in " +"
        if mark not in " -+" or old_left < 0 or new_left < 0:
            return None
        at += 1
    if at < len(lines) and _mark(lines[at]) == "\\":
        at += 1
    follows = next((line for line in lines[at:] if line.strip()), "@@")
    is_end = follows.startswith(_AFTER_HUNK) or _begins_file(lines, at)
    return at if is_end else None


def _scanned_end(lines: list[str], at: int) -> int:
    """Where a hunk ends whose header counts wrongly: before the next header, less blank lines at its end."""
    begin = at
    while at < len(lines) and not (
        lines[at].startswith(("@@", *_BETWEEN_FILES, *_NOT_OF_TEXT)) or _begins_file(lines, at)
    ):
        at += 1
    while at > begin and lines[at - 1].strip("\r") == "":
        at -= 1
    return at


def _begins_file(lines: list[str], at: int) -> bool:
    marks = ("--- ", "+++ ", "@@")
    return len(lines) >= at + 3 and all(lines[at + n].startswith(mark) for n, mark in enumerate(marks))


def _mark(line: str) -> str:
    """The first character; a blank line is context that lost its space."""
    return " " if line in {"", "\r"} else line[0]


def _read_line(hunk: Hunk, line: str, number: int) -> None:
    mark = _mark(line)
    if mark == "\\":
        last = hunk.lines[-1][0] if hunk.lines else ""
        hunk.old_unended |= last in {" ", "-"}
        hunk.new_unended |= last in {" ", "+"}
    elif line.rstrip() == END_OF_FILE:
        hunk.at_end = True
    elif mark in " -+":
        hunk.lines.append((mark, line[1:] if line not in {"", "\r"} else line))
    else:
        raise HunkHeaderError(
            f"line {number} of the patch is no line of a hunk: each begins with a space, - or +", number, line
        )
