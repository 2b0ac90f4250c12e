"""One table and one chart from the measured rows.

Usage: python -m bench.render.report. Reads bench/results/render_*.json; prints the table; writes it to
bench/results/rendering.md, and the charts of docs/rendering.md and README.md to docs/bench/rendering.svg and
rendering-dark.svg.
"""

import os
import platform
import re
import subprocess
from collections.abc import Sequence

from bench.render.chart import draw
from bench.render.figures import Figure, Row, read_rows
from bench.render.renderers import MEMORY, ROOT

RESULTS = ROOT / "bench" / "results"
PARTS = ("render_quality.json", "render_slides.json", "render_speed.json")
CHARTS = ROOT / "docs" / "bench"
WHOLE = 100.0
_FINE_S = 10.0
"""Below it times are shown with two digits after the point."""


def shown(row: Row, value: float) -> str:
    """A value with its unit."""
    if row.unit == "s":
        if value >= 3600:  # noqa: PLR2004 - an hour
            return f"{value / 3600:.1f} h"
        return f"{value:.2f} s" if value < _FINE_S else f"{value:,.0f} s"
    if row.unit == "F1":
        return f"{value:.3f}"
    return {"MB": f"{value:,.0f} MB", "%": f"{value:.2f} %", "count": f"{value:g}"}[row.unit]


def _bar(row: Row) -> str:
    if row.bar is None:
        return ""
    if row.bar == 0:
        return "0"
    unit = {"%": " %", "F1": "", "count": ""}.get(row.unit, f" {row.unit}")
    sign = "≤ " if row.is_lower_better else "≥ "
    return f"{'' if row.bar == WHOLE and row.unit == '%' else sign}{row.bar:g}{unit}"


def _named(row: Row, figure: Figure, notes: list[str]) -> str:
    text = "none" if figure.value is None else shown(row, figure.value)
    if figure.note:
        if figure.note not in notes:
            notes.append(figure.note)
        text += f" [{notes.index(figure.note) + 1}]"
    return text


def table(rows: Sequence[Row]) -> str:
    """All rows as Markdown: the bar, ours, the best peer, every other peer; a list of notes below."""
    notes: list[str] = []
    text = "| what | bar | met | Proofbox | best peer | the other peers |\n|---|---|---|---|---|---|\n"
    for row in rows:
        best = row.best_peer
        met = {True: "yes", False: "**no**", None: ""}[row.is_met]
        ours = _named(row, row.ours, notes)
        ours = f"**{ours}**" if row.is_ahead else ours
        leading = f"{best.renderer} {_named(row, best, notes)}" if best else ""
        leading = f"**{leading}**" if row.is_ahead is False else leading
        others = "; ".join(
            f"{figure.renderer} {_named(row, figure, notes)}" for figure in row.figures[1:] if figure is not best
        )
        text += f"| {row.what} | {_bar(row)} | {met} | {ours} | {leading} | {others} |\n"
    listed = "".join(f"{number}. {_sentence(note)}\n" for number, note in enumerate(notes, 1))
    return f"{text}\nIn bold: who is ahead. “None”: no figure, for the reason in the note.\n\n{listed}"


def _sentence(note: str) -> str:
    plain = " ".join(note.split()).replace("|", "/").replace("<", "&lt;")
    return plain[:1].upper() + plain[1:]


def machine(load: float) -> str:
    """What it was measured on, and with which versions."""
    engine = _first_line("docker", "version", "-f", "{{.Server.Version}}")
    peers = {
        "Pandoc": ("pandoc", "--version"),
        "Chromium": ("chromium-headless-shell", "--version"),
        "LibreOffice": ("soffice", "--version"),
        "Marp CLI": ("marp", "--version"),
        "WeasyPrint": ("weasyprint", "--version"),
    }
    run = ("docker", "run", "--rm", "--network", "none", "--env", "HOME=/tmp", "proofbox-peers:latest")
    versions = [f"{name} {_version(_first_line(*run, *command))}" for name, command in peers.items()]
    pins = (ROOT / "bench" / "peers" / "requirements.in").read_text(encoding="utf-8")
    packages = re.findall(r"^(html2docx|html-for-docx)==(\S+)", pins, re.MULTILINE)
    versions += [f"{name} {version}" for name, version in sorted(packages)]
    return (
        f"{os.cpu_count()} cores, load average {load:g}, {MEMORY} of memory for each container, Docker {engine}, "
        f"Linux {platform.release().split('-')[0]}. {', '.join(versions)}.\n"
    )


def _first_line(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return next(iter(done.stdout.strip().splitlines()), "")


def _version(line: str) -> str:
    found = re.search(r"\d+(?:\.\d+)+", line)
    return found[0] if found else line


def main() -> None:
    """Reads, prints, writes."""
    parts = [read_rows(RESULTS / part) for part in PARTS]
    rows = sorted((row for found, _ in parts for row in found), key=lambda row: row.number)
    text = f"{table(rows)}\n{machine(max(load for _, load in parts))}"
    print(text)
    (RESULTS / "rendering.md").write_text(text, encoding="utf-8")
    CHARTS.mkdir(parents=True, exist_ok=True)
    draw(rows, CHARTS / "rendering.svg", is_dark=False)
    draw(rows, CHARTS / "rendering-dark.svg", is_dark=True)


if __name__ == "__main__":
    main()
