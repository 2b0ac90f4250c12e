"""Charts of the tree: ``figure.pb-chart`` with figures for writers that draw natively, a picture for the others."""

from xml.etree.ElementTree import Element

from render.frontend.element_tree import classes_of, make, parents_of, replace
from render.frontend.figures.chart_data import ChartData, read_fence, read_mermaid, read_table
from render.frontend.figures.chart_svg import draw_chart
from render.frontend.figures.diagrams import source_of
from render.frontend.figures.svg_image import picture_of
from render.model import Document

CHARTS_MAX = 200
FAILED_CHARACTERS_MAX = 2_000


def make_charts(document: Document) -> None:
    """Replaces fences, tables and Mermaid charts by figures; what cannot be drawn stays, with a warning."""
    parents = parents_of(document.tree)
    made = 0
    for element in list(document.tree.iter()):
        if element not in parents or made >= CHARTS_MAX:
            continue
        try:
            chart = _read(element)
            figure = None if chart is None else _figure(document, chart)
        except (ValueError, OverflowError) as exc:
            document.warn("chart_failed", f"A chart could not be drawn: {exc}.")
            _shorten(element)
            continue
        if figure is not None:
            replace(parents[element], element, figure)
            made += 1


def _shorten(element: Element) -> None:
    """Cuts what is shown of a block that is no chart: data is no reading matter, and it may be a megabyte."""
    text = "".join(element.itertext())
    if element.tag == "pre" and len(text) > FAILED_CHARACTERS_MAX:
        element[:], element.text = [make("code", None, f"{text[:FAILED_CHARACTERS_MAX]}\u2026")], None


def _read(element: Element) -> ChartData | None:
    if element.tag == "table" and element.get("data-chart"):
        return read_table(element)
    if element.tag == "pre":
        code = element.find("code")
        names = set(classes_of(element)) | (set(classes_of(code)) if code is not None else set())
        if names & {"language-chart", "language-chartjs", "chart"}:
            return read_fence("".join(element.itertext()))
    if element.tag in {"pre", "div"}:
        source = source_of(element)
        return read_mermaid(source) if source else None
    return None


def _figure(document: Document, chart: ChartData) -> Element:
    return make("figure", {"class": "pb-chart", "data-chart": chart.to_json()}, None, _picture(document, chart))


def _picture(document: Document, chart: ChartData) -> Element:
    names = ", ".join(name for name, _ in chart.series if name)[:200]
    alt = (
        f"{chart.kind.capitalize()} chart"
        + (f": {chart.title}" if chart.title else "")
        + (f" of {names}" if names else "")
    )
    return picture_of(draw_chart(chart, document.theme), alt)
