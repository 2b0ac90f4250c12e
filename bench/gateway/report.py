"""The figures as Markdown and JSON."""

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from bench.gateway.streams import Load, StreamFigures
from bench.gateway.waiting import WaitingFigures
from bench.neighbours import percentile

_SHARES = (0.5, 0.95, 0.99)


def build_text(waiting: list[WaitingFigures], streams: list[StreamFigures], machine: str) -> str:
    """The tables."""
    parts = [_waiting_text(waiting)] if waiting else []
    parts += [_streams_text(figures) for figures in streams]
    return "\n".join([*parts, machine])


def build_json(waiting: list[WaitingFigures], streams: list[StreamFigures], machine: str) -> str:
    """The same for programs; latencies as percentiles in milliseconds."""
    calls = [asdict(figures) | {"answer_ms": _percentiles(figures.answer_ms)} for figures in waiting]
    listened = [asdict(figures) | {"loads": [_load_json(load) for load in figures.loads]} for figures in streams]
    values = {"waiting": calls, "streams": listened, "machine": machine}
    return (
        json.dumps(json.loads(json.dumps(values), parse_float=lambda text: round(float(text), 3)), indent=2) + "\n"
    )


def _load_json(load: Load) -> dict[str, Any]:
    shares = {"post_ms": _percentiles(load.post_ms), "latencies_ms": _percentiles(load.latencies_ms)}
    return asdict(load) | shares | {"events": len(load.latencies_ms)}


def _percentiles(values: list[float]) -> dict[str, float]:
    return {f"p{share * 100:.0f}": percentile(values, share) for share in _SHARES}


def _waiting_text(waiting: list[WaitingFigures]) -> str:
    rows: dict[str, Callable[[WaitingFigures], str]] = {
        "calls that waited": lambda row: f"{row.calls:,}",
        "start of an empty service to its first answer": lambda row: f"{row.empty_start_s:.2f} s",
        "the same after `kill -9` with the waiting calls": lambda row: f"{row.start_s:.2f} s",
        "calls that still wait": lambda row: f"{row.still_waiting:,}",
        "calls with exactly the answer that was submitted then": lambda row: f"{row.answered:,}",
        "second answers that were refused": lambda row: f"{row.refused:,}",
        "submitting an answer, 16 at a time: p50, p95, p99": lambda row: _shown(row.answer_ms),
        "answers per second": lambda row: f"{row.calls / row.answers_s:.0f}",
        "memory without a call": lambda row: f"{row.empty_mb:.0f} MB",
        "memory before the kill, all calls made": lambda row: f"{row.killed_mb:.0f} MB",
        "memory after the restart, all calls waiting": lambda row: f"{row.started_mb:.0f} MB",
        "memory after all answers": lambda row: f"{row.answered_mb:.0f} MB",
    }
    text = f"## Waiting calls across a restart\n\n| | {' | '.join(row.database for row in waiting)} |\n"
    text += "|---|" + "---|" * len(waiting) + "\n"
    for name, show in rows.items():
        text += f"| {name} | {' | '.join(show(row) for row in waiting)} |\n"
    return text


def _streams_text(figures: StreamFigures) -> str:
    count = figures.spaces * figures.per_space
    grown = figures.opened_mb - figures.before_mb
    text = (
        f"## {figures.spaces:,} spaces with {figures.per_space} listeners each, {figures.database}\n\n"
        f"{count:,} streams opened in {figures.opened_s:.1f} s. Memory of the service: {figures.before_mb:.0f} MB "
        f"before, {figures.opened_mb:.0f} MB with all streams ({1000 * grown / count:.1f} kB a listener), "
        f"{figures.after_mb:.0f} MB after all loads. Without messages the service uses "
        f"{100 * figures.idle_cpu:.1f} % of a core (heartbeats). Events that did not arrive: {figures.lost:,}.\n\n"
        "| messages | events per second | begin of a post to the event at a listener: p50, p95, p99 | "
        "the post itself: p50, p95, p99 | core of the service | per event |\n|---|---|---|---|---|---|\n"
    )
    for load in figures.loads:
        events = len(load.latencies_ms)
        rate = f"{load.per_s:g} per second" if load.per_s else "8 clients without pause"
        text += (
            f"| {rate} | {events / load.took_s:,.0f} | {_shown(load.latencies_ms)} | {_shown(load.post_ms)} "
            f"| {100 * load.cpu_s / load.took_s:.0f} % | {1e6 * load.cpu_s / events:.0f} µs |\n"
        )
    return text


def _shown(values: list[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in _percentiles(values).values()) + " ms"
