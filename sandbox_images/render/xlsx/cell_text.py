"""The words of an element as a cell shows them: lines where the source has lines, and what all of them are."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from render.frontend.element_tree import name_of

BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup",
    "hr", "li", "main", "menu", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th",
    "thead", "tr", "ul",
})  # fmt: skip
UNSEEN = frozenset({"style", "script", "template", "title", "head", "meta", "link", "noscript"})
_BOLD, _CODE = frozenset({"b", "strong"}), frozenset({"code", "kbd", "samp", "tt"})
_BLANKS = re.compile(r"[ \t\n\f\r]+")


def read_text(element: Element) -> str:
    """The words of an element: blanks are one, lines and blocks stand on lines of their own."""
    lines = [line.strip(" ") for line in read_inline(element).split("\n")]
    return "\n".join(line for line in lines if line)


def read_inline(element: Element) -> str:
    """The same with the blanks around the words, which part them from what stands beside the element."""
    return "".join(_pieces(element, is_literal=False))


def _pieces(element: Element, *, is_literal: bool) -> Iterator[str]:
    name = name_of(element)
    if name in UNSEEN:
        return
    if name == "br":
        yield "\n"
        return
    if name == "img":
        yield element.get("alt") or ""
        return
    is_block = name in BLOCKS
    is_literal = is_literal or name == "pre"
    if is_block:
        yield "\n"
    if name == "li":
        yield "\u2022 "
    yield _shown(element.text, is_literal=is_literal)
    for child in element:
        yield from _pieces(child, is_literal=is_literal)
        yield _shown(child.tail, is_literal=is_literal)
    if is_block:
        yield "\n"


def _shown(text: str | None, *, is_literal: bool) -> str:
    return (text or "") if is_literal else _BLANKS.sub(" ", text or "")


def is_all(element: Element, kind: str) -> bool:
    """Whether all words of an element are ``bold`` or ``code``."""
    names = _BOLD if kind == "bold" else _CODE
    return _lone(element, names) is not None


def link_of(element: Element) -> str:
    """Where all words of an element lead to; an empty string if it is not one link."""
    link = _lone(element, frozenset({"a"}))
    return (link.get("href") or "").strip() if link is not None else ""


def _lone(element: Element, names: frozenset[str]) -> Element | None:
    """The element of one of the names that holds all the words of another one."""
    while len(element) == 1 and not (element.text or "").strip() and not (element[0].tail or "").strip():
        element = element[0]
        if name_of(element) in names:
            return element
    return None
