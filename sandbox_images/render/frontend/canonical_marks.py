"""One way of writing for what has many: callouts, task lists, page breaks, contents, columns."""

import re
from xml.etree.ElementTree import Element

from render.frontend.colon_fences import CALLOUTS
from render.frontend.element_tree import (
    add_class,
    body_of,
    classes_of,
    make,
    name_of,
    parents_of,
    text_of,
)
from render.model import Document

_ALERT = re.compile(r"\s*\[!([A-Za-z]+)\][ \t]*([^\n]*)\n?")
_TOC = re.compile(r"\s*(?:\[TOC\]|\[\[_?TOC_?\]\]|\{:toc\}|\\tableofcontents)\s*", re.IGNORECASE)
_BREAK = re.compile(r"\s*(?:\\(?:newpage|pagebreak|clearpage))\s*")
_BREAK_CLASSES = {"page-break", "pagebreak", "page_break", "pb-page-break", "newpage"}
_CALLOUT_CLASSES = {"callout", "admonition", "alert"}


def normalise(document: Document) -> None:
    """Makes the marks of the document module out of other ways to write them."""
    tree = document.tree
    parents = parents_of(tree)
    for quote in list(tree.iter("blockquote")):
        _alert(quote)
    for paragraph in list(tree.iter("p")):
        _lone_paragraph(paragraph)
        _figure(paragraph)
    _captions(parents)
    for element in list(tree.iter()):
        if name_of(element) in {"div", "section", "aside", "p", "ul", "ol", "li"}:
            _marked_by_class(element)
    for drawing in list(tree.iter()):
        if name_of(drawing).endswith("svg"):
            _titled(drawing)
    _contents(document, parents)
    for section in tree.iter("section"):
        if "footnotes" in classes_of(section):
            for note in section.iter("li"):
                note.attrib.pop("class", None)


def _titled(drawing: Element) -> None:
    """An SVG's label is its title too: that is where PDF takes its alternative text from."""
    label = drawing.get("aria-label") or drawing.get("alt")
    if label and not any(name_of(child).endswith("title") for child in drawing):
        title = drawing.makeelement(name_of(drawing).removesuffix("svg") + "title", {})
        title.text = label
        drawing.insert(0, title)


def _alert(quote: Element) -> None:
    """``> [!NOTE]``: a quote whose first line is a kind."""
    first = next(iter(quote), None)
    match = _ALERT.match(first.text or "") if first is not None and first.tag == "p" else None
    if first is None or match is None or match[1].lower() not in CALLOUTS:
        return
    quote.tag = "aside"
    quote.attrib.update({"class": "pb-callout", "data-kind": CALLOUTS[match[1].lower()]})
    first.text = (first.text or "")[match.end() :]
    title = make("p", {"class": "pb-callout-title"}, match[2].strip() or match[1].capitalize())
    if not first.text.strip() and not len(first):
        quote.remove(first)
    quote.insert(0, title)


def _lone_paragraph(paragraph: Element) -> None:
    """A paragraph that is nothing but a mark."""
    if len(paragraph) or not paragraph.text:
        return
    if _TOC.fullmatch(paragraph.text):
        paragraph.tag, paragraph.text = "nav", None
        paragraph.attrib = {"class": "pb-toc"}
    elif _BREAK.fullmatch(paragraph.text):
        paragraph.tag, paragraph.text = "div", None
        paragraph.attrib = {"class": "pb-page-break"}


def _figure(paragraph: Element) -> None:
    """A picture that is alone and has a title, as in ``![alt](a.png "caption")``, is a figure with that caption."""
    image = next(iter(paragraph), None)
    if image is None or image.tag != "img" or not image.get("title", "").strip():
        return
    if len(paragraph) == 1 and not text_of(paragraph):
        paragraph.tag, paragraph.text, image.tail = "figure", None, None
        paragraph.append(make("figcaption", None, image.attrib.pop("title")))


def _captions(parents: dict[Element, Element]) -> None:
    """``: words`` below a table, as pandoc has it, are its caption."""
    for paragraph, parent in parents.items():
        if paragraph.tag != "p" or not (paragraph.text or "").lstrip().startswith(": "):
            continue
        place = list(parent).index(paragraph)
        table = parent[place - 1] if place else None
        if table is None or table.tag != "table" or (table.tail or "").strip() or table.find("caption") is not None:
            continue
        paragraph.tag, paragraph.text = "caption", (paragraph.text or "").lstrip()[2:]
        table.tail, paragraph.tail = paragraph.tail, None
        parent.remove(paragraph)
        table.insert(0, paragraph)


def _marked_by_class(element: Element) -> None:
    names = set(classes_of(element))
    if not names:
        if element.tag == "aside" and element.get("role") == "note":
            add_class(element, "pb-callout")
        return
    if names & _BREAK_CLASSES and not text_of(element):
        element.set("class", "pb-page-break")
    elif element.tag == "aside" and names & {"notes", "speaker-notes"}:
        add_class(element, "pb-notes")
    elif element.tag in {"div", "aside"} and names & _CALLOUT_CLASSES:
        _callout(element, names)
    elif element.tag in {"ul", "ol"} and "contains-task-list" in names:
        element.set("class", "pb-tasks")
    elif element.tag == "li" and "task-list-item" in names:
        element.set("class", "pb-task")


def _callout(element: Element, names: set[str]) -> None:
    """``div.admonition.note``, ``div.callout-warning``, ``div.alert-danger``."""
    words = {part for name in names for part in name.lower().split("-")}
    kind = next((CALLOUTS[word] for word in sorted(words) if word in CALLOUTS), "note")
    if not element.get("style"):
        add_class(element, "pb-callout")
    element.set("data-kind", kind)
    for child in element:
        if {"admonition-title", "callout-title", "alert-title", "alert-heading"} & set(classes_of(child)):
            add_class(child, "pb-callout-title")


def _contents(document: Document, parents: dict[Element, Element]) -> None:
    """A contents list that the request asks for and the source has not: behind the title, else at the top."""
    body = body_of(document.tree)
    if not document.request.options.get("toc") or any("pb-toc" in classes_of(nav) for nav in body.iter("nav")):
        return
    nav = make("nav", {"class": "pb-toc"})
    blocks = [item for item in body if "pb-title-block" in classes_of(item)]
    title = next(iter(blocks or body.iter("h1")), None)
    parent = parents.get(title) if title is not None else None
    if title is None or parent is None or (not blocks and sum(1 for _ in body.iter("h1")) > 1):
        nav.tail, body.text = body.text, None
        body.insert(0, nav)
    else:
        nav.tail, title.tail = title.tail, None
        parent.insert(list(parent).index(title) + 1, nav)
