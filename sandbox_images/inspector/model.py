"""What a judgement is made of: the subject under the glass, the problem found, and its one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, BinaryIO

from formats import Format
from magic_bytes import looks_like

PROBLEM_CHARS_MAX = 300
"""The length of a problem's sentence: it goes into a model's context as it is."""

COLUMN_NAMES_SHOWN = 50
COLUMN_NAME_CHARS = 100
_QUOTED_CHARS_MAX = 80


class Problem(Exception):  # noqa: N818 - a problem of the judged file is a finding, not an error of this program
    """The file is not what it promises; the text is the sentence of the verdict, about 'the file' as subject."""


class Unmet(Problem):
    """The file opens as what its extension promises, and a check of the contract does not hold."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far one file may make the inspector go; all figures are totals for one file.

    Attributes:
        seconds_per_file: Seconds of processor time until a file's judge is killed: a busy host changes no verdict.
        wall_seconds_per_file: Wall-clock seconds until it is killed in any case: for one that only waits.
        image_pixels_max: Pixels of a picture, all of its decoded frames together.
        unpacked_bytes_max: Bytes that an archive or an office file may unpack to.
        members_max: Members of an archive or an office file.
        pages_max: Pages of a document, slides of a presentation.
        memory_bytes_max: Private memory of a file's judge, beyond what the inspector itself holds.
    """

    seconds_per_file: float = 10
    wall_seconds_per_file: float = 60
    image_pixels_max: int = 200_000_000
    unpacked_bytes_max: int = 1_073_741_824
    members_max: int = 10_000
    pages_max: int = 20_000
    memory_bytes_max: int = 2_147_483_648


@dataclass(slots=True)
class Subject:
    """One promised file, open for reading.

    Attributes:
        file: The open file, at its start.
        size: Its length in bytes.
        extension: Lower-cased and without its dot; empty for none.
        format: What the extension promises.
        checks: The contract's checks, by name; some of them may be of the wrong type.
        limits: The bounds of this inspection.
        facts: What was measured so far; stays even when a problem ends the judgement.
        columns: Every column name found, unshortened; None where the format has none.
        path: Where it lies, relative to the root.
    """

    file: BinaryIO
    size: int
    extension: str
    format: Format
    checks: dict[str, Any]
    limits: Limits
    facts: dict[str, Any] = field(default_factory=dict)
    columns: list[str] | None = None
    path: str = ""

    def head(self, count: int) -> bytes:
        """Return the first ``count`` bytes and leave the file at its start."""
        self.file.seek(0)
        data = self.file.read(count)
        self.file.seek(0)
        return data

    def tail(self, count: int) -> bytes:
        """Return the last ``count`` bytes and leave the file at its start."""
        self.file.seek(max(0, self.size - count))
        data = self.file.read(count)
        self.file.seek(0)
        return data

    def must_not_be_blank(self) -> bool:
        """Return whether the contract asks for something to be seen in the file."""
        return self.checks.get("not_blank") is True

    def wrong_format(self) -> Problem:
        """Return the problem of a file whose content is something else, with what it looks like."""
        like = looks_like(self.head(512))
        if like == f"it is {self.format.name}":
            return Problem(f"is damaged: it starts like {self.format.name}, and what follows is none")
        return Problem(f"is not {self.format.name}: {like}")

    def measured_columns(self, names: list[str]) -> None:
        """Record the column names: all of them for the check, the first few, escaped, as a fact."""
        self.columns = names
        self.facts["columns"] = [one_line(name, COLUMN_NAME_CHARS) for name in names[:COLUMN_NAMES_SHOWN]]


def one_line(text: str, chars_max: int) -> str:
    """Escape what a reader cannot see (controls, bidi marks, surrogates) and shorten in the middle."""
    escaped = "".join(
        # A text far over the limit is cut before it is escaped: it may be a hundred megabytes.
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in _shorten(text, chars_max * 2)
    )
    return _shorten(escaped, chars_max)


def quoted(text: str) -> str:
    """Return a hostile name in quotes, escaped and short enough for a sentence."""
    return f"'{one_line(text, _QUOTED_CHARS_MAX)}'"


def counted(number: int, noun: str) -> str:
    """Return a figure with its noun: ``1 page``, ``20,000 pages``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _shorten(text: str, chars_max: int) -> str:
    if len(text) <= chars_max:
        return text
    chars = chars_max - 3
    return f"{text[: chars - chars // 3]}...{text[-(chars // 3) :]}"
