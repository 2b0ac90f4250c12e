"""Lists: nested, counted from anywhere, with items to tick."""

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from render.ir import ListBlock, ListItem, Marker
from render.to_ir.inline import Flow, Look

if TYPE_CHECKING:
    from render.to_ir.reader import Reader

_MARKERS: dict[str, Marker] = {
    "a": "lower-alpha", "A": "upper-alpha", "i": "lower-roman", "I": "upper-roman",
    "lower-alpha": "lower-alpha", "upper-alpha": "upper-alpha", "lower-latin": "lower-alpha",
    "upper-latin": "upper-alpha", "lower-roman": "lower-roman", "upper-roman": "upper-roman", "none": "none",
}  # fmt: skip
_MAX_NUMBER = 32_767


def number(text: str | None) -> int | None:
    """The whole number of an attribute, as far as word processors count; None if it is none."""
    stripped = (text or "").strip()
    digits = stripped.removeprefix("-").removeprefix("+")
    if not digits.isascii() or not digits.isdecimal():
        return None
    value = min(int(digits[:9]), _MAX_NUMBER)
    return 0 if stripped.startswith("-") else value


def read_list(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads ``ul`` and ``ol``; an item with a number of its own begins a new list, counted from there."""
    flow.end()
    ordered = element.tag == "ol"
    start = number(element.get("start"))
    marker = _marker(reader, element)
    current = ListBlock(ordered, [], 1 if start is None else start, marker)
    found = [current]
    down = sum(child.tag == "li" for child in element) if start is None else start
    for text, child in _children(element):
        value = number(child.get("value")) if ordered and child is not None and child.tag == "li" else None
        if ordered and "reversed" in element.attrib:  # no word processor counts down
            value, down = (down if value is None else value), down - 1
        if value is not None and value >= 0 and value != current.start + len(current.items):
            if current.items:
                current = ListBlock(ordered, [], value, marker)
                found.append(current)
            else:
                current.start = value
        _add(reader, current, text, child, look)
    for block in found:
        if block.items:
            flow.block(block)


def _children(element: Element) -> list[tuple[str, Element | None]]:
    """Texts and children; only one of the two is there."""
    result: list[tuple[str, Element | None]] = []
    if element.text and element.text.strip():
        result.append((element.text, None))
    for child in element:
        result.append(("", child))
        if child.tail and child.tail.strip():
            result.append((child.tail, None))
    return result


def _add(reader: "Reader", block: ListBlock, text: str, child: Element | None, look: Look) -> None:
    if child is not None and child.tag == "li":
        if reader.hidden(child):
            return
        box = _box(child)
        if box is not None:
            reader.ticked.add(box)
        inner = Flow()
        reader.element(child, look, inner)
        block.items.append(ListItem(inner.finish(), None if box is None else "checked" in box.attrib))
        return
    inner = Flow()
    if child is None:
        inner.text(text, look)
    else:
        reader.element(child, look, inner)
    blocks = inner.finish()
    if not blocks:
        return
    if block.items and isinstance(blocks[0], ListBlock):  # a list right in a list belongs to the item before it
        block.items[-1].blocks.extend(blocks)
    else:
        block.items.append(ListItem(blocks))


def _box(item: Element) -> Element | None:
    """The box to tick with which an item begins; None if it begins with something else."""
    element = item
    for _ in range(4):
        if (element.text or "").strip() or not len(element):
            return None
        element = element[0]
        if element.tag == "input":
            return element if element.get("type", "").lower() == "checkbox" else None
    return None


def _marker(reader: "Reader", element: Element) -> Marker:
    """How a list counts: as it declares itself, or as its first item does."""
    first = element.find("li")
    styles = [reader.style(found) for found in (first, element) if found is not None]
    named = next((style["list-style-type"] for style in styles if "list-style-type" in style), "")
    for text in (*named.lower().split(), element.get("type", "")):
        if text in _MARKERS:
            return _MARKERS[text]
    return "decimal"
