"""Cutting a slide that is too full at the edges of blocks, rows and items."""

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, make
from render.slides.canvas import slide_height
from render.slides.splitting.slide_content import HEADINGS
from render.slides.text import Boxes, is_inline
from render.weasy.boxes import BoxNode

PART_MARK = "(0/0)"
"""What stands in a title for "(2/3)" until the number of parts is known."""

_WHOLE = frozenset({"figure", "tr", "pre", "img", "svg", "dt", "caption", *HEADINGS})
_ROWS_LEAST = 3
"""So many rows of a table stay before a cut at least."""
_ASIDE = frozenset({"pb-bottom", "pb-header"})


@dataclass(slots=True)
class Unit:
    """What isn't cut: an element, or (``own``) only the text that stands in it ahead of its blocks."""

    element: Element
    top: float
    bottom: float
    own: bool = False


@dataclass(slots=True)
class Cut:
    """Where every unit goes.

    Attributes:
        pages: page by the unit's element; ``own`` text apart.
        count: how many pages.
    """

    pages: dict[int, int]
    own: dict[int, int]
    count: int


def units_of(root: BoxNode, title: Element | None, room: float) -> list[Unit]:
    """The units of a slide, in document order.

    Args:
        root: the slide's box.
        title: the title's element, which is repeated on every part.
        room: the height there is for content.
    """
    boxes = Boxes.of(root)
    units: list[Unit] = []
    if root.element is not None:
        _collect(root.element, boxes, units, title, room)
    return units


def _collect(parent: Element, boxes: Boxes, units: list[Unit], title: Element | None, room: float) -> None:
    own = boxes.principal.get(id(parent))
    lines = [line for child in (own.children if own else []) for line in _own_lines(child)]
    if lines and own is not None:
        units.append(Unit(parent, lines[0].y, max(line.bottom for line in lines), own=True))
    for child in parent:
        node = boxes.principal.get(id(child))
        names = set(classes_of(child))
        if node is None or child is title or names & _ASIDE or child.tag == "thead" or is_inline(node):
            continue
        inner = _holds_blocks(child, boxes)
        small = node.height <= room * 0.6 and (node.kind in {"flex", "grid"} or node.look.background is not None)
        if child.tag in _WHOLE or not inner or (small and not _contains(child, title)):
            units.append(Unit(child, node.y, node.bottom))
        else:
            _collect(child, boxes, units, title, room)


def _own_lines(child: BoxNode) -> list[BoxNode]:
    if child.kind == "line":
        return [child]
    return (
        [line for line in child.children if line.kind == "line"]
        if not child.principal and child.kind == "block"
        else []
    )


def _holds_blocks(element: Element, boxes: Boxes) -> bool:
    return any((node := boxes.principal.get(id(child))) is not None and not is_inline(node) for child in element)


def _contains(element: Element, other: Element | None) -> bool:
    return other is not None and any(item is other for item in element.iter())


def plan(units: list[Unit], room: float) -> Cut:
    """Puts units on pages: as few as it takes, about equally full.

    Args:
        units: in document order.
        room: height of a page.
    """
    best = _greedy(units, room)
    if 1 < best.count <= 8:  # noqa: PLR2004 - beyond, nobody sees whether the last one is short
        for share in (0.55, 0.65, 0.75, 0.85, 0.93):
            even = _greedy(units, room * share)
            if even.count == best.count:
                return even
    return best


def _greedy(units: list[Unit], room: float) -> Cut:
    cut = Cut({}, {}, 0)
    left = list(units)
    while left:
        start = min(unit.top for unit in left)
        taken = [unit for unit in left if unit.bottom <= start + room + 0.5]
        if not taken:
            taken = [min(left, key=lambda unit: unit.top)]
        if len(taken) < len(left):
            while len(taken) > 1 and _leads_on(taken[-1]):
                taken.pop()
            _keep_two_rows(taken, left)
        chosen = {id(unit) for unit in taken}
        for unit in taken:
            (cut.own if unit.own else cut.pages)[id(unit.element)] = cut.count
        left = [unit for unit in left if id(unit) not in chosen]
        cut.count += 1
    return cut


def _keep_two_rows(taken: list[Unit], left: list[Unit]) -> None:
    """Leaves a table's last row company: it takes one with it to the next page."""
    rows = [unit.element.tag == "tr" for unit in left]
    after = next((index for index, unit in enumerate(left) if unit is taken[-1]), 0) + 1
    alone = rows[after : after + 1] == [True] and rows[after + 1 : after + 2] != [True]
    if alone and len(taken) > _ROWS_LEAST and all(unit.element.tag == "tr" for unit in taken[-_ROWS_LEAST:]):
        taken.pop()


def _leads_on(unit: Unit) -> bool:
    """Whether a unit belongs with what follows it: a heading, or a line that ends with a colon."""
    if unit.element.tag in HEADINGS:
        return True
    return unit.element.tag == "p" and "".join(unit.element.itertext()).rstrip().endswith(":")


def parts_of(root: Element, title: Element | None, cut: Cut) -> list[tuple[Element, Element | None]]:
    """Copies of a slide's element, one for each page of a cut, with the title's copy in each."""
    made: list[tuple[Element, Element | None]] = []
    known = _holders(root, cut, title)
    for page in range(cut.count):
        copier = _Copier(page, cut, title, known)
        copy = copier.copy(root)
        if copy is None:
            continue
        heading = copier.found[0] if copier.found else None
        if heading is not None:
            append_mark(heading)
        _keep_called(copy)
        made.append((copy, heading))
    return made


def append_mark(heading: Element) -> None:
    """Leaves a place for the number of a part in a title, once."""
    if any("pb-part" in classes_of(item) for item in heading.iter()):
        return
    if len(heading):
        heading[-1].tail = (heading[-1].tail or "").rstrip() + " "
    else:
        heading.text = (heading.text or "").rstrip() + " "
    heading.append(make("span", {"class": "pb-part"}, PART_MARK))


@dataclass(slots=True)
class _Copier:
    """Copies what belongs on one page of a cut.

    Attributes:
        page: which page.
        cut: where units go.
        title: is copied whole, and retained in ``found``.
        known: elements that hold units, the title or parts that are repeated.
    """

    page: int
    cut: Cut
    title: Element | None
    known: set[int]
    found: list[Element] = field(default_factory=list)

    def copy(self, element: Element) -> Element | None:
        """A copy with what belongs on the page; None if nothing does."""
        if element is self.title:
            self.found.append(whole_copy(element))
            return self.found[-1]
        if id(element) in self.cut.pages:
            return whole_copy(element) if self.cut.pages[id(element)] == self.page else None
        if is_repeated(element):
            return whole_copy(element)
        copy = Element(element.tag, dict(element.attrib))
        own = self.cut.own.get(id(element))
        if own is None or own == self.page:
            copy.text = element.text
        elif element.tag == "li" and own < self.page:
            copy.set("class", f"{copy.get('class', '')} pb-continued".strip())
        retained = self._children(element, copy, with_text=own is None or own == self.page)
        return copy if retained or (own is not None and own == self.page) else None

    def _children(self, element: Element, copy: Element, *, with_text: bool) -> bool:
        """Copies the children; returns whether one of them isn't just repeated."""
        retained, skipped = False, 0
        for child in element:
            known = id(child) in self.known
            inner = self.copy(child) if known else whole_copy(child) if with_text else None
            skipped += child.tag == "li" and inner is None and not retained
            if inner is not None:
                retained = retained or (known and not is_repeated(child))
                copy.append(inner)
                inner.tail = child.tail if with_text else None
            elif with_text and child.tail and child.tail.strip():
                append_text(copy, child.tail)
        if element.tag == "ol" and skipped:
            start = element.get("start", "1")
            copy.set("start", str((int(start) if start.lstrip("-").isdigit() else 1) + skipped))
        return retained


def is_repeated(element: Element) -> bool:
    """Whether an element stands on every part: a table's head, a slide's foot."""
    return element.tag in {"thead", "colgroup"} or bool(_ASIDE & set(classes_of(element)))


def _holders(root: Element, cut: Cut, title: Element | None) -> set[int]:
    """Elements that are, or hold, a unit, the title or a repeated part."""
    order, stack = [], [root]
    while stack:
        element = stack.pop()
        order.append(element)
        stack.extend(element)
    known: set[int] = set()
    for element in reversed(order):
        one = id(element) in cut.pages or id(element) in cut.own or element is title or is_repeated(element)
        if one or any(id(child) in known for child in element):
            known.add(id(element))
    return known


def whole_copy(element: Element) -> Element:
    """A copy of all of an element, without its tail."""
    copy = Element(element.tag, dict(element.attrib))
    copy.text = element.text
    for child in element:
        inner = whole_copy(child)
        inner.tail = child.tail
        copy.append(inner)
    return copy


def _keep_called(root: Element) -> None:
    """Footnotes stay on the part that calls them."""
    called = {item.get("data-ref") for item in root.iter("a") if "pb-footnote-ref" in classes_of(item)}
    for bottom in [item for item in root if "pb-bottom" in classes_of(item)]:
        for note in list(bottom):
            if note.get("data-note") and note.get("data-note") not in called:
                bottom.remove(note)
        if not any(note.get("data-note") or note.get("data-footer") for note in bottom):
            root.remove(bottom)


def append_text(parent: Element, text: str) -> None:
    """Adds text at the end of an element."""
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def room_below(top: float, scale: float, margin: float) -> float:
    """The height there is for content that starts at ``top``, in pixels of layout."""
    return max(60.0, slide_height() / scale - margin / scale - top)
