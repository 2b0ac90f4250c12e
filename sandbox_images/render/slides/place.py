"""Where the content of a slide stands below its title."""

from render.slides.canvas import slide_height
from render.slides.css import MARGIN_BOTTOM
from render.slides.geometry_checks import solid
from render.slides.model import Shape, TextShape
from render.slides.px_to_slide import move_down

_ABOVE = 0.45
"""The share of the free height that goes above the content: what looks like the middle is a little above it."""
FOOT = 28.0
"""Pixels between small print and the lower edge of its slide."""
_LEAST = 12.0
_ROOM_BELOW = 16.0
_RULE = 8


def block_of(shapes: list[Shape]) -> list[Shape]:
    """The shapes of a slide that are neither its title, nor above it, nor small print."""
    title = next((shape for shape in shapes if isinstance(shape, TextShape) and shape.role == "title"), None)
    foot = next((shape for shape in shapes if isinstance(shape, TextShape) and shape.role == "footnotes"), None)
    top = title.bottom if title is not None else 0.0
    return [
        shape
        for shape in shapes
        if shape is not title
        and shape is not foot
        and shape.y >= top - 4
        and (foot is None or shape.bottom < foot.y - _ROOM_BELOW)
    ]


def content_bottom(shapes: list[Shape]) -> float:
    """The lower edge of a slide's content."""
    return max((shape.bottom for shape in block_of(shapes)), default=0.0)


def centre(shapes: list[Shape]) -> None:
    """Moves all that is on a slide into the middle of its height, as reveal.js does."""
    if not shapes:
        return
    top, bottom = min(shape.y for shape in shapes), max(shape.bottom for shape in shapes)
    move = (slide_height() - (bottom - top)) / 2 - top
    if top >= 0 and move > _LEAST:
        for shape in shapes:
            move_down(shape, move)


def _beside_title(shapes: list[Shape], block: list[Shape]) -> bool:
    """Whether there is text beside the title, so that what is below it belongs to one of two columns."""
    title = next((shape for shape in shapes if isinstance(shape, TextShape) and shape.role == "title"), None)
    rest = [shape for shape in shapes if shape is not title and all(shape is not item for item in block)]
    return title is not None and any(solid(shape) and title.y - 4 < shape.y < title.bottom for shape in rest)


def pin_bottom(shapes: list[Shape]) -> None:
    """Footnotes and footers go to the slide's foot, with the rule above them."""
    index = next(
        (i for i, shape in enumerate(shapes) if isinstance(shape, TextShape) and shape.role == "footnotes"), None
    )
    if index is None:
        return
    frame = shapes[index]
    down = slide_height() - FOOT - frame.bottom
    above = [shape for shape in shapes if solid(shape) and shape is not frame]
    if down <= 0 or any(shape.bottom > frame.y - 4 for shape in above):
        return
    moved = [frame]
    if (
        index
        and not solid(shapes[index - 1])
        and shapes[index - 1].height < _RULE
        and shapes[index - 1].y >= frame.y - 24
    ):
        moved.append(shapes[index - 1])
    for shape in moved:
        move_down(shape, down)


def settle_block(shapes: list[Shape]) -> None:
    """Moves the content of a slide that is not full into the optical middle of the room below its title."""
    pin_bottom(shapes)
    block = block_of(shapes)
    if not block or _beside_title(shapes, block):
        return
    foot = next((shape for shape in shapes if isinstance(shape, TextShape) and shape.role == "footnotes"), None)
    lowest = slide_height() - MARGIN_BOTTOM
    end = lowest if foot is None else min(foot.y, lowest) - _ROOM_BELOW
    titled = any(isinstance(shape, TextShape) and shape.role == "title" for shape in shapes)
    free = end - max(shape.bottom for shape in block)
    above = 0.0 if titled else max(0.0, min(shape.y for shape in block) - MARGIN_BOTTOM)
    move = (free + above) * _ABOVE - above
    if move > _LEAST:
        for shape in block:
            move_down(shape, move)
