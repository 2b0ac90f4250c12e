"""Readers of pictures: images, SVG, formulas, figures, diagrams, charts, and places of what is missing."""

import json
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from render.ir import (
    Block,
    Chart,
    Diagram,
    Figure,
    Formula,
    FormulaBlock,
    Image,
    Missing,
    Paragraph,
    Series,
    Table,
)  # fmt: skip
from render.to_ir import images
from render.to_ir.flatten import flat
from render.to_ir.inline import Flow, Look

if TYPE_CHECKING:
    from render.to_ir.reader import Reader

_KINDS = frozenset({"bar", "column", "line", "pie", "area", "scatter"})
_MAX_POINTS = 20_000


def read_image(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads an ``img``."""
    image = load_image(reader, element, look)
    if isinstance(image, Missing) and not image.path:
        if element.get("alt"):
            flow.text(element.get("alt", ""), look)
        return
    flow.inline(image)


def load_image(reader: "Reader", element: Element, look: Look) -> Image | Missing:
    """The picture of an ``img``; what cannot be had is missing, by its path."""
    source = element.get("src", "").strip()
    fetched = reader.fetch(source) if source else None
    natural = images.natural_size(*fetched) if fetched else None
    if fetched is None or natural is None:
        shown = source if source[:5].lower() != "data:" else element.get("alt", "") or "data:"
        return Missing(shown[:200], link=look.link)
    width, height = images.shown_size(element, reader.style(element), natural, reader.room)
    alt = element.get("alt") or element.get("title") or ""
    return Image(fetched[0], fetched[1], alt, width, height, look.link)


def read_svg(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads an ``svg`` element as a picture; one that is none passes its text through."""
    text = images.serialised(element)
    data = text.encode()
    natural = images.natural_size(data, "image/svg+xml") if text else None
    if natural is None:
        reader.content(element, look, flow)
        return
    title = next((child for child in element if str(child.tag).endswith("title")), None)
    alt = element.get("aria-label") or ("".join(title.itertext()) if title is not None else "")
    width, height = images.shown_size(element, reader.style(element), natural, reader.room)
    flow.inline(Image(data, "image/svg+xml", " ".join(alt.split()), width, height, look.link))


def read_math(reader: "Reader", element: Element, _look: Look, flow: Flow) -> None:
    """Reads a formula."""
    tex = element.get("data-tex", "") or ("" if element.get("data-mathml") else "".join(element.itertext()))
    display = element.tag == "div" or element.get("data-display") == "true"
    svg = images.svg_of(element, reader.document)
    formula = Formula(tex.strip(), svg, display, element.get("data-mathml", ""))
    if element.tag == "div":
        flow.block(FormulaBlock(formula))
    else:
        flow.inline(formula)


def read_figure(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads a figure; one of a single picture is a block of its own."""
    flow.end()
    caption, rest = _parted(reader, element, look)
    only = rest[0] if len(rest) == 1 else None
    if isinstance(only, Paragraph) and len(only.inlines) == 1 and isinstance(only.inlines[0], Image | Missing):
        flow.block(Figure(only.inlines[0], caption))
        return
    if isinstance(only, Table | Figure) and not only.caption:
        only.caption = caption
        if isinstance(only, Table):
            only.caption_below = element[-1].tag == "figcaption"
        caption = []
    for block in rest:
        flow.block(block)
    if caption:
        flow.block(Paragraph(caption, look.align, rtl=look.rtl))


def _parted(reader: "Reader", element: Element, look: Look) -> tuple[list[Any], list[Any]]:
    """The caption of a figure, and the blocks of the rest of it."""
    captions: list[Block] = []
    inner = Flow()
    if element.text:
        inner.text(element.text, look)
    for child in element:
        if child.tag == "figcaption":
            captions.extend(reader.blocks(child, look))
        else:
            reader.element(child, look, inner)
        if child.tail:
            inner.text(child.tail, look)
    return flat(captions), inner.finish()


def read_diagram(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads a diagram; one that was not drawn passes its content through."""
    image = next(element.iter("img"), None)
    svg = images.svg_of(element, reader.document)
    source = element.get("data-source", "")
    if not svg:  # it could not be drawn: what stands there instead is content
        plain_block(reader, element, look, flow)
        return
    alt = (image.get("alt", "") if image is not None else "") or element.get("aria-label", "")
    flow.block(Diagram(source, svg, alt))
    _captions(reader, element, look, flow)


def read_chart(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads a chart; data that make none pass the content through."""
    chart = parse_chart(element.get("data-chart", ""), images.svg_of(element, reader.document))
    if chart is None:
        plain_block(reader, element, look, flow)
        return
    flow.block(chart)
    _captions(reader, element, look, flow)


def _captions(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    for child in element:
        if child.tag == "figcaption":
            inlines = reader.inlines(child, look)
            if inlines:
                flow.block(Paragraph(inlines, "center"))


def parse_chart(text: str, svg: str) -> Chart | None:
    """The chart of a ``data-chart`` attribute; None if the JSON is not one."""
    try:
        data = json.loads(text)
        categories = [str(name) for name in data["categories"]][:_MAX_POINTS]
        series = [
            Series(str(row.get("name", "")), [_number(value) for value in row["values"]][:_MAX_POINTS])
            for row in data["series"]
        ]
        if data["kind"] in _KINDS and series:
            return Chart(data["kind"], str(data.get("title") or ""), categories, series, svg, text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        pass
    return None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    return number if abs(number) < float("inf") else None


def read_missing(_reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads the place of a missing asset."""
    text = " ".join("".join(element.itertext()).split())
    flow.inline(Missing(element.get("data-path", ""), text, look.link))


def plain_block(reader: "Reader", element: Element, look: Look, flow: Flow) -> None:
    """Reads the content of an element as blocks of their own."""
    flow.end()
    reader.content(element, look, flow)
    flow.end(look)
