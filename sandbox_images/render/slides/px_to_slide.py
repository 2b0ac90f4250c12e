"""Scales painted shapes from pixels of layout to pixels of the slide."""

from dataclasses import replace

from render.slides.canvas import slide_height
from render.slides.css import MARGIN_BOTTOM
from render.slides.model import ChartShape, Para, PictureShape, Shape, TableShape, TextShape
from render.weasy.box_style import Border, Shadow

CHART_HEIGHT = 470.0


def scaled(shapes: list[Shape], factor: float, x: float = 0.0, y: float = 0.0) -> list[Shape]:
    """Shapes moved by (-x, -y), then scaled, in place."""
    for shape in shapes:
        shape.x, shape.y = (shape.x - x) * factor, (shape.y - y) * factor
        shape.width, shape.height = shape.width * factor, shape.height * factor
        if isinstance(shape, TextShape | PictureShape):
            shape.radius *= factor
            shape.shadow = _shadow(shape.shadow, factor)
        if isinstance(shape, TextShape):
            left, top, right, bottom = (inset * factor for inset in shape.insets)
            shape.insets = (left, top, right, bottom)
            shape.border = _border(shape.border, factor)
            _scale_paragraphs(shape.paragraphs, factor, x, y)
        elif isinstance(shape, TableShape):
            shape.columns = [width * factor for width in shape.columns]
            shape.rows = [height * factor for height in shape.rows]
            for cell in shape.cells:
                left, top, right, bottom = (margin * factor for margin in cell.margins)
                cell.margins = (left, top, right, bottom)
                _scale_paragraphs(cell.paragraphs, factor, x, y)
    return shapes


def move_down(shape: Shape, by: float) -> None:
    """Moves a shape with its text, in place."""
    shape.y += by
    if isinstance(shape, TextShape):
        _scale_paragraphs(shape.paragraphs, 1.0, 0.0, -by)
    elif isinstance(shape, TableShape):
        for cell in shape.cells:
            _scale_paragraphs(cell.paragraphs, 1.0, 0.0, -by)


def grow_chart(shapes: list[Shape]) -> None:
    """Gives the room that a slide leaves below to its one chart, which was made smaller in large steps."""
    charts = [shape for shape in shapes if isinstance(shape, ChartShape)]
    if len(charts) != 1:
        return
    chart = charts[0]
    free = slide_height() - MARGIN_BOTTOM - max(shape.bottom for shape in shapes)
    more = min(free, CHART_HEIGHT - chart.height)
    below = [shape for shape in shapes if shape.y >= chart.bottom - 1]
    beside = any(shape.bottom > chart.bottom + 1 for shape in shapes if all(shape is not other for other in below))
    if more <= 0 or beside:
        return
    chart.height += more
    for shape in below:
        move_down(shape, more)


def _border(border: Border | None, factor: float) -> Border | None:
    return replace(border, width=border.width * factor) if border else None


def _shadow(shadow: Shadow | None, factor: float) -> Shadow | None:
    return Shadow(shadow.x * factor, shadow.y * factor, shadow.blur * factor, shadow.paint) if shadow else None


def _scale_paragraphs(paragraphs: list[Para], factor: float, x: float, y: float) -> None:
    for para in paragraphs:
        para.x, para.y = (para.x - x) * factor, (para.y - y) * factor
        para.width, para.height = para.width * factor, para.height * factor
        if para.bullet is not None and para.bullet.x is not None:
            para.bullet.x = (para.bullet.x - x) * factor
        para.line *= factor
        para.text_width *= factor
        for index, piece in enumerate(para.pieces):
            para.pieces[index] = replace(piece, size=piece.size * factor, spacing=piece.spacing * factor)
