"""Geometry of a painted slide: what runs off it, what lies on top of what, and the last resort for both."""

import math

from render.slides.canvas import slide_height, slide_width
from render.slides.model import ChartShape, Para, PictureShape, Shape, TableShape, TextShape
from render.slides.px_to_slide import scaled

_SLACK = 3.0
_EDGE = 4.0
_NEARLY = 0.05
"""The share of a line that text may be longer than its column and still be taken to fit."""
_FAINT = 0.3
"""The share of its colour that text has at most to be no more than a ground."""


def solid(shape: Shape) -> bool:
    """Whether a shape holds words or pictures, and so must not lie on another such."""
    if isinstance(shape, TextShape):
        return any(para.text.strip() for para in shape.paragraphs) and not faint(shape)
    if isinstance(shape, PictureShape):
        return not shape.decorative
    return isinstance(shape, (TableShape, ChartShape))


def faint(shape: TextShape) -> bool:
    """Whether text is hardly seen, as a number or a word behind a slide's own text is."""
    pieces = [piece for para in shape.paragraphs for piece in para.pieces if piece.text.strip()]
    return bool(pieces) and all(piece.colour is not None and piece.colour.alpha <= _FAINT for piece in pieces)


def _clash(one: Shape, other: Shape) -> bool:
    """Whether two shapes overlap that should not: of those that an author has placed, only the ink counts."""
    if one.turn or other.turn:
        return False
    if not one.free and not other.free:
        return overlap(one, other)
    if not isinstance(one, TextShape) or not isinstance(other, TextShape):
        return isinstance(one, TableShape | ChartShape) and isinstance(other, TableShape | ChartShape)
    return any(overlap(first, second) for first in _ink(one) for second in _ink(other))


def _ink(shape: TextShape) -> list[Shape]:
    """Where the paragraphs of a frame have letters."""
    areas = []
    for para in shape.paragraphs:
        inner = para.width or shape.width
        left = {"center": (inner - para.text_width) / 2, "right": inner - para.text_width}.get(para.align, 0.0)
        trim = max(0.0, para.line - max((piece.size for piece in para.pieces), default=0.0)) / 2
        width, height = max(1.0, para.text_width), max(1.0, para.height - 2 * trim)
        areas.append(Shape(para.x + left, para.y + trim, width, height))
    return areas


def overlap(one: Shape, other: Shape) -> bool:
    """Whether two shapes share more than a rounding error."""
    wide = min(one.right, other.right) - max(one.x, other.x)
    tall = min(one.bottom, other.bottom) - max(one.y, other.y)
    return wide > _SLACK and tall > _SLACK


def faults(shapes: list[Shape]) -> bool:
    """Whether solid shapes overlap, or something runs off the sides or the top."""
    known = [shape for shape in shapes if solid(shape) and not shape.turn]
    if any(shape.x < -_EDGE or shape.right > slide_width() + _EDGE or shape.y < -_EDGE for shape in known):
        return True
    if any(_escapes(shape) for shape in known if isinstance(shape, TextShape)):
        return True
    ordered = sorted(known, key=lambda shape: shape.y)
    for index, one in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.y >= one.bottom:
                break
            if _clash(one, other) and not _rides(one, other):
                return True
    return False


def _escapes(shape: TextShape) -> bool:
    """Whether a line is wider than its frame, or its frame too narrow for a word."""
    inner = shape.width - shape.insets[0] - shape.insets[2]
    return shape.wrap and any(para.text_width > inner + 6 for para in shape.paragraphs)


def _rides(one: Shape, other: Shape) -> bool:
    """Whether a picture belongs into a table's cell or a text's line, on top of which it is put."""
    return isinstance(other, PictureShape) and isinstance(one, TableShape)


def overflow(shapes: list[Shape], height: float) -> float:
    """How many pixels too tall a slide is; 0 or less if it fits."""
    known = [shape for shape in shapes if solid(shape) and not shape.turn]
    flowing = [shape for shape in known if not shape.free and not _is_box(shape)]
    lowest = max((shape.bottom for shape in flowing), default=0.0)
    placed = max((shape.bottom for shape in known), default=0.0)
    return max(height - slide_height() - 1.0, lowest - (slide_height() - 10), placed - slide_height() - 1.0)


def paragraphs_of(shapes: list[Shape]) -> list[Para]:
    """All paragraphs of frames and tables."""
    frames = [shape.paragraphs for shape in shapes if isinstance(shape, TextShape)]
    frames += [cell.paragraphs for shape in shapes if isinstance(shape, TableShape) for cell in shape.cells]
    return [para for paragraphs in frames for para in paragraphs]


def least_height(paragraphs: list[Para], height: float, factor: float) -> float:
    """The height that content has at least with another size of type: all changes with the type, and so do lines.

    Args:
        paragraphs: of the content as it is.
        height: of all of it.
        factor: of the type.
    """
    more = sum(para.line * (_least_lines(para, factor) - para.lines) for para in paragraphs)
    return (height + more) * factor


def _least_lines(para: Para, factor: float) -> int:
    if para.lines > 1 or para.width <= 0:
        return max(1 if factor < 1 else para.lines, math.floor((para.lines - 1) * factor))
    return max(1, math.ceil(para.text_width * factor / para.width - _NEARLY))


def _is_box(shape: Shape) -> bool:
    return isinstance(shape, TextShape) and (shape.fill is not None or shape.border is not None)


def fitted(shapes: list[Shape]) -> list[Shape]:
    """Last resort: frames that overlap are moved down, then everything is made smaller as one."""
    frames = sorted((shape for shape in shapes if solid(shape)), key=lambda shape: (shape.y, shape.x))
    for index, frame in enumerate(frames):
        for _ in range(len(frames)):
            hit = next(
                (other for other in frames[:index] if _clash(frame, other) and not _rides(other, frame)), None
            )
            if hit is None:
                break
            frame.y = hit.bottom + 1
    left = min([0.0, *(shape.x for shape in frames)])
    top = min([0.0, *(shape.y for shape in frames)])
    right = max([float(slide_width()), *(shape.right for shape in frames)])
    bottom = max([float(slide_height()), *(shape.bottom + 10 for shape in frames)])
    factor = min(1.0, slide_width() / (right - left), slide_height() / (bottom - top))
    if factor < 1.0 or left < 0 or top < 0:
        scaled(shapes, factor, left, top)
    return shapes


def _is_seen(shape: Shape) -> bool:
    return shape.right > 0 and shape.bottom > 0 and shape.x < slide_width() and shape.y < slide_height()


def clamp(shapes: list[Shape]) -> list[Shape]:
    """Cuts decorations at the slide's edges, and drops those that are off it."""
    retained = []
    for shape in shapes:
        if shape.turn:
            retained.append(shape)
            continue
        right, bottom = min(shape.right, slide_width()), min(shape.bottom, slide_height())
        if not solid(shape):
            if isinstance(shape, TextShape) and shape.radius > 1 and not shape.paragraphs and _is_seen(shape):
                retained.append(shape)  # cut, a circle would be another circle; what leaves a slide is not shown
                continue
            if right <= 0 or bottom <= 0 or shape.x >= slide_width() or shape.y >= slide_height():
                continue
            shape.x, shape.y = max(0.0, shape.x), max(0.0, shape.y)
            shape.width, shape.height = max(0.5, right - shape.x), max(0.5, bottom - shape.y)
        else:
            shape.x, shape.y = max(0.0, shape.x), max(0.0, shape.y)
            shape.width = max(1.0, min(shape.width, slide_width() - shape.x))
            shape.height = max(1.0, min(shape.height, slide_height() - shape.y))
        retained.append(shape)
    return retained
