"""What a chart is made of, read from any of the ways to write one."""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any
from xml.etree.ElementTree import Element

from render.frontend.element_tree import text_of
from render.frontend.front_matter import read_yaml

KINDS = {
    "bar": "column", "column": "column", "columns": "column", "vertical": "column", "histogram": "column",
    "hbar": "bar", "horizontalbar": "bar", "barh": "bar", "bar-horizontal": "bar",
    "horizontal-bar": "bar", "horizontal": "bar",
    "line": "line", "spline": "line", "area": "area", "pie": "pie", "doughnut": "pie", "donut": "pie",
    "scatter": "scatter", "bubble": "scatter",
}  # fmt: skip
"""As people name charts, and as the intermediate representation does: its ``bar`` lies, its ``column`` stands."""
CATEGORIES_MAX = 500
SERIES_MAX = 30
SPEC_CHARACTERS_MAX = 100_000
_NUMBER = re.compile(
    r"[-+\u2212]?\(?\s*[$\u20ac\u00a3\u00a5]?\s*[-+\u2212]?"
    r"(\d[\d,\u00a0\u202f' ]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
)


@dataclass(slots=True)
class ChartData:
    """A chart: figures by series and category."""

    kind: str
    title: str = ""
    categories: list[str] = field(default_factory=list)
    series: list[tuple[str, list[float | None]]] = field(default_factory=list)
    stacked: bool = False
    x_label: str = ""
    y_label: str = ""

    def to_json(self) -> str:
        """The value of ``data-chart``."""
        rows = [{"name": name, "values": values} for name, values in self.series]
        value: dict[str, Any] = {
            "kind": self.kind,
            "title": self.title,
            "categories": self.categories,
            "series": rows,
        }
        extra = {"stacked": self.stacked, "x_label": self.x_label, "y_label": self.y_label}
        return json.dumps({**value, **{key: item for key, item in extra.items() if item}}, ensure_ascii=False)

    def checked(self) -> "ChartData":
        """The same with every series as long as the categories, bounded.

        Raises:
            ValueError: there is nothing to draw.
        """
        longest = max((len(values) for _, values in self.series), default=0)
        count = min(max(longest, len(self.categories)), CATEGORIES_MAX)
        names = self.categories[:count]
        self.categories = names + [str(number + 1) for number in range(len(names), count)]
        self.series = [(name, (values + [None] * count)[:count]) for name, values in self.series[:SERIES_MAX]]
        if not any(value is not None for _, values in self.series for value in values):
            raise ValueError("a chart needs figures")
        if self.kind == "pie":
            name, values = self.series[0]
            self.series = [(name, [abs(value) if value is not None else None for value in values])]
        return self


def number_of(value: Any) -> float | None:
    """A figure as people write it: ``1,234``, ``$5.2``, ``12 %``, ``(3)`` for minus three; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) and abs(value) < 1e300 else None  # noqa: PLR2004
    if not isinstance(value, str) or len(value) > 60:  # noqa: PLR2004
        return None
    text = value.strip()
    match = _NUMBER.match(text)
    if match is None:
        return None
    digits = re.sub(
        r"[,\u00a0\u202f' ]", "", re.sub(r"[^\d.,eE+\-\u00a0\u202f' ]", "", match[0].replace("\u2212", "-"))
    )
    try:
        number = float(digits)
    except ValueError:
        return None
    return -number if text.startswith("(") and text.rstrip("%").endswith(")") else number


def read_fence(text: str) -> ChartData:
    """A ```` ```chart ```` block: JSON or YAML, our own fields or those of Chart.js.

    Raises:
        ValueError: what is wrong, for the reader.
    """
    if len(text) > SPEC_CHARACTERS_MAX:
        raise ValueError(f"a chart has at most {SPEC_CHARACTERS_MAX:,} characters")
    try:
        value = json.loads(text) if text.lstrip().startswith(("{", "[")) else read_yaml(text)
    except (ValueError, RecursionError) as exc:
        raise ValueError(f"it is neither JSON nor YAML: {str(exc).splitlines()[0][:120]}") from exc
    if not isinstance(value, dict):
        raise ValueError("it has to be an object with type, categories and series")  # noqa: TRY004
    return read_mapping({str(key).lower(): item for key, item in value.items()})


def read_mapping(value: dict[str, Any]) -> ChartData:
    """The fields of a chart, with lower-case keys.

    Raises:
        ValueError: an unknown kind, or nothing to draw.
    """
    data = value.get("data")
    if isinstance(data, dict) and ("datasets" in data or "labels" in data):
        value = {
            **{str(key).lower(): item for key, item in data.items()},
            **{k: v for k, v in value.items() if k != "data"},
        }
        data = None
    kind = _kind(value)
    labels: list[Any] = next(
        (value[key] for key in ("categories", "labels", "x", "xaxis") if isinstance(value.get(key), list)), []
    )
    chart = ChartData(kind, _text(value.get("title")), [_text(label) for label in labels[:CATEGORIES_MAX]])
    chart.stacked = bool(value.get("stacked"))
    chart.x_label, chart.y_label = (
        _text(value.get("x_label") or value.get("xlabel")),
        _text(value.get("y_label") or value.get("ylabel")),
    )
    rows = next((value[key] for key in ("series", "datasets", "y", "values", "data") if value.get(key)), None)
    _read_rows(chart, rows)
    return chart.checked()


def _kind(value: dict[str, Any]) -> str:
    named = _text(value.get("type") or value.get("kind") or "bar").lower().replace(" ", "-").replace("_", "-")
    kind = KINDS.get(named)
    if kind is None:
        raise ValueError(
            f"there is no chart of type {named[:40]}: bar, hbar, line, area, pie and scatter are drawn"
        )
    options = value.get("options")
    lying = value.get("horizontal") or (isinstance(options, dict) and options.get("indexAxis") == "y")
    return "bar" if lying and kind == "column" else kind


def _text(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("text", "")
    return " ".join(str(value).split())[:200] if value is not None and not isinstance(value, list) else ""


def _read_rows(chart: ChartData, rows: Any) -> None:
    """Series as a list of objects, of lists or of figures, or as an object by name or by category."""
    if isinstance(rows, dict):
        items = list(rows.items())[:CATEGORIES_MAX]
        if all(isinstance(item, list) for _, item in items):
            chart.series = [(_text(name), _values(item)) for name, item in items]
        else:
            chart.categories = [_text(name) for name, _ in items]
            chart.series = [("", [number_of(item) for _, item in items])]
        return
    if not isinstance(rows, list):
        raise ValueError("it has no series")  # noqa: TRY004
    if rows and all(isinstance(row, dict) and not _has_values(row) for row in rows):
        _read_records(chart, rows)
    elif rows and all(isinstance(row, dict) for row in rows):
        for row in rows[:SERIES_MAX]:
            values: list[Any] = next(
                (row[key] for key in ("values", "data", "y") if isinstance(row.get(key), list)), []
            )
            _take_points(chart, values)
            chart.series.append((_text(row.get("name") or row.get("label")), _values(values)))
    elif rows and all(isinstance(row, list) for row in rows) and all(len(row) == 2 for row in rows):  # noqa: PLR2004
        chart.categories = [_text(row[0]) for row in rows[:CATEGORIES_MAX]]
        chart.series = [("", [number_of(row[1]) for row in rows[:CATEGORIES_MAX]])]
    else:
        chart.series = [("", _values(rows))]


def _has_values(row: dict[Any, Any]) -> bool:
    return any(isinstance(row.get(key), list) for key in ("values", "data", "y"))


def _take_points(chart: ChartData, values: list[Any]) -> None:
    """The x of points gives the categories."""
    if not chart.categories and values and all(isinstance(point, dict) for point in values):
        chart.categories = [_text(point.get("x")) for point in values[:CATEGORIES_MAX]]


def _values(values: list[Any]) -> list[float | None]:
    return [number_of(item.get("y") if isinstance(item, dict) else item) for item in values[:CATEGORIES_MAX]]


def _read_records(chart: ChartData, rows: list[dict[Any, Any]]) -> None:
    """``[{label: a, value: 1}, …]``: the first field without figures names the category, the others are series."""
    keys = list(rows[0])[: SERIES_MAX + 1]
    label = next((key for key in keys if number_of(rows[0][key]) is None), None)
    if label is None and len(keys) > 1:
        label = keys[0]
    chart.categories = [_text(row.get(label)) for row in rows[:CATEGORIES_MAX]]
    chart.series = [
        (_text(key), [number_of(row.get(key)) for row in rows[:CATEGORIES_MAX]]) for key in keys if key != label
    ]


def read_table(table: Element) -> ChartData:
    """``<table data-chart="bar">``: the first column has the categories, the head the names of the series.

    Raises:
        ValueError: an unknown kind, or nothing to draw.
    """
    rows = [[text_of(cell) for cell in row if cell.tag in {"td", "th"}] for row in table.iter("tr")]
    rows = [row for row in rows if row][: CATEGORIES_MAX + 1]
    caption = next((text_of(item) for item in table.iter("caption")), "")
    kind = _kind({"type": table.get("data-chart"), "horizontal": table.get("data-horizontal")})
    chart = ChartData(kind, table.get("data-title") or caption, stacked=table.get("data-stacked") is not None)
    if not rows:
        raise ValueError("the table has no rows")
    first = next(iter(table.iter("tr")))
    named = len(first) > 0 and all(cell.tag == "th" for cell in first) and table.find(".//td") is not None
    has_head = named or all(number_of(cell) is None for cell in rows[0][1:]) or table.find("thead") is not None
    head = rows[0] if has_head else [""] * len(rows[0])
    body = rows[1:] if has_head else rows
    chart.categories = [row[0] for row in body]
    chart.series = [
        (head[column], [number_of(row[column]) if column < len(row) else None for row in body])
        for column in range(1, min(len(head), SERIES_MAX + 1))
    ]
    return chart.checked()


_PIE_ROW = re.compile(r'^\s*"([^"]*)"\s*:\s*([\d.]+)\s*$')
_AXIS = re.compile(r'^\s*([xy])-axis\s*(?:"([^"]*)"|([^\[\d"][^\[]*?))?\s*(?:\[(.*)\]|.*-->.*)?\s*$')
_PLOT = re.compile(r'^\s*(bar|line)\s*(?:"([^"]*)"|([A-Za-z][\w ]*))?\s*\[(.*)\]\s*$')


def read_mermaid(source: str) -> ChartData | None:
    """A Mermaid ``pie`` or ``xychart``, or None if it is another diagram or not a plain one."""
    lines = [line for line in source.splitlines() if line.strip() and not line.strip().startswith("%%")]
    if not lines:
        return None
    first = lines[0].split()
    try:
        if first[0] == "pie":
            return _read_pie(lines)
        if first[0] in {"xychart-beta", "xychart"}:
            return _read_xychart(lines)
    except ValueError:
        return None
    return None


def _read_pie(lines: list[str]) -> ChartData:
    chart = ChartData("pie")
    values: list[float | None] = []
    for line in lines:
        row = _PIE_ROW.match(line)
        title = re.search(r"\btitle\s+(.+)$", line) if not row else None
        if row:
            chart.categories.append(row[1][:200])
            values.append(number_of(row[2]))
        elif title:
            chart.title = title[1].strip()[:200]
    chart.series = [("", values)]
    return chart.checked()


def _read_xychart(lines: list[str]) -> ChartData:
    kinds: list[str] = []
    chart = ChartData("column")
    lying = "horizontal" in lines[0]
    for line in lines[1:]:
        plot, axis = _PLOT.match(line), _AXIS.match(line)
        if plot:
            kinds.append(plot[1])
            name = plot[2] or (plot[3] or "").strip()
            chart.series.append((name, [number_of(part) for part in plot[4].split(",")]))
        elif axis:
            label = (axis[2] or axis[3] or "").strip()
            if axis[1] == "x":
                chart.x_label = label
                chart.categories = [part.strip().strip('"') for part in (axis[4] or "").split(",") if part.strip()]
            else:
                chart.y_label = label
        elif line.strip().startswith("title"):
            chart.title = line.strip()[5:].strip().strip('"')
    if len(set(kinds)) > 1:
        raise ValueError("mixed plots are drawn as a diagram")
    chart.kind = "line" if kinds[:1] == ["line"] else "bar" if lying else "column"
    return chart.checked()
