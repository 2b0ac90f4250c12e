"""The bytes that stretches of ``react.read`` are cut out of: a file, the text of a document, a block, a source."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from proofbox.contracts.blocks import TEXT_BYTES_MAX
from proofbox.service.artifacts.line_ranges import Stretch, excerpt, format_bytes
from proofbox.service.react.read_items import CannotLoadError


@dataclass(frozen=True, slots=True)
class Content:
    """What stretches are read out of.

    Attributes:
        name: its canonical path.
        mime: its media type.
        size_bytes: how many bytes it has.
        read: its bytes from one to before another.
        is_text: it has lines.
        meta: of its blocks.
        digest: of its file; empty for what is not a file.
    """

    name: str
    mime: str
    size_bytes: int
    read: Callable[[int, int], AsyncIterator[bytes]]
    is_text: bool
    meta: dict[str, Any]
    digest: dict[str, Any]


def build_text_content(
    name: str, mime: str, text: bytes, meta: dict[str, Any] | None = None, digest: dict[str, Any] | None = None
) -> Content:
    """The content of a text that is not the bytes of a file."""
    return Content(name, mime, len(text), partial(_slice, text), is_text=True, meta=meta or {}, digest=digest or {})


async def read_lines(content: Content, stretch: Stretch) -> tuple[str, dict[str, Any], str | None]:
    """The lines of a stretch, which they are, and what is left out.

    Raises:
        CannotLoadError: it has none of them.
    """
    found = await excerpt(content.read(0, content.size_bytes), stretch)
    if found.last == 0:
        raise CannotLoadError(f"it has {found.total} lines, none from {stretch.first} on")
    part = {"lines": [found.first, found.last], "lines_total": found.total}
    return found.shown, part, found.rest(stretch, content.name)


async def read_bytes(content: Content, stretch: Stretch) -> tuple[str, dict[str, Any], str | None]:
    """The bytes of a stretch, which they are, and what is left out.

    Raises:
        CannotLoadError: it has none of them.
    """
    first, total = stretch.first, content.size_bytes
    end = min(stretch.last + 1, total)
    if first >= total:
        raise CannotLoadError(f"it has {total} bytes, none from {first} on")
    data = b"".join([piece async for piece in content.read(first, min(end, first + TEXT_BYTES_MAX))])
    shown, last = format_bytes(data, first, total, is_text=content.is_text)
    partly = None
    if last + 1 < end:
        onward = f"{content.name}{stretch.mark(last + 1, stretch.last)}"
        partly = f"bytes {first} to {last} of {total}; read on with {onward}"
    return shown, {"bytes": [first, last], "bytes_total": total}, partly


async def _slice(content: bytes, start: int, end: int) -> AsyncIterator[bytes]:
    yield content[start:end]
