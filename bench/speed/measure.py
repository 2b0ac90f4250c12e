"""One run: every part that was asked for, all sides of a part in turn."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.serving import service_running
from bench.speed import growth, jobs
from bench.speed.clients import busily, calmly, turned
from bench.speed.docker_api import DockerApi, daemons_socket
from bench.speed.docker_run import DockerRun
from bench.speed.floors import floors
from bench.speed.model import (
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
    CallFailedError,
    Job,
    Measured,
    Results,
    Side,
)
from bench.speed.plan import Load, Plan
from bench.speed.processes import in_control_group
from bench.speed.proofbox import Proofbox
from bench.speed.sandbox_libraries import PEER_IMAGE, libraries

CALM_SIDES = {
    "print": (*LANES, DOCKER, LLM_SANDBOX, EPICBOX, *FLOORS),
    "chart": (*LANES, DOCKER, LLM_SANDBOX, EPICBOX),
    "contract": (*LANES, DOCKER, LLM_SANDBOX, EPICBOX),
    "files": (*LANES, DOCKER, LLM_SANDBOX, EPICBOX),
    "large": (*LANES, DOCKER, LLM_SANDBOX),
    "pdf": (*LANES, DOCKER),
    "pdf30": (*LANES, DOCKER),
}
"""epicbox keeps standard output in pieces that it copies again and again: 50 MB of it would take minutes."""
_BOTH = (*LANES, DOCKER)
_BEGAN = time.perf_counter()


@dataclass(slots=True)
class Run:
    """What is measured and what was found.

    Attributes:
        plan: how much.
        only: the parts, by name.
        results: what was found.
    """

    plan: Plan
    only: frozenset[str]
    results: Results

    async def measure(self) -> None:
        """Measures all parts into `results`.

        Raises:
            CallFailedError: a call failed; alone or in a group.
        """
        if not self.only <= {"burst", "queue", "pool", "idle"}:
            async with self._everyone() as sides:
                await self._jobs(sides)
        for ours in self._lanes():
            await self._growth(ours)

    def _lanes(self) -> list[str]:
        """Our sides that can run on this machine."""
        lacking = "" if os.geteuid() == 0 else "needs root"
        lacking = lacking or ("" if shutil.which(CRUN) or shutil.which(RUNC) else "needs crun or runc")
        if lacking:
            self.results.remarks[OURS_OCI] = lacking
        return [OURS] if lacking else list(LANES)

    async def _growth(self, ours: str) -> None:
        """What grows with what, on one of our sides."""
        plan, results = self.plan, self.results
        if "burst" in self.only:
            say(f"burst, {ours}")
            results.burst_ms[ours] = await growth.bursts(ours, plan.bursts)
        for length in plan.queued if "queue" in self.only else ():
            say(f"queue of {length:,}, {ours}")
            results.queue.setdefault(ours, []).append(await growth.queued(ours, length))
        for size in plan.pool_sizes if "pool" in self.only else ():
            say(f"pool of {size}, {ours}")
            results.pool.setdefault(ours, []).append(await growth.with_pool(ours, size, plan.rounds * 4))
        if "idle" in self.only and plan.idle_s:
            say(f"idle for {plan.idle_s:g} s, {ours}")
            results.idle[ours] = await growth.idle(ours, plan.idle_s)

    @contextlib.asynccontextmanager
    async def _everyone(self) -> AsyncIterator[dict[str, Side]]:
        """All sides that the parts need and this machine has, by name."""
        wanted = {name for job in CALM_SIDES.keys() & self.only for name in self._names(job)}
        async with AsyncExitStack() as stack:
            folder = stack.enter_context(_open_folder())
            sides: list[Side] = [DockerRun(folder)]
            for ours in self._lanes():
                service = await stack.enter_async_context(service_running(engine=LANES[ours]))
                sides.append(Proofbox(service, ours))
            if wanted & {LLM_SANDBOX, EPICBOX}:
                sides += await stack.enter_async_context(libraries(folder))
            if wanted & set(FLOORS):
                sides += stack.enter_context(floors(self.results.remarks))
                if socket := daemons_socket():
                    sides.append(DockerApi(socket))
                else:
                    self.results.remarks[DOCKER_API] = "was left out: DOCKER_HOST is no socket of this machine"
            yield {side.name: side for side in sides}

    async def _jobs(self, sides: dict[str, Side]) -> None:
        lanes = [side for side in sides.values() if isinstance(side, Proofbox)]
        makers = {
            "print": jobs.printing,
            "chart": jobs.chart,
            "contract": jobs.contract,
            "pdf": jobs.one_page,
            "pdf30": jobs.thirty_pages,
            "files": jobs.many_files,
            "large": jobs.large_file,
        }
        for name, make in makers.items():
            if name not in self.only or name not in self.plan.calls:
                continue
            job = make()
            there = [sides[one] for one in self._names(name) if one in sides]
            self.results.calm.append(await self._calm(job, there))
            if name == "print":
                # Before other clients come: what a call costs beyond its container, one at a time.
                self.results.overhead_ms = {lane.name: list(lane.overhead_ms[name]) for lane in lanes}
            if name == "large":
                self.results.large_growth_mb = {
                    lane.name: await growth.memory_growth_mb(lane.name, job) for lane in lanes
                }
            for load in self.plan.busy.get(name, ()):
                names = (*_BOTH, LLM_SANDBOX, EPICBOX, DOCKER_API, CRUN) if load.everyone else _BOTH
                busy = [sides[one] for one in names if one in sides]
                self.results.busy.append(await _busy(job, load, busy))
        if "growth" in self.only and self.plan.file_counts:
            say("number of files")
            both = [sides[name] for name in _BOTH if name in sides]
            self.results.files = await growth.with_files(both, self.plan.file_counts, self.plan.rounds)
        for lane in lanes:
            self.results.without_phases[lane.name] = lane.without_phases
            warm = {name: (lane.warm[name], answered) for name, answered in lane.answered.items()}
            self.results.warm[lane.name] = warm

    def _names(self, job: str) -> list[str]:
        libraries_too = job in self.plan.with_libraries
        return [name for name in CALM_SIDES[job] if libraries_too or name not in {LLM_SANDBOX, EPICBOX}]

    async def _is_able(self, side: Side, job: Job) -> bool:
        """Run the job once. A peer that cannot do it is left out with a remark; Proofbox has no such excuse."""
        try:
            await side.prepare(job)
            await side.run(job)
        except CallFailedError as exc:
            if side.name in LANES:
                raise
            self.results.remarks[f"{side.name} ({job.name})"] = f"was left out: {str(exc).splitlines()[-1]}"
            return False
        return True

    async def _calm(self, job: Job, sides: list[Side]) -> Measured:
        say(f"{job.name}, one client: {', '.join(side.name for side in sides)}")
        sides = [side for side in sides if await self._is_able(side, job)]
        row = Measured(job.name, job.title, 1, {side.name: [] for side in sides})
        for number in range(self.plan.rounds):
            for side in turned(sides, number):
                row.sides[side.name].append(await calmly(side, job, self.plan.calls[job.name]))
                await asyncio.sleep(side.pause_s)
        return row


async def _busy(job: Job, load: Load, sides: list[Side]) -> Measured:
    row = Measured(job.name, job.title, load.clients, {side.name: [] for side in sides})
    say(f"{job.name}, {load.clients} clients: {', '.join(row.sides)}")
    for number in range(load.rounds):
        for side in turned(sides, number):
            row.sides[side.name].append(await busily(side, job, load.clients, load.calls))
            await asyncio.sleep(2 * side.pause_s)
    return row


@contextlib.contextmanager
def _open_folder() -> Iterator[Path]:
    """A folder that the users of containers may look into."""
    with tempfile.TemporaryDirectory(prefix="proofbox-bench-sides-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def say(what: str) -> None:
    """Tells who waits what is measured now, and since when the run goes."""
    print(f"  {time.perf_counter() - _BEGAN:5.0f} s  {what}", file=sys.stderr, flush=True)


def left_behind() -> list[str]:
    """Containers and processes of this run that are still there."""
    listed = subprocess.run(
        ["docker", "ps", "--all", "--format", '{{.ID}} {{.Image}} {{.Label "proofbox.service"}}'],
        capture_output=True,
        text=True,
        check=True,
    )
    services = f"bench-{os.getpid()}-"
    lines = [line for line in listed.stdout.splitlines() if PEER_IMAGE in line or services in line]
    return [*lines, *(f"process {pid}" for pid in in_control_group(services))]
