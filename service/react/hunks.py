"""Hunks of a patch, and how they are applied to a text: exactly, or not at all.

A hunk may give the line where it begins, or leave that to its lines. Lines are never matched loosely. A hunk whose
lines stand elsewhere, or that gives no line, is applied where they stand if that is one place only.
"""

from dataclasses import dataclass, field

_TOO_MANY = 2
_SHOWN_CHARS = 300
_CANDIDATES_MAX = 100


class HunkHeaderError(ValueError):
    """The patch cannot be read.

    Attributes:
        line: which line of the patch, from 1.
        text: that line.
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
        expected: what the hunk expects; None if it gives none.
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
    """One hunk of a patch.

    Attributes:
        at: the index, from 0, of the line that it begins at; None if it gives none.
        lines: its lines, each with its mark: a space, ``-`` or ``+``.
        anchors: lines of the text that stand before it, in their order, for a hunk that gives no line.
        old_unended: the last line of the old text is among them, and ends without a line feed.
        new_unended: as much of the new text.
        at_end: its last line is the last one of the text.
        creates: by the patch there is no text yet.
    """

    at: int | None
    lines: list[tuple[str, str]] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    old_unended: bool = False
    new_unended: bool = False
    at_end: bool = False
    creates: bool = False

    @property
    def marks_end(self) -> bool:
        """Whether it marks how the text ends."""
        return self.old_unended or self.new_unended

    @property
    def reaches_end(self) -> bool:
        """Whether its last line is the last one of the file."""
        return self.marks_end or self.at_end

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
        offsets: by how many lines a hunk, from 1, stood elsewhere than its header; 0 is left out.
    """

    text: str
    hunks: int
    added: int
    removed: int
    offsets: dict[int, int]


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

    def places(self, old: list[str], since: int | None = None) -> list[int]:
        """The first two places, at or after a line (by default the floor), where the lines stand."""
        needle = "\n" + "".join(line + "\n" for line in old)
        found: list[int] = []
        start = self.floor_at if since is None else self._offset(since)
        while len(found) < _TOO_MANY and (start := self.haystack.find(needle, start)) >= 0:
            found.append(self.haystack.count("\n", 0, start))
            start += 1
        return found

    def after(self, anchors: list[str]) -> int | None:
        """The line of the last anchor, each found after the one before; None if the first is not one line."""
        at = self.floor
        for number, anchor in enumerate(anchors):
            found = (n for n in range(at, len(self.lines)) if self.lines[n].strip() == anchor)
            at = next(found, -1)
            if at < 0 or (number == 0 and next(found, None) is not None):
                return None
        return at if anchors else None

    def go_to(self, line: int) -> None:
        self.floor_at = self._offset(line)
        self.floor = line

    def _offset(self, line: int) -> int:
        return self.floor_at + sum(len(passed) + 1 for passed in self.lines[self.floor : line])


def apply_hunks(text: str, hunks: list[Hunk]) -> Applied:
    """The text after the hunks.

    Raises:
        HunkMismatchError: one does not fit.
    """
    lines = text.split("\n")
    is_ended = lines[-1] == ""
    if is_ended:
        lines.pop()
    old = _Old(lines)
    new: list[str] = []
    offsets: dict[int, int] = {}
    for number, hunk in enumerate(hunks, start=1):
        at = _place(old, hunk, number)
        if hunk.at is not None and at != hunk.at:
            offsets[number] = at - hunk.at
        new += lines[old.floor : at]
        new += [line for mark, line in hunk.lines if mark != "-"]
        old.go_to(at + len(hunk.old))
        # Without such a mark the end stays as it is: models leave the mark out.
        if hunk.marks_end:
            is_ended = not hunk.new_unended
    new += lines[old.floor :]
    marks = [mark for hunk in hunks for mark, _ in hunk.lines]
    end = "\n" if new and is_ended else ""
    return Applied("\n".join(new) + end, len(hunks), marks.count("+"), marks.count("-"), offsets)


def _place(old: _Old, hunk: Hunk, number: int) -> int:
    """Where a hunk belongs: at its own line, or at exactly one other place.

    Raises:
        HunkMismatchError: there is none, or several.
    """
    expected = hunk.old
    end = len(old.lines) - len(expected)
    if not expected and (hunk.at is None or hunk.creates):
        return _place_of_addition(old, hunk, number)
    if hunk.at is not None and old.fits(expected, hunk.at) and (hunk.at == end or not hunk.reaches_end):
        return hunk.at
    places: list[int] = []
    if expected:
        places = old.places(expected) if not hunk.reaches_end else [end] if old.fits(expected, end) else []
    if len(places) == 1:
        return places[0]
    if places and (anchor := old.after(hunk.anchors)) is not None and (after := old.places(expected, anchor)):
        return after[0]
    if hunk.at is None:
        raise _mismatch_without_line(old, hunk, number, places)
    raise _mismatch(old, hunk, hunk.at, number, places)


def _place_of_addition(old: _Old, hunk: Hunk, number: int) -> int:
    """Where lines go that no line of the text stands around."""
    if not old.lines or hunk.at_end:
        return len(old.lines)
    if hunk.creates:
        what = f"makes a new file, and the file has {len(old.lines)} lines; give their lines, or the whole new text"
    else:
        what = "adds lines without a place; give the lines around them"
    raise HunkMismatchError(f"hunk {number} {what}; nothing was changed", number, 1, None, old.lines[0])


def _mismatch_without_line(old: _Old, hunk: Hunk, number: int, places: list[int]) -> HunkMismatchError:
    expected = hunk.old
    if places:
        first, second = places
        where = f"stands at line {first + 1} and at line {second + 1}; give more context"
        return HunkMismatchError(
            f"hunk {number} {where}; nothing was changed", number, first + 1, expected[0], old.lines[first]
        )
    starts = [n for n in range(old.floor, len(old.lines)) if old.lines[n] == expected[0]][:_CANDIDATES_MAX]
    begin, same = max(((n, _same(old.lines, n, expected)) for n in starts), key=_length, default=(old.floor, 0))
    at = begin + same
    found = old.lines[at] if at < len(old.lines) else None
    where = f"does not fit: its line {same + 1} is not line {at + 1} of the file"
    if same == 0:
        where = "does not fit: its first line does not stand in the file after the hunk before it"
    wanted = expected[same] if same < len(expected) else None
    return HunkMismatchError(f"hunk {number} {where}; nothing was changed", number, at + 1, wanted, found)


def _same(lines: list[str], at: int, expected: list[str]) -> int:
    """How many of the expected lines stand at a place."""
    pairs = enumerate(zip(expected, lines[at : at + len(expected)], strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(expected), len(lines) - at))


def _length(candidate: tuple[int, int]) -> int:
    return candidate[1]


def _mismatch(old: _Old, hunk: Hunk, at: int, number: int, places: list[int]) -> HunkMismatchError:
    expected = hunk.old
    its = old.lines[at : at + len(expected)]
    same = next((n for n, (a, b) in enumerate(zip(expected, its, strict=False)) if a != b), len(its))
    line = at + (same if same < len(expected) else 0) + 1
    wanted = expected[line - 1 - at] if expected else None
    found = old.lines[line - 1] if line <= len(old.lines) else None
    if places:
        first, second = places
        where = f"stands at line {first + 1} and at line {second + 1}, not at line {at + 1}; give more context"
    elif at < old.floor:
        where = f"begins at line {at + 1}, before the end of the hunk above it"
    elif found is None:
        where = f"needs a line {line}, and the file has {len(old.lines)}"
    elif wanted == found:
        where = "is marked as the end of the file, and is not"
    else:
        where = f"does not fit: line {line} of the file is another"
    return HunkMismatchError(f"hunk {number} {where}; nothing was changed", number, line, wanted, found)
