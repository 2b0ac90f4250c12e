"""What elements and their inline styles make of the text within them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol
from xml.etree.ElementTree import Element

from render.ir import Align
from render.reading.inline import Look
from render.reading.style import declarations

_MARK = "#fff3a3"
_ALIGNS: dict[str, Align] = {
    "left": "left", "start": "left", "right": "right", "end": "right", "center": "center", "middle": "center",
    "-webkit-center": "center", "justify": "justify",
}  # fmt: skip
_BOX_CLASSES = frozenset({
    "card", "box", "panel", "tile", "kpi", "stat", "metric", "well", "note-box", "highlight", "banner", "hero",
    "slide", "cell-card", "feature",
})  # fmt: skip
_BREAKS = ("always", "page", "left", "right", "recto", "verso")
_BOLD_FROM = 600
_SPACES = {"pre": "pre", "pre-wrap": "pre", "break-spaces": "pre", "pre-line": "pre-line"}


class Palette(Protocol):
    """Whoever knows the document's colours."""

    def colour(self, value: str | None) -> str | None:
        """``#rrggbb`` of a CSS colour."""


def _marked(**changes: Any) -> Callable[[Look], Look]:
    def change(look: Look) -> Look:
        return replace(look, **changes)

    return change


_bold, _italic, _code = _marked(bold=True), _marked(italic=True), _marked(code=True)
_underline, _strike = _marked(underline=True), _marked(strike=True)

ELEMENT_LOOKS: dict[str, Callable[[Look], Look]] = {
    "b": _bold, "strong": _bold, "summary": _bold, "legend": _bold,
    "i": _italic, "em": _italic, "cite": _italic, "dfn": _italic, "var": _italic, "address": _italic,
    "u": _underline, "ins": _underline, "s": _strike, "strike": _strike, "del": _strike,
    "code": _code, "kbd": _code, "samp": _code, "tt": _code,
    "sub": _marked(sub=True, sup=False), "sup": _marked(sup=True, sub=False), "mark": _marked(background=_MARK),
    "center": _marked(align="center"), "nobr": _marked(),
    "pre": _marked(space="pre"), "listing": _marked(space="pre"), "xmp": _marked(space="pre"),
    "plaintext": _marked(space="pre"), "textarea": _marked(space="pre"),
}  # fmt: skip


def classes(element: Element) -> tuple[str, ...]:
    """The classes of an element."""
    return tuple(element.get("class", "").split())


def hidden(element: Element) -> bool:
    """Whether an element shows nothing."""
    if "hidden" in element.attrib:
        return True
    style = element.get("style")
    if not style:
        return False
    found = declarations(style)
    return found.get("display", "").lower() == "none" or found.get("visibility", "").lower() == "hidden"


def page_breaks(element: Element) -> tuple[bool, bool]:
    """Whether the inline style breaks the page before and after an element."""
    text = element.get("style", "")
    if "break-" not in text:
        return False, False
    style = declarations(text)

    def breaks(side: str) -> bool:
        return any(style.get(name + side, "").lower() in _BREAKS for name in ("break-", "page-break-"))

    return breaks("before"), breaks("after")


def align_of(element: Element) -> Align | None:
    """The alignment that an element gives to its text."""
    style = element.get("style")
    value = declarations(style).get("text-align", "") if style else ""
    return _ALIGNS.get((value or element.get("align", "")).strip().lower())


def styled(palette: Palette, element: Element, look: Look) -> Look:
    """The look with what the attributes and the inline style of an element add to it."""
    if not element.attrib:
        return look
    changes: dict[str, Any] = {}
    align = align_of(element) if element.tag not in {"img", "table", "hr"} else None
    if align:
        changes["align"] = align
    if element.tag == "font":
        changes["colour"] = palette.colour(element.get("color")) or look.colour
    style = element.get("style")
    if style:
        changes |= _style_changes(palette, declarations(style), look)
    return replace(look, **changes) if changes else look


def _style_changes(palette: Palette, style: dict[str, str], look: Look) -> dict[str, Any]:
    changes = _letter_changes(palette, style)
    raised = style.get("vertical-align", "").lower()
    if raised in {"sub", "super"}:
        changes["sub"], changes["sup"] = raised == "sub", raised == "super"
    space = style.get("white-space", "").lower()
    if space:
        changes["space"] = _SPACES.get(space, "normal")
    case = style.get("text-transform", "").lower()
    if case:
        changes["case"] = case if case in {"uppercase", "lowercase", "capitalize"} else "none"
    return {name: value for name, value in changes.items() if value != getattr(look, name)}


def _letter_changes(palette: Palette, style: dict[str, str]) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    text_colour = palette.colour(style.get("color"))
    if text_colour:
        changes["colour"] = text_colour
    fill = palette.colour(style.get("background-color") or style.get("background"))
    if fill:
        changes["background"] = fill
    weight = style.get("font-weight", "").lower()
    if weight:
        changes["bold"] = weight in {"bold", "bolder"} or (weight.isdecimal() and int(weight[:4]) >= _BOLD_FROM)
    slant = style.get("font-style", "").lower()
    if slant:
        changes["italic"] = slant.startswith(("italic", "oblique"))
    line = (style.get("text-decoration", "") + " " + style.get("text-decoration-line", "")).lower().split()
    changes |= {"underline": True} if "underline" in line else {}
    changes |= {"strike": True} if "line-through" in line else {}
    if "monospace" in style.get("font-family", "").lower():
        changes["code"] = True
    return changes


def boxed(palette: Palette, element: Element, marks: tuple[str, ...]) -> tuple[str | None, str | None] | None:
    """Background and colour of an element that has a look of its own; None if it has none."""
    style = element.get("style")
    found = declarations(style) if style else {}
    fill = palette.colour(found.get("background-color") or found.get("background") or element.get("bgcolor"))
    border = any(
        name in found and found[name].split()[0].lower() not in {"0", "none", "0px", "hidden"}
        for name in ("border", "border-left", "border-top", "box-shadow")
    )
    named = bool(_BOX_CLASSES.intersection(marks)) or (element.tag == "section" and bool(marks))
    if fill is None and not border and not named:
        return None
    return fill, palette.colour(found.get("color"))
