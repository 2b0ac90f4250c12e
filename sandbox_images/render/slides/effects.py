"""What a transformation or an opacity does to the shapes of a box: they are moved, turned, made larger or fainter."""

import math
from collections.abc import Sequence
from dataclasses import replace

from render.slides.model import LineShape, Para, PictureShape, Shape, TableShape, TextShape
from render.slides.px_to_slide import scaled
from render.weasy.box_style import Border, Gradient, Paint

_EVEN = 0.005
_LEAST, _MOST = 0.05, 20.0


def transform(shapes: Sequence[Shape], matrix: tuple[float, ...]) -> None:
    """Applies a CSS matrix to shapes, in place; what slides have no word for, a slant or a mirror, is left out.

    Args:
        shapes: in the pixels that the matrix is about.
        matrix: a, b, c, d, e, f as in CSS.
    """
    a, b, c, d, e, f = matrix
    wide, tall = math.hypot(a, b), math.hypot(c, d)
    upright = a * d - b * c > 0
    factor = min(_MOST, max(_LEAST, math.sqrt(wide * tall)))
    turn = math.degrees(math.atan2(b, a)) if upright else 0.0
    for shape in shapes:
        middle_x, middle_y = shape.x + shape.width / 2, shape.y + shape.height / 2
        if upright:
            to_x, to_y = a * middle_x + c * middle_y + e, b * middle_x + d * middle_y + f
            size = factor if abs(factor - 1) > _EVEN else 1.0
            scaled([shape], size, middle_x - to_x / size, middle_y - to_y / size)
        shape.turn = (shape.turn + turn) % 360


def fade(shapes: Sequence[Shape], opacity: float) -> None:
    """Makes shapes so faint that only that share of them is seen, in place."""
    for shape in shapes:
        if isinstance(shape, TextShape):
            shape.fill, shape.border = _faint(shape.fill, opacity), _faint_border(shape.border, opacity)
            if shape.shadow is not None:
                shape.shadow = replace(shape.shadow, paint=_faint_paint(shape.shadow.paint, opacity))
            _fade_text(shape.paragraphs, opacity)
        elif isinstance(shape, PictureShape):
            shape.opacity *= opacity
        elif isinstance(shape, LineShape):
            shape.paint = _faint_paint(shape.paint, opacity)
        elif isinstance(shape, TableShape):
            for cell in shape.cells:
                cell.fill = _faint_paint(cell.fill, opacity) if cell.fill else None
                left, right, top, bottom = (_faint_border(border, opacity) for border in cell.borders)
                cell.borders = (left, right, top, bottom)
                _fade_text(cell.paragraphs, opacity)


def _faint_paint(paint: Paint, opacity: float) -> Paint:
    return replace(paint, alpha=paint.alpha * opacity)


def _faint(fill: Paint | Gradient | None, opacity: float) -> Paint | Gradient | None:
    if isinstance(fill, Gradient):
        return replace(fill, stops=tuple((at, _faint_paint(paint, opacity)) for at, paint in fill.stops))
    return _faint_paint(fill, opacity) if fill else None


def _faint_border(border: Border | None, opacity: float) -> Border | None:
    return replace(border, paint=_faint_paint(border.paint, opacity)) if border else None


def _fade_text(paragraphs: list[Para], opacity: float) -> None:
    for para in paragraphs:
        if para.bullet is not None and para.bullet.colour is not None:
            para.bullet.colour = _faint_paint(para.bullet.colour, opacity)
        for index, piece in enumerate(para.pieces):
            colour = _faint_paint(piece.colour or Paint("000000"), opacity)
            highlight = _faint_paint(piece.highlight, opacity) if piece.highlight else None
            para.pieces[index] = replace(piece, colour=colour, highlight=highlight)
