"""Native charts of Excel beside the figures that they are drawn from, in the theme's colours."""

from typing import Any

from render.frontend.figures.chart_data import SERIES_MAX
from render.model import Theme
from render.xlsx.model import ChartPlan
from render.xlsx.typing_cells import TypedSheet
from xlsxwriter import Workbook

_WIDTH, _HEIGHT = 640, 360
"""Pixels."""
_LABELLED_MAX = 12
_SLICES_MAX = 60
_SERIES_COLOURS = 8
_TITLE_MAX = 200


def add_chart(book: Workbook, page: Any, sheet: TypedSheet, theme: Theme) -> int:
    """Put the chart of a table at its right; gives how many there are now, 0 or 1."""
    plan = sheet.table.chart
    columns = _series_columns(sheet)
    if plan is None or not columns:
        return 0
    if plan.kind == "pie":
        columns = columns[:1]
    kind: dict[str, Any] = {"type": plan.kind}
    if plan.is_stacked and plan.kind in {"column", "bar", "area"}:
        kind["subtype"] = "stacked"
    if plan.kind == "scatter":
        kind["subtype"] = "marker_only"
    chart = book.add_chart(kind)
    colours = [
        theme.colours.get(f"series_{index}", theme.colours["accent"]) for index in range(1, _SERIES_COLOURS + 1)
    ]
    rows = sheet.table.rows - sheet.table.header_rows - sheet.has_total
    for number, column in enumerate(columns):
        looks = _looks(plan, number, colours, theme, rows if len(columns) == 1 else 0)
        chart.add_series({**_cells(sheet, column), **looks})
    _dress(chart, plan, len(columns), theme)
    chart.set_size({"width": _WIDTH, "height": _HEIGHT})
    words = f"{plan.kind.capitalize()} chart{f': {plan.title}' if plan.title else ''}"
    page.insert_chart(1, sheet.table.columns + 1, chart, {"description": words[:_TITLE_MAX]})
    return 1


def _series_columns(sheet: TypedSheet) -> list[int]:
    """The columns with figures behind the first one."""
    first = sheet.table.header_rows
    counted = {
        cell.source.column
        for cell in sheet.cells
        if cell.source.row >= first and (cell.is_formula or _is_figure(cell.value))
    }
    return sorted(column for column in counted if column)[:SERIES_MAX]


def _is_figure(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cells(sheet: TypedSheet, column: int) -> dict[str, Any]:
    """Where the categories, the figures and the name of a series stand."""
    table = sheet.table
    first, last = table.header_rows, table.rows - 1 - sheet.has_total
    cells = {
        "categories": [sheet.name, first, 0, last, 0],
        "values": [sheet.name, first, column, last, column],
    }
    return {**cells, "name": [sheet.name, first - 1, column]} if first else cells


def _looks(plan: ChartPlan, number: int, colours: list[str], theme: Theme, rows: int) -> dict[str, Any]:
    """Colour, marks and labels of a series.

    Args:
        plan: what the chart is.
        number: of the series, from 0.
        colours: of series.
        theme: for labels and edges.
        rows: its figures if it is alone, and may show them; else 0.
    """
    colour = colours[number % len(colours)]
    font = {"size": 10, "color": theme.colours["text"]}
    if plan.kind in {"line", "scatter"}:
        marker = {"type": "circle", "size": 7, "fill": {"color": colour}, "border": {"color": colour}}
        line = {"color": colour, "width": 2.25} if plan.kind == "line" else {"none": True}
        return {"marker": marker, "line": line}
    if plan.kind == "pie":
        border = {"color": theme.colours["background"]}
        points = [
            {"fill": {"color": colours[index % len(colours)]}, "border": border}
            for index in range(min(rows, _SLICES_MAX))
        ]
        labels = {"percentage": True, "position": "outside_end", "font": font, "num_format": "0%"}
        return {"points": points, "data_labels": labels}
    looks: dict[str, Any] = {"fill": {"color": colour}}
    if plan.kind in {"column", "bar"}:
        looks["gap"] = 60
        if 0 < rows <= _LABELLED_MAX:
            looks["data_labels"] = {"value": True, "position": "outside_end", "font": font}
    return looks


def _dress(chart: Any, plan: ChartPlan, count: int, theme: Theme) -> None:
    """Title, legend, grounds and axes, as charts of slides have them."""
    colours = theme.colours
    small = {"size": 10, "color": colours["muted"]}
    if plan.title:
        font = {"size": 14, "bold": True, "color": colours["heading"]}
        chart.set_title({"name": plan.title[:_TITLE_MAX], "name_font": font, "overlay": False})
    else:
        chart.set_title({"none": True})
    if count > 1 or plan.kind == "pie":
        chart.set_legend({"position": "right" if plan.kind == "pie" else "bottom", "font": small})
    else:
        chart.set_legend({"none": True})
    chart.set_chartarea({"fill": {"color": colours["background"]}, "border": {"color": colours["border"]}})
    chart.set_plotarea({"fill": {"none": True}})
    if plan.kind == "pie":
        return
    across: dict[str, Any] = {
        "num_font": small, "line": {"color": colours["border"]}, "major_gridlines": {"visible": False},
    }  # fmt: skip
    up: dict[str, Any] = {
        "num_font": small, "line": {"none": True},
        "major_gridlines": {"visible": True, "line": {"color": colours["border"], "width": 0.75}},
    }  # fmt: skip
    if plan.kind == "bar":  # its categories go down, the first one on top, and its figures stay below
        across |= {"reverse": True, "crossing": "max"}
    for axis, label in ((across, plan.x_label), (up, plan.y_label)):
        if label:
            axis |= {"name": label, "name_font": {**small, "bold": False}}
    # XlsxWriter names the axes of bars by where they are drawn.
    horizontal, vertical = (up, across) if plan.kind == "bar" else (across, up)
    chart.set_x_axis(horizontal)
    chart.set_y_axis(vertical)
