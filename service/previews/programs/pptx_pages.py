"""Runs in a sandbox: slides of a PPTX as pictures: texts, pictures, tables and filled shapes at their places.

There is no office program in the image: fonts, line breaks, effects and charts only resemble the real slides.
"""

import base64
import html
from collections.abc import Iterable
from typing import Any

import pptx
from pptx.enum.shapes import MSO_SHAPE_TYPE
from pptx.enum.text import PP_ALIGN

from proofbox.service.previews.programs.html_pages import add_html
from proofbox.service.previews.programs.pages import CannotShowError, PageWriter, run_program
from proofbox.service.previews.programs.pptx_colours import ThemeColours

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_EMU_PER_PT = 12_700
_PX_PER_PT = 4 / 3
_SHAPES_MAX = 2_000  # of a slide
_DEPTH_MAX = 8
_PICTURE_BYTES_MAX = 8 * 1024 * 1024
_PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/bmp", "image/webp"})
_STYLE = """
* { box-sizing: border-box } body { margin: 0; font-family: Carlito, "Liberation Sans", sans-serif }
.slide { position: relative; overflow: hidden; page-break-after: always }
.slide:last-child { page-break-after: auto }
.shape { position: absolute; overflow: hidden; display: flex; flex-direction: column }
p { margin: 0; line-height: 1.15; white-space: pre-wrap; overflow-wrap: break-word }
table { border-collapse: collapse; width: 100%; height: 100%; font-size: 12pt }
td { border: 0.75pt solid #bbb; padding: 2pt 5pt } img { width: 100%; height: 100% }
.group { position: absolute; left: 0; top: 0; width: 1px; height: 1px; transform-origin: 0 0 }
.chart { border: 1pt dashed #888; color: #666; font-size: 12pt; align-items: center; justify-content: center }
"""
_TITLES = frozenset({"TITLE", "CENTER_TITLE", "VERTICAL_TITLE"})
_TITLE_PT, _SUBTITLE_PT, _TEXT_PT, _OTHER_PT = 36.0, 24.0, 20.0, 18.0
_LEVEL_PT = 2.0
_ALIGNED = {PP_ALIGN.CENTER: "center", PP_ALIGN.RIGHT: "right", PP_ALIGN.JUSTIFY: "justify"}
_ANCHORS = {"t": "flex-start", "ctr": "center", "b": "flex-end"}


def show_pptx(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request for slides.

    Raises:
        CannotShowError: it has no slides.
    """
    writer = PageWriter(request)
    deck = pptx.Presentation(request["input"])
    width, height = (side or 1 for side in (deck.slide_width, deck.slide_height))
    slides = list(deck.slides)
    if not slides:
        raise CannotShowError("it has no slides")
    shown = [slides[number] for number in writer.numbers(len(slides))]
    page_css = f"@page {{ size: {_pt(width)} {_pt(height)}; margin: 0 }}"
    sizes = f".slide {{ width: {_pt(width)}; height: {_pt(height)} }}"
    text = f"<style>{_STYLE}{sizes}</style>" + "".join(_slide_html(slide) for slide in shown)
    first, writer.first = writer.first, 1
    add_html(writer, text, page_css)
    writer.first = first
    return writer.answer(len(slides), exact=False)


def _slide_html(slide: Any) -> str:
    colours = ThemeColours(slide)
    layers = [slide.slide_layout.slide_master.shapes, slide.slide_layout.shapes]
    # Their placeholders hold no content of the slide.
    decoration = [shape for layer in layers for shape in layer if not shape.is_placeholder]
    shapes = [*decoration, *slide.shapes][:_SHAPES_MAX]
    inner = "".join(_shape_html(shape, colours, 0) for shape in shapes)
    return f'<div class="slide" style="background: {colours.background()}">{inner}</div>'


def _shape_html(shape: Any, colours: ThemeColours, depth: int) -> str:
    if depth > _DEPTH_MAX or shape.width is None or shape.left is None:
        return ""
    if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
        return _group_html(shape, colours, depth)
    css = [
        f"left: {_pt(shape.left)}; top: {_pt(shape.top)}; width: {_pt(shape.width)}; height: {_pt(shape.height)}",
        *colours.shape_css(shape),
    ]
    name, inner = "shape", ""
    if getattr(shape, "has_table", False):
        inner = _table_html(shape.table, colours)
    elif getattr(shape, "has_chart", False):
        name, inner = "shape chart", _chart_text(shape)
    elif hasattr(shape, "image"):
        inner = _picture_html(shape)
    elif shape.has_text_frame:
        inner = _text_html(shape, colours)
        css += _frame_css(shape)
    return f'<div class="{name}" style="{"; ".join(css)}">{inner}</div>'


def _group_html(group: Any, colours: ThemeColours, depth: int) -> str:
    """The shapes of a group, whose coordinates are scaled and moved to the place of the group."""
    # The library does not give the inner coordinates.
    transform = group._element.grpSpPr.find(f"{_A}xfrm")  # noqa: SLF001
    offset = None if transform is None else transform.find(f"{_A}chOff")
    extent = None if transform is None else transform.find(f"{_A}chExt")
    inner = "".join(_shape_html(shape, colours, depth + 1) for shape in group.shapes)
    if offset is None or extent is None or not int(extent.get("cx", 0)) or not int(extent.get("cy", 0)):
        return inner
    scale_x, scale_y = group.width / int(extent.get("cx")), group.height / int(extent.get("cy"))
    move_x = group.left - int(offset.get("x")) * scale_x
    move_y = group.top - int(offset.get("y")) * scale_y
    moved_px = [f"{move / _EMU_PER_PT * _PX_PER_PT:.2f}" for move in (move_x, move_y)]
    moved = f"matrix({scale_x:.5f}, 0, 0, {scale_y:.5f}, {', '.join(moved_px)})"
    return f'<div class="group" style="transform: {moved}">{inner}</div>'


def _frame_css(shape: Any) -> list[str]:
    properties = shape.text_frame._txBody.bodyPr  # noqa: SLF001 - what is inherited would be hidden
    anchor = properties.get("anchor") or ("ctr" if _placeholder_kind(shape) in _TITLES else "t")
    return [f"justify-content: {_ANCHORS.get(anchor, 'flex-start')}", "padding: 3.6pt 7.2pt"]


def _placeholder_kind(shape: Any) -> str:
    return shape.placeholder_format.type.name if shape.is_placeholder and shape.placeholder_format.type else ""


def _text_html(shape: Any, colours: ThemeColours) -> str:
    kind = _placeholder_kind(shape)
    size_pt = _OTHER_PT
    if kind:
        size_pt = _TITLE_PT if kind in _TITLES else _SUBTITLE_PT if kind == "SUBTITLE" else _TEXT_PT
    bulleted = kind in {"BODY", "OBJECT"}
    return "".join(
        _paragraph_html(paragraph, f"color: {colours.text_of(shape)}", size_pt, colours, bulleted=bulleted)
        for paragraph in shape.text_frame.paragraphs
    )


def _paragraph_html(
    paragraph: Any, colour_css: str, size_pt: float, colours: ThemeColours, *, bulleted: bool
) -> str:
    level = paragraph.level or 0
    own_pt = max(10.0, size_pt - _LEVEL_PT * level)
    inner = "".join(_run_html(run, colours) for run in paragraph.runs)
    css = [f"font-size: {own_pt:.1f}pt", colour_css]
    aligned = _ALIGNED.get(paragraph.alignment)
    if aligned:
        css.append(f"text-align: {aligned}")
    properties = paragraph._p.pPr  # noqa: SLF001 - bullets are not in the library
    has_mark = properties is not None and properties.find(f"{_A}buChar") is not None
    has_none = properties is not None and properties.find(f"{_A}buNone") is not None
    if inner and (has_mark or bulleted) and not has_none:
        css.append(f"padding-left: {14 + 18 * level}pt; text-indent: -14pt")
        inner = "•  " + inner
    return f'<p style="{"; ".join(css)}">{inner or "&nbsp;"}</p>'


def _run_html(run: Any, colours: ThemeColours) -> str:
    css = []
    if run.font.bold:
        css.append("font-weight: bold")
    if run.font.italic:
        css.append("font-style: italic")
    if run.font.size is not None:
        css.append(f"font-size: {min(max(run.font.size.pt, 4.0), 200.0):.1f}pt")
    properties = run._r.rPr  # noqa: SLF001 - to see a colour without creating one
    colour = None if properties is None else colours.fill_of(properties)
    if colour:
        css.append(f"color: {colour}")
    text = html.escape(run.text).replace("\v", "<br>")
    return f'<span style="{"; ".join(css)}">{text}</span>' if css else text


def _table_html(table: Any, colours: ThemeColours) -> str:
    rows = []
    for number, row in enumerate(table.rows):
        css = f"background: {colours.accent()}; color: #fff; font-weight: bold" if number == 0 else ""
        cells = (f'<td style="{css}">{html.escape(cell.text)}</td>' for cell in row.cells)
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _chart_text(shape: Any) -> str:
    chart = shape.chart
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    return "<p>Chart" + (f": {html.escape(title)}" if title else "") + "</p>" + _series_text(chart.plots)


def _series_text(plots: Iterable[Any]) -> str:
    names = [str(series.name) for plot in plots for series in plot.series][:8]
    return f'<p style="font-size: 10pt">{html.escape(", ".join(names))}</p>'


def _picture_html(shape: Any) -> str:
    try:
        image = shape.image
        kind, blob = image.content_type, image.blob
    except (ValueError, AttributeError, KeyError):  # a linked picture, or an empty placeholder
        return ""
    if kind not in _PICTURE_TYPES or len(blob) > _PICTURE_BYTES_MAX:
        return '<p style="color: #777; font-size: 10pt">[picture]</p>'
    return f'<img alt="" src="data:{kind};base64,{base64.b64encode(blob).decode()}">'


def _pt(emu: int) -> str:
    return f"{emu / _EMU_PER_PT:.2f}pt"


if __name__ == "__main__":
    run_program(show_pptx)
