"""Stretches of a long text: ``<path>#L100-200`` names its lines from 100 to 200."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from contracts.blocks import TEXT_BYTES_MAX
from service.core.blocks import embedded_text

_STRETCH = re.compile(r"(?P<path>.+)#L(?P<first>\d{1,9})-(?P<last>\d{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines of a text, from 1, both ends included.

    Attributes:
        path: the text's own path.
        first: the first line.
        last: the last line.
    """

    path: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a stretch of a text says.

    Attributes:
        text: the lines, cut to what a content block carries.
        first: the number of the first of them.
        last: the number of the last of them, also if it is cut; 0 if the text has no such line.
        total: how many lines the whole text has.
    """

    text: str
    first: int
    last: int
    total: int

    @property
    def shown(self) -> str:
        """The lines under a head that says which of how many they are."""
        return f"[lines {self.first}-{self.last} of {self.total}]\n{self.text}"


def stretch_of(path: str) -> Stretch | None:
    """The stretch that a path asks for; None if it asks for no lines, or for none that can be."""
    match = _STRETCH.fullmatch(path)
    if match is None:
        return None
    first, last = int(match["first"]), int(match["last"])
    return Stretch(match["path"], first, last) if 1 <= first <= last else None


async def excerpt(pieces: AsyncIterator[bytes], stretch: Stretch) -> Excerpt:
    """Reads a stretch out of a text of any size, in the memory of one piece; lines end with a line feed."""
    kept = bytearray()
    line = 1  # of the next byte
    at_line_start = True
    async for piece in pieces:
        at_line_start = piece.endswith(b"\n") if piece else at_line_start
        feeds = piece.count(b"\n")
        if line <= stretch.last and line + feeds >= stretch.first and len(kept) <= TEXT_BYTES_MAX:
            lines = piece.split(b"\n")
            wanted = lines[max(stretch.first - line, 0) : stretch.last - line + 1]
            ends = stretch.last - line + 1 < len(lines)  # the last wanted line ends in this piece
            kept += b"\n".join(wanted) + (b"\n" if ends else b"")
        line += feeds
    total = line - 1 if at_line_start else line
    if stretch.first > total:
        return Excerpt("", stretch.first, 0, total)
    text = embedded_text(bytes(kept[: TEXT_BYTES_MAX + 4]), more=len(kept) > TEXT_BYTES_MAX + 4)
    if len(kept) <= TEXT_BYTES_MAX:
        return Excerpt(text, stretch.first, min(stretch.last, total), total)
    return Excerpt(text, stretch.first, stretch.first + kept[:TEXT_BYTES_MAX].count(b"\n"), total)
