"""The figures as Markdown and JSON."""

import json
import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from bench.neighbours import percentile
from bench.scale.added_time import BAR_MS, AddedTime
from bench.scale.operations import OperationFigures
from bench.scale.throughput import BAR, SLOTS, RateFigures
from tests.support.scale.storm import GRACE_S, StormResult

_SHARES = (0.5, 0.95)
_KINDS = {
    "nats_sent": "NATS messages sent",
    "nats_received": "NATS messages received",
    "statements": "SQL statements",
    "transactions": "SQL transactions",
    "s3_requests": "S3 requests",
}


@dataclass
class Results:
    """What was measured; parts that were not are empty.

    Attributes:
        rates: by number of workers.
        added: what dispatch adds.
        storms: repeats of the storm.
        operations: what a call costs its servers.
        machine: what it was measured on.
    """

    machine: str
    rates: list[RateFigures] = field(default_factory=list)
    added: AddedTime | None = None
    storms: list[StormResult] = field(default_factory=list)
    operations: OperationFigures | None = None

    def add(self, other: "Results") -> None:
        """Take over the parts that another one has."""
        self.rates += other.rates
        self.added = other.added or self.added
        self.storms += other.storms
        self.operations = other.operations or self.operations


def build_text(results: Results) -> str:
    """The tables."""
    parts = []
    if results.rates:
        parts.append(_rates_text(results.rates))
    if results.added is not None:
        parts.append(_added_text(results.added))
    if results.storms:
        parts.append(_storms_text(results.storms))
    if results.operations is not None:
        parts.append(_operations_text(results.operations))
    return "\n".join([*parts, results.machine])


def build_json(results: Results) -> str:
    """The same for programs."""
    values: dict[str, Any] = {"machine": results.machine}
    if results.rates:
        values["throughput"] = {
            "slots": SLOTS,
            "bar": BAR,
            "workers": [asdict(each) | {"of_linear": find_share(results.rates, each)} for each in results.rates],
        }
    if results.added is not None:
        values["dispatch"] = _added_json(results.added)
    if results.storms:
        values["storm"] = [_storm_json(storm) for storm in results.storms]
    if results.operations is not None:
        values["operations"] = asdict(results.operations)
    rounded = json.loads(json.dumps(values), parse_float=lambda text: round(float(text), 3))
    return json.dumps(rounded, indent=2) + "\n"


def find_share(rates: list[RateFigures], figures: RateFigures) -> float:
    """The median rate as a share of one worker's times their number."""
    one = next(each for each in rates if each.workers == 1)
    return statistics.median(figures.per_s) / (figures.workers * statistics.median(one.per_s))


def _rates_text(rates: list[RateFigures]) -> str:
    text = (
        f"## Workers and throughput\n\n{SLOTS} calls at a time for each worker, two API processes. Each program "
        f"waits {rates[0].sleep_s:g} s (`time.sleep`), reports its begin and end over its network and writes a "
        f"file. Median of {len(rates[0].per_s)} rounds, lowest and highest in brackets. The bar is {BAR:g} of "
        "linear.\n\n"
        "| workers | calls | calls per second | if a call took only its wait | of linear |\n|---|---|---|---|---|\n"
    )
    for each in rates:
        low, high = min(each.per_s), max(each.per_s)
        text += (
            f"| {each.workers} | {each.calls} | {statistics.median(each.per_s):.2f} ({low:.2f}, {high:.2f}) "
            f"| {each.ideal_per_s:.2f} | {find_share(rates, each):.2f} |\n"
        )
    return text


def _added_text(added: AddedTime) -> str:
    values = _added_json(added)
    text = (
        f"## What dispatch adds\n\n{len(added.local_ms)} pairs of calls in turn: one process (`local`), and an API "
        "process with a worker over NATS (`nats`), with the same PostgreSQL and S3 servers. The program writes a "
        f"file. The bar is {BAR_MS:g} ms for p50.\n\n| | p50 | p95 |\n|---|---|---|\n"
    )
    for name in ("local", "nats"):
        text += f"| `{name}` | {values[name]['p50']:.1f} ms | {values[name]['p95']:.1f} ms |\n"
    return text + f"| added | {values['added_ms']['p50']:.1f} ms | {values['added_ms']['p95']:.1f} ms |\n"


def _added_json(added: AddedTime) -> dict[str, Any]:
    local, nats = (
        {f"p{s * 100:.0f}": percentile(ms, s) for s in _SHARES} for ms in (added.local_ms, added.nats_ms)
    )
    difference = {name: nats[name] - local[name] for name in local}
    return {"pairs": len(added.local_ms), "local": local, "nats": nats, "added_ms": difference, "bar_ms": BAR_MS}


def _storms_text(storms: list[StormResult]) -> str:
    text = (
        f"## Calls while processes are killed\n\n{len(storms[0].records)} calls at the same time; a worker, the "
        f"leading broker and an API process are killed with SIGKILL. Lease {storms[0].lease_s:g} s: calls that "
        f"ran at a kill have to end within {storms[0].lease_s + GRACE_S:g} s after it.\n\n"
        "| repeat | outcomes | on the killed worker | program began twice | slowest end after a kill "
        "| last end after the last kill | all took | faults |\n|---|---|---|---|---|---|---|---|\n"
    )
    for number, storm in enumerate(storms, 1):
        outcomes = ", ".join(f"{count} `{outcome}`" for outcome, count in storm.outcomes.most_common())
        twice = sum(record.runs > 1 for record in storm.records)
        text += (
            f"| {number} | {outcomes} | {storm.run_by_killed} | {twice} | {storm.slowest_after_kill_s:.1f} s "
            f"| {storm.after_last_kill_s:.1f} s | {storm.took_s:.1f} s | {len(storm.faults)} |\n"
        )
    return text


def _storm_json(storm: StormResult) -> dict[str, Any]:
    return {
        "calls": len(storm.records),
        "lease_s": storm.lease_s,
        "outcomes": dict(storm.outcomes),
        "outcome_unknown": sum(record.is_unknown for record in storm.records),
        "on_killed_worker": storm.run_by_killed,
        "began_twice": sum(record.runs > 1 for record in storm.records),
        "slowest_after_kill_s": storm.slowest_after_kill_s,
        "after_last_kill_s": storm.after_last_kill_s,
        "took_s": storm.took_s,
        "killed": [kill.host for kill in storm.kills],
        "faults": storm.faults,
    }


def _operations_text(figures: OperationFigures) -> str:
    text = (
        f"## Operations of a call\n\n{figures.apis} API processes, {figures.workers} workers, three brokers. "
        f"{figures.calls} calls one after the other, each in a conversation of its own, with one stored file. A "
        f"running call renews its lease of {figures.lease_s:g} s. Messages of NATS include acknowledgements, "
        "statements `BEGIN` and `COMMIT`.\n\n"
        "| | per call | per second of a running call | per second of the idle cluster |\n|---|---|---|---|\n"
    )
    columns = [asdict(each) for each in (figures.per_call, figures.per_running_s, figures.per_idle_s)]
    for name, shown in _KINDS.items():
        text += f"| {shown} | {' | '.join(f'{column[name]:.2f}' for column in columns)} |\n"
    text += "\n| connections | PostgreSQL | NATS | S3 |\n|---|---|---|---|\n"
    for host, counts in figures.connections.items():
        text += f"| `{host}` | {counts['postgres']} | {counts['nats']} | {counts['s3']} |\n"
    return text
