"""Applies a unified diff to a text: exactly, or not at all.

What language models get wrong is met as far as nothing has to be guessed: line numbers that are off, where the
lines that a hunk expects stand at exactly one other place; wrong counts in a header; a blank line of context
without its space; LF for the CR LF of a file. Lines themselves are never matched loosely.
"""

import re
from dataclasses import dataclass, field, replace

HUNKS_MAX = 500
_TOO_MANY = 2
_SHOWN_CHARS = 300
_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(?: .*)?")
_BETWEEN_FILES = ("diff ", "index ", "old mode ", "new mode ", "new file mode ", "deleted file mode ")


class HunkHeaderError(ValueError):
    """The patch cannot be read.

    Attributes:
        line: which line of the patch, from 1.
        text: what it says.
    """

    def __init__(self, message: str, line: int, text: str) -> None:
        super().__init__(message)
        self.line = line
        self.text = text[:_SHOWN_CHARS]


class HunkMismatchError(ValueError):
    """A hunk does not fit the text.

    Attributes:
        hunk: which hunk, from 1.
        line: the line of the text, from 1, that differs first.
        expected: what the hunk says that it is; None if it says nothing of any line.
        found: what it is; None after the end of the text.
    """

    def __init__(self, message: str, hunk: int, line: int, expected: str | None, found: str | None) -> None:
        super().__init__(message)
        self.hunk = hunk
        self.line = line
        self.expected = None if expected is None else expected[:_SHOWN_CHARS]
        self.found = None if found is None else found[:_SHOWN_CHARS]


@dataclass(slots=True)
class Hunk:
    """One hunk of a diff.

    Attributes:
        at: the index, from 0, of the line that it begins at.
        lines: its lines, each with its mark: a space, ``-`` or ``+``.
        old_unended: the last line of the old text is among them, and ends without a line feed.
        new_unended: as much of the new text.
    """

    at: int
    lines: list[tuple[str, str]] = field(default_factory=list)
    old_unended: bool = False
    new_unended: bool = False

    @property
    def reaches_end(self) -> bool:
        """Whether its last line is the last one of the file."""
        return self.old_unended or self.new_unended

    @property
    def old(self) -> list[str]:
        """The lines that it expects."""
        return [line for mark, line in self.lines if mark != "+"]


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying a diff came to.

    Attributes:
        text: the new text.
        hunks: how many hunks there were.
        added: lines that were added.
        removed: lines that were removed.
        offsets: by how many lines a hunk, from 1, stood elsewhere than it says; 0 is left out.
    """

    text: str
    hunks: int
    added: int
    removed: int
    offsets: dict[int, int]


def is_unified_diff(patch: str) -> bool:
    """Whether a patch is a diff; any other is the whole new text."""
    return patch.startswith(("---", "+++", "@@"))


def apply_diff(text: str, patch: str) -> Applied:
    """The text after the diff.

    Raises:
        HunkHeaderError: the patch cannot be read; ``text`` plays no part.
        HunkMismatchError: a hunk does not fit.
    """
    if _is_crlf(patch) and "\r\n" not in text:
        patch = patch.replace("\r\n", "\n")
    hunks = read_hunks(patch)
    if _is_crlf(text) and "\r" not in patch:
        # Models read and write LF; the file keeps its own line ends.
        applied = _apply(text.replace("\r\n", "\n"), hunks)
        return replace(applied, text=applied.text.replace("\n", "\r\n"))
    return _apply(text, hunks)


def _is_crlf(text: str) -> bool:
    """Whether all lines end with CR LF."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


# ---- reading ----


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
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\r")
        if line.startswith("@@"):
            hunk, at = _read_hunk(lines, at)
            hunks.append(hunk)
            if len(hunks) > HUNKS_MAX:
                raise HunkHeaderError(f"the patch has more than {HUNKS_MAX} hunks; split it", at, line)
            continue
        if line.startswith("+++ "):
            names[_name(line)] = None
        elif line.strip() and not line.startswith(("---", "+++", *_BETWEEN_FILES)):
            raise HunkHeaderError(
                f"line {at + 1} of the patch stands outside of any hunk; a hunk begins with @@ -a,b +c,d @@, and a "
                "whole text that begins with --- is written by react.write",
                at + 1,
                line,
            )
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


def _name(line: str) -> str:
    """The file that a ``+++`` line names, without time stamp and the b/ of git; models often forget that one."""
    return line[4:].partition("\t")[0].strip().strip('"').removeprefix("b/")


def _read_hunk(lines: list[str], at: int) -> tuple[Hunk, int]:
    header = lines[at].rstrip("\r")
    match = _HEADER.fullmatch(header)
    if match is None:
        raise HunkHeaderError(
            f"line {at + 1} of the patch is no hunk header; write @@ -a,b +c,d @@", at + 1, header
        )
    old_count = 1 if match[2] is None else int(match[2])
    new_count = 1 if match[4] is None else int(match[4])
    end = _counted_end(lines, at + 1, old_count, new_count)
    if end is None:
        end = _scanned_end(lines, at + 1)
    hunk = Hunk(int(match[1]) if old_count == 0 else max(int(match[1]) - 1, 0))
    for number in range(at + 1, end):
        _read_line(hunk, lines[number], number + 1)
    if not hunk.lines or (not hunk.old and old_count):
        raise HunkHeaderError(
            f"the hunk at line {at + 1} of the patch counts {old_count} old lines and has none", at + 1, header
        )
    return hunk, end


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
    is_end = follows.startswith("@@") or _begins_file(lines, at) or follows.startswith(_BETWEEN_FILES)
    return at if is_end else None


def _scanned_end(lines: list[str], at: int) -> int:
    """Where a hunk ends whose header counts wrongly: before the next header, less blank lines at its end."""
    begin = at
    while at < len(lines) and not (lines[at].startswith(("@@", *_BETWEEN_FILES)) or _begins_file(lines, at)):
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
    elif mark in " -+":
        hunk.lines.append((mark, line[1:] if line not in {"", "\r"} else line))
    else:
        raise HunkHeaderError(
            f"line {number} of the patch is no line of a hunk: each begins with a space, - or +", number, line
        )


# ---- applying ----


@dataclass(slots=True)
class _Old:
    """The old text, and how far it has been gone through."""

    lines: list[str]
    haystack: str = ""
    floor: int = 0
    floor_at: int = 0

    def __post_init__(self) -> None:
        # A search in one string takes linear time whatever the lines are; one by lines would not.
        self.haystack = "\n" + "".join(line + "\n" for line in self.lines)

    def fits(self, old: list[str], at: int) -> bool:
        return self.floor <= at <= len(self.lines) - len(old) and self.lines[at : at + len(old)] == old

    def places(self, old: list[str]) -> list[int]:
        """The first two places, at or after the floor, where the lines stand."""
        needle = "\n" + "".join(line + "\n" for line in old)
        found: list[int] = []
        start = self.floor_at
        while len(found) < _TOO_MANY and (start := self.haystack.find(needle, start)) >= 0:
            found.append(self.haystack.count("\n", 0, start))
            start += 1
        return found

    def go_to(self, line: int) -> None:
        self.floor_at += sum(len(passed) + 1 for passed in self.lines[self.floor : line])
        self.floor = line


def _apply(text: str, hunks: list[Hunk]) -> Applied:
    lines = text.split("\n")
    is_ended = lines[-1] == ""
    if is_ended:
        lines.pop()
    old = _Old(lines)
    new: list[str] = []
    offsets: dict[int, int] = {}
    for number, hunk in enumerate(hunks, start=1):
        at = _place(old, hunk, number)
        if at != hunk.at:
            offsets[number] = at - hunk.at
        new += lines[old.floor : at]
        new += [line for mark, line in hunk.lines if mark != "-"]
        old.go_to(at + len(hunk.old))
        # Where a diff says nothing of it, the end stays as it is: models leave the mark out.
        if hunk.reaches_end:
            is_ended = not hunk.new_unended
    new += lines[old.floor :]
    marks = [mark for hunk in hunks for mark, _ in hunk.lines]
    end = "\n" if new and is_ended else ""
    return Applied("\n".join(new) + end, len(hunks), marks.count("+"), marks.count("-"), offsets)


def _place(old: _Old, hunk: Hunk, number: int) -> int:
    """Where a hunk belongs: where it says, or at exactly one other place.

    Raises:
        HunkMismatchError: there is none, or several.
    """
    expected = hunk.old
    end = len(old.lines) - len(expected)
    if old.fits(expected, hunk.at) and (hunk.at == end or not hunk.reaches_end):
        return hunk.at
    places: list[int] = []
    if expected:
        places = old.places(expected) if not hunk.reaches_end else [end] if old.fits(expected, end) else []
    if len(places) == 1:
        return places[0]
    raise _mismatch(old, hunk, number, places)


def _mismatch(old: _Old, hunk: Hunk, number: int, places: list[int]) -> HunkMismatchError:
    expected = hunk.old
    its = old.lines[hunk.at : hunk.at + len(expected)]
    same = next((n for n, (a, b) in enumerate(zip(expected, its, strict=False)) if a != b), len(its))
    line = hunk.at + (same if same < len(expected) else 0) + 1
    wanted = expected[line - 1 - hunk.at] if expected else None
    found = old.lines[line - 1] if line <= len(old.lines) else None
    if places:
        first, second = places
        where = f"stands at line {first + 1} and at line {second + 1}, not at line {hunk.at + 1}; give more context"
    elif hunk.at < old.floor:
        where = f"begins at line {hunk.at + 1}, before the end of the hunk above it"
    elif found is None:
        where = f"needs a line {line}, and the file has {len(old.lines)}"
    elif wanted == found:
        where = "is said to be at the end of the file, and is not"
    else:
        where = f"does not fit: line {line} of the file is another"
    return HunkMismatchError(f"hunk {number} {where}; nothing was changed", number, line, wanted, found)
