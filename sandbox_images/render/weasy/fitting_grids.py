"""Columns of ``repeat(auto-fit, …)`` and ``repeat(auto-fill, …)``, of which WeasyPrint 70 makes one; items out of flow.

Their number is known where a grid is laid out: as many as have room in its width.
"""

import inspect
from typing import Any

import weasyprint.layout.block
import weasyprint.layout.grid
import weasyprint.layout.inline
from render.weasy.patch import change
from weasyprint.layout.absolute import AbsolutePlaceholder, absolute_layout
from weasyprint.layout.percent import percentage

COLUMNS_MAX = 100
_FITTING = {"auto-fit", "auto-fill"}
_PROPERTY = "grid_template_columns"
_lay_out = weasyprint.layout.grid.grid_layout
_SIGNATURE = inspect.signature(_lay_out)


def fit_grids() -> None:
    """Puts the change in place; again is no harm."""
    for module in (weasyprint.layout.grid, weasyprint.layout.block, weasyprint.layout.inline):
        change(module, "grid_layout", _grid_layout)


def _grid_layout(*given: Any, **named: Any) -> Any:
    """WeasyPrint's own function, whose callers give some arguments by position and some by name."""
    arguments = _SIGNATURE.bind(*given, **named).arguments
    box = arguments["box"]
    loose = [child for child in box.children if child.is_absolutely_positioned()]
    loose = loose if len(loose) < len(box.children) else []
    if loose:
        items = [child for child in box.children if not child.is_absolutely_positioned()]
        arguments["box"] = box.copy_with_children(items)
    _count_columns(arguments["box"], arguments["containing_block"])
    result = _lay_out(**arguments)
    if result[0] is not None and arguments["skip_stack"] is None:
        _place(result[0], loose, arguments)
    return result


def _place(box: Any, loose: list[Any], arguments: dict[str, Any]) -> None:
    """Lays out the absolutely positioned children of a grid, of which WeasyPrint 70 makes items."""
    for child in loose:
        placeholder = AbsolutePlaceholder(child)
        child.position_x, child.position_y = box.content_box_x(), box.content_box_y()
        box.children = [*box.children, placeholder]
        if child.style["position"] == "fixed":
            arguments["fixed_boxes"].append(placeholder)
        elif box.style["position"] == "static":
            arguments["absolute_boxes"].append(placeholder)
        else:
            absolute_layout(
                arguments["context"], placeholder, box, arguments["fixed_boxes"], arguments["bottom_space"], None
            )


def _count_columns(box: Any, containing_block: Any) -> None:
    """Writes how many columns there are in place of ``auto-fit`` and ``auto-fill``."""
    tracks = box.style[_PROPERTY]
    if not isinstance(tracks, tuple) or not any(_is_fitting(track) for track in tracks):
        return
    outer = containing_block[0] if isinstance(containing_block, tuple) else containing_block.width
    width = box.width if isinstance(box.width, int | float) else outer
    fixed = sum(_size(track, box, width) for track in tracks[1::2] if not _is_fitting(track))
    items = len([child for child in box.children if child.is_in_normal_flow()])
    box.style[_PROPERTY] = tuple(
        ("repeat()", _count(box, track, width - fixed, items), track[2]) if _is_fitting(track) else track
        for track in tracks
    )


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
