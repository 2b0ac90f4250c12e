"""What WeasyPrint would do without end, or write as no reader takes it, kept within bounds.

These are changes to functions of WeasyPrint 70 and pydyf 0.13 which are not theirs to offer, as in
`render.weasy.savings`; the hostile documents of `tests/container/in_image/hostile` fail without them.
"""

import math
from collections.abc import Callable
from typing import Any

import pydyf
import weasyprint.layout.page
from render.model import RenderError
from render.weasy.patch import change
from weasyprint.images import (
    Gradient,
    LinearGradient,
    RadialGradient,
    gradient_average_color,
    process_color_stops,
)

PAGES_MAX = 2_000
"""``too_many_pages``. Twenty times what a long report has; each takes some ms, and forced breaks make one of each word."""
NUMBER_MAX = 1e9
"""The largest number in a PDF, 350 km: readers stop at numbers of a hundred digits, such as ``1e308px`` makes."""
STOPS_MAX = 20_000
"""Colours of a repeating gradient with all its repetitions; one with more is finer than any screen, so plain."""

_to_bytes = pydyf._to_bytes  # noqa: SLF001 - this module's purpose
_remake_page = weasyprint.layout.page.remake_page
_layouts = {LinearGradient: LinearGradient.layout, RadialGradient: RadialGradient.layout}


def _bounded_bytes(item: Any) -> bytes:
    if isinstance(item, float) and not -NUMBER_MAX <= item <= NUMBER_MAX:
        item = 0 if math.isnan(item) else math.copysign(NUMBER_MAX, item)
    written: bytes = _to_bytes(item)
    return written


def _counted_page(index: int, *arguments: Any) -> Any:
    """Makes the page of that index, from 0.

    Raises:
        RenderError: ``too_many_pages``.
    """
    if index >= PAGES_MAX:
        raise RenderError(
            "too_many_pages",
            f"The document has more than {PAGES_MAX:,} pages; take page breaks out, or make several.",
        )
    return _remake_page(index, *arguments)


def _line_of(gradient: Gradient, width: float, height: float, style: Any) -> float:
    """The length to which the positions of a gradient's colours refer, in CSS px."""
    if isinstance(gradient, LinearGradient):
        return math.hypot(width, height)
    size: tuple[float, float] = gradient._resolve_size(width, height, width / 2, height / 2, style)  # noqa: SLF001
    return min(size[0], math.hypot(width, height))


def _bounded(layout: Callable[..., tuple[Any, ...]]) -> Callable[..., tuple[Any, ...]]:
    """A gradient's layout that repeats so often only as can be seen."""

    def bounded(gradient: Gradient, width: float, height: float, style: Any) -> tuple[Any, ...]:
        if gradient.repeating and len(gradient.colors) > 1:
            line = _line_of(gradient, width, height, style)
            positions, _ = process_color_stops(line, gradient.stop_positions, gradient.color_hints, style)
            repeated = positions[-1] - positions[0]
            room = math.hypot(width, height) + abs(positions[0])
            if repeated > 0 and not room / repeated * len(positions) <= STOPS_MAX:
                return 1, "solid", None, [], [gradient_average_color(gradient.colors, positions)], []
        return layout(gradient, width, height, style)

    return bounded


def keep_bounds() -> None:
    """Puts the changes in place; again is no harm."""
    change(weasyprint.layout.page, "remake_page", _counted_page)
    change(pydyf, "_to_bytes", _bounded_bytes)
    for kind, layout in _layouts.items():
        change(kind, "layout", _bounded(layout))
