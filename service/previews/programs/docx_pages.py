"""Runs in a sandbox: a DOCX as pictures of pages, in a layout that only resembles the real one.

There is no word processor in the image. Page breaks, floating pictures, headers, footers and fields may differ.
"""

import base64
import html
from typing import Any

import docx
from docx.document import Document
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from proofbox.service.previews.programs.html_pages import add_html
from proofbox.service.previews.programs.pages import PageWriter, run_program

_STYLE = """
body { font: 11pt/1.35 Carlito, Calibri, "Liberation Sans", sans-serif; color: #111 }
p { margin: 0 0 6pt } h1 { font-size: 20pt } h2 { font-size: 15pt } h3, h4, h5, h6 { font-size: 12.5pt }
h1, h2, h3, h4, h5, h6 { margin: 12pt 0 5pt; line-height: 1.2 }
table { border-collapse: collapse; margin: 4pt 0 8pt; width: 100% }
td { border: 0.5pt solid #999; padding: 2pt 5pt; vertical-align: top }
td p { margin: 0 } img { max-width: 100% } li { margin: 0 0 3pt }
"""
_PT_MIN, _PT_MAX = 4.0, 96.0
_PICTURE_BYTES_MAX = 8 * 1024 * 1024
_PICTURE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/bmp", "image/webp"})
_HEADINGS_MAX = 6
_ALIGNED = {
    WD_ALIGN_PARAGRAPH.CENTER: "center",
    WD_ALIGN_PARAGRAPH.RIGHT: "right",
    WD_ALIGN_PARAGRAPH.JUSTIFY: "justify",
}


def show_docx(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request for a page of a DOCX."""
    writer = PageWriter(request)
    document = docx.Document(request["input"])
    parts = [f"<style>{_STYLE}</style>", *_body_html(document)]
    return writer.answer(add_html(writer, "".join(parts), _page_css(document)), exact=False)


def _page_css(document: Document) -> str:
    section = document.sections[0] if document.sections else None
    width, height, margins = 595.0, 842.0, [72.0] * 4
    if section is not None and section.page_width and section.page_height:
        width, height = section.page_width.pt, section.page_height.pt
        sides = (section.top_margin, section.right_margin, section.bottom_margin, section.left_margin)
        margins = [72.0 if side is None else side.pt for side in sides]
    size = " ".join(f"{min(max(side, 72.0), 3_000.0):.1f}pt" for side in (width, height))
    margin = " ".join(f"{min(max(side, 0.0), min(width, height) / 4):.1f}pt" for side in margins)
    return f"@page {{ size: {size}; margin: {margin} }} h1:first-of-type {{ margin-top: 0 }}"


def _body_html(container: Any) -> list[str]:
    """The HTML of the paragraphs and tables of a document or cell, in order."""
    parts: list[str] = []
    for item in container.iter_inner_content():
        if isinstance(item, Table):
            parts.append(_table_html(item))
        elif isinstance(item, Paragraph):
            parts.append(_paragraph_html(item))
    return parts


def _table_html(table: Table) -> str:
    rows = []
    for row in table.rows:
        cells, before = [], None
        for cell in row.cells:  # one that spans columns comes once for each
            if cell._tc is not before:  # noqa: SLF001 - the library has no other identity of cells
                cells.append(f"<td>{''.join(_body_html(cell))}</td>")
            before = cell._tc  # noqa: SLF001
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _paragraph_html(paragraph: Paragraph) -> str:
    inner = "".join(_run_html(run, paragraph) for run in _runs_of(paragraph)) or "&nbsp;"
    style = (paragraph.style.name or "") if paragraph.style is not None else ""
    aligned = _ALIGNED.get(paragraph.alignment) if paragraph.alignment is not None else None
    css = f' style="text-align: {aligned}"' if aligned else ""
    level = style.removeprefix("Heading ")
    if style == "Title":
        return f"<h1{css}>{inner}</h1>"
    if level.isdigit() and style.startswith("Heading "):
        number = min(max(int(level), 1), _HEADINGS_MAX)
        return f"<h{number}{css}>{inner}</h{number}>"
    if style.startswith("List") or _is_numbered(paragraph):
        kind = "ol" if "Number" in style else "ul"
        return f'<{kind} style="margin: 0"><li>{inner}</li></{kind}>'
    return f"<p{css}>{inner}</p>"


def _is_numbered(paragraph: Paragraph) -> bool:
    properties = paragraph._p.pPr  # noqa: SLF001 - the library does not show it
    return properties is not None and properties.numPr is not None


def _runs_of(paragraph: Paragraph) -> list[Any]:
    runs: list[Any] = []
    for item in paragraph.iter_inner_content():
        runs += getattr(item, "runs", None) or [item]
    return runs


def _run_html(run: Any, paragraph: Paragraph) -> str:
    text = html.escape(run.text).replace("\t", "&emsp;").replace("\n", "<br>")
    css = []
    if run.bold:
        css.append("font-weight: bold")
    if run.italic:
        css.append("font-style: italic")
    if run.underline:
        css.append("text-decoration: underline")
    if run.font.size is not None:
        css.append(f"font-size: {min(max(run.font.size.pt, _PT_MIN), _PT_MAX):.1f}pt")
    if run.font.color is not None and run.font.color.rgb is not None:
        css.append(f"color: #{run.font.color.rgb}")
    pictures = "".join(_picture_html(node, paragraph) for node in run._r.iter(qn("a:blip")))  # noqa: SLF001
    return (f'<span style="{"; ".join(css)}">{text}</span>' if css else text) + pictures


def _picture_html(blip: Any, paragraph: Paragraph) -> str:
    part = paragraph.part.related_parts.get(blip.get(qn("r:embed")))
    kind = getattr(part, "content_type", "")
    if part is None or kind not in _PICTURE_TYPES or len(part.blob) > _PICTURE_BYTES_MAX:
        return '<span style="color: #777">[picture]</span>'
    return f'<img alt="" src="data:{kind};base64,{base64.b64encode(part.blob).decode()}">'


if __name__ == "__main__":
    run_program(show_docx)
