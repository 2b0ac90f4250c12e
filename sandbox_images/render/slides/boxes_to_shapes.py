"""Boxes to shapes: text flows into one frame per container, boxes with a fill become shapes, tables stay tables."""

from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, name_of
from render.slides.bullets import bullet_of
from render.slides.effects import fade, transform
from render.slides.model import Bullet, ChartShape, LineShape, Para, PictureShape, Piece, Shape, TextShape
from render.slides.shape_fills import decorate, edges_of, hand_down, in_order, merge_text, name_title
from render.slides.tables import read_table
from render.slides.text import (
    GAP,
    Boxes,
    break_before_pictures,
    code_lines,
    is_inline,
    is_swatch,
    runs_of,
    settle_line,
    shift_with_text,
)
from render.weasy.box_style import Paint
from render.weasy.boxes import BoxNode

_LEVEL_MAX = 8


@dataclass(frozen=True, slots=True)
class _Place:
    """Where painting stands: the container that text flows in, and the depth in lists."""

    key: int
    level: int = -1
    wide: bool = False


@dataclass(slots=True)
class Painter:
    """Paints one slide.

    Attributes:
        root: the slide's box.
        title: its title's element.
        shapes: what was painted so far.
        anchors: ids of the elements that were met.
    """

    root: BoxNode
    title: Element | None
    shapes: list[Shape] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    boxes: Boxes = field(default_factory=Boxes)
    ranks: dict[int, int] = field(default_factory=dict)
    _open: TextShape | None = None
    _queues: dict[int, list[list[Piece]]] = field(default_factory=dict)
    _bullet: Bullet | None = None

    def paint(self) -> list[Shape]:
        """Paints the whole slide; shapes are in pixels of layout, relative to the slide's corner."""
        self.boxes = Boxes.of(self.root)
        if self.root.element is not None:
            self.ranks = {id(item): rank for rank, item in enumerate(self.root.element.iter())}
        self.shapes.extend(edges_of(self.root))
        self._children(self.root, _Place(id(self.root)))
        self._open = None
        self._keep_leftovers()
        return self.shapes

    # ---- blocks ----

    def _node(self, node: BoxNode, place: _Place, parent: BoxNode) -> None:
        if node.kind == "marker":
            return
        altered = node.principal and (node.matrix is not None or node.look.opacity < 1)
        if not altered and not node.out_of_flow:
            self._plain_node(node, place, parent)
            return
        self._open = None
        start = len(self.shapes)
        self._plain_node(node, replace(place, key=id(node)), parent)
        self._open = None
        made = self.shapes[start:]
        for shape in made if node.out_of_flow or node.matrix is not None else ():
            shape.free = True
        if altered and node.look.opacity < 1:
            fade(made, node.look.opacity)
        if altered and node.matrix is not None:
            transform(made, node.matrix)

    def _plain_node(self, node: BoxNode, place: _Place, parent: BoxNode) -> None:
        element = node.element
        if node.principal and element is not None and not node.pseudo:
            if element.get("id"):
                self.anchors.add(element.get("id", ""))
            if self._special(node, element):
                return
        if node.kind == "table":
            self._table(node)
            return
        if node.kind == "replaced":
            self._open = None
            self._picture(node)
            return
        if (
            node.pseudo
            and element is not None
            and element.tag == "li"
            and self._bullet is not None
            and node.out_of_flow
        ):
            return  # it has become the bullet
        own = (
            node.out_of_flow
            or parent.kind in {"flex", "grid"}
            or node.kind in {"flex", "grid", "inline-block", "badge", "cell"}
        )
        self._container(node, place, own=own)

    def _container(self, node: BoxNode, place: _Place, *, own: bool) -> None:
        """A block: what's behind it, then what's in it; text that fills a shape alone becomes the shape's text."""
        decorations = decorate(node) if node.principal or node.pseudo else []
        if own or decorations:
            self._open = None
            place = replace(place, key=id(node))
        start = len(self.shapes)
        self.shapes.extend(decorations)
        element = node.element
        if node.principal and element is not None:
            if element.tag in {"ul", "ol"}:
                place = replace(place, level=min(place.level + 1, _LEVEL_MAX))
            elif element.tag == "li" or id(element) in self.boxes.marker:
                self._bullet = bullet_of(element, node, self.boxes)
        self._children(node, place)
        if own or decorations:
            self._open = None
        if decorations:
            merge_text(self.shapes, start, len(decorations))

    def _children(self, node: BoxNode, place: _Place) -> None:
        lines: list[BoxNode] = []
        for child in in_order(node.children, self.ranks):
            if child.kind == "line":
                lines.append(child)
                continue
            if lines and not child.out_of_flow:
                self._lines(node, lines, place)
                lines = []
            if child.kind != "marker":
                self._node(child, place, node)
        if lines:
            self._lines(node, lines, place)

    def _special(self, node: BoxNode, element: Element) -> bool:
        """Elements that become something other than text; returns whether it was one."""
        names = classes_of(element)
        if element is self.title:
            self._open = None
            self.shapes.extend(decorate(node))
            start = len(self.shapes)
            self._children(node, _Place(id(node)))
            self._open = None
            name_title(self.shapes[start:])
            return True
        if "pb-chart" in names:
            self._open = None
            self.shapes.append(
                ChartShape(
                    node.x, node.y, node.width, node.height, data=element.get("data-chart", ""), element=element
                )
            )
            return True
        if element.tag == "pre" and not any(name_of(inner) in {"img", "table"} for inner in element.iter()):
            self._code(node, element)
            return True
        if element.tag == "hr":
            self._open = None
            edge = node.look.border("top") or node.look.border("bottom")
            paint = edge.paint if edge else node.look.background or Paint("c0c0c0")
            self.shapes.append(LineShape(node.x, node.y, node.width, max(1.0, min(node.height, 8.0)), paint))
            return True
        if "pb-bottom" in names:
            self._open = None
            self._children(node, _Place(id(node)))
            if self._open is not None:
                self._open.role = "footnotes"
            self._open = None
            return True
        return False

    def _code(self, node: BoxNode, element: Element) -> None:
        """A code block: a frame with a paragraph per line, on its fill."""
        self._open = None
        pieces = [piece for row in self._flat(element) for piece in row]
        for row in self._queues.values():
            row.clear()
        lines = [line for child in node.walk() for line in [child] if child.kind == "line"]
        height = lines[0].height if lines else node.look.size * 1.3
        paragraphs = [
            Para(
                row or [Piece("", size=node.look.size, family=node.look.family, is_verbatim=True)],
                line=height,
                height=height,
            )
            for row in code_lines(pieces)
        ]
        boxes = decorate(node)
        shape = TextShape(node.x, node.y, node.width, node.height, paragraphs, "code")
        base = next((box for box in boxes if isinstance(box, TextShape)), None)
        if base is not None:
            shape.fill, shape.border, shape.radius, shape.shadow = base.fill, base.border, base.radius, base.shadow
        if self._bullet is not None and paragraphs:
            self._number_code(shape, node)
        top = (lines[0].y - node.y) if lines else 0.0
        left = node.inner_x - node.x
        shape.insets = (left, top, max(0.0, node.width - node.inner_width - left - 4), 0.0)
        self.shapes.append(shape)
        self.shapes.extend(box for box in boxes if box is not base)

    def _number_code(self, shape: TextShape, node: BoxNode) -> None:
        """Gives the marker of an item that begins with code to the code's first line; the frame makes room for it."""
        bullet, self._bullet = self._bullet, None
        shape.paragraphs[0].bullet = bullet
        room = min(shape.x, node.look.size * (bullet.hang if bullet else 0.0))
        shape.x, shape.width = shape.x - room, shape.width + room
        for para in shape.paragraphs:
            para.x = node.inner_x

    def _flat(self, element: Element) -> list[list[Piece]]:
        """All text of an element, whatever its boxes."""
        return (
            runs_of(element, self.boxes)
            if all(
                is_inline(self.boxes.principal.get(id(child))) for child in element.iter() if child is not element
            )
            else [row for inner in element.iter() for row in self._own_rows(inner)]
        )

    def _own_rows(self, element: Element) -> list[list[Piece]]:
        node = self.boxes.principal.get(id(element))
        if node is None or node.kind in {"inline", "text"}:
            return []
        return [[*row, replace(row[-1], text="\n", is_verbatim=True)] for row in runs_of(element, self.boxes)]

    def _table(self, node: BoxNode) -> None:
        self._open = None
        inner = node
        for child in node.children:
            if child.kind == "table":
                inner = child
            elif child.kind not in {"group", "row", "line"}:  # the caption, in the table's wrapper
                self._container(child, _Place(id(child)), own=True)
        outside: list[Shape] = []
        shape = read_table(inner, lambda cell: self._cell(cell, outside))
        if shape.cells:
            self.shapes.append(shape)
        self.shapes.extend(outside)

    def _cell(self, cell: BoxNode, outside: list[Shape]) -> list[Para]:
        """The paragraphs of a table's cell; pictures in it are put on top of the table."""
        outer, self.shapes, bullet, self._bullet = self.shapes, [], self._bullet, None
        self._children(cell, _Place(id(cell)))
        self._open = None
        painted, self.shapes, self._bullet = self.shapes, outer, bullet
        paragraphs: list[Para] = []
        for shape in painted:
            if isinstance(shape, TextShape):
                paragraphs.extend(shape.paragraphs)
            elif hasattr(shape, "cells"):
                paragraphs.extend(para for inner in shape.cells for para in inner.paragraphs)
            elif not isinstance(shape, LineShape):
                outside.append(shape)
        return paragraphs

    # ---- lines ----

    def _lines(self, node: BoxNode, lines: list[BoxNode], place: _Place) -> None:
        """A paragraph, and the pictures and blocks in its lines."""
        inside = [item for line in lines for item in line.walk()]
        pieces = self._words(node, inside)
        blocks = [item for item in inside if item.principal and item.kind not in {"inline", "line", "text"}]
        pieces = break_before_pictures(pieces, lines)
        if texty := any(piece.text.strip(GAP + " \n") for piece in pieces):
            self._paragraph(node, lines, pieces, place)
        seen: set[int] = set()
        for item in blocks:
            if id(item) in seen:
                continue
            if item.kind == "replaced" or is_swatch(item):
                item.y += shift_with_text(item, lines) if texty else 0.0
                if item.kind == "replaced":
                    self._picture(item, inline=texty)
                else:
                    self.shapes.extend(decorate(item))
                self._open = self._open if texty else None
            elif not is_inline(item):
                self._node(item, replace(place, key=id(item)), node)
            else:
                continue
            seen.update(id(inner) for inner in item.walk())

    def _words(self, node: BoxNode, inside: list[BoxNode]) -> list[Piece]:
        element = node.element
        if element is None:
            return []
        if node.pseudo:
            text = "".join(item.text for item in inside if item.kind == "text")
            look = node.look
            return (
                [Piece(text, look.size, look.bold, look.italic, colour=look.colour, family=look.family)]
                if text.strip()
                else []
            )
        if not any(item.kind in {"text", "replaced"} or item.principal for item in inside):
            return []
        if id(element) not in self._queues:
            self._queues[id(element)] = runs_of(element, self.boxes)
        queue = self._queues[id(element)]
        return queue.pop(0) if queue else []

    def _paragraph(self, node: BoxNode, lines: list[BoxNode], pieces: list[Piece], place: _Place) -> None:
        para = Para(
            pieces,
            x=node.inner_x,
            y=lines[0].y,
            width=node.inner_width,
            height=lines[-1].bottom - lines[0].y,
            line=(lines[-1].bottom - lines[0].y) / len(lines),
            lines=len(lines),
            text_width=max(line.width for line in lines),
            align=node.look.align,
            level=max(0, place.level),
            rtl=node.look.right_to_left,
        )
        settle_line(para)
        para.bullet, self._bullet = self._bullet, None
        frame = self._open
        if frame is None or frame.key != place.key:
            self._open = None
            frame = TextShape(para.x, para.y, para.width, para.height, key=place.key)
            self._open = frame
            self.shapes.append(frame)
        right, bottom = max(frame.right, para.x + para.width), max(frame.bottom, para.y + para.height)
        frame.x, frame.y = min(frame.x, para.x), min(frame.y, para.y)
        frame.width, frame.height = right - frame.x, bottom - frame.y
        frame.paragraphs.append(para)

    def _picture(self, node: BoxNode, *, inline: bool = False) -> None:
        element = node.element
        if element is None or element.tag == "input" or node.width < 1 or node.height < 1:
            return
        if name_of(element).rpartition("}")[2] == "svg":
            hand_down(element, node)
        self.shapes.append(
            PictureShape(
                node.x,
                node.y,
                node.width,
                node.height,
                element=element,
                alt=element.get("alt") or element.get("aria-label") or "",
                decorative=inline,
                fit=node.look.object_fit,
                radius=node.look.radius(node.width, node.height),
                shadow=node.look.shadow,
            )
        )

    def _keep_leftovers(self) -> None:
        """Rows that no line group asked for, which layout can hide from us: they go into the last frame."""
        rows = [
            row
            for queue in self._queues.values()
            for row in queue
            if any(piece.text.strip(GAP + " \n") for piece in row)
        ]
        frames = [
            shape
            for shape in self.shapes
            if isinstance(shape, TextShape) and shape.role == "text" and shape.paragraphs
        ]
        for row in rows:
            if frames:
                frames[-1].paragraphs.append(Para(row, x=frames[-1].x, width=frames[-1].width))
