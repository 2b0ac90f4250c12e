"""The comparison with other programs: each figure of the last full runs of the benchmarks, with its command."""

import json
from pathlib import Path
from statistics import median
from typing import Any

from reference.markdown import cell

RESULTS = Path(__file__).parents[2] / "bench" / "results"
_OURS = ("Proofbox, docker", "Proofbox, oci")
_PEERS = ("docker run", "llm-sandbox", "epicbox")
_FLOORS = ("bubblewrap", "crun", "Docker's API")
_RENDERING = {
    "render_quality": "python -m bench.render.quality",
    "render_slides": "python -m bench.render.slide_looks",
    "render_speed": "python -m bench.render.speed",
}
_MANY = 8  # clients
_ENOUGH = 10  # figures from here on have no decimals


def comparison_page() -> str:
    """The page of all figures that have a peer."""
    speed, engines = _load("speed"), _load("engines")
    machine = speed["machine"]
    return (
        "# Comparison with other programs\n\n"
        "Made by `docs/generate.py` from `bench/results`. The figures are those of the last full runs. Each table names the command that "
        "measures it\nagain; [benchmarks](../bench/README.md) describes the method. The best figure of a row is bold, "
        "also where it is a peer's.\n\n"
        "## What is compared\n\n" + _PROGRAMS + "\n"
        "## One call\n\n"
        "Milliseconds of a call of one client, median. Proofbox answers over HTTP after it has checked, hashed and "
        "stored the\npromised files; the peers neither check nor store files.\n\n" + _one_client(speed) + "\n"
        "## Eight clients\n\n"
        "Calls in a second.\n\n" + _many_clients(speed) + "\n"
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory']} of memory; Linux {machine['Linux']}, "
        f"Docker {machine['Docker']}, llm-sandbox {machine['llm-sandbox']},\nepicbox {machine['epicbox']}, bubblewrap "
        f"{machine['bubblewrap']}, crun {machine['crun']}. [All figures](../bench/results/speed.md).\n\n"
        "## Engines\n\n"
        "`make bench-engines` measures Proofbox on each engine and OCI runtime.\n\n" + _engines(engines) + "\n"
        "## Documents\n\n"
        "`make bench-render` runs the commands below, with the same documents, limits and fonts for all "
        "programs.\nAn asterisk marks a figure of a part of the documents; [the table with notes]"
        "(../bench/results/rendering.md) has the reasons,\nalso for missing figures.\n\n" + _rendering()
    )


_PROGRAMS = """\
| program | what it is | files of a call | isolation of a call |
|---|---|---|---|
| Proofbox | this service | checked, hashed, stored, in versions | a new container, without network; optionally gVisor |
| `docker run` | the command, with the same image and hardening | in mounted folders | a new container |
| llm-sandbox | a Python library | copied out | a new container; root, writable root file system |
| epicbox | a Python library | on standard output | a new container; writable root file system |
| floor: bubblewrap, crun, Docker's API | the cost of a bare process or container | none | bubblewrap: no control group, no filter |
| Pandoc, LibreOffice, WeasyPrint, Chromium, Marp, html2docx, html-for-docx | converters of documents | one | none of their own |
"""


def _one_client(speed: dict[str, Any]) -> str:
    columns = (*_OURS, *_PEERS)
    text = f"| call | {' | '.join(map(_shown, columns))} | `make bench` |\n|---|{'--:|' * len(columns)}---|\n"
    for row in speed["calm"]:
        figures = {name: _p50(row["sides"].get(name)) for name in columns}
        title = cell(row["title"].replace("`", "")) if "`" not in row["title"] else row["title"]
        text += f"| {title} | {_row(columns, figures, lowest=True)} | `ONLY={row['job']}` |\n"
    return text


def _many_clients(speed: dict[str, Any]) -> str:
    rows = [row for row in speed["busy"] if row["clients"] == _MANY]
    columns = tuple(name for name in (*_OURS, *_PEERS, *_FLOORS) if any(name in row["sides"] for row in rows))
    text = f"| call | {' | '.join(map(_shown, columns))} | `make bench` |\n|---|{'--:|' * len(columns)}---|\n"
    for row in rows:
        figures = {name: _rate(row["sides"].get(name)) for name in columns}
        real = tuple(name for name in columns if name not in _FLOORS)
        best = max((value for name in real if (value := figures[name]) is not None), default=None)
        shown = " | ".join(_figure(figures[name], name in real and figures[name] == best) for name in columns)
        text += f"| {row['title']} | {shown} | `ONLY={row['job']}` |\n"
    return text


def _engines(engines: dict[str, Any]) -> str:
    text = "| | one client, ms | a cold start, ms | eight clients, calls in a second |\n|---|--:|--:|--:|\n"
    best = {
        key: pick(_values(engines, key)) for key, pick in (("p50_ms", min), ("cold_ms", min), ("calls_per_s", max))
    }
    for name, row in engines.items():
        shown = " | ".join(_figure(row[key], row[key] == best[key]) for key in ("p50_ms", "cold_ms", "calls_per_s"))
        text += f"| {name} | {shown} |\n"
    return text


def _rendering() -> str:
    text = ""
    for name, command in _RENDERING.items():
        rows = "".join(map(_rendering_row, _load(name)["rows"]))
        if rows:
            text += (
                f"`{command}`:\n\n| what | Proofbox | best peer | the other peers |\n|---|--:|--:|---|\n{rows}\n"
            )
    return f"{text.rstrip()}\n"


def _rendering_row(row: dict[str, Any]) -> str:
    ours = next((each["value"] for each in row["figures"] if each["renderer"] == "Proofbox"), None)
    peers = [each for each in row["figures"] if each["renderer"] != "Proofbox" and each["value"] is not None]
    if ours is None or not peers:
        return ""
    peers.sort(key=lambda each: each["value"], reverse=not row["is_lower_better"])
    unit, best = row["unit"], peers[0]
    is_ahead = ours <= best["value"] if row["is_lower_better"] else ours >= best["value"]
    is_behind = ours >= best["value"] if row["is_lower_better"] else ours <= best["value"]
    others = "; ".join(_peer(each, unit) for each in peers[1:])
    best_text = _peer(best, unit)
    ours_text = _with_unit(ours, unit)
    return f"| {cell(row['what'])} | {_bold(ours_text, is_ahead)} | {_bold(best_text, is_behind)} | {others} |\n"


def _peer(figure: dict[str, Any], unit: str) -> str:
    mark = " \\*" if figure["note"] else ""
    return f"{figure['renderer']} {_with_unit(figure['value'], unit)}{mark}"


def _p50(rounds: list[dict[str, Any]] | None) -> float | None:
    return median(ms for each in rounds for ms in each["latencies_ms"]) if rounds else None


def _rate(rounds: list[dict[str, Any]] | None) -> float | None:
    return median(len(each["latencies_ms"]) / each["elapsed_s"] for each in rounds) if rounds else None


def _row(columns: tuple[str, ...], figures: dict[str, float | None], *, lowest: bool) -> str:
    known = [value for value in figures.values() if value is not None]
    best = (min if lowest else max)(known)
    return " | ".join(_figure(figures[name], figures[name] == best) for name in columns)


def _values(engines: dict[str, Any], key: str) -> list[float]:
    return [row[key] for row in engines.values() if row[key] is not None]


def _figure(value: float | None, is_best: bool) -> str:
    if value is None:
        return ""
    return _bold(f"{value:,.1f}" if value < _ENOUGH else f"{value:,.0f}", is_best)


def _with_unit(value: float, unit: str) -> str:
    digits = 3 if unit == "F1" else 2 if unit in {"s", "%"} else 0
    return f"{value:,.{digits}f}{'' if unit == 'F1' else f' {unit}'}"


def _bold(text: str, is_bold: bool) -> str:
    return f"**{text}**" if is_bold else text


def _shown(name: str) -> str:
    return f"`{name}`" if name == "docker run" else f"floor: {name}" if name in _FLOORS else name


def _load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return loaded
