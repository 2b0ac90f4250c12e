"""Shadows of boxes, as many thin layers.

WeasyPrint 70 puts a blurred shadow together of four sides and four corners, and where they meet there are lines.
"""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import weasyprint.draw
from render.weasy.patch import change
from weasyprint.draw.border import rounded_box

LAYERS = 24
_SPREADS = [NormalDist().inv_cdf((number + 0.5) / LAYERS) for number in range(LAYERS)]
"""How much larger than the shadow each layer is, in parts of its deviation: together they fade as a blur does."""

_draw = weasyprint.draw._draw_box_shadow  # noqa: SLF001 - this module's purpose


def _grown(box: Sequence[Any], by: float, x: float, y: float) -> tuple[Any, ...]:
    """A rounded box (x, y, width, height and four radii, in px), larger by so much on each side, and moved."""
    radii = [[max(0.0, radius + by) for radius in corner] for corner in box[4:]]
    width, height = max(0.0, box[2] + 2 * by), max(0.0, box[3] + 2 * by)
    return (box[0] + x - by, box[1] + y - by, width, height, *radii)


def _draw_in_layers(  # noqa: PLR0913, PLR0917 - as WeasyPrint calls it
    stream: Any, box: Any, style: Any, tx: float, ty: float, blur: float, spread: float, color: Any, inset: bool
) -> None:
    """Draws the shadow of a box; those without a blur, and those inside of a box, as WeasyPrint does."""
    if inset or not blur:
        _draw(stream, box, style, tx, ty, blur, spread, color, inset)
        return
    rounded_box(stream, _grown(box, spread + 2 * blur + abs(tx) + abs(ty), 0, 0))
    rounded_box(stream, box)
    stream.clip(even_odd=True)
    stream.end()
    layer = color.to(color.space)
    layer.alpha = 1 - (1 - min(color.alpha, 0.999)) ** (1 / LAYERS)
    stream.set_color(layer)
    for part in _SPREADS:
        rounded_box(stream, _grown(box, spread + part * blur / 2, tx, ty))
        stream.fill()


def smooth_shadows() -> None:
    """Puts the change in place; again is no harm."""
    change(weasyprint.draw, "_draw_box_shadow", _draw_in_layers)
