"""A model of many workers: rates, connections and cost, from measured figures of one call and named assumptions.

Usage: python -m bench.scale_model [--workers 1000] [--program-s 5] …. It prints Markdown; docs/scale.md has what it
prints without arguments. The figures are in bench/results: scale_figures.json of `bench.scale_figures`, and
scale.json of `make bench-scale`.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
FIGURES, SCALE = RESULTS / "scale_figures.json", RESULTS / "scale.json"
_DAY_S, _HOUR_S, _MONTH_S = 86_400, 3_600, 30 * 86_400
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Figures:
    """What one call costs, as it was measured: a program that writes one promised file.

    Attributes:
        sql_statements: statements that the database answered.
        sql_transactions: transactions that it committed.
        sql_bytes: bytes between service and database, both ways.
        database_bytes: by how much the database grew.
        s3_writes: requests that write objects: PUT, COPY, POST.
        s3_reads: GET and HEAD.
        s3_bytes: bytes between service and bucket, both ways, for a file of a kilobyte.
        service_cpu_ms: processor time of the service, without the container.
        connections: connections to the database that one process has.
        sql_idle_s: statements in a second of one process without calls.
        machine: what it was measured on.
        sql_running_s: statements in a second of one call that runs.
        queue_messages: messages between processes and queue; as its protocol has it, unless it was counted.
        queue_running_s: the same in a second of one call that runs.
        queue_idle_s: the same in a second of one process without calls.
        queue_source: where these three are from.
    """

    sql_statements: float
    sql_transactions: float
    sql_bytes: float
    database_bytes: float
    s3_writes: float
    s3_reads: float
    s3_bytes: float
    service_cpu_ms: float
    connections: float
    sql_idle_s: float
    machine: str
    sql_running_s: float = 0
    queue_messages: float = 6  # publish, its acknowledgement, pull, delivery, acknowledgement, notice of the end
    queue_running_s: float = 0.2  # three renewals in a lease of 15 s
    queue_idle_s: float = 0.5
    queue_source: str = "messages of the queue by its protocol, not counted"


def read_figures(path: Path = FIGURES, scale: Path = SCALE) -> Figures:
    """The figures of a file, with what `make bench-scale` counted on several processes, if it did.

    Args:
        path: the file of `bench.scale_figures`.
        scale: the results of `make bench-scale`; may be missing.

    Raises:
        TypeError: a figure is missing, or not known.
    """
    figures = Figures(**json.loads(path.read_text(encoding="utf-8")))
    counted = json.loads(scale.read_text(encoding="utf-8")).get("operations") if scale.exists() else None
    if counted is None:
        return figures
    processes = counted["apis"] + counted["workers"]
    call, idle, running = counted["per_call"], counted["per_idle_s"], counted["per_running_s"]
    return replace(
        figures,
        sql_statements=call["statements"],
        sql_transactions=call["transactions"],
        sql_idle_s=idle["statements"] / processes,
        sql_running_s=running["statements"],
        connections=max(each["postgres"] for each in counted["connections"].values()),
        queue_messages=_messages(call),
        queue_running_s=_messages(running),
        queue_idle_s=_messages(idle) / processes,
        queue_source="statements, connections and messages of the queue as `make bench-scale` counted them",
    )


def _messages(counted: dict[str, float]) -> float:
    return counted["nats_sent"] + counted["nats_received"]


def _assume(default: float, meaning: str) -> float:
    made: float = field(default=default, metadata={"help": meaning})
    return made


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What was not measured. Each is an argument of the program; prices are in US dollars."""

    workers: float = _assume(1_000, "worker processes, one on each machine")
    slots: float = _assume(8, "calls that one worker runs at the same time")
    used: float = _assume(0.6, "part of all slots that is taken on average")
    program_s: float = _assume(5, "duration of a program, in seconds")
    api_cores: float = _assume(4, "cores of a machine with an API process")
    api_cpu_used: float = _assume(0.5, "part of one core that an API process may use on average")
    api_cpu_share: float = _assume(0.5, "part of the service's processor time that is an API process's")
    message_bytes: float = _assume(600, "size of a message on the queue")
    file_bytes: float = _assume(100_000, "bytes of the files of a call, which the bucket stores twice")
    replicas: float = _assume(3, "copies of each message of the queue")
    sql_statements_max: float = _assume(100_000, "statements per second of the database")
    sql_transactions_max: float = _assume(20_000, "transactions per second of the database")
    sql_connections_max: float = _assume(2_000, "connections of the database")
    s3_writes_max: float = _assume(3_500, "writes per second below one prefix of the bucket")
    queue_messages_max: float = _assume(50_000, "messages per second of the queue, with all copies")
    days: float = _assume(30, "days for which records and files stay")
    worker_hour: float = _assume(0.20, "price of a worker's machine for an hour")
    api_hour: float = _assume(0.20, "price of an API process's machine for an hour")
    database_hour: float = _assume(4.00, "price of the database, with its standby, for an hour")
    queue_hour: float = _assume(0.60, "price of the three machines of the queue for an hour")
    database_gb_month: float = _assume(0.12, "price of a GB in the database for a month")
    s3_gb_month: float = _assume(0.023, "price of a GB in the bucket for a month")
    s3_write_million: float = _assume(5.00, "price of a million writes to the bucket")
    s3_read_million: float = _assume(0.40, "price of a million reads of the bucket")


@dataclass(frozen=True, slots=True)
class Limit:
    """One resource that calls share.

    Attributes:
        name: what it is.
        load: what the workers ask of it.
        capacity: what it has; of the same unit.
        remedy: what to do when it is full.
    """

    name: str
    load: float
    capacity: float
    remedy: str

    @property
    def share(self) -> float:
        """The part of it that is used; above 1 it does not work."""
        return self.load / self.capacity


@dataclass(frozen=True, slots=True)
class Model:
    """All results for some number of workers.

    Args:
        figures: of one call.
        assumed: all else.
    """

    figures: Figures
    assumed: Assumptions

    @property
    def calls_per_s(self) -> float:
        """Calls that end in a second."""
        return self.assumed.workers * self.assumed.slots * self.assumed.used / self.assumed.program_s

    @property
    def running(self) -> float:
        """Calls that run at a moment."""
        return self.calls_per_s * self.assumed.program_s

    @property
    def processes(self) -> float:
        """All processes of the service."""
        return self.assumed.workers + self.api_processes

    @property
    def messages_per_s(self) -> float:
        """Messages of the queue in a second, without the copies among its servers."""
        figures = self.figures
        return (
            self.calls_per_s * figures.queue_messages
            + self.running * figures.queue_running_s
            + self.processes * figures.queue_idle_s
        )

    @property
    def statements_per_s(self) -> float:
        """Statements of the database in a second."""
        figures = self.figures
        return (
            self.calls_per_s * figures.sql_statements
            + self.running * figures.sql_running_s
            + self.processes * figures.sql_idle_s
        )

    @property
    def api_processes(self) -> float:
        """API processes that the calls need: a process uses one core."""
        cpu_s = self.calls_per_s * self.figures.service_cpu_ms / 1_000 * self.assumed.api_cpu_share
        return float(max(2, -(-cpu_s // self.assumed.api_cpu_used)))

    @property
    def api_machines(self) -> float:
        """Machines for them; at least two."""
        return float(max(2, -(-self.api_processes // self.assumed.api_cores)))

    @property
    def bucket_bytes(self) -> float:
        """Bytes of a call between service and bucket; the second copy is the server's own."""
        return self.figures.s3_bytes + self.assumed.file_bytes

    @property
    def connections(self) -> float:
        """Connections to the database."""
        return self.processes * self.figures.connections

    def limits(self) -> list[Limit]:
        """The shared resources, the fullest first."""
        assumed = self.assumed
        found = [
            Limit(
                "connections of the database",
                self.connections,
                assumed.sql_connections_max,
                "more connections, or fewer workers with more slots",
            ),
            Limit(
                "statements of the database per second",
                self.statements_per_s,
                assumed.sql_statements_max,
                "a larger database",
            ),
            Limit(
                "transactions of the database per second",
                self.calls_per_s * self.figures.sql_transactions,
                assumed.sql_transactions_max,
                "one database for each group of projects",
            ),
            Limit(
                "writes to the bucket per second",
                self.calls_per_s * self.figures.s3_writes,
                assumed.s3_writes_max,
                "several prefixes: one deployment for each",
            ),
            Limit(
                "messages of the queue per second, with copies",
                self.messages_per_s * assumed.replicas,
                assumed.queue_messages_max,
                "one queue for each group of projects",
            ),
        ]
        return sorted(found, key=lambda limit: -limit.share)

    def costs(self) -> dict[str, float]:
        """Dollars for a million calls, by what they pay for."""
        assumed, figures = self.assumed, self.figures
        hours = _MILLION / self.calls_per_s / _HOUR_S
        months = assumed.days * _DAY_S / _MONTH_S
        return {
            "workers": hours * assumed.workers * assumed.worker_hour,
            "API processes": hours * self.api_machines * assumed.api_hour,
            "database": hours * assumed.database_hour,
            "queue": hours * assumed.queue_hour,
            "records stored": figures.database_bytes * _MILLION / 1e9 * assumed.database_gb_month * months,
            "files stored": 2 * assumed.file_bytes * _MILLION / 1e9 * assumed.s3_gb_month * months,
            "requests to the bucket": figures.s3_writes * assumed.s3_write_million
            + figures.s3_reads * assumed.s3_read_million,
        }


def build_text(model: Model) -> str:
    """The tables, as Markdown."""
    figures, assumed = model.figures, model.assumed
    rate = model.calls_per_s
    rows = [
        ("calls that run", "", f"{model.running:,.0f}"),
        ("calls", "1", f"{rate:,.0f}/s"),
        ("SQL statements", _shown(figures.sql_statements), f"{model.statements_per_s:,.0f}/s"),
        ("SQL transactions", _shown(figures.sql_transactions), f"{rate * figures.sql_transactions:,.0f}/s"),
        ("bytes to and from the database", _bytes(figures.sql_bytes), f"{_bytes(rate * figures.sql_bytes)}/s"),
        (
            "growth of the database",
            _bytes(figures.database_bytes),
            f"{_bytes(rate * figures.database_bytes * _DAY_S)}/day",
        ),
        ("connections to the database", "", f"{model.connections:,.0f}"),
        ("writes to the bucket", _shown(figures.s3_writes), f"{rate * figures.s3_writes:,.0f}/s"),
        ("reads of the bucket", _shown(figures.s3_reads), f"{rate * figures.s3_reads:,.0f}/s"),
        ("bytes to and from the bucket", _bytes(model.bucket_bytes), f"{_bytes(rate * model.bucket_bytes)}/s"),
        (
            "growth of the bucket",
            _bytes(2 * assumed.file_bytes),
            f"{_bytes(rate * 2 * assumed.file_bytes * _DAY_S)}/day",
        ),
        ("messages of the queue", _shown(figures.queue_messages), f"{model.messages_per_s:,.0f}/s"),
        (
            "bytes of the queue, with copies",
            "",
            f"{_bytes(model.messages_per_s * assumed.message_bytes * assumed.replicas)}/s",
        ),
        (
            "processor time of the service",
            f"{figures.service_cpu_ms:.0f} ms",
            f"{rate * figures.service_cpu_ms / 1_000:,.0f} cores",
        ),
        ("API processes", "", f"{model.api_processes:,.0f} on {model.api_machines:,.0f} machines"),
    ]
    text = f"| | for a call | with {assumed.workers:,.0f} workers |\n|---|---|---|\n"
    text += "".join(f"| {name} | {one} | {all_} |\n" for name, one, all_ in rows)
    return text + _limits_text(model) + _costs_text(model) + _assumptions_text(model)


def _limits_text(model: Model) -> str:
    text = "\nWhat is full first:\n\n| resource | load | assumed capacity | used | full at | then |\n"
    text += "|---|---|---|---|---|---|\n"
    for limit in model.limits():
        full_at = model.assumed.workers / limit.share
        text += (
            f"| {limit.name} | {limit.load:,.0f} | {limit.capacity:,.0f} | {100 * limit.share:.0f} % "
            f"| {full_at:,.0f} workers | {limit.remedy} |\n"
        )
    return text


def _costs_text(model: Model) -> str:
    costs = model.costs()
    text = "\nCost of a million calls:\n\n| | US dollars |\n|---|---|\n"
    text += "".join(f"| {name} | {cost:,.2f} |\n" for name, cost in costs.items())
    return text + f"| **all** | **{sum(costs.values()):,.2f}** |\n"


def _assumptions_text(model: Model) -> str:
    text = "\nAssumptions, each an argument of the program:\n\n| argument | value | meaning |\n|---|---|---|\n"
    for each in fields(model.assumed):
        value = getattr(model.assumed, each.name)
        text += f"| `{_option(each.name)}` | {value:,g} | {each.metadata['help']} |\n"
    return text + f"\nMeasured: {model.figures.queue_source}; {model.figures.machine}\n"


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _shown(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:  # noqa: PLR2004 - else it is shown as 1 of the next unit
            return f"{value:.3g} {unit}"
        value /= 1_000
    return f"{value:.3g} TB"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=FIGURES, help="the file of the measured figures")
    parser.add_argument("--scale", type=Path, default=SCALE, help="the results of make bench-scale")
    for each in fields(Assumptions):
        parser.add_argument(
            _option(each.name), type=_positive, default=each.default, help=f"{each.metadata['help']} (%(default)s)"
        )
    given = vars(parser.parse_args(arguments))
    figures = read_figures(given.pop("figures"), given.pop("scale"))
    print(build_text(Model(figures, Assumptions(**given))), end="")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be above 0 (got {text}); raise it")
    return value


if __name__ == "__main__":
    main()
