"""What the project wants to reach, beside what was reached."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.speed.growth import BURST
from bench.speed.model import DOCKER, LANES, Results
from bench.speed.spread import percentile

Value = Callable[[Results, str], float | None]
"""The figure of one of our sides in a run; None if it was not measured."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One line that is reached or not.

    Attributes:
        what: the figure.
        limit: the most or the least that it may be.
        is_most: whether it may not be more; else it may not be less.
        unit: such as `ms`; empty for a count, `times` for a ratio.
        value: the figure.
    """

    what: str
    limit: float
    is_most: bool
    unit: str
    value: Value

    def is_met(self, value: float) -> bool:
        """Whether a figure reaches it."""
        return value <= self.limit if self.is_most else value >= self.limit

    def shown(self, value: float) -> str:
        """A figure with its unit: three digits, or as many as keep it from being rounded onto the limit."""
        if value == int(value) or abs(value) >= 1000:  # noqa: PLR2004
            text = f"{value:.0f}"
        else:
            texts = (f"{value:.{digits}g}" for digits in range(3, 18))  # seventeen say any figure exactly
            text = next(text for text in texts if self.is_met(float(text)) == self.is_met(value))
        return f"{text} {self.unit}".rstrip()


def _calm_p50(job: str) -> Value:
    def value(results: Results, ours: str) -> float | None:
        row = results.calm_of(job)
        return row.latency(ours, 50) if row and ours in row.sides else None

    return value


def _times_faster(job: str) -> Value:
    def value(results: Results, ours: str) -> float | None:
        row = results.calm_of(job)
        return row.times_faster(DOCKER, ours).median if row and ours in row.sides else None

    return value


def _times_the_rate(job: str, side: str) -> Value:
    def value(results: Results, ours: str) -> float | None:
        row = results.busy_of(job, BURST)
        return row.times_the_rate(side, ours).median if row and {side, ours} <= row.sides.keys() else None

    return value


def _of_burst(results: Results, ours: str) -> float | None:
    times = results.burst_ms.get(ours)
    return percentile(times, 95) if times else None


def _longest_queue(name: str) -> Value:
    def value(results: Results, ours: str) -> float | None:
        rows = [row for row in results.queue.get(ours, ()) if row["calls"] == 1_000]  # noqa: PLR2004 - the bar's own number
        return rows[0][name] if rows else None

    return value


def _idle(results: Results, ours: str) -> float | None:
    if (idle := results.idle.get(ours)) is None:
        return None
    return 100 * (idle["service"] + idle["pool"]) / idle["for_s"]


def _without_phases(results: Results, ours: str) -> float | None:
    return results.without_phases.get(ours)


def _of_engine(engine: str, value: Value) -> Value:
    """The figure of one engine alone, for a bar that differs between engines."""
    return lambda results, ours: value(results, ours) if LANES[ours] == engine else None


BARS = (
    Bar(
        "`print(1)`, pool warm, engine `docker`: `docker run` ÷ ours, p50",
        15,
        is_most=False,
        unit="times",
        value=_of_engine("docker", _times_faster("print")),
    ),
    Bar(
        "`print(1)`, pool warm, engine `oci`: `docker run` ÷ ours, p50",
        20,
        is_most=False,
        unit="times",
        value=_of_engine("oci", _times_faster("print")),
    ),
    Bar(
        "3 promised files, checked: `docker run` ÷ ours",
        8,
        is_most=False,
        unit="times",
        value=_times_faster("contract"),
    ),
    Bar(
        "chart, pandas and matplotlib: `docker run` ÷ ours",
        5,
        is_most=False,
        unit="times",
        value=_times_faster("chart"),
    ),
    Bar("1-page PDF: `docker run` ÷ ours", 5, is_most=False, unit="times", value=_times_faster("pdf")),
    Bar(
        "`print(1)`, 8 clients, engine `oci`: our rate ÷ `docker run`",
        4,
        is_most=False,
        unit="times",
        value=_of_engine("oci", _times_the_rate("print", DOCKER)),
    ),
    Bar(f"burst of {BURST} on a warm pool, `print(1)`: p95", 50, is_most=True, unit="ms", value=_of_burst),
    Bar("one file of 50 MB out, hashed and stored: p50", 450, is_most=True, unit="ms", value=_calm_p50("large")),
    Bar(
        "the same: growth of the service's memory",
        10,
        is_most=True,
        unit="MB",
        value=lambda results, ours: results.large_growth_mb.get(ours),
    ),
    Bar(
        "1,000 queued calls: neither answered nor refused with Retry-After",
        0,
        is_most=True,
        unit="",
        value=_longest_queue("lost"),
    ),
    Bar("idle: CPU of service and pool, of one core", 1, is_most=True, unit="%", value=_idle),
    Bar("answers without the times of their phases", 0, is_most=True, unit="", value=_without_phases),
)


def bar_table(results: Results) -> str:
    """All bars as Markdown: the limit, and of each engine the figure and whether it is met."""
    heads = "".join(f" engine `{engine}` | met |" for engine in LANES.values())
    text = f"| what | bar |{heads}\n|---|---|{'---|---|' * len(LANES)}\n"
    for bar in BARS:
        sign = "≤" if bar.is_most else "≥"
        limit = f"{sign} {bar.shown(bar.limit)}" if bar.limit else "0"
        cells = ""
        for ours in LANES:
            value = bar.value(results, ours)
            told = "not measured" if value is None else bar.shown(value)
            met = "" if value is None else "yes" if bar.is_met(value) else "**no**"
            cells += f" {told} | {met} |"
        text += f"| {bar.what} | {limit} |{cells}\n"
    return text
