"""Native charts from the tree's marks, in the theme's colours."""

import json
import math
from typing import Any

from pptx.chart.data import CategoryChartData, XyChartData
from pptx.dml.color import RGBColor
from pptx.enum.chart import XL_CHART_TYPE, XL_LABEL_POSITION, XL_LEGEND_POSITION
from pptx.util import Pt
from render.frontend.figures.chart_data import ChartData
from render.frontend.figures.chart_svg import scale
from render.model import Theme
from render.pptx.drawingml_style import emu
from render.slides.model import ChartShape

_TYPES = {
    "column": XL_CHART_TYPE.COLUMN_CLUSTERED,
    "bar": XL_CHART_TYPE.BAR_CLUSTERED,
    "line": XL_CHART_TYPE.LINE_MARKERS,
    "area": XL_CHART_TYPE.AREA,
    "pie": XL_CHART_TYPE.PIE,
    "scatter": XL_CHART_TYPE.XY_SCATTER,
}
_STACKED = {
    "column": XL_CHART_TYPE.COLUMN_STACKED,
    "bar": XL_CHART_TYPE.BAR_STACKED,
    "area": XL_CHART_TYPE.AREA_STACKED,
}
_TEXT_MAX = 200
_LABELLED_MAX = 12
_SERIES_COLOURS = 8


def add_chart(slide: Any, shape: ChartShape, theme: Theme) -> bool:
    """Adds a native chart to a slide.

    Returns:
        False if the mark holds nothing that can be drawn.
    """
    try:
        spec = json.loads(shape.data)
        kind = str(spec.get("kind", "column"))
        data = _scatter(spec) if kind == "scatter" else _categories(spec)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return False
    if data is None:
        return False
    types = _STACKED if spec.get("stacked") and kind in _STACKED else _TYPES
    chart_type = types.get(kind, XL_CHART_TYPE.COLUMN_CLUSTERED)
    place = (emu(shape.x), emu(shape.y), emu(shape.width), emu(shape.height))
    frame = slide.shapes.add_chart(chart_type, *place, data)
    title = str(spec.get("title") or "")[:_TEXT_MAX]
    frame._element.nvGraphicFramePr.cNvPr.set("descr", _words(spec, kind))  # noqa: SLF001
    if title:
        frame.name = f"Chart: {title}"[:_TEXT_MAX]
    _dress(frame.chart, spec, kind, theme)
    for element in frame.chart._chartSpace.iter("{*}axId", "{*}crossAx"):  # noqa: SLF001
        # python-pptx's axes have negative ids; the schema wants none.
        element.set("val", element.get("val").lstrip("-"))
    return True


def _words(spec: dict[str, Any], kind: str) -> str:
    names = ", ".join(str(row.get("name", "")) for row in spec.get("series", []) if isinstance(row, dict))
    title = str(spec.get("title") or "")
    return " ".join(
        f"{kind.capitalize()} chart{f': {title}' if title else ''}{f' ({names})' if names else ''}".split()
    )[:500]


def _figure(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _clean(text: Any) -> str:
    return "".join(character for character in str(text) if character.isprintable())[:_TEXT_MAX]


def _categories(spec: dict[str, Any]) -> CategoryChartData | None:
    names = [_clean(name) for name in spec.get("categories", [])]
    data = CategoryChartData()  # type: ignore[no-untyped-call]
    data.categories = names
    found = False
    for row in spec.get("series", []):
        values = [_figure(value) for value in row.get("values", [])][: len(names)]
        found = found or any(value is not None for value in values)
        row_values = values + [None] * (len(names) - len(values))
        data.add_series(_clean(row.get("name", "")), row_values)  # type: ignore[no-untyped-call]
    return data if found and names else None


def _scatter(spec: dict[str, Any]) -> XyChartData | None:
    """Points: the categories are the x values, or their positions if they are no figures."""
    places: list[float] = []
    for index, name in enumerate(spec.get("categories", [])):
        try:
            value = float(name)
        except (TypeError, ValueError):
            value = float(index + 1)
        places.append(value if math.isfinite(value) else float(index + 1))
    data = XyChartData()  # type: ignore[no-untyped-call]
    found = False
    for row in spec.get("series", []):
        series = data.add_series(_clean(row.get("name", "")))  # type: ignore[no-untyped-call]
        for x, value in zip(places, row.get("values", []), strict=False):
            y = _figure(value)
            if y is not None:
                series.add_data_point(x, y)
                found = True
    return data if found else None


def _colour(text: str) -> Any:
    return RGBColor.from_string(text.lstrip("#").upper())  # type: ignore[no-untyped-call]


def _dress(chart: Any, spec: dict[str, Any], kind: str, theme: Theme) -> None:
    """Type, colours, grid and legend."""
    c = theme.colours
    chart.font.size = Pt(13)
    chart.font.color.rgb = _colour(c["muted"])
    title = _clean(spec.get("title") or "")
    chart.has_title = bool(title)
    if title:
        chart.chart_title.text_frame.text = title
        run = chart.chart_title.text_frame.paragraphs[0].runs[0]
        run.font.size, run.font.bold = Pt(16), True
        run.font.color.rgb = _colour(c.get("heading", c["text"]))
    many = len(list(chart.series)) > 1
    chart.has_legend = many or kind == "pie"
    if chart.has_legend:
        chart.legend.include_in_layout = False
        chart.legend.position = XL_LEGEND_POSITION.RIGHT if kind == "pie" else XL_LEGEND_POSITION.BOTTOM
        chart.legend.font.size = Pt(13)
    colours = [c.get(f"series_{index}", c["accent"]) for index in range(1, _SERIES_COLOURS + 1)]
    if kind == "pie":
        _dress_pie(chart, spec, colours, c["background"])
        return
    _dress_axes(chart, spec, c)
    for index, series in enumerate(chart.series):
        _dress_series(series, kind, _colour(colours[index % len(colours)]))
    if kind in {"column", "bar"}:
        chart.plots[0].gap_width = 60
        chart.plots[0].vary_by_categories = False
        if not many and len(spec.get("categories", [])) <= _LABELLED_MAX:
            _label(chart.plots[0], XL_LABEL_POSITION.OUTSIDE_END)


def _dress_series(series: Any, kind: str, colour: Any) -> None:
    if kind in {"line", "scatter"}:
        if kind == "line":
            series.format.line.color.rgb, series.format.line.width = colour, Pt(2.5)
            series.smooth = False
        else:
            series.format.line.fill.background()
        series.marker.size = 8
        series.marker.format.fill.solid()
        series.marker.format.fill.fore_color.rgb = colour
        series.marker.format.line.color.rgb = colour
        return
    series.format.fill.solid()
    series.format.fill.fore_color.rgb = colour
    if kind in {"column", "bar"}:
        series.invert_if_negative = False


def _dress_axes(chart: Any, spec: dict[str, Any], colours: dict[str, str]) -> None:
    value, category = chart.value_axis, chart.category_axis
    value.major_gridlines.format.line.color.rgb = _colour(colours["border"])
    value.major_gridlines.format.line.width = Pt(0.75)
    value.format.line.fill.background()
    category.format.line.color.rgb = _colour(colours["border"])
    _scale_axis(value, spec)
    if category.has_major_gridlines:
        category.has_major_gridlines = False
    for axis, name in ((category, "x_label"), (value, "y_label")):
        text = _clean(spec.get(name) or "")
        if text:
            axis.has_title = True
            axis.axis_title.text_frame.text = text
            axis.axis_title.text_frame.paragraphs[0].runs[0].font.size = Pt(13)


def _scale_axis(axis: Any, spec: dict[str, Any]) -> None:
    """The same figures along the axis as in the picture that pages have of the chart."""
    rows = [(str(row.get("name", "")), [_figure(v) for v in row.get("values", [])]) for row in spec["series"]]
    if all(value is None for _, values in rows for value in values):
        return
    count = max(len(values) for _, values in rows)
    rows = [(name, values + [None] * (count - len(values))) for name, values in rows]
    data = ChartData(str(spec.get("kind", "column")), categories=[""] * count, series=rows)
    data.stacked = bool(spec.get("stacked"))
    axis.minimum_scale, axis.maximum_scale, axis.major_unit = scale(data)
    axis.tick_labels.number_format_is_linked = False
    axis.tick_labels.number_format = "#,##0" if axis.major_unit >= 1 else "General"


def _dress_pie(chart: Any, spec: dict[str, Any], colours: list[str], back: str) -> None:
    """Slices with their shares outside of them: there the text has the ground's contrast, not a colour's."""
    plot = chart.plots[0]
    plot.vary_by_categories = True
    points = plot.series[0].points
    for index in range(min(len(spec.get("categories", [])), 60)):
        point = points[index]
        point.format.fill.solid()
        point.format.fill.fore_color.rgb = _colour(colours[index % len(colours)])
        point.format.line.color.rgb = _colour(back)
    _label(plot, XL_LABEL_POSITION.OUTSIDE_END)
    plot.data_labels.show_percentage, plot.data_labels.show_value = True, False
    plot.data_labels.number_format, plot.data_labels.number_format_is_linked = "0%", False


def _label(plot: Any, position: Any) -> None:
    plot.has_data_labels = True
    plot.data_labels.show_value = True
    plot.data_labels.font.size = Pt(12)
    if position is not None:
        plot.data_labels.position = position
