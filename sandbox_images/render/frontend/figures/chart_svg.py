"""Charts as SVG, in the colours and the font of the theme."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

from render.frontend.figures.chart_data import ChartData
from render.model import Theme

WIDTH, HEIGHT = 720.0, 400.0
SIZE = 13.0
"""Type size, in px of the picture."""
TICKS = 5
LABELS_MAX = 24
"""More category labels than this are thinned out."""


@dataclass(frozen=True, slots=True)
class _Plot:
    """The rectangle in which figures are drawn, and its scale."""

    left: float
    top: float
    width: float
    height: float
    low: float
    high: float

    def y(self, value: float) -> float:
        return self.top + self.height * (self.high - value) / (self.high - self.low)

    def x(self, value: float) -> float:
        return self.left + self.width * (value - self.low) / (self.high - self.low)


class _Canvas:
    """Collects shapes."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        self.parts: list[str] = []
        self.series = [value for key, value in theme.colours.items() if key.startswith("series_")] or [
            theme.colours["accent"]
        ]

    def colour(self, number: int) -> str:
        return self.series[number % len(self.series)]

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: str, width: float = 1) -> None:
        self.parts.append(
            f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
            f'stroke="{colour}" stroke-width="{width}"/>'
        )

    def rect(self, x: float, y: float, size: tuple[float, float], colour: str) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(size[0], 0):.1f}" height="{max(size[1], 0):.1f}" '
            f'fill="{colour}"/>'
        )

    def text(self, x: float, y: float, text: str, anchor: str = "middle", **style: str) -> None:
        fill = style.pop("fill", self.theme.colours["muted"])
        rest = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in style.items())
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}"{rest}>{escape(text)}</text>'
        )

    def svg(self) -> str:
        font = escape(self.theme.body_font, {'"': "&quot;"})
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH:.0f}" height="{HEIGHT:.0f}" '
            f'viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" '
            f'font-family="{font}, sans-serif" font-size="{SIZE}">{"".join(self.parts)}</svg>'
        )


def draw_chart(chart: ChartData, theme: Theme) -> str:
    """The SVG of a chart, 720 by 400 px."""
    canvas = _Canvas(theme)
    top = 14.0
    if chart.title:
        canvas.text(
            WIDTH / 2,
            24,
            _cut(chart.title, WIDTH - 40, 16),
            fill=theme.colours.get("heading", theme.colours["text"]),
            font_size="16",
            font_weight="bold",
        )
        top = 44.0
    if chart.kind == "pie":
        _draw_pie(canvas, chart, top)
        return canvas.svg()
    names = [name for name, _ in chart.series]
    if len(names) > 1 or names[0]:
        top = _draw_legend(canvas, names, top)
    if chart.kind == "bar":
        _draw_bars(canvas, chart, top)
    else:
        _draw_standing(canvas, chart, top)
    return canvas.svg()


def _width(text: str, size: float = SIZE) -> float:
    """About how wide a text is: the widths of the image's sans serif, wide characters counted twice."""
    return sum(
        size * (1.0 if char > "\u2e7f" else 0.31 if char in "iljtfr.,:;' |()" else 0.62 if char.isupper() else 0.56)
        for char in text
    )


def _cut(text: str, room: float, size: float = SIZE) -> str:
    if _width(text, size) <= room:
        return text
    while text and _width(text + "…", size) > room:
        text = text[:-1]
    return text.rstrip() + "…"


def _shown(value: float) -> str:
    """A figure on an axis."""
    for limit, unit in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            return f"{value / (1e3 if unit == 'k' else limit):g}"[:7] + unit
    return f"{value:,.4g}" if abs(value) < 1e3 else f"{value:,.0f}"  # noqa: PLR2004


def scale(chart: ChartData) -> tuple[float, float, float]:
    """The lowest and highest figure of an axis, and its step."""
    if chart.stacked and chart.kind in {"bar", "column", "area"}:
        columns = list(zip(*(values for _, values in chart.series), strict=True))
        figures = [
            sum(v for v in column if v is not None and (v > 0) == sign)
            for column in columns
            for sign in (True, False)
        ]
    else:
        figures = [value for _, values in chart.series for value in values if value is not None]
    low, high = min(figures), max(figures)
    if chart.kind != "scatter" and not (chart.kind == "line" and low > 0 and (high - low) < 0.3 * high):
        low, high = min(low, 0.0), max(high, 0.0)
    if high == low:
        low, high = (low - 1, high + 1) if low else (0.0, 1.0)
    raw = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999) * power
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step


def _ticks(low: float, high: float, step: float) -> list[float]:
    count = round((high - low) / step)
    return [
        low + step * number if abs(low + step * number) > step * 1e-6 else 0.0
        for number in range(min(count, 40) + 1)
    ]


def _draw_legend(canvas: _Canvas, names: list[str], top: float) -> float:
    """The legend in rows; gives where the plot may begin."""
    shown = [_cut(name or f"Series {number + 1}", 300) for number, name in enumerate(names[:12])]
    rows: list[list[tuple[int, str]]] = [[]]
    room = WIDTH - 60
    used = 0.0
    for number, name in enumerate(shown):
        width = _width(name) + 40
        if used + width > room and rows[-1]:
            rows.append([])
            used = 0.0
        rows[-1].append((number, name))
        used += width
    for row in rows:
        x = (WIDTH - sum(_width(name) + 40 for _, name in row) + 18) / 2
        for number, name in row:
            canvas.rect(x, top, (12, 12), canvas.colour(number))
            canvas.text(x + 18, top + 10.5, name, "start", fill=canvas.theme.colours["text"])
            x += _width(name) + 40
        top += 22
    return top + 6


def _draw_standing(canvas: _Canvas, chart: ChartData, top: float) -> None:
    """Columns, lines, areas and points over a horizontal axis of categories."""
    low, high, step = scale(chart)
    labels = _ticks(low, high, step)
    left = max(_width(_shown(label)) for label in labels) + 18 + (22 if chart.y_label else 0)
    count = len(chart.categories)
    slot = (WIDTH - left - 16) / count
    slanted = count <= LABELS_MAX and max(map(_width, chart.categories)) > slot * 0.96 and count > 3  # noqa: PLR2004
    bottom = HEIGHT - (84 if slanted else 30) - (20 if chart.x_label else 0)
    plot = _Plot(left, top, WIDTH - left - 16, bottom - top, low, high)
    for label in labels:
        y = plot.y(label)
        canvas.line((left, y), (WIDTH - 16, y), canvas.theme.colours["border"], 1.4 if label == 0 else 0.8)
        canvas.text(left - 8, y + 4.5, _shown(label), "end")
    _draw_categories(canvas, chart, plot, slanted=slanted)
    if chart.y_label:
        y = top + plot.height / 2
        canvas.text(14, y, _cut(chart.y_label, plot.height), transform=f"rotate(-90 14 {y:.1f})")
    if chart.x_label:
        canvas.text(left + plot.width / 2, HEIGHT - 8, _cut(chart.x_label, plot.width))
    if chart.kind == "column":
        _draw_columns(canvas, chart, plot)
    else:
        _draw_lines(canvas, chart, plot)


def _draw_categories(canvas: _Canvas, chart: ChartData, plot: _Plot, *, slanted: bool) -> None:
    count = len(chart.categories)
    slot = plot.width / count
    every = math.ceil(count / LABELS_MAX)
    y = plot.top + plot.height + 18
    for number in range(0, count, every):
        x = plot.left + slot * (number + 0.5)
        if slanted:
            label = _cut(chart.categories[number], 84)
            canvas.text(x + 4, y - 3, label, "end", transform=f"rotate(-38 {x + 4:.1f} {y - 3:.1f})")
        else:
            canvas.text(x, y, _cut(chart.categories[number], slot * every * 0.98))


def _draw_columns(canvas: _Canvas, chart: ChartData, plot: _Plot) -> None:
    count, rows = len(chart.categories), len(chart.series)
    slot = plot.width / count
    width = slot * 0.68 if chart.stacked else min(slot * 0.72 / rows, 90)
    for place in range(count):
        up = down = 0.0
        middle = plot.left + slot * (place + 0.5)
        for number, (_, values) in enumerate(chart.series):
            value = values[place]
            if value is None:
                continue
            if chart.stacked:
                start = up if value >= 0 else down
                up, down = (up + value, down) if value >= 0 else (up, down + value)
                x, ends = middle - width / 2, (plot.y(start), plot.y(start + value))
            else:
                x, ends = (
                    middle - width * rows / 2 + width * number,
                    (plot.y(max(plot.low, min(0, plot.high))), plot.y(value)),
                )
            canvas.rect(x + 0.5, min(ends), (width - 1, abs(ends[1] - ends[0])), canvas.colour(number))
            if rows == 1 and count <= 14:  # noqa: PLR2004
                canvas.text(
                    x + width / 2,
                    min(ends) - 5 if value >= 0 else max(ends) + 14,
                    _shown(value),
                    fill=canvas.theme.colours["text"],
                    font_size="11.5",
                )


def _draw_lines(canvas: _Canvas, chart: ChartData, plot: _Plot) -> None:
    count = len(chart.categories)
    slot = plot.width / count
    below = [0.0] * count
    for number, (_, values) in enumerate(chart.series):
        colour = canvas.colour(number)
        shown = [
            value + below[place] if chart.stacked and value is not None else value
            for place, value in enumerate(values)
        ]
        points = [
            (plot.left + slot * (place + 0.5), plot.y(value))
            for place, value in enumerate(shown)
            if value is not None
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        if chart.kind == "area" and points:
            ground = [
                (plot.left + slot * (place + 0.5), plot.y(max(plot.low, below[place])))
                for place in reversed(range(count))
                if shown[place] is not None
            ]
            edge = " ".join(f"{x:.1f},{y:.1f}" for x, y in ground)
            canvas.parts.append(f'<polygon points="{path} {edge}" fill="{colour}" fill-opacity="0.28"/>')
        if chart.kind != "scatter":
            canvas.parts.append(
                f'<polyline points="{path}" fill="none" stroke="{colour}" '
                f'stroke-width="2.4" stroke-linejoin="round"/>'
            )
        if chart.kind == "scatter" or len(points) <= 40:  # noqa: PLR2004
            canvas.parts.extend(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{4 if chart.kind == "scatter" else 3}" fill="{colour}"/>'
                for x, y in points
            )
        if chart.stacked:
            below = [value if value is not None else below[place] for place, value in enumerate(shown)]


def _draw_bars(canvas: _Canvas, chart: ChartData, top: float) -> None:
    """Bars that lie, one row a category."""
    low, high, step = scale(chart)
    left = min(max(map(_width, chart.categories)) + 16, WIDTH * 0.36)
    plot = _Plot(left, top, WIDTH - left - 40, HEIGHT - top - (48 if chart.y_label else 28), low, high)
    for label in _ticks(low, high, step):
        x = plot.x(label)
        canvas.line((x, top), (x, top + plot.height), canvas.theme.colours["border"], 1.4 if label == 0 else 0.8)
        canvas.text(x, top + plot.height + 17, _shown(label))
    if chart.y_label:
        canvas.text(left + plot.width / 2, HEIGHT - 8, _cut(chart.y_label, plot.width))
    count, rows = len(chart.categories), len(chart.series)
    slot = plot.height / count
    thick = slot * 0.7 / (1 if chart.stacked else rows)
    for place, name in enumerate(chart.categories):
        middle = top + slot * (place + 0.5)
        if slot >= 11 or place % math.ceil(11 / slot) == 0:  # noqa: PLR2004
            canvas.text(left - 8, middle + 4.5, _cut(name, left - 12), "end", fill=canvas.theme.colours["text"])
        up = down = 0.0
        for number, (_, values) in enumerate(chart.series):
            value = values[place]
            if value is None:
                continue
            start = (up if value >= 0 else down) if chart.stacked else max(low, min(0.0, high))
            up, down = (up + value, down) if value >= 0 else (up, down + value)
            end = start + value if chart.stacked else value
            y = middle - slot * 0.35 + (0 if chart.stacked else thick * number)
            ends = sorted((plot.x(start), plot.x(end)))
            canvas.rect(ends[0], y + 0.5, (ends[1] - ends[0], thick - 1), canvas.colour(number))
            if rows == 1 and slot >= 14:  # noqa: PLR2004
                canvas.text(
                    ends[1] + 5,
                    middle + 4.5,
                    _shown(value),
                    "start",
                    fill=canvas.theme.colours["text"],
                    font_size="11.5",
                )


def _draw_pie(canvas: _Canvas, chart: ChartData, top: float) -> None:
    values = [value or 0.0 for value in chart.series[0][1]]
    total = sum(values) or 1.0
    radius = (HEIGHT - top - 16) / 2
    x, y = 60 + radius, top + radius
    angle = -math.pi / 2
    ground = canvas.theme.colours["background"]
    for number, value in enumerate(values):
        turn = 2 * math.pi * value / total
        if value >= total * 0.99999:
            canvas.parts.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{canvas.colour(number)}"/>'
            )
        elif value > 0:
            start = (x + radius * math.cos(angle), y + radius * math.sin(angle))
            end = (x + radius * math.cos(angle + turn), y + radius * math.sin(angle + turn))
            canvas.parts.append(
                f'<path d="M{x:.1f} {y:.1f} L{start[0]:.2f} {start[1]:.2f} A{radius:.1f} {radius:.1f} 0 '
                f"{int(turn > math.pi)} 1 "
                f'{end[0]:.2f} {end[1]:.2f} Z" fill="{canvas.colour(number)}" '
                f'stroke="{ground}" stroke-width="1.5"/>'
            )
        angle += turn
    left = x + radius + 44
    shown = list(zip(chart.categories, values, strict=True))[: int((HEIGHT - top) // 20)]
    line = y - len(shown) * 22 / 2
    for number, (name, value) in enumerate(shown):
        canvas.rect(left, line + number * 22, (12, 12), canvas.colour(number))
        label = f"{_cut(name, WIDTH - left - 90)}  {value / total:.1%}"
        canvas.text(left + 20, line + number * 22 + 10.5, label, "start", fill=canvas.theme.colours["text"])
