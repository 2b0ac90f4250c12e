"""Readers of single elements and marks: each reads one element into a flow."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from render.ir import (
    Block,
    Box,
    Callout,
    Code,
    Contents,
    Definition,
    DefinitionList,
    Heading,
    LineBreak,
    NoteRef,
    PageBreak,
    Paragraph,
    Quote,
    Rule,
    Run,
    Sources,
    SpeakerNotes,
)  # fmt: skip
from render.to_ir.code import lines
from render.to_ir.columns import read_columns
from render.to_ir.flatten import plain
from render.to_ir.inline import Flow, Look
from render.to_ir.lists import read_list
from render.to_ir.media_blocks import (
    read_chart,
    read_diagram,
    read_figure,
    read_image,
    read_math,
    read_missing,
    read_svg,
)  # fmt: skip
from render.to_ir.tables import read_table
from render.to_ir.text_style import classes

if TYPE_CHECKING:
    from render.to_ir.reader import Reader

_UNSAFE = ("javascript:", "vbscript:", "file:", "data:")


def _heading(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.end()
    inlines = reader.inlines(element, replace(look, bold=False) if look.bold else look)
    if inlines:
        level, anchor = int(str(element.tag)[1]), element.get("id", "")
        flow.block(Heading(level, inlines, anchor, look.align, reader.frame(element), look.rtl))


def _title_line(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """A line of the title block."""
    flow.end()
    names = classes(element)
    style: Literal["Title", "Subtitle", "Byline"] = (
        "Title" if "pb-doc-title" in names else "Subtitle" if "pb-subtitle" in names else "Byline"
    )
    plain_look = replace(look, bold=False)
    inlines = reader.inlines(element, plain_look)
    if inlines:
        flow.block(Paragraph(inlines, look.align, rtl=look.rtl, style=style))


def _cover(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """The cover page: its title stands lower, and the page ends with it."""
    flow.end()
    blocks = reader.blocks(element, look)
    for block in blocks:
        if isinstance(block, Paragraph) and block.style == "Title":
            block.style = "CoverTitle"
        flow.block(block)
    flow.block(PageBreak())


def _link(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    target = (
        "".join(element.get("href", "").split())
        if "\n" in element.get("href", "")
        else element.get("href", "").strip()
    )
    if target and not target.lower().startswith(_UNSAFE):
        look = replace(look, link=target)
    if "footnote-backref" in classes(element):
        return
    reader.content(element, look, flow)


def _cite(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    number = element.get("data-sid", "")
    if number.isdecimal() and len(number) < 10:  # noqa: PLR2004 - sids are small numbers
        look = replace(look, cites=int(number), link=element.get("href") or look.link)
    reader.content(element, look, flow)


def _footnote_ref(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    name = unquote(element.get("href", "").removeprefix("#"))
    if name not in reader.note_ids:
        _link(reader, element, look, flow)
        return
    reader.called[name] = None
    flow.inline(NoteRef(name))


def _footnotes(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.end()
    if element.text:
        flow.text(element.text, look)
    for child in element:
        if child.tag in {"ol", "ul"}:
            _note_list(reader, child, look, flow)
        elif child.tag != "hr":
            reader.element(child, look, flow)
        if child.tail:
            flow.text(child.tail, look)
    flow.end()


def _note_list(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    if element.text:
        flow.text(element.text, look)
    for item in element:
        name = item.get("id", "")
        if item.tag == "li" and name in reader.note_ids and name not in reader.notes:
            reader.notes[name] = []  # a note within itself is no note
            reader.notes[name] = reader.blocks(item, look)
        else:  # what is no note is content
            reader.element(item, look, flow)
            flow.end()
        if item.tail:
            flow.text(item.tail, look)


def _break(_reader: "Reader", _element: Element, _look: Look, flow: Flow) -> None:
    flow.inline(LineBreak())


def _pre(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.end()
    inner = Flow()
    highlighted = "pb-code" in classes(element)
    _code_spans(reader, element, replace(look, space="pre", code=False), inner, highlighted=highlighted)
    inlines = inner.take()
    found = lines(inlines)
    if found is not None and not inner.blocks:
        if any(run.text.strip() for line in found for run in line):
            flow.block(Code(element.get("data-language", ""), found))
        return
    for block in inner.blocks:
        flow.block(block)
    if inlines:
        flow.block(Paragraph(inlines, look.align, rtl=look.rtl))


def _code_spans(reader: "Reader", element: Element, look: Look, flow: Flow, *, highlighted: bool) -> None:
    if element.text:
        flow.text(element.text, look)
    for child in element:
        if child.tag == "code":
            _code_spans(reader, child, look, flow, highlighted=highlighted)
        elif highlighted and child.tag == "span" and not len(child):
            found = next(
                (reader.code_colours[name] for name in classes(child) if name in reader.code_colours), None
            )
            flow.text(child.text or "", replace(look, colour=found) if found else look)
        elif child.tag == "span" and not reader.style(child):
            _code_spans(reader, child, look, flow, highlighted=highlighted)
        else:
            reader.element(child, look, flow)
        if child.tail:
            flow.text(child.tail, look)


def _quote(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.end()
    blocks = reader.blocks(element, look)
    if blocks:
        flow.block(Quote(blocks))


def _callout(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    inner = Flow()
    title = ""
    if element.text:
        inner.text(element.text, look)
    for child in element:
        if not title and "pb-callout-title" in classes(child):
            title = plain(reader.inlines(child, look))
        else:
            reader.element(child, look, inner)
        if child.tail:
            inner.text(child.tail, look)
    blocks = inner.finish()
    frame = reader.frame(element)
    if frame:  # the author styles it
        heading: list[Block] = [Paragraph([Run(title, bold=True, colour=look.colour)])] if title else []
        flow.block(Box([*heading, *blocks], frame))
    else:
        flow.block(Callout(element.get("data-kind", "note"), title, blocks))


def _notes(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.end()
    blocks = reader.blocks(element, look)
    if blocks:
        flow.block(SpeakerNotes(blocks))


def _sources(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    for child in element:
        if child.tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
            reader.element(child, look, flow)
    flow.block(Sources(list(reader.document.cited)))


def _definitions(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.end()
    items: list[Definition] = []
    for text, child in _definition_parts(element):
        if child is not None and child.tag == "dt":
            items.append(Definition(reader.inlines(child, look), []))
            continue
        one = Flow()
        if child is None:
            one.text(text, look)
        else:
            reader.element(child, look, one)
        blocks = one.finish()
        if blocks and not items:
            items.append(Definition([], []))
        if blocks:
            items[-1].blocks.extend(blocks)
    items = [item for item in items if item.term or item.blocks]
    if items:
        flow.block(DefinitionList(items))


def _definition_parts(element: Element) -> list[tuple[str, Element | None]]:
    """Texts and children of a definition list, groups opened; only one of the two is there."""
    result: list[tuple[str, Element | None]] = [(element.text or "", None)]
    for child in element:
        if child.tag == "div" and any(inner.tag in {"dt", "dd"} for inner in child):
            result.append((child.text or "", None))
            for inner in child:
                result += [("", inner), (inner.tail or "", None)]
        else:
            result.append(("", child))
        result.append((child.tail or "", None))
    return [part for part in result if part[1] is not None or part[0].strip()]


def _control(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    if element in reader.ticked:  # a list item has it
        return
    kind = element.get("type", "text").lower()
    if kind in {"checkbox", "radio"}:
        on, off = ("\u2611", "\u2610") if kind == "checkbox" else ("\u25c9", "\u25cb")
        flow.text((on if "checked" in element.attrib else off) + " ", look)
    elif kind not in {"hidden", "password", "file", "image"} and element.get("value"):
        flow.text(element.get("value", ""), look)


def _inline_quote(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.text("\u201c", look)
    reader.content(element, look, flow)
    flow.text("\u201d", look)


def _ruby_text(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    flow.text("(", look)
    reader.content(element, look, flow)
    flow.text(")", look)


def _single(block: Callable[[], Block]) -> Callable[["Reader", Element, Look, Flow], None]:
    def add(_reader: "Reader", _element: Element, _look: Look, flow: Flow) -> None:
        flow.block(block())

    return add


def _nothing(_reader: "Reader", _element: Element, _look: Look, _flow: Flow) -> None:
    """Reads nothing: the element is no content."""


_Read = Callable[["Reader", Element, Look, Flow], None]

ELEMENT_READERS: dict[str, _Read] = {
    "h1": _heading, "h2": _heading, "h3": _heading, "h4": _heading, "h5": _heading, "h6": _heading,
    "a": _link, "br": _break, "img": read_image, "{http://www.w3.org/2000/svg}svg": read_svg, "svg": read_svg,
    "figure": read_figure, "pre": _pre, "listing": _pre, "xmp": _pre, "blockquote": _quote, "hr": _single(Rule),
    "ul": read_list, "ol": read_list, "menu": read_list, "dir": read_list, "dl": _definitions, "table": read_table,
    "input": _control, "q": _inline_quote, "rt": _ruby_text, "rp": _nothing,
}  # fmt: skip
MARK_READERS: dict[str, _Read] = {
    "pb-cite": _cite, "pb-math": read_math, "pb-diagram": read_diagram, "pb-chart": read_chart, "pb-code": _pre,
    "pb-missing": read_missing, "pb-callout": _callout, "pb-notes": _notes, "pb-columns": read_columns,
    "pb-sources": _sources, "footnotes": _footnotes, "pb-footnote-ref": _footnote_ref, "pb-toc": _single(Contents),
    "pb-doc-title": _title_line, "pb-subtitle": _title_line, "pb-byline": _title_line, "pb-cover": _cover,
    "pb-page-break": _single(PageBreak), "footnote-backref": _nothing,
}  # fmt: skip
"""Readers by class; a mark goes before the element that has it."""
