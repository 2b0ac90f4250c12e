"""The last touches of laid-out slides: roles, room for bullets, wider frames, parts' numbers."""

from dataclasses import replace

from render.slides.canvas import slide_height, slide_width
from render.slides.contrast import keep_readable
from render.slides.geometry_checks import clamp, overlap, solid
from render.slides.model import PictureShape, Shape, Slide, TableCell, TableShape, TextShape
from render.slides.place import FOOT, pin_bottom
from render.slides.splitting.split_after_layout import PART_MARK
from render.weasy.box_style import Paint

_SLACK = 6.0
_BODY_WIDTH = 380
_NAME_MAX, _NAME_WORDS = 60, 7
_WIDER = 0.06
"""The share by which another build of a font can be wider."""
_KERNED = 0.95
"""Capitals are kerned by layout, but not by every reader: a line of them that is nearly full gets smaller by this."""
_ROUNDING = 0.04
"""The share by which readers make a line taller than its font is; LibreOffice rounds to whole pixels."""


def finish(slide: Slide, theme_background: str, accent: str, *, covered: bool) -> bool:
    """Finishes a slide in place.

    Args:
        slide: as layout made it.
        theme_background: ``rrggbb`` of the theme's own ground.
        accent: ``rrggbb`` of the ground that section slides' layout has.
        covered: whether the slide's layout has the ground that the slide asks for.

    Returns:
        Whether the colour of text was changed, which had nearly that of its ground.
    """
    _number_parts(slide)
    for shape in slide.shapes:
        if isinstance(shape, TextShape) and shape.paragraphs:
            _hang(shape)
    pin_bottom(slide.shapes)
    mended = keep_readable(slide, theme_background, covered=accent if covered else "")
    _roles(slide)
    for shape in slide.shapes:
        if isinstance(shape, TextShape) and shape.paragraphs:
            _widen(shape, slide.shapes)
            _lengthen(shape, slide.shapes)
        elif isinstance(shape, TableShape):
            for cell in shape.cells:
                _widen_cell(cell)
    slide.shapes = clamp([shape for shape in slide.shapes if not _is_ground(shape, slide)])
    if covered or slide.background == Paint(theme_background):
        slide.background = None
    if (
        not any(isinstance(shape, TextShape) and shape.role == "title" for shape in slide.shapes)
        and slide.kind != "content"
    ):
        slide.kind = "blank"
    return mended


def name_of_slide(slide: Slide) -> str:
    """A name where there is no title: the first words of the largest text, or what a picture shows."""
    frames = [shape for shape in slide.shapes if isinstance(shape, TextShape) and shape.role != "footnotes"]
    rows = [para for frame in frames for para in frame.paragraphs]
    largest = max((piece.size for para in rows for piece in para.pieces if piece.text.strip()), default=0.0)
    rows.sort(key=lambda para: all(piece.size < largest for piece in para.pieces))
    texts = [" ".join(para.text for para in rows)]
    tables = [shape for shape in slide.shapes if isinstance(shape, TableShape)]
    texts += [" ".join(para.text for cell in table.cells for para in cell.paragraphs) for table in tables]
    texts += [shape.alt for shape in slide.shapes if isinstance(shape, PictureShape)]
    words = next((found for text in texts if (found := text.split())), ["Slide"])
    name = " ".join(words[:_NAME_WORDS])
    return name if len(name) <= _NAME_MAX else name[:_NAME_MAX].rpartition(" ")[0] or name[:_NAME_MAX]


def _is_ground(shape: Shape, slide: Slide) -> bool:
    """A filled box as large as the slide is its background."""
    if not isinstance(shape, TextShape) or shape.paragraphs or shape.fill is None or slide.background is not None:
        return False
    whole = shape.width >= slide_width() - 4 and shape.height >= slide_height() - 4 and shape.radius < 1
    if whole:
        slide.background = shape.fill
    return whole


def _number_parts(slide: Slide) -> None:
    mark = f"({slide.part}/{slide.parts})"
    for shape in slide.shapes:
        if isinstance(shape, TextShape) and shape.role == "title":
            for para in shape.paragraphs:
                for piece in para.pieces:
                    if piece.text.strip() == PART_MARK:
                        piece.text = piece.text.replace(PART_MARK, mark)


def _hang(shape: TextShape) -> None:
    """Room for the bullets of a frame, where its layout has them outside."""
    need = 0.0
    left = shape.x + shape.insets[0]
    for para in shape.paragraphs:
        if para.bullet is not None:
            size = max((piece.size for piece in para.pieces), default=16.0)
            wanted = size * para.bullet.hang - (para.x - left) - 0.5
            need = max(need, wanted if para.bullet.x is None else left - para.bullet.x)
    if need <= 0:
        return
    if shape.fill is None and shape.border is None and shape.x - need >= 0:
        shape.x -= need
        shape.width += need
    elif shape.insets[0] >= need:
        shape.insets = (shape.insets[0] - need, *shape.insets[1:])
    else:
        for para in shape.paragraphs:
            para.x += need


def _roles(slide: Slide) -> None:
    """The largest plain frame is the body; on title slides the first one after the title is the subtitle."""
    frames = [
        shape
        for shape in slide.shapes
        if isinstance(shape, TextShape)
        and shape.role == "text"
        and shape.paragraphs
        and shape.fill is None
        and shape.border is None
    ]
    titled = any(isinstance(shape, TextShape) and shape.role == "title" for shape in slide.shapes)
    if not frames or not titled:
        return
    if slide.kind in {"title", "section"}:
        frames[0].role = "subtitle"
    else:
        largest = max(frames, key=lambda shape: shape.width * shape.height)
        if largest.width >= _BODY_WIDTH:
            largest.role = "body"


def _widen(shape: TextShape, shapes: list[Shape]) -> None:
    """A little more room than measured: a reader with wider letters breaks lines at the same words."""
    inner = shape.width - shape.insets[0] - shape.insets[2]
    single = all(para.lines == 1 for para in shape.paragraphs) and all(
        "\n" not in para.text for para in shape.paragraphs
    )
    tight = max(para.text_width + para.x - shape.x - shape.insets[0] for para in shape.paragraphs) > inner * 0.85
    if (
        single
        and tight
        and shape.role not in {"code", "title"}
        and all(para.align != "justify" for para in shape.paragraphs)
    ):
        shape.wrap = False
    for para in shape.paragraphs:
        if para.text_width > inner * _KERNED and any(piece.capitals for piece in para.pieces):
            para.pieces = [replace(piece, size=piece.size * _KERNED) for piece in para.pieces]
    align = shape.paragraphs[0].align
    if shape.fill is not None or shape.border is not None:
        _use_padding(shape, align)
        return
    if align == "right":
        return
    left = min(_SLACK, shape.x) if align == "center" else 0.0
    wider = TextShape(
        shape.x - left, shape.y, min(shape.width + left + _SLACK, slide_width() - shape.x + left), shape.height
    )
    if not any(other is not shape and solid(other) and overlap(wider, other) for other in shapes):
        shape.x, shape.width = wider.x, wider.width
        for para in shape.paragraphs:
            para.x -= left


def _widen_cell(cell: TableCell) -> None:
    """The same for a table's cell, whose row would get taller: its margin on the side where lines end gives way."""
    align = cell.paragraphs[0].align if cell.paragraphs else "left"
    left, top, right, bottom = cell.margins
    more = [min(_SLACK, margin * 0.6) for margin in (left, right)]
    more = [min(more) / 2] * 2 if align == "center" else [more[0], 0.0] if align == "right" else [0.0, more[1]]
    cell.margins = (left - more[0], top, right - more[1], bottom)


def _use_padding(shape: TextShape, align: str) -> None:
    """The same within a filled shape, at the cost of its padding."""
    left, top, right, bottom = shape.insets
    wanted = max(_SLACK, (shape.width - left - right) * _WIDER)
    room = min(wanted, right * 0.7, *((left * 0.7,) if align == "center" else ()))
    if align != "right" and room > 0:
        shape.insets = (left - room if align == "center" else left, top, right - room, bottom)
        for para in shape.paragraphs if align == "center" else ():
            para.x -= room


def _lengthen(shape: TextShape, shapes: list[Shape]) -> None:
    """Room for a reader that rounds its lines up, or else lines of a fixed height."""
    if all(para.lines == 1 for para in shape.paragraphs) and len(shape.paragraphs) == 1:
        return
    lines = sum(max(1, para.lines) for para in shape.paragraphs)
    used = max(para.y + para.height for para in shape.paragraphs) - shape.paragraphs[0].y + shape.insets[1]
    more = used + _ROUNDING * shape.height + lines - shape.height
    longer = replace(shape, height=shape.height + max(0.0, more))
    own = shape.fill is not None or shape.border is not None
    shape.exact = more > 0 and (
        own
        or longer.bottom > slide_height() - FOOT
        or any(o is not shape and solid(o) and overlap(longer, o) for o in shapes)
    )
    if more > 0 and not shape.exact:
        shape.height = longer.height
