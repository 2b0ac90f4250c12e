"""The words of an element as a cell shows them: lines where the source has lines, and what all of them are."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, name_of

BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl",
    "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup",
    "hr", "li", "main", "menu", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th",
    "thead", "tr", "ul",
})  # fmt: skip
UNSEEN = frozenset({"style", "script", "template", "title", "head", "meta", "link", "noscript"})
_BOLD, _CODE = frozenset({"b", "strong"}), frozenset({"code", "kbd", "samp", "tt"})
_REFERENCES = frozenset({"pb-cites", "pb-unresolved", "pb-footnote-ref"})
_RAISED = str.maketrans(
    "0123456789+-\u2212=()n",
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207b\u207c\u207d\u207e\u207f",
)
_LOWERED = str.maketrans(
    "0123456789+-\u2212=()",
    "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089\u208a\u208b\u208b\u208c\u208d\u208e",
)
_SCRIPTS = {"sup": _RAISED, "sub": _LOWERED}
_BLANKS = re.compile(r"[ \t\n\f\r]+")


def read_text(element: Element, *, has_references: bool = True) -> str:
    """The words of an element: blanks are one, lines and blocks stand on lines of their own.

    Args:
        element: what to read.
        has_references: numbers of footnotes and citations are among the words.
    """
    pieces = _pieces(element, is_literal=False, has_references=has_references)
    lines = [line.strip(" ") for line in "".join(pieces).split("\n")]
    return "\n".join(line for line in lines if line)


def read_inline(element: Element) -> str:
    """The same with the blanks around the words, which part them from what stands beside the element."""
    return "".join(_pieces(element, is_literal=False, has_references=True))


def read_references(element: Element) -> list[str]:
    """The numbers of footnotes and citations in an element, as they are shown."""
    if is_reference(element):
        return [read_inline(element)]
    return [found for child in element for found in read_references(child)]


def has_scripts(element: Element) -> bool:
    """Whether an element has raised or lowered characters that are no reference: they are no digits of a figure."""
    if is_reference(element):
        return False
    is_script = name_of(element) in _SCRIPTS and "".join(element.itertext()).strip() != ""
    return is_script or any(has_scripts(child) for child in element)


def is_reference(element: Element) -> bool:
    """Whether an element is the number of a footnote or of sources, not a word."""
    if not _REFERENCES.isdisjoint(classes_of(element)):
        return True
    if (
        name_of(element) != "sup"
        or len(element) != 1
        or (element.text or "").strip()
        or (element[0].tail or "").strip()
    ):
        return False
    return is_reference(element[0]) or (
        name_of(element[0]) == "a" and (element[0].get("href") or "").startswith("#")
    )


def _pieces(element: Element, *, is_literal: bool, has_references: bool) -> Iterator[str]:
    name = name_of(element)
    if name in UNSEEN or (not has_references and is_reference(element)):
        return
    if name in _SCRIPTS:
        yield _script(element, _SCRIPTS[name], has_references=has_references)
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
        yield from _pieces(child, is_literal=is_literal, has_references=has_references)
        yield _shown(child.tail, is_literal=is_literal)
    if is_block:
        yield "\n"


def _script(element: Element, table: dict[int, int], *, has_references: bool) -> str:
    """Raised or lowered characters: small ones where Unicode has all of them."""
    inner = [_shown(element.text, is_literal=False)]
    for child in element:
        inner += _pieces(child, is_literal=False, has_references=has_references)
        inner.append(_shown(child.tail, is_literal=False))
    text = "".join(inner)
    return text.translate(table) if all(ord(letter) in table for letter in text) else text


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
        if is_reference(element):
            return None
        if name_of(element) in names:
            return element
    return None
