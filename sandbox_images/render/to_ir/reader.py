"""Reads the sanitised tree of a document into the intermediate representation that DOCX and PPTX are written from.

No text is dropped: elements that mean nothing here pass their content through, and what is nested deeper than any
document needs is read as plain paragraphs.
"""

from dataclasses import replace
from typing import Literal
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from render.frontend.figures.code_palette import code_colours
from render.ir import Anchor, Block, Box, Code, Content, Frame, Heading, Inline, PageBreak, Paragraph
from render.model import Document
from render.to_ir import images
from render.to_ir.added import added_text
from render.to_ir.blocks import ELEMENT_READERS, MARK_READERS
from render.to_ir.cascade import Cascade
from render.to_ir.columns import read_side_by_side
from render.to_ir.flatten import flat
from render.to_ir.inline import Flow, Look
from render.to_ir.style import Declarations
from render.to_ir.text_style import (
    BLOCKS,
    ELEMENT_LOOKS,
    LOOK_ATTRIBUTES,
    author_theme,
    classes,
    css_body_size,
    frame_of,
    is_hidden,
    page_breaks,
    styled,
    unshown,
)  # fmt: skip

MAX_DEPTH = 90
_BESIDE = frozenset({"a", "abbr", "b", "cite", "code", "em", "i", "label", "small", "span", "strong", "time", "u"})
"""Elements of a line that may float to its right end."""
_PLAIN_ELEMENT = Element("span")
_OUTSIDE = frozenset({"block", "flex", "grid", "table", "list-item"})
_SKIPPED = frozenset({
    "head", "script", "style", "template", "title", "meta", "link", "base", "datalist", "param", "source", "track",
    "area", "col", "colgroup", "wbr",
})  # fmt: skip


def read(document: Document) -> Content:
    """The content of a document, in order; footnotes apart, numbered in the order of their first call."""
    reader = Reader(document)
    blocks = reader.blocks(reader.body, reader.outermost)
    notes = {note: reader.notes[note] for note in reader.called if note in reader.notes}
    for note, uncalled in reader.notes.items():
        if note not in notes:  # nothing calls it: it is content like any other
            blocks.extend(uncalled)
    return Content(document.metadata, reader.theme, blocks, notes)


class Reader:
    """Walks a tree; looks are handed down, blocks are handed up.

    Attributes:
        document: what is read.
        body: the element that holds what is shown.
        theme: that of the document, in the author's own colours of page and text.
        outermost: the look that all of the text starts from.
        notes: footnotes by id.
        note_ids: the ids of all footnotes.
        called: ids of footnotes, in the order of their first call.
        ticked: boxes to tick with which list items begin.
        code_colours: colour by pygments' short class.
        room: the width of the text, in pixels, as far as percentages need it.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        cascade = Cascade(document)
        self.style, self._added = cascade.style, cascade.added
        tree = document.tree
        found = tree.find("body")
        self.body = tree if found is None else found
        self._body_size = css_body_size(self.style(tree), self.style(self.body))
        outer = tree.attrib | self.style(tree) | self.style(self.body)
        self.theme = author_theme(document.theme, outer.get("color"), outer.get("background-color"))
        look = styled(self.body, outer, Look(), self._body_size)
        self.outermost = replace(look, colour=None, size=None, language=None)
        self.notes: dict[str, list[Block]] = {}
        self.called: dict[str, None] = {}
        self.room = 640.0
        self.code_colours = code_colours(self.theme.colours.get("code_background", "#ffffff"))
        self.ticked: set[Element] = set()
        self._looks: dict[tuple[int, int, str], tuple[Look, Look]] = {}
        self._frames: dict[tuple[int, str | None], Frame | None] = {}
        self._depth = 0
        self._fetched: dict[str, tuple[bytes, str] | None] = {}
        links = (element.get("href", "") for element in tree.iter("a"))
        self._led_to = {unquote(link[1:]) for link in links if link.startswith("#") and len(link) > 1}
        self._anchored: set[str] = set()
        self.note_ids = {
            item.get("id", "")
            for section in tree.iter("section")
            if "footnotes" in classes(section)
            for rows in section
            if rows.tag in {"ol", "ul"}
            for item in rows
            if item.tag == "li"
        } - {""}

    # ---- what readers of single elements use ----

    def blocks(self, element: Element, look: Look) -> list[Block]:
        """The content of an element as blocks."""
        flow = Flow()
        self.content(element, look, flow)
        return flow.finish()

    def inlines(self, element: Element, look: Look) -> list[Inline]:
        """The content of an element as inlines; what stands in blocks is parted by line breaks."""
        return flat(self.blocks(element, look))

    def hidden(self, element: Element) -> bool:
        """Whether an element shows nothing."""
        return is_hidden(element, self.style(element))

    def styled(self, element: Element, look: Look) -> Look:
        """The look with what an element's attributes and the author's styles add to it."""
        style = self.style(element)
        if not style or any(name in element.attrib for name in LOOK_ATTRIBUTES):
            return styled(element, style, look, self._body_size)
        # In a long table thousands of cells share a style and what is handed down. The key's look is kept, too: its
        # id is not used again.
        key = (id(style), id(look), element.tag)
        if key not in self._looks:
            self._looks[key] = (look, styled(element, style, look, self._body_size))
        return self._looks[key][1]

    def frame(self, element: Element) -> Frame | None:
        """The ground and lines of an element, where they are not those of the page."""
        style, ground = self.style(element), element.get("bgcolor")
        if not style and not ground:
            return None
        key = (id(style), ground)
        if key not in self._frames:
            self._frames[key] = frame_of(style, ground, self.theme.colours["background"])
        return self._frames[key]

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
        """Reads the text and the children of an element into a flow, with what a style sheet adds around them."""
        self._add(element, "before", look, flow)
        if element.text:
            flow.text(element.text, look)
        for child in element:
            self.element(child, look, flow)
            if child.tail:
                flow.text(child.tail, look)
        self._add(element, "after", look, flow)

    def _add(self, element: Element, place: Literal["before", "after"], look: Look, flow: Flow) -> None:
        style = self._added(element, place)
        if not style or is_hidden(element, style):
            return
        text, is_whole = added_text(style.get("content", ""), element)
        if text.strip():
            alone = style.get("display", "").lower() in _OUTSIDE
            if alone:
                flow.end()
            flow.text(text, styled(_PLAIN_ELEMENT, style, look, self._body_size))
            if alone:
                flow.end(look)
        if not is_whole:
            self.document.warn(
                "content_lost",
                "Numbers and pictures that a style sheet adds are missing; write them into the text.",
            )

    def element(self, element: Element, look: Look, flow: Flow) -> None:
        """Reads an element, its tail left out, into a flow."""
        tag = element.tag
        if not isinstance(tag, str) or tag in _SKIPPED or self.hidden(element):
            return
        if self._depth >= MAX_DEPTH:
            self._flat(element, look, flow)
            return
        self._depth += 1
        try:
            self._anchor(element, flow)
            if tag in _BESIDE and self.style(element).get("float") == "right":
                one = Flow()
                self._read(element, tag, look, one)
                flow.aside(flat(one.finish()))
            else:
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
        inner = self.styled(element, ELEMENT_LOOKS[tag](look) if tag in ELEMENT_LOOKS else look)
        mark = next((MARK_READERS[name] for name in classes(element) if name in MARK_READERS), None)
        reader = mark or ELEMENT_READERS.get(tag)
        style = self.style(element)
        if style:
            self._warn_unshown(style)
        before, after = page_breaks(style)
        if before:
            flow.block(PageBreak())
        outside = style.get("display", "").lower() in _OUTSIDE  # of the line in which it stands
        if reader is not None:
            if outside:
                flow.end()
            reader(self, element, inner, flow)
            if outside:
                flow.end(inner)
        elif tag in BLOCKS or outside:
            self._block(element, inner, flow)
        else:
            self.content(element, inner, flow)
        if after:
            flow.block(PageBreak())

    def _warn_unshown(self, style: Declarations) -> None:
        """Warn of what a word processor's text does not have."""
        for code, message in unshown(style):
            self.document.warn(code, message)

    def _block(self, element: Element, look: Look, flow: Flow) -> None:
        flow.end()
        frame = self.frame(element)
        if frame is None:
            self._items(element, look, flow)
            flow.end(look)
            return
        inner = Flow()
        self._items(element, replace(look, background=None), inner)
        inner.end(look)
        inside = inner.finish()
        if len(inside) == 1 and isinstance(inside[0], Paragraph | Heading) and inside[0].frame is None:
            inside[0].frame = frame
            flow.block(inside[0])
        elif len(inside) == 1 and isinstance(inside[0], Code | Box):  # has a frame of its own
            flow.block(inside[0])
        elif inside:
            flow.block(Box(inside, frame))

    def _items(self, element: Element, look: Look, flow: Flow) -> None:
        """Reads the content of a block: side by side where its style puts it there, else one below the other."""
        if not read_side_by_side(self, element, look, flow):
            self.content(element, look, flow)

    def _flat(self, element: Element, look: Look, flow: Flow) -> None:
        """Reads an element without recursion: all its text, a paragraph a block."""
        steps: list[Element | str | None] = [element]
        while steps:
            step = steps.pop()
            if step is None:
                flow.end(look)
            elif isinstance(step, str):
                flow.text(step, look)
            elif isinstance(step.tag, str) and step.tag not in _SKIPPED and not self.hidden(step):
                if step.tag in BLOCKS or step.tag == "br":
                    flow.end(look)
                    steps.append(None)
                for child in reversed(step):
                    steps.append(child.tail or "")
                    steps.append(child)
                steps.append(step.text or "")
