"""Charts that can be edited: a chart part and the workbook of its figures, as slides have them."""

import io
from functools import cache
from typing import Any

from lxml import etree
from pptx import Presentation
from pptx.exc import PythonPptxError
from render.docx.package import Part
from render.docx.writer_state import Place, State
from render.docx.xml import EMU, attribute
from render.ir import Chart
from render.pptx.charts import add_chart
from render.slides.model import ChartShape

_CHART = "http://schemas.openxmlformats.org/drawingml/2006/chart"
_NO_FRAME = (
    f'<c:spPr xmlns:c="{_CHART}" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:noFill/>'
    "<a:ln><a:noFill/></a:ln></c:spPr>"
)
_WIDTH, _HEIGHT = 620.0, 320.0
"""Pixels."""
_TYPE_SHARE = 0.7
"""Type of a page in proportion to that of a slide."""


def chart_xml(state: State, place: Place, chart: Chart, alt: str) -> str:
    """The run of a chart; empty if it cannot be made one.

    Args:
        state: the document; the parts of the chart are added to it.
        place: where the chart stands.
        chart: its figures.
        alt: the chart in words.
    """
    width = min(_WIDTH, (place.width - place.indent) / 15)
    height = width * _HEIGHT / _WIDTH
    try:
        slide = _blank()
        if not add_chart(slide, ChartShape(0, 0, width, height, chart.data), state.content.theme):
            return ""
        part = slide.shapes[-1].chart.part
        workbook = part.chart_workbook.xlsx_part.blob
        space = etree.fromstring(part.blob)
    except (PythonPptxError, ValueError, KeyError, AttributeError, TypeError, etree.XMLSyntaxError):
        return ""
    space.find(f"{{{_CHART}}}chart").addnext(etree.fromstring(_NO_FRAME))
    for element in space.iter():
        size = element.get("sz", "")
        if size.isdecimal():
            element.set("sz", str(round(int(size) * _TYPE_SHARE / 50) * 50))
    number = state.number("chart")
    links = Part(f"word/charts/chart{number}.xml")
    relation = links.link("package", f"../embeddings/workbook{number}.xlsx")
    for data in space.iter(f"{{{_CHART}}}externalData"):
        data.set("{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id", relation)
    state.charts |= {
        links.name: etree.tostring(space, xml_declaration=True, encoding="UTF-8", standalone=True),
        f"word/charts/_rels/chart{number}.xml.rels": links.relationships().encode(),
        f"word/embeddings/workbook{number}.xlsx": workbook,
    }
    return _drawing(state, place.part.link("chart", f"charts/chart{number}.xml"), alt, (width, height))


def _drawing(state: State, relation: str, alt: str, size: tuple[float, float]) -> str:
    number = state.number("drawing")
    return (
        f'<w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent cx="{round(size[0] * EMU)}" '
        f'cy="{round(size[1] * EMU)}"/><wp:docPr id="{number}" name="Chart {number}" descr="{attribute(alt)}"/>'
        f'<wp:cNvGraphicFramePr/><a:graphic><a:graphicData uri="{_CHART}"><c:chart xmlns:c="{_CHART}" '
        f'r:id="{relation}"/></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>'
    )


@cache
def _template() -> bytes:
    """An empty deck: python-pptx makes charts for slides only."""
    file = io.BytesIO()
    Presentation().save(file)
    return file.getvalue()


def _blank() -> Any:
    deck = Presentation(io.BytesIO(_template()))
    return deck.slides.add_slide(deck.slide_layouts[6])


def chart_text(chart: Chart) -> str:
    """A chart in words."""
    rows = []
    for series in chart.series:
        values = ", ".join(
            f"{name} {value:g}"
            for name, value in zip(chart.categories, series.values, strict=False)
            if value is not None
        )
        rows.append(f"{series.name}: {values}" if series.name else values)
    return f"{chart.title or chart.kind.capitalize() + ' chart'}. {'; '.join(rows)}"[:2000]
