"""Parts of a long text: ``<path>#L100-200`` names its lines from 100 to 200, ``<path>#B0-20479`` its bytes."""

import codecs
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Literal

from proofbox.contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX
from proofbox.service.timeline.block_writer import embedded_text

LAST = 10**12
"""The last line or byte of a part that has no end of its own: ``#L100-``."""
_STRETCH = re.compile(
    r"(?P<path>.+)#(?P<unit>[LB])(?P<first>\d{1,12})(?:(?P<open>-)(?:(?P=unit)?(?P<last>\d{1,12}))?)?", re.DOTALL
)
_HEX_BYTES_MAX = 2_048
_ROW_BYTES = 16


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a text, both ends included.

    Attributes:
        path: the text's own path.
        first: the first line, from 1, or the first byte, from 0.
        last: the last one; `LAST` for all the rest.
        unit: what is counted.
    """

    path: str
    first: int
    last: int
    unit: Literal["lines", "bytes"] = "lines"

    @property
    def problem(self) -> str | None:
        """Why no text has such a part; None if one may have it."""
        if self.unit == "lines" and self.first == 0:
            return "lines count from 1"
        if self.first > self.last:
            return f"the first {self.unit[:-1]} is after the last; give {self.mark(self.last, self.first)}"
        return None

    def mark(self, first: int, last: int) -> str:
        """How a part of the same text is written, such as ``#L2-5``."""
        return f"#{self.unit[0].upper()}{first}-{'' if last == LAST else last}"

    def __str__(self) -> str:
        """Its canonical spelling."""
        return f"{self.path}{self.mark(self.first, self.last)}"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines of a stretch of a text.

    Attributes:
        text: the lines, cut to what a content block carries.
        first: the number of the first of them.
        last: the number of the last of them, also if it is cut; 0 if the text has no such line.
        total: how many lines the whole text has.
        begins_at: at which byte of the text they begin.
    """

    text: str
    first: int
    last: int
    total: int
    begins_at: int = field(default=0, compare=False)

    @property
    def shown(self) -> str:
        """The lines under a head with their numbers."""
        return f"[lines {self.first}-{self.last} of {self.total}]\n{self.text}"

    @property
    def is_cut(self) -> bool:
        """Whether its last line is not whole."""
        return self.text.endswith(TRUNCATED_SUFFIX)

    def rest(self, asked: Stretch, name: str) -> str | None:
        """What is left out of the part that was asked for, and how to read on; None if nothing is."""
        if self.last >= min(asked.last, self.total) and not self.is_cut:
            return None
        if self.is_cut and self.last == self.first:
            onward = f"{name}#B{self.begins_at + TEXT_BYTES_MAX}-"
        else:
            onward = f"{name}{asked.mark(self.last + (not self.is_cut), asked.last)}"
        return f"lines {self.first} to {self.last} of {self.total}; read on with {onward}"


def parse_stretch(path: str) -> Stretch | None:
    """The part that a path asks for: ``#L5``, ``#L5-9``, ``#L5-L9``, ``#L5-``, or with B; None if it has none."""
    match = _STRETCH.fullmatch(path)
    if match is None:
        return None
    first = int(match["first"])
    last = int(match["last"]) if match["last"] else LAST if match["open"] else first
    return Stretch(match["path"], first, last, "lines" if match["unit"] == "L" else "bytes")


async def excerpt(pieces: AsyncIterator[bytes], stretch: Stretch) -> Excerpt:
    """Reads lines out of a text of any size, in the memory of one piece; lines end with a line feed."""
    taken = bytearray()
    line = 1  # of the next byte
    at = begins_at = 0
    at_line_start = True
    async for piece in pieces:
        at_line_start = piece.endswith(b"\n") if piece else at_line_start
        feeds = piece.count(b"\n")
        if line <= stretch.last and line + feeds >= stretch.first and len(taken) <= TEXT_BYTES_MAX:
            lines = piece.split(b"\n")
            before = max(stretch.first - line, 0)
            if line < stretch.first:
                begins_at = at + sum(len(passed) + 1 for passed in lines[:before])
            wanted = lines[before : stretch.last - line + 1]
            ends = stretch.last - line + 1 < len(lines)  # the last wanted line ends in this piece
            taken += b"\n".join(wanted) + (b"\n" if ends else b"")
        line += feeds
        at += len(piece)
    total = line - 1 if at_line_start else line
    if stretch.first > total:
        return Excerpt("", stretch.first, 0, total)
    text = embedded_text(bytes(taken[: TEXT_BYTES_MAX + 4]), more=len(taken) > TEXT_BYTES_MAX + 4)
    if len(taken) <= TEXT_BYTES_MAX:
        return Excerpt(text, stretch.first, min(stretch.last, total), total, begins_at)
    return Excerpt(text, stretch.first, stretch.first + taken[:TEXT_BYTES_MAX].count(b"\n"), total, begins_at)


def format_bytes(data: bytes, first: int, total: int, *, is_text: bool) -> tuple[str, int]:
    """Some bytes of a file as a block shows them, under a head with their positions; and the last position.

    Args:
        data: the bytes from ``first`` on, as many as were asked for.
        first: at which byte they begin.
        total: how many the file has.
        is_text: shown as text; else in hexadecimal.
    """
    part = data[: TEXT_BYTES_MAX if is_text else _HEX_BYTES_MAX]
    last = first + len(part) - 1
    if is_text:
        # A character that is cut at either end is left out.
        begin = next((n for n, byte in enumerate(part[:4]) if byte & 0xC0 != 0x80), 0)  # noqa: PLR2004 - of UTF-8
        body = codecs.getincrementaldecoder("utf-8")("replace").decode(part[begin:], last + 1 == total)
    else:
        rows = (part[at : at + _ROW_BYTES] for at in range(0, len(part), _ROW_BYTES))
        body = "\n".join(f"{first + n * _ROW_BYTES:08x}: {row.hex(' ')}" for n, row in enumerate(rows))
    return f"[bytes {first}-{last} of {total}]\n{body}", last


def is_utf8(head: bytes) -> bool:
    """Whether the first bytes of a file look like those of a text."""
    if b"\x00" in head:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True


def describe_rest(name: str, head: bytes, size: int) -> str:
    """What is left out where only the first bytes of a file are shown, and how to read on."""
    lines = head[:TEXT_BYTES_MAX].count(b"\n")
    shown = f"the first {TEXT_BYTES_MAX} of {size} bytes"
    if lines == 0:
        return f"{shown}; read on with {name}#B{TEXT_BYTES_MAX}-"
    return f"{shown}, lines 1 to {lines}; read on with {name}#L{lines + 1}-"
