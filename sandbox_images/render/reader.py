"""Reads the sanitised tree of a document into the intermediate representation that DOCX and PPTX are written from.

No text is dropped: elements that mean nothing here pass their content through, and what is nested deeper than any
document needs is read as plain paragraphs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from render import reader_code, reader_images
from render.document import Document
from render.ir import (
    Anchor, Block, Box, Content, Contents, Formula, FormulaBlock, Heading, Image, Inline, LineBreak, Missing, NoteRef,
    PageBreak, Paragraph, Rule, Run,
)  # fmt: skip
from render.reader_blocks import READERS
from render.reader_inline import Flow, Look
from render.reader_looks import ELEMENT_LOOKS, align_of, boxed, hidden, styled
from render.reader_style import colour, declarations

MAX_DEPTH = 90
_SKIPPED = frozenset({
    "head", "script", "style", "template", "title", "meta", "link", "base", "datalist", "param", "source", "track",
    "area", "col", "colgroup", "wbr",
})  # fmt: skip
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr",
    "html", "legend", "li", "main", "menu", "nav", "ol", "option", "optgroup", "p", "pre", "search", "section",
    "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "caption", "listing", "plaintext", "xmp",
})  # fmt: skip
_BREAKS = ("always", "page", "left", "right", "recto", "verso")


def read(document: Document) -> Content:
    """The content of a document, in order; footnotes apart, numbered in the order of their first call."""
    reader = Reader(document)
    body = document.tree.find("body")
    blocks = reader.blocks(document.tree if body is None else body, Look())
    notes = {note: reader.notes[note] for note in reader.called if note in reader.notes}
    for note, uncalled in reader.notes.items():
        if note not in notes:  # nothing calls it: it is content like any other
            blocks.extend(uncalled)
    return Content(document.metadata, document.theme, blocks, notes)


class Reader:
    """Walks a tree; looks are handed down, blocks are handed up.

    Attributes:
        document: what is read.
        variables: CSS variables of the theme.
        notes: footnotes by id.
        called: ids of footnotes, in the order of their first call.
        room: the width of the text, in pixels, as far as percentages need it.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.notes: dict[str, list[Block]] = {}
        self.called: dict[str, None] = {}
        self.room = 640.0
        self.variables = {f"--pb-{name.replace('_', '-')}": value for name, value in document.theme.colours.items()}
        root = document.tree.find("body")
        for element in (document.tree, root):
            if element is not None:
                self._define(element)
        self.dark = reader_code.is_dark(document.theme.colours.get("code_background", "#ffffff"))
        self._depth = 0
        links = (element.get("href", "") for element in document.tree.iter("a"))
        self._led_to = {link[1:] for link in links if link.startswith("#") and len(link) > 1}
        self._anchored: set[str] = set()
        self._note_ids = {
            item.get("id", "")
            for section in document.tree.iter("section")
            if "footnotes" in classes(section)
            for item in section.iter("li")
        } - {""}

    def _define(self, element: Element) -> None:
        for name, value in declarations(element.get("style", "")).items():
            if name.startswith("--"):
                self.variables[name] = value

    # ---- what readers of single elements use ----

    def blocks(self, element: Element, look: Look) -> list[Block]:
        """The content of an element as blocks."""
        flow = Flow()
        self.content(element, look, flow)
        return flow.finish()

    def inlines(self, element: Element, look: Look) -> list[Inline]:
        """The content of an element as inlines; what stands in blocks is parted by line breaks."""
        return flat(self.blocks(element, look))

    def colour(self, value: str | None) -> str | None:
        """``#rrggbb`` of a CSS colour, the document's variables known."""
        return colour(value, self.variables)

    def content(self, element: Element, look: Look, flow: Flow) -> None:
        """Reads the text and the children of an element into a flow."""
        if element.text:
            flow.text(element.text, look)
        for child in element:
            self.element(child, look, flow)
            if child.tail:
                flow.text(child.tail, look)

    def element(self, element: Element, look: Look, flow: Flow) -> None:
        """Reads an element, its tail left out, into a flow."""
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED or hidden(element):
            return
        if self._depth >= MAX_DEPTH:
            self._flat(element, look, flow)
            return
        self._depth += 1
        try:
            name = element.get("id") or (element.get("name") if tag == "a" else None)
            if name in self._led_to and name not in self._anchored and name not in self._note_ids:
                self._anchored.add(name or "")
                if tag not in {"h1", "h2", "h3", "h4", "h5", "h6"}:
                    flow.inline(Anchor(name or ""))
            self._read(element, tag, look, flow)
        finally:
            self._depth -= 1

    def _read(self, element: Element, tag: str, look: Look, flow: Flow) -> None:
        marks = classes(element)
        inner = styled(self, element, ELEMENT_LOOKS[tag](look) if tag in ELEMENT_LOOKS else look)
        reader = next((READERS[mark] for mark in marks if mark in READERS), None) or READERS.get(tag)
        before, after = page_breaks(element)
        if before:
            flow.block(PageBreak())
        if reader is not None:
            reader(self, element, inner, flow)
        elif tag in _BLOCKS:
            self._block(element, marks, inner, flow)
        else:
            self.content(element, inner, flow)
        if after:
            flow.block(PageBreak())

    def _block(self, element: Element, marks: tuple[str, ...], look: Look, flow: Flow) -> None:
        flow.end(None)
        box = boxed(self, element, marks)
        if box is None:
            self.content(element, look, flow)
            flow.end(look.align)
            return
        inside = self.blocks(element, replace(look, background=None))
        if inside:
            flow.block(Box(inside, marks, *box))

    def _flat(self, element: Element, look: Look, flow: Flow) -> None:
        """Reads an element without recursion: all its text, a paragraph a block."""
        steps: list[Element | str | None] = [element]
        while steps:
            step = steps.pop()
            if step is None:
                flow.end(look.align)
            elif isinstance(step, str):
                flow.text(step, look)
            elif isinstance(step.tag, str) and step.tag not in _SKIPPED and not hidden(step):
                if step.tag in _BLOCKS or step.tag == "br":
                    flow.end(look.align)
                    steps.append(None)
                for child in reversed(step):
                    steps.append(child.tail or "")
                    steps.append(child)
                steps.append(step.text or "")


def classes(element: Element) -> tuple[str, ...]:
    """The classes of an element."""
    return tuple(element.get("class", "").split())


def page_breaks(element: Element) -> tuple[bool, bool]:
    """Whether the inline style breaks the page before and after an element."""
    text = element.get("style", "")
    if "break-" not in text:
        return False, False
    style = declarations(text)

    def breaks(side: str) -> bool:
        return any(style.get(name + side, "").lower() in _BREAKS for name in ("break-", "page-break-"))

    return breaks("before"), breaks("after")


def flat(blocks: list[Block]) -> list[Inline]:
    """All inlines of blocks, in order, parted by line breaks."""
    result: list[Inline] = []
    for part in parts(blocks):
        if part and result:
            result.append(LineBreak())
        result.extend(part)
    return result


def parts(blocks: list[Block]) -> Iterator[list[Inline]]:
    """The inlines of every paragraph within blocks; pictures and formulas of blocks as inlines."""
    waiting: list[object] = list(reversed(blocks))
    while waiting:
        block = waiting.pop()
        own: list[Inline] = []
        for name in ("inlines", "term", "caption"):
            own.extend(getattr(block, name, ()))
        image = getattr(block, "image", None) or getattr(block, "formula", None)
        if isinstance(image, Image | Missing | Formula):
            own.insert(0, image)
        if own:
            yield own
        for line in getattr(block, "lines", ()):
            yield list(line)
        inner: list[object] = []
        for name in ("blocks", "items", "cells"):
            inner.extend(getattr(block, name, ()))
        for column in getattr(block, "columns", None) or () if not isinstance(getattr(block, "columns", 0), int) else ():
            inner.extend(column)
        waiting.extend(reversed(inner))


__all__ = ["Reader", "align_of", "classes", "flat", "read"]
_Reading = Callable[["Reader", Element, Look, Flow], None]
_UNUSED = (FormulaBlock, Heading, NoteRef, Paragraph, Rule, Run, Contents)
