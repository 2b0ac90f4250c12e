"""The figures of a run as Markdown, and where they are written."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from bench.serving import ROOT
from bench.speed.bar import bar_table
from bench.speed.chart import draw
from bench.speed.machine import described
from bench.speed.model import DOCKER, EPICBOX, FLOORS, LANES, LLM_SANDBOX, Measured, Results
from bench.speed.spread import Spread

_BLOCK = re.compile(r"(<!-- bench-speed -->\n).*?(<!-- /bench-speed -->)", re.DOTALL)
_INNERMOST = re.compile(r"\{[^{}\[\]]*\[[\s\d.,]*\][^{}\[\]]*\}|\[[\s\d.,]*\]")
"""An object with one list of numbers, or such a list."""
_PICTURE = """\
<picture>
  <source media="(prefers-color-scheme: dark)" srcset="{0}/speed-dark.svg">
  <img src="{0}/speed.svg" alt="Latency of one call and calls per second, Proofbox and its peers">
</picture>
"""


def text_of(results: Results) -> str:
    """All tables, what is to be known of this run, the machine."""
    parts = [
        ("The bar", bar_table(results)),
        ("One client", _calm_table(results.calm) if results.calm else ""),
        ("Many clients", _busy_table(results.busy) if results.busy else ""),
        ("More calls at one time", _queue_table(results.queue) if results.queue else ""),
        ("More files", _calm_table(results.files) if results.files else ""),
        ("A larger pool", _pool_table(results.pool) if results.pool else ""),
        ("Idle", _idle_text(results.idle) if results.idle else ""),
    ]
    text = "".join(f"### {title}\n\n{part}\n" for title, part in parts if part)
    return f"{text}### This run\n\n{described(results.machine)}{''.join(_remarks(results))}\n"


def _remarks(results: Results) -> Iterator[str]:
    for ours, jobs in results.warm.items():
        warm = ", ".join(f"{name} {found} of {calls}" for name, (found, calls) in jobs.items())
        yield f" {ours}: calls that met a container that waited, those of many clients included: {warm}."
    for name, remark in results.remarks.items():
        yield f" {name} {remark}."


def _latency(row: Measured, side: str) -> str:
    return " / ".join(_ms(row.latency(side, percent)) for percent in (50, 90, 99))


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"  # noqa: PLR2004 - three digits


def _times(spread: Spread) -> str:
    digits = 1 if spread.median < 10 else 0  # noqa: PLR2004 - two digits
    digits = 2 if spread.median < 1 else digits
    return f"{spread.median:.{digits}f} ({spread.low:.{digits}f} to {spread.high:.{digits}f})"


def _calm_table(rows: list[Measured]) -> str:
    """One line for each job: ours, and each peer with how many times as long as ours it takes."""
    ours = [name for name in LANES if any(name in row.sides for row in rows)]
    known = (DOCKER, LLM_SANDBOX, EPICBOX, *FLOORS)
    peers = [name for name in known if any(name in row.sides for row in rows)]
    heads = [f"`{name}`" if name == DOCKER else f"floor: {name}" if name in FLOORS else name for name in peers]
    text = f"| | {' | '.join([*ours, *(f'{head} | times' for head in heads)])} |\n"
    text += f"|---|{'---|' * len(ours)}{'---|---|' * len(peers)}\n"
    for row in rows:
        cells = [f"**{_latency(row, name)}**" if name in row.sides else "" for name in ours]
        for name in peers:
            there = name in row.sides
            cells.append(_latency(row, name) if there else "")
            cells.append("; ".join(_times(row.times_faster(name, one)) for one in _ours(row)) if there else "")
        text += f"| {row.title} | {' | '.join(cells)} |\n"
    return text


def _ours(row: Measured) -> list[str]:
    return [name for name in LANES if name in row.sides]


def _busy_table(rows: list[Measured]) -> str:
    """One line for each job, number of clients and side."""
    heads = "".join(f" {name} ÷ this |" for name in LANES)
    text = f"| | clients | | calls/s | ms |{heads}\n|---|---|---|---|---|{'---|' * len(LANES)}\n"
    for row in rows:
        for name in row.sides:
            kind = "floor: " if name in FLOORS else ""
            is_ours = name in LANES
            times = "".join(
                f" {'' if is_ours or one not in row.sides else _times(row.times_the_rate(name, one))} |"
                for one in LANES
            )
            text += (
                f"| {row.title} | {row.clients} | {kind}{name} | {row.rate(name):.1f} | {_latency(row, name)} "
                f"|{times}\n"
            )
    return text


def _queue_table(queue: dict[str, list[dict[str, float]]]) -> str:
    text = (
        "| | calls at one moment | answered | refused with Retry-After | lost | memory before | its peak "
        "| until all had an answer |\n|---|---|---|---|---|---|---|---|\n"
    )
    for ours, rows in queue.items():
        for row in rows:
            counts = " | ".join(f"{row[name]:,.0f}" for name in ("calls", "answered", "refused", "lost"))
            memory = f"{row['before_mb']:.0f} MB | {row['peak_mb']:.0f} MB"
            text += f"| {ours} | {counts} | {memory} | {row['elapsed_s']:.1f} s |\n"
    return text


def _pool_table(pool: dict[str, list[dict[str, float]]]) -> str:
    text = (
        "| | containers that wait | one client, p50 | p90 | 8 clients "
        "| memory of service and pool |\n|---|---|---|---|---|---|\n"
    )
    for ours, rows in pool.items():
        for row in rows:
            text += (
                f"| {ours} | {row['size']:.0f} | {_ms(row['p50_ms'])} ms | {_ms(row['p90_ms'])} ms "
                f"| {row['calls_per_s']:.1f} calls/s | {row['memory_mb']:.0f} MB |\n"
            )
    return text


def _idle_text(idle: dict[str, dict[str, float]]) -> str:
    text = (
        "| CPU without a call, of one core | for | service | pool | container daemons "
        "| memory of service and pool |\n|---|---|---|---|---|---|\n"
    )
    for ours, row in idle.items():
        shares = " | ".join(f"{100 * row[name] / row['for_s']:.2f} %" for name in ("service", "pool", "engine"))
        text += f"| {ours} | {row['for_s']:.0f} s | {shares} | {row['memory_mb']:.0f} MB |\n"
    return text


def write(results: Results, root: Path = ROOT) -> None:
    """Write all tables to bench/results, the bar to docs/speed.md and the charts to both pages."""
    text = text_of(results)
    figures, charts = root / "bench" / "results", root / "docs" / "bench"
    for folder in (figures, charts):
        folder.mkdir(parents=True, exist_ok=True)
    (figures / "speed.md").write_text(text, encoding="utf-8")
    (figures / "speed.json").write_text(_compact(asdict(results)), encoding="utf-8")
    draw(results, charts / "speed.svg", is_dark=False)
    draw(results, charts / "speed-dark.svg", is_dark=True)
    _show(
        root / "docs" / "speed.md",
        f"{_PICTURE.format('bench')}\n{bar_table(results)}\n{described(results.machine)}\n",
    )
    _show(root / "README.md", _PICTURE.format("docs/bench"))


def _show(page: Path, text: str) -> None:
    """Puts a text between the markers of a page."""
    before = page.read_text(encoding="utf-8")
    page.write_text(_BLOCK.sub(lambda found: f"{found[1]}{text}{found[2]}", before), encoding="utf-8")


def _compact(value: object) -> str:
    """JSON with two digits after the point, and each turn in a line of its own."""
    indented = json.dumps(json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 2)), indent=1)
    return _INNERMOST.sub(lambda found: " ".join(found[0].split()), indented) + "\n"
