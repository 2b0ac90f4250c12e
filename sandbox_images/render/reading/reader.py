"""Reads the sanitised tree of a document into the intermediate representation that DOCX and PPTX are written from.

No text is dropped: elements that mean nothing here pass their content through, and what is nested deeper than any
document needs is read as plain paragraphs.
"""

from dataclasses import replace
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from render.document import Document
from render.ir import Anchor, Block, Box, Content, Inline, PageBreak
from render.reading import images
from render.reading.blocks import READERS
from render.reading.flat import flat
from render.reading.inline import Flow, Look
from render.reading.looks import ELEMENT_LOOKS, boxed, classes, hidden, page_breaks, styled
from render.reading.style import colour, declarations
from render.source.code_colours import code_colours

MAX_DEPTH = 90
_SKIPPED = frozenset({
    "head", "script", "style", "template", "title", "meta", "link", "base", "datalist", "param", "source", "track",
    "area", "col", "colgroup", "wbr",
})  # fmt: skip
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div",
    "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
    "header", "hgroup", "hr", "html", "legend", "li", "main", "menu", "nav", "ol", "option", "optgroup",
    "p", "pre", "search", "section", "summary", "table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
    "caption", "listing", "plaintext", "xmp",
})  # fmt: skip


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
        note_ids: the ids of all footnotes.
        called: ids of footnotes, in the order of their first call.
        ticked: boxes to tick with which list items begin.
        code_colours: colour by pygments' short class.
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
        self.code_colours = code_colours(document.theme.colours.get("code_background", "#ffffff"))
        self.ticked: set[Element] = set()
        self._depth = 0
        self._fetched: dict[str, tuple[bytes, str] | None] = {}
        links = (element.get("href", "") for element in document.tree.iter("a"))
        self._led_to = {unquote(link[1:]) for link in links if link.startswith("#") and len(link) > 1}
        self._anchored: set[str] = set()
        self.note_ids = {
            item.get("id", "")
            for section in document.tree.iter("section")
            if "footnotes" in classes(section)
            for rows in section
            if rows.tag in {"ol", "ul"}
            for item in rows
            if item.tag == "li"
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

    def fetch(self, source: str) -> tuple[bytes, str] | None:
        """The bytes and media type of a picture's source, each source read once."""
        if source not in self._fetched:
            self._fetched[source] = images.fetch(source, self.document)
        return self._fetched[source]

    def cell(self, element: Element, look: Look, flow: Flow) -> None:
        """Reads the content of a table cell, whose own style is the cell's."""
        if self._depth >= MAX_DEPTH:
            self._flat(element, look, flow)
            return
        self._depth += 1
        self._anchor(element, flow)
        self.content(element, look, flow)
        self._depth -= 1

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
            self._anchor(element, flow)
            self._read(element, tag, look, flow)
        finally:
            self._depth -= 1

    def _anchor(self, element: Element, flow: Flow) -> None:
        name = element.get("id") or (element.get("name") if element.tag == "a" else None)
        if name and name in self._led_to and name not in self._anchored and name not in self.note_ids:
            self._anchored.add(name)
            if element.tag not in {"h1", "h2", "h3", "h4", "h5", "h6"}:
                flow.inline(Anchor(name))

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
