"""What stands behind text: fills, outlines, bars; and text that becomes the text of the shape behind it."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from render.frontend.element_tree import make
from render.slides.model import LineShape, PictureShape, Shape, TextShape
from render.weasy.box_style import Border, Gradient, Paint
from render.weasy.boxes import BoxNode
from render.weasy.grounds import Ground, Tile, flattened

_SIDES = ("left", "top", "right", "bottom")
_CENTRED = 4.0


def decorate(node: BoxNode) -> list[Shape]:
    """The shapes of a box's background and borders: at most one filled shape, and bars for single borders."""
    look = node.look
    if node.width < 1 or node.height < 1 or not look.visible:
        return []
    borders = _borders(node)
    shapes, fill = _layers(node, node.grounds)
    whole = len(borders) == len(_SIDES) and len({round(border.width) for border in borders.values()}) == 1
    if fill or whole:
        shape = TextShape(node.x, node.y, node.width, node.height, role="box", fill=fill)
        shape.radius = look.radius(node.width, node.height)
        shape.shadow = look.shadow if fill and not shapes else None
        if whole:
            shape.border = borders["top"]
        shapes.append(shape)
    return shapes if whole else [*shapes, *_bars(node, borders)]


def edges_of(node: BoxNode) -> list[Shape]:
    """The borders of a slide itself, as bars."""
    return list(_bars(node, _borders(node)))


def _borders(node: BoxNode) -> dict[str, Border]:
    return {side: border for side in _SIDES if (border := node.look.border(side))}


def _bars(node: BoxNode, borders: dict[str, Border]) -> Iterator[LineShape]:
    for side, border in borders.items():
        width = min(border.width, node.width if side in {"left", "right"} else node.height)
        x = node.x + node.width - width if side == "right" else node.x
        y = node.bottom - width if side == "bottom" else node.y
        across = side in {"top", "bottom"}
        yield LineShape(x, y, node.width if across else width, width if across else node.height, border.paint)


def _layers(node: BoxNode, grounds: tuple[Ground, ...]) -> tuple[list[Shape], Paint | Gradient | None]:
    """What lies behind a box, the lowest first, and the fill that the topmost shape gets: its text can be put in it."""
    shapes: list[Shape] = []
    pictures = pictures_behind(node)
    if pictures:
        grounds = grounds[1:] if grounds and isinstance(grounds[0], Paint) else grounds
    else:
        grounds = flattened(grounds)
    shapes.extend(pictures)
    radius = node.look.radius(node.width, node.height)
    for ground in grounds:
        if isinstance(ground, Tile):
            tile = _tile(ground)
            tile.radius = radius
            shapes.append(tile)
        else:
            fill = TextShape(node.x, node.y, node.width, node.height, role="box", fill=ground, radius=radius)
            shapes.append(fill)
    if shapes and isinstance(shapes[-1], TextShape):
        return shapes[:-1], shapes[-1].fill
    return shapes, None


def _tile(tile: Tile) -> PictureShape:
    return PictureShape(tile.x, tile.y, tile.width, tile.height, element=tile.drawing, decorative=True)


def ground_shapes(grounds: tuple[Ground, ...], width: float, height: float) -> list[Shape]:
    """The layers of a slide's ground that lie upon its fill, over the whole slide."""
    shapes: list[Shape] = []
    for ground in grounds:
        shape = _tile(ground) if isinstance(ground, Tile) else TextShape(0, 0, 0, 0, role="box", fill=ground)
        shape.x, shape.y, shape.width, shape.height = 0.0, 0.0, width, height
        shapes.append(shape)
    return shapes


def pictures_behind(node: BoxNode) -> list[Shape]:
    """The pictures that a box has as its background."""
    look = node.look
    return [
        PictureShape(
            node.x,
            node.y,
            node.width,
            node.height,
            element=make("img", {"src": address, "alt": ""}),
            decorative=True,
            fit=fit,
            radius=look.radius(node.width, node.height),
            shadow=look.shadow,
        )
        for address, fit in look.pictures
    ]


def merge_text(shapes: list[Shape], start: int, count: int) -> None:
    """Makes a filled shape and the one frame in it one shape with text.

    Args:
        shapes: what was painted.
        start: where the box's own decorations begin.
        count: how many they are.
    """
    first = start + count
    index = next((i for i in range(first - 1, start - 1, -1) if isinstance(shapes[i], TextShape)), None)
    box, inside = (shapes[index] if index is not None else None), shapes[first:]
    if not isinstance(box, TextShape) or len(inside) != 1 or box.paragraphs:
        return
    frame = inside[0]
    if (
        not isinstance(frame, TextShape)
        or frame.role != "text"
        or frame.fill is not None
        or frame.border is not None
    ):
        return
    if frame.bottom > box.bottom + 2 or frame.x < box.x - 2 or frame.right > box.right + 2:
        return
    single = len(frame.paragraphs) == 1 and frame.paragraphs[0].lines == 1
    para = frame.paragraphs[0]
    width = para.text_width
    left = frame.x + ((frame.width - width) / 2 if para.align == "center" else 0)
    centred_x = abs((left + width / 2) - (box.x + box.width / 2)) < _CENTRED
    centred_y = abs((frame.y + frame.height / 2) - (box.y + box.height / 2)) < _CENTRED
    box.insets = (
        max(0.0, frame.x - box.x),
        max(0.0, frame.y - box.y),
        max(0.0, box.right - frame.right),
        0.0,
    )
    if single and centred_x and centred_y and frame.x - box.x < box.width / 2:
        box.insets, box.anchor, para.align, box.wrap = (0.0, 0.0, 0.0, 0.0), "ctr", "center", False
        para.x = box.x
    box.paragraphs, box.role, box.key = frame.paragraphs, "text", frame.key
    del shapes[first]


def hand_down(drawing: Element, node: BoxNode) -> None:
    """Writes into a drawing what it inherits from the page: readers draw it without the page."""
    look = node.look
    inherited = {
        "color": f"#{look.colour.rgb}",
        "font-family": look.family,
        "font-size": f"{look.size:g}px",
        "font-weight": "700" if look.bold else "400",
    }
    for name, value in inherited.items():
        if drawing.get(name) is None and f"{name}:" not in (drawing.get("style") or "").replace(" ", ""):
            drawing.set(name, value)


def name_title(shapes: list[Shape]) -> None:
    """Makes the first of a title's frames the slide's title."""
    for shape in shapes:
        if isinstance(shape, TextShape) and shape.paragraphs:
            shape.role = "title"
            return


def in_order(children: list[BoxNode], ranks: dict[int, int]) -> list[BoxNode]:
    """Boxes with those out of flow, which layout may put first, where they stand in the document."""
    loose = [
        child for child in children if child.out_of_flow and child.element is not None and child.kind != "marker"
    ]
    if not loose or len(loose) == len(children):
        return children
    ordered = [child for child in children if all(child is not item for item in loose)]
    for item in loose:
        rank = ranks.get(id(item.element), 0)
        later = [
            index
            for index, child in enumerate(ordered)
            if child.principal and not child.pseudo and ranks.get(id(child.element), 0) > rank
        ]
        ordered.insert(0 if item.pseudo == "before" else later[0] if later else len(ordered), item)
    return ordered
