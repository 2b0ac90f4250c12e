"""SVG: well-formed XML in the SVG namespace; sized by its own attributes, blank if it draws nothing."""

from __future__ import annotations

import re

from lxml import etree
from model import Problem, Subject, quoted
from parsing.xml_safety import parse_xml

_SVG = "{http://www.w3.org/2000/svg}"
_DRAWING = frozenset(
    {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "image", "use", "foreignObject"}
)
_NEVER_DRAWN = frozenset(
    {"defs", "symbol", "clipPath", "mask", "marker", "pattern", "linearGradient", "radialGradient", "metadata"}
)
_PX_PER_UNIT = {"": 1, "px": 1, "pt": 4 / 3, "pc": 16, "in": 96, "cm": 96 / 2.54, "mm": 96 / 25.4, "q": 96 / 101.6}
"""CSS pixels: 96 to the inch."""

_LENGTH = re.compile(r"\s*\+?(\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})([a-z]{0,2})\s*", re.ASCII | re.IGNORECASE)
_VIEWBOX_PARTS = 4


def inspect(subject: Subject) -> None:
    """Parse the drawing and measure it (``facts.width``, ``facts.height``: CSS px, rounded).

    Each side is taken from its attribute, or from the viewBox if the attribute is missing or relative; a drawing
    that states neither has no such fact.
    """
    root = parse_xml(subject)
    if root.tag != f"{_SVG}svg":
        hint = "; the SVG namespace is missing" if root.tag == "svg" else ""
        raise Problem(f"is not an SVG drawing: its root element is {quoted(str(root.tag))}{hint}")
    viewbox = _viewbox(root)
    for index, side in enumerate(("width", "height")):
        length = _px(root.get(side, ""))
        if length is None and viewbox is not None:
            length = viewbox[index]
        if length is not None:
            subject.facts[side] = round(length)
    if subject.must_not_be_blank() and not _draws(root):
        raise Problem("is blank: it draws nothing")


def _px(text: str) -> float | None:
    """Return a CSS length in px; None if there is none, or one that depends on where the drawing is put."""
    match = _LENGTH.fullmatch(text)
    if match is None or match[2].lower() not in _PX_PER_UNIT:
        return None
    return float(match[1]) * _PX_PER_UNIT[match[2].lower()]


def _viewbox(root: etree._Element) -> tuple[float, float] | None:
    parts = root.get("viewBox", "").replace(",", " ").split()
    if len(parts) != _VIEWBOX_PARTS:
        return None
    width, height = _px(parts[2]), _px(parts[3])
    return None if width is None or height is None else (width, height)


def _draws(root: etree._Element) -> bool:
    """Return whether an element is drawn that is not merely defined for reference."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if not isinstance(element.tag, str) or not element.tag.startswith(_SVG):
            continue
        name = element.tag.removeprefix(_SVG)
        if name in _DRAWING and (name != "text" or "".join(element.itertext()).strip()):
            return True
        if name not in _NEVER_DRAWN:
            waiting.extend(element)
    return False
