"""What elements, and the author's styles, make of the text within them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from xml.etree.ElementTree import Element

from render.ir import BODY_SIZE, Align, Frame
from render.model import Theme
from render.to_ir.inline import Look
from render.to_ir.style import SIDES, Declarations, colour, is_dark, length, line_of, mix, percentage

BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "option", "optgroup",
    "p", "pre", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
    "caption", "listing", "plaintext", "xmp",
})  # fmt: skip
LOOK_ATTRIBUTES = ("align", "color", "dir", "lang")
"""Attributes that style text."""
_MARK = "#fff3a3"
_ALIGNS: dict[str, Align] = {
    "left": "left", "start": "left", "right": "right", "end": "right", "center": "center", "middle": "center",
    "-webkit-center": "center", "justify": "justify",
}  # fmt: skip
_BREAKS = frozenset({"always", "page", "left", "right", "recto", "verso"})
_BOLD_FROM = 600
_SPACES = {"pre": "pre", "pre-wrap": "pre", "break-spaces": "pre", "pre-line": "pre-line"}
_SIZES = {"xx-small": 0.6, "x-small": 0.75, "small": 0.89, "medium": 1.0, "large": 1.2, "x-large": 1.5,
          "xx-large": 2.0, "xxx-large": 3.0}  # fmt: skip
_TURNED = re.compile(r"rotate|skew|matrix", re.IGNORECASE)
_FAINT = re.compile(r"0?\.\d*[1-9]\d*|[1-9]\d?(?:\.\d+)?%")
_SIZE_LEAST, _SIZE_MOST = 6.0, 120.0
_CSS_BODY_SIZE = 16.0


def _marked(**changes: Any) -> Callable[[Look], Look]:
    def change(look: Look) -> Look:
        return replace(look, **changes)

    return change


def _scaled(share: float) -> Callable[[Look], Look]:
    def change(look: Look) -> Look:
        return replace(look, size=(look.size or BODY_SIZE) * share)

    return change


_bold, _italic, _code = _marked(bold=True), _marked(italic=True), _marked(code=True)
_underline, _strike = _marked(underline=True), _marked(strike=True)

ELEMENT_LOOKS: dict[str, Callable[[Look], Look]] = {
    "b": _bold, "strong": _bold, "summary": _bold, "legend": _bold,
    "i": _italic, "em": _italic, "cite": _italic, "dfn": _italic, "var": _italic, "address": _italic,
    "u": _underline, "ins": _underline, "s": _strike, "strike": _strike, "del": _strike,
    "code": _code, "kbd": _code, "samp": _code, "tt": _code, "small": _scaled(0.85), "big": _scaled(1.2),
    "sub": _marked(sub=True, sup=False), "sup": _marked(sup=True, sub=False), "mark": _marked(background=_MARK),
    "center": _marked(align="center"),
    "pre": _marked(space="pre"), "listing": _marked(space="pre"), "xmp": _marked(space="pre"),
    "plaintext": _marked(space="pre"), "textarea": _marked(space="pre"),
}  # fmt: skip


def classes(element: Element) -> tuple[str, ...]:
    """The classes of an element."""
    return tuple(element.get("class", "").split())


def is_hidden(element: Element, style: Declarations) -> bool:
    """Whether an element shows nothing."""
    return (
        "hidden" in element.attrib
        or style.get("display", "").lower() == "none"
        or style.get("visibility", "").lower() in {"hidden", "collapse"}
    )


def page_breaks(style: Declarations) -> tuple[bool, bool]:
    """Whether the page breaks before and after an element."""
    return style.get("break-before", "").lower() in _BREAKS, style.get("break-after", "").lower() in _BREAKS


def unshown(style: Declarations) -> Iterator[tuple[str, str]]:
    """Warnings, code and message, of what a style asks for and no text of a word processor has."""
    if _TURNED.search(style.get("transform", "")) or style.get("rotate", "none").lower() not in {
        "none",
        "0deg",
        "0",
    }:
        yield "dropped_css", "DOCX: rotated content stands upright."
    if _FAINT.fullmatch(style.get("opacity", "")):
        yield "dropped_css", "DOCX: content that lets its ground through is opaque."
    if style.get("position", "").lower() in {"absolute", "fixed"}:
        yield "layout_changed", "DOCX: content with a place of its own stands in the order of the source."


def align_of(element: Element, style: Declarations) -> Align | None:
    """The alignment that an element gives to its text."""
    return _ALIGNS.get((style.get("text-align") or element.get("align") or "").strip().lower())


def frame_of(style: Declarations, bgcolor: str | None, page: str) -> Frame | None:
    """The ground and the lines that an element has; None if it has none.

    Args:
        style: the author's style of the element.
        bgcolor: its attribute.
        page: colour of the page, which is no ground.
    """
    ground = style.get("background-color") or colour(bgcolor)
    lines = {side: line_of(style, side) for side in SIDES} if any(name[:6] == "border" for name in style) else {}
    frame = Frame(None if ground in {"none", page} else ground, **lines)
    return None if frame == Frame() else frame


def styled(element: Element, style: Declarations, look: Look, body_size: float) -> Look:
    """The look with what the attributes and the style of an element add to it.

    Args:
        element: whose look it is.
        style: the author's style of it.
        look: what is handed down to it.
        body_size: the size of the author's body text, in pixels.
    """
    if not element.attrib and not style:
        return look
    changes: dict[str, Any] = {}
    align = align_of(element, style) if element.tag not in {"img", "table", "hr"} else None
    if align:
        changes["align"] = align
    if element.tag == "font":
        changes["colour"] = colour(element.get("color")) or look.colour
    if element.get("lang"):
        changes["language"] = element.get("lang")
    direction = (style.get("direction") or element.get("dir") or "").lower()
    if direction in {"rtl", "ltr"}:
        changes["rtl"] = direction == "rtl"
    if style:
        changes |= _letter_changes(style, look) | _space_changes(style)
        size = _size(style.get("font-size", "").lower(), look.size or BODY_SIZE, body_size)
        if size is not None:
            changes["size"] = size
        if element.tag not in BLOCKS and style.get("background-color", "none") != "none":
            changes["background"] = style["background-color"]
    return replace(look, **changes) if changes else look


def _letter_changes(style: Declarations, look: Look) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if style.get("color", "none") != "none":
        changes["colour"] = style["color"]
    weight = style.get("font-weight", "").lower()
    if weight and weight != "inherit":
        changes["bold"] = weight in {"bold", "bolder"} or (weight.isdecimal() and int(weight[:4]) >= _BOLD_FROM)
    slant = style.get("font-style", "").lower()
    if slant and slant != "inherit":
        changes["italic"] = slant.startswith(("italic", "oblique"))
    line = style.get("text-decoration-line", "").lower().split()
    if line:  # ``none`` takes the line of a link or of ``ins`` away, not that of the elements around
        changes["underline"] = "underline" in line or (look.underline and "none" not in line)
        changes["strike"] = "line-through" in line or (look.strike and "none" not in line)
    if "mono" in style.get("font-family", "").lower():
        changes["code"] = True
    return changes


def _space_changes(style: Declarations) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    raised = style.get("vertical-align", "").lower()
    if raised in {"sub", "super"}:
        changes["sub"], changes["sup"] = raised == "sub", raised == "super"
    space = style.get("white-space", "").lower()
    if space:
        changes["space"] = _SPACES.get(space, "normal")
    case = style.get("text-transform", "").lower()
    if case:
        changes["case"] = case if case in {"uppercase", "lowercase", "capitalize"} else "none"
    return changes


def css_body_size(*styles: Declarations) -> float:
    """The size of the author's body text in pixels, from the styles of ``html`` and ``body``."""
    size = _CSS_BODY_SIZE
    for style in styles:
        given = style.get("font-size", "")
        share = percentage(given)
        size = size * share / 100 if share else length(given, size) or size
    return size


def _size(given: str, around: float, body_size: float) -> float | None:
    """A size of type in proportion to `BODY_SIZE`; None if none is given."""
    share = percentage(given)
    if share:
        size = around * share / 100
    elif given in _SIZES:
        size = BODY_SIZE * _SIZES[given]
    elif given in {"smaller", "larger"}:
        size = around * (0.85 if given == "smaller" else 1.2)
    elif given.endswith("em"):
        size = length(given.replace("rem", "em"), BODY_SIZE if given.endswith("rem") else around) or 0.0
    else:
        size = (length(given) or 0.0) * BODY_SIZE / body_size
    return min(max(size, _SIZE_LEAST), _SIZE_MOST) if size else None


def author_theme(theme: Theme, text: str | None, ground: str | None) -> Theme:
    """The theme in the author's colours of text and page.

    A light ground stays the theme's: a word processor's page is paper. A dark one is needed, or light text on it
    would not be seen.

    Args:
        theme: the document's.
        text: colour of the body's text, ``#rrggbb``; None or ``none`` if the author gives none.
        ground: colour behind it, likewise.
    """
    colours = theme.colours
    text = text if text and text != "none" else None
    if ground and ground != "none" and is_dark(ground) != is_dark(colours["background"]):
        ink = text or ("#f2f2f2" if is_dark(ground) else "#1f2328")
        tones = {"muted": 0.7, "border": 0.25, "surface": 0.08, "code_background": 0.08}
        colours = colours | {"background": ground, "text": ink, "heading": ink}
        colours |= {name: mix(ink, ground, share) for name, share in tones.items()}
    elif text and is_dark(text) != is_dark(colours["background"]):
        colours = colours | {"text": text}
    return theme if colours is theme.colours else replace(theme, colours=colours)
