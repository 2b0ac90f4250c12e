"""The table as a picture: what is lost, in percent, and what it costs, as a multiple of the bar."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FixedLocator, FuncFormatter

from bench.chart_style import inks, style
from bench.render.figures import OURS, Row

COLOURS = {
    OURS: "#1f6feb",
    "Pandoc": "#d4631a",
    "Chromium": "#2e9f6b",
    "LibreOffice": "#8a63d2",
    "WeasyPrint": "#c2a000",
    "WeasyPrint, stock": "#a37a4b",
    "html2docx": "#d6409f",
    "html-for-docx": "#e5708f",
    "Marp": "#14a3b8",
    "python-docx": "#8b949e",
}
SHARES = ("%", "F1")
ROW_INCHES = 0.34
Measure = Callable[[Row, float], float]
"""Where a value of a row stands on the axis."""


def draw(rows: Sequence[Row], path: Path, *, is_dark: bool) -> None:
    """Draws both panels to an SVG without background; the text suits a light or a dark page."""
    lost = [row for row in rows if row.unit in SHARES and row.ours.value is not None]
    costs = [row for row in rows if row.unit in {"s", "MB"} and row.bar is not None]
    ink, _ = inks(is_dark=is_dark)
    with mpl.rc_context(style(is_dark=is_dark)):
        height = ROW_INCHES * (len(lost) + len(costs)) + 2.1
        canvas = Canvas(figsize=(9.6, height), layout="constrained")
        axes = canvas.subplots(2, 1, height_ratios=[max(len(lost), 1), max(len(costs), 1)])
        _panel(axes[0], lost, _loss_percent, ink)
        _loss_axis(axes[0])
        _panel(axes[1], costs, lambda row, value: value / (row.bar or 1.0), ink)
        _cost_axis(axes[1], costs)
        handles = [
            axes[0].plot([], [], "o", color=colour, markersize=9 if name == OURS else 6, label=name)[0]
            for name, colour in COLOURS.items()
            if any(figure.renderer == name for row in rows for figure in row.figures)
        ]
        canvas.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, columnspacing=1.4)
        canvas.savefig(path, transparent=True, metadata={"Date": None})


def _loss_percent(row: Row, value: float) -> float:
    share = value * 100 if row.unit == "F1" else value
    return share if row.is_lower_better else 100 - share


def _panel(axes: Axes, rows: Sequence[Row], measure: Measure, ink: str) -> None:
    for height, row in enumerate(rows):
        for figure in row.figures[::-1]:
            if figure.value is None:
                continue
            # Ours is the larger dot and lies below: who stands at the same place is seen.
            mine = figure.renderer == OURS
            axes.plot(
                measure(row, figure.value), height, "o", color=COLOURS.get(figure.renderer, "#8b949e"),
                markersize=11 if mine else 6, zorder=2 if mine else 3, clip_on=False,
            )  # fmt: skip
        if row.bar is not None:
            axes.plot(measure(row, row.bar), height, "|", color=ink, markersize=17, markeredgewidth=1.6, zorder=4)
    axes.set_yticks(range(len(rows)), [row.what for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=True, axis="both", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _loss_axis(axes: Axes) -> None:
    axes.set_xscale("symlog", linthresh=0.1, linscale=0.5)
    axes.set_xlim(-0.012, 105)
    axes.xaxis.set_major_locator(FixedLocator([0, 0.1, 1, 10, 100]))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))
    axes.set_title("Lost or wrong (further left is better; the stroke is the bar)", loc="left", fontweight="bold")


def _cost_axis(axes: Axes, rows: Sequence[Row]) -> None:
    axes.set_xscale("log")
    ratios = [figure.value / (row.bar or 1.0) for row in rows for figure in row.figures if figure.value]
    axes.set_xlim(min([0.1, *ratios]) * 0.7, max([10.0, *ratios]) * 1.5)
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}\u00d7"))
    axes.set_title("Time and memory, as a multiple of the bar (logarithmic)", loc="left", fontweight="bold")
