"""List markers as slides have them: characters, numbering schemes, ticks."""

from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of
from render.slides.model import Bullet
from render.slides.text import Boxes
from render.weasy.boxes import BoxNode

_SCHEMES = {
    "decimal": "arabicPeriod",
    "decimal-leading-zero": "arabicPeriod",
    "lower-alpha": "alphaLcPeriod",
    "lower-latin": "alphaLcPeriod",
    "upper-alpha": "alphaUcPeriod",
    "upper-latin": "alphaUcPeriod",
    "lower-roman": "romanLcPeriod",
    "upper-roman": "romanUcPeriod",
}
_CHARACTERS = {"disc": "•", "circle": "◦", "square": "▪"}
_DRAWN_MAX = 3
_NUMBER_MAX = 32767


def bullet_of(item: Element, node: BoxNode, boxes: Boxes) -> Bullet | None:
    """The marker of a list item: its own, a tick, or a character that the author drew before it.

    Args:
        item: the item.
        node: its box.
        boxes: what layout made; a drawn marker is taken out of the item's text.
    """
    if "pb-continued" in classes_of(item):
        return None
    tick = item.get("data-pb-tick")
    if tick is not None:
        return Bullet("☑" if tick == "1" else "☐", colour=node.look.colour)
    marker = boxes.marker.get(id(item))
    if marker is None or not marker.text.strip():
        return _drawn(item, node, boxes)
    text = marker.text.strip()
    scheme = _SCHEMES.get(node.look.list_style, "")
    if scheme:
        return Bullet(scheme=scheme, number=_number(text), colour=marker.look.colour)
    return Bullet(_CHARACTERS.get(node.look.list_style, text[:1]), colour=marker.look.colour)


def _drawn(item: Element, node: BoxNode, boxes: Boxes) -> Bullet | None:
    """A short ``::before`` that stands outside of the text."""
    drawn = boxes.pseudo.get((id(item), "before"), "").strip()
    outside = next((child for child in node.walk() if child.pseudo == "before" and child.out_of_flow), None)
    if not drawn or outside is None or len(drawn) > _DRAWN_MAX:
        return None
    boxes.pseudo.pop((id(item), "before"), None)
    return Bullet(drawn[0], colour=outside.look.colour, x=outside.x)


def _number(text: str) -> int:
    """The number of a marker that shows one; letters and Roman numerals count from their list's start."""
    digits = text.strip(".) ")
    if digits.isascii() and digits.isdigit():
        return max(1, min(_NUMBER_MAX, int(digits)))
    return _from_letters(digits)


def _from_letters(text: str) -> int:
    if len(text) == 1 and text.isascii() and text.isalpha() and text.lower() not in "ivx":
        return ord(text.lower()) - ord("a") + 1
    return 1
