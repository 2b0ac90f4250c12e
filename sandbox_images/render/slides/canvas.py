"""The size of the slides of a deck, in pixels of the slide: 1280 by 720 unless the request has another."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from render.model import RenderError
from render.page_setup import length_mm
from render.slides.model import HEIGHT, WIDTH

NAMED = {"16:9": (WIDTH, HEIGHT), "16:10": (1152, 720), "4:3": (960, 720), "a4": (1040, 720)}
"""Sizes by name, as PowerPoint has them: A4 leaves the margins of a printer."""
SIDE_MM_MIN, SIDE_MM_MAX = 100.0, 1_400.0
"""PowerPoint makes slides of 25 to 1,422 mm; nothing is read on smaller ones than these."""
RATIO_MAX = 2.5
"""Of the longer side to the shorter one: the layouts need room in both directions."""
_PX_PER_MM = 96 / 25.4
_SIZE: ContextVar[tuple[float, float, float]] = ContextVar("slide_size", default=(WIDTH, HEIGHT, 1.0))


def slide_width() -> float:
    """The width of the slides that are made."""
    return _SIZE.get()[0]


def slide_height() -> float:
    """Their height."""
    return _SIZE.get()[1]


def slide_factor() -> float:
    """How much larger the slides of the file are than those of layout."""
    return _SIZE.get()[2]


@contextmanager
def sized_slides(width: float, height: float, factor: float = 1.0) -> Iterator[None]:
    """Make slides of another size."""
    token = _SIZE.set((width, height, factor))
    try:
        yield
    finally:
        _SIZE.reset(token)


def slide_size(options: dict[str, Any]) -> tuple[float, float, float]:
    """The size of slides that a request asks for.

    Returns:
        Width and height for layout, whose shorter side is that of a usual slide, and how much larger the slides are.

    Raises:
        RenderError: ``invalid_slide_size``.
    """
    given = str(options.get("slide_size") or "16:9").strip().lower()
    named = NAMED.get(given)
    if named is not None:
        return float(named[0]), float(named[1]), 1.0
    sides = [length_mm(word) for word in given.replace("\u00d7", " ").split() if word != "x"]
    width, height = (sides[0] or 0.0, sides[1] or 0.0) if len(sides) == 2 else (0.0, 0.0)  # noqa: PLR2004
    fits = min(width, height) >= SIDE_MM_MIN and max(width, height) <= SIDE_MM_MAX
    if not fits or max(width, height) > RATIO_MAX * min(width, height):
        raise RenderError(
            "invalid_slide_size",
            f"slide_size: {given[:40]!r} is not a size of slides; give {', '.join(NAMED)}, or width and height such as "
            f"'254mm 143mm', {SIDE_MM_MIN:.0f} to {SIDE_MM_MAX:.0f} mm each, the longer at most {RATIO_MAX} times the shorter.",
        )
    factor = min(width, height) * _PX_PER_MM / HEIGHT
    return width * _PX_PER_MM / factor, height * _PX_PER_MM / factor, factor
