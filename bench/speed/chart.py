"""The figures as a picture: how long one call takes, and how many are done in a second."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from bench.chart_style import style
from bench.speed.model import (
    BWRAP,
    CRUN,
    DOCKER,
    DOCKER_API,
    EPICBOX,
    FLOORS,
    LANES,
    LLM_SANDBOX,
    OURS,
    OURS_OCI,
    RUNC,
    Measured,
    Results,
)

COLOURS = {
    OURS: "#1f6feb",
    OURS_OCI: "#0aa2c0",
    DOCKER: "#d4631a",
    LLM_SANDBOX: "#2e9f6b",
    EPICBOX: "#8a63d2",
    BWRAP: "#8b949e",
    CRUN: "#c2a000",
    RUNC: "#a37a4b",
    DOCKER_API: "#e8a06c",
}
ROW_INCHES = 0.36
_RATES_INCHES = 2.6
_TICKS = [factor * 10**power for power in range(5) for factor in (1, 3)]
_SECONDS = FuncFormatter(lambda value, _: f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms")  # noqa: PLR2004


def draw(results: Results, path: Path, *, is_dark: bool) -> None:
    """Draws both panels to an SVG without background; the text suits a light or a dark page."""
    with mpl.rc_context(style(is_dark=is_dark)):
        rows = ROW_INCHES * max(len(results.calm), 1) + 0.6
        canvas = Figure(figsize=(8.6, rows + _RATES_INCHES + 0.8), layout="constrained")
        axes = canvas.subplots(2, 1, height_ratios=[rows, _RATES_INCHES])
        _latencies(axes[0], results.calm)
        _rates(axes[1], [row for row in results.busy if row.job == "print"])
        sides = {side for row in (*results.calm, *results.busy) for side in row.sides}
        handles = [
            axes[0].plot([], [], _mark(name), color=colour, fillstyle=_fill(name), label=_label(name))[0]
            for name, colour in COLOURS.items()
            if name in sides
        ]
        canvas.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False)
        canvas.savefig(path, transparent=True, metadata={"Date": None})


def _mark(name: str) -> str:
    return "D" if name in FLOORS else "o"


def _fill(name: str) -> Any:
    return "none" if name in FLOORS else "full"


def _label(name: str) -> str:
    return f"{name} (floor, no checks)" if name in FLOORS else name


def _latencies(axes: Axes, rows: list[Measured]) -> None:
    for height, row in enumerate(rows):
        for name in row.sides:
            middle = row.latency(name, 50)
            axes.plot([middle, row.latency(name, 90)], [height] * 2, color=COLOURS[name], linewidth=1.4, zorder=2)
            axes.plot(
                middle, height, _mark(name), color=COLOURS[name], fillstyle=_fill(name),
                markersize=10 if name in LANES else 6, zorder=2 if name in LANES else 3,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_major_formatter(_SECONDS)
    axes.set_yticks(range(len(rows)), [row.title.replace("`", "") for row in rows])
    axes.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    axes.set_title(
        "One call, one client: p50, and a line to p90 (logarithmic; left is better)", loc="left", fontweight="bold"
    )
    _finish(axes)


def _rates(axes: Axes, rows: list[Measured]) -> None:
    for name, colour in COLOURS.items():
        points = [(row.clients, row.rate(name)) for row in rows if name in row.sides]
        if not points:
            continue
        axes.plot(*zip(*points, strict=True), f"{_mark(name)}-", color=colour, fillstyle=_fill(name))
    axes.set_xscale("log", base=2)
    clients = sorted({row.clients for row in rows})
    axes.set_xticks(clients, [str(number) for number in clients])
    axes.set_yscale("log")
    axes.yaxis.set_minor_locator(FixedLocator([]))
    axes.yaxis.set_major_locator(FixedLocator(_TICKS))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("clients")
    axes.set_title(
        "print(1): calls per second, sustained (logarithmic; higher is better)", loc="left", fontweight="bold"
    )
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.grid(visible=True, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, pad=6)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
