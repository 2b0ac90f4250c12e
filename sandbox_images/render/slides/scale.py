"""Scales painted shapes from pixels of layout to pixels of the slide."""

from dataclasses import replace

from render.layout.look import Border, Shadow
from render.slides.model import Para, PictureShape, Shape, TableShape, TextShape


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
