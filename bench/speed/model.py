"""What the parts of the benchmark hand to one another: a job, a side that does it, and what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from bench.speed.spread import Spread, percentile, ratio, ratio_of_medians

OURS = "Proofbox, docker"
OURS_OCI = "Proofbox, oci"
LANES = {OURS: "docker", OURS_OCI: "oci"}
"""Our sides, and the engine of each: the daemon's containers, and those of an OCI runtime without one."""
DOCKER = "docker run"
LLM_SANDBOX = "llm-sandbox"
EPICBOX = "epicbox"
BWRAP = "bubblewrap"
CRUN = "crun"
RUNC = "runc"
DOCKER_API = "Docker's API"
FLOORS = (BWRAP, CRUN, RUNC, DOCKER_API)
INPUTS = "turn_1/attachments"
"""Where inputs lie for the program, on every side, relative to its working directory."""
OUTPUTS = "files"
"""Where it writes."""


class CallFailedError(Exception):
    """A call did not do its job; the text is what its side said."""


@dataclass(frozen=True)
class Job:
    """One thing to do, and what has to come of it. The same program runs on every side.

    Attributes:
        name: short, for ``--only``.
        title: as the tables show it.
        code: the Python program; None for a document that is rendered.
        contract: what Proofbox is promised; it opens and checks those files, the other sides do not.
        document: the HTML that is rendered to ``report.pdf``; None for a program.
        inputs: files that are there before the call, by name.
        outputs: files that have to be there after it: smallest size in bytes by name.
        stdout: what the program prints.
        needs_home: whether libraries want a home folder with the image's font list in it.
    """

    name: str
    title: str
    code: str | None = None
    contract: tuple[Mapping[str, Any], ...] = ()
    document: str | None = None
    inputs: Mapping[str, bytes] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)
    stdout: bytes = b""
    needs_home: bool = False

    def check(self, stdout: bytes, sizes: Mapping[str, int]) -> None:
        """Compares what came with what has to come.

        Raises:
            CallFailedError: something is missing or too small.
        """
        if stdout.strip() != self.stdout.strip():
            raise CallFailedError(f"{self.name}: printed {stdout[:200]!r} in place of {self.stdout!r}")
        short = [name for name, size in self.outputs.items() if sizes.get(name, -1) < size]
        if short:
            raise CallFailedError(f"{self.name}: {len(short)} files are missing or too small, such as {short[0]}")


class Side(Protocol):
    """Somebody who does jobs.

    Attributes:
        name: as the tables show it.
        pause_s: what it needs after a call to be ready for the next: the time in which a pool is filled again.
    """

    name: str
    pause_s: float

    async def prepare(self, job: Job) -> None:
        """Lays a job's inputs ready; not timed."""

    async def run(self, job: Job) -> None:
        """Does a job once, timed from start to answer.

        Raises:
            CallFailedError: it failed.
        """


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side did in one round.

    Attributes:
        latencies_ms: of each call, in the order of their ends.
        elapsed_s: wall clock of all of them; 0 where calls had pauses and a rate means nothing.
    """

    latencies_ms: list[float]
    elapsed_s: float = 0.0

    @property
    def rate(self) -> float:
        """Calls in a second."""
        return len(self.latencies_ms) / self.elapsed_s


@dataclass(slots=True)
class Measured:
    """One job with so many clients, by all sides.

    Attributes:
        job: its name.
        title: as the tables show it.
        clients: at one time.
        sides: the turns of each, one for each round.
    """

    job: str
    title: str
    clients: int
    sides: dict[str, list[Turn]] = field(default_factory=dict)

    def latencies(self, side: str) -> list[float]:
        """All calls of a side, in milliseconds."""
        return [one for turn in self.sides[side] for one in turn.latencies_ms]

    def latency(self, side: str, percent: float) -> float:
        """A percentile of them."""
        return percentile(self.latencies(side), percent)

    def rate(self, side: str) -> float:
        """Calls in a second, the median of the rounds."""
        return percentile([turn.rate for turn in self.sides[side]], 50)

    def times_faster(self, side: str, ours_side: str) -> Spread:
        """How many times as long as a call of one of our sides a call of another takes."""
        theirs, ours = self.sides[side], self.sides[ours_side]
        return ratio_of_medians([turn.latencies_ms for turn in theirs], [turn.latencies_ms for turn in ours])

    def times_the_rate(self, side: str, ours_side: str) -> Spread:
        """How many times as many calls as a side one of ours does in a second."""
        theirs, ours = self.sides[side], self.sides[ours_side]
        return ratio([turn.rate for turn in ours], [turn.rate for turn in theirs])


@dataclass(slots=True)
class Results:
    """All that one run found; what only we have, by the name of our side.

    Attributes:
        machine: hardware, versions and load, by name.
        warm: by side, of each job how many of our calls found a container that waited, and how many there were.
        calm: one client, a pause between calls.
        busy: many clients, no pause.
        burst_ms: each call of bursts that met a warm pool.
        overhead_ms: of each call of `print(1)`: what HTTP and the protocol added to the sandbox.
        queue: one row for each length of the queue.
        files: one row for each number of files.
        pool: one row for each size of the pool.
        idle: CPU seconds of each part over the seconds under `for_s`, and their memory in megabytes.
        large_growth_mb: what the service's peak memory grew by while it stored the large file.
        without_phases: answers that did not say where their time went; no side if nothing was asked.
        remarks: on sides that are not there, or not as they should be.
    """

    machine: dict[str, str] = field(default_factory=dict)
    warm: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    calm: list[Measured] = field(default_factory=list)
    busy: list[Measured] = field(default_factory=list)
    burst_ms: dict[str, list[float]] = field(default_factory=dict)
    overhead_ms: dict[str, list[float]] = field(default_factory=dict)
    queue: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    files: list[Measured] = field(default_factory=list)
    pool: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    idle: dict[str, dict[str, float]] = field(default_factory=dict)
    large_growth_mb: dict[str, float] = field(default_factory=dict)
    without_phases: dict[str, int] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)

    def calm_of(self, job: str) -> Measured | None:
        """A job with one client."""
        return next((row for row in self.calm if row.job == job), None)

    def busy_of(self, job: str, clients: int) -> Measured | None:
        """A job with so many clients."""
        return next((row for row in self.busy if (row.job, row.clients) == (job, clients)), None)
