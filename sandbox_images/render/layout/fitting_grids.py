"""Columns of ``repeat(auto-fit, …)`` and ``repeat(auto-fill, …)``, of which WeasyPrint 70 makes one; items out of flow.

Their number is known where a grid is laid out: as many as have room in its width.
"""

from typing import Any

import weasyprint.layout.block
import weasyprint.layout.grid
import weasyprint.layout.inline
from weasyprint.layout.absolute import AbsolutePlaceholder, absolute_layout
from weasyprint.layout.percent import percentage

from render.layout.changes import change

COLUMNS_MAX = 100
_FITTING = {"auto-fit", "auto-fill"}
_PROPERTY = "grid_template_columns"
_lay_out = weasyprint.layout.grid.grid_layout


def fit_grids() -> None:
    """Puts the change in place; again is no harm."""
    for module in (weasyprint.layout.grid, weasyprint.layout.block, weasyprint.layout.inline):
        change(module, "grid_layout", _counted)


def _counted(context: Any, box: Any, bottom_space: Any, skip_stack: Any, containing_block: Any, *rest: Any) -> Any:
    loose = [child for child in box.children if child.is_absolutely_positioned()]
    if not loose or len(loose) == len(box.children):
        return _lay_out_counted(context, box, bottom_space, skip_stack, containing_block, *rest)
    inner = box.copy_with_children([child for child in box.children if not child.is_absolutely_positioned()])
    result = _lay_out_counted(context, inner, bottom_space, skip_stack, containing_block, *rest)
    if result[0] is not None and skip_stack is None:
        _place(context, result[0], loose, bottom_space, *rest[-2:])
    return result


def _place(context: Any, box: Any, loose: list[Any], bottom_space: Any, absolute: Any, fixed: Any) -> None:
    """Lays out the absolutely positioned children of a grid, of which WeasyPrint 70 makes items."""
    for child in loose:
        placeholder = AbsolutePlaceholder(child)
        child.position_x, child.position_y = box.content_box_x(), box.content_box_y()
        box.children = [*box.children, placeholder]
        if child.style["position"] == "fixed":
            fixed.append(placeholder)
        elif box.style["position"] == "static":
            absolute.append(placeholder)
        else:
            absolute_layout(context, placeholder, box, fixed, bottom_space, None)


def _lay_out_counted(context: Any, box: Any, bottom_space: Any, skip_stack: Any, around: Any, *rest: Any) -> Any:
    tracks = box.style[_PROPERTY]
    if isinstance(tracks, tuple) and any(_is_fitting(track) for track in tracks):
        outer = around[0] if isinstance(around, tuple) else around.width
        width = box.width if isinstance(box.width, int | float) else outer
        fixed = sum(_size(track, box, width) for track in tracks[1::2] if not _is_fitting(track))
        items = len([child for child in box.children if child.is_in_normal_flow()])
        box.style[_PROPERTY] = tuple(
            ("repeat()", _count(box, track, width - fixed, items), track[2]) if _is_fitting(track) else track
            for track in tracks
        )
    return _lay_out(context, box, bottom_space, skip_stack, around, *rest)


def _is_fitting(track: Any) -> bool:
    return isinstance(track, tuple) and len(track) == 3 and track[0] == "repeat()" and track[1] in _FITTING  # noqa: PLR2004


def _count(box: Any, track: Any, width: float, items: int) -> int:
    """How often the tracks of a repetition have room; empty ones of ``auto-fit`` have no width, so they count as none."""
    gap = box.style["column_gap"]
    between = 0.0 if gap == "normal" else percentage(gap, box.style, width)
    sizes = [_size(size, box, width) for number, size in enumerate(track[2]) if number % 2]
    least = sum(sizes) + between * len(sizes)
    count = int((width + between + 0.01) // least) if least > 0 and all(sizes) else 1
    if track[1] == "auto-fit":
        count = min(count, -(-items // len(sizes)))
    return max(1, min(count, COLUMNS_MAX))


def _size(size: Any, box: Any, width: float) -> float:
    """The definite size of a track, in px; 0 if it has none."""
    sizes = size[:0:-1] if isinstance(size, tuple) and size[:1] == ("minmax()",) else (size,)
    for part in sizes:  # the largest size before the least one
        if getattr(part, "unit", "fr") not in {"fr", None}:
            return float(percentage(part, box.style, width))
    return 0.0
