"""What grows with what: the queue, the number of files, the pool; and what a service costs that does nothing."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterator

import httpx

from bench.lean_http import Answer
from bench.serving import Service, service_running
from bench.speed import jobs
from bench.speed.clients import at_once, busily, calmly, turned
from bench.speed.model import LANES, CallFailedError, Job, Measured, Side
from bench.speed.processes import (
    container_pids,
    cpu_s,
    engine_pids,
    family,
    memory_mb,
    peak_mb,
    reset_peak,
)
from bench.speed.proofbox import Proofbox
from bench.speed.spread import percentile

BURST = 8
SETTLE_S = 3.0
_SETTLE_LOOK_S = 1.5
_SETTLE_TRIES = 40
_LOOK_EVERY_S = 0.2
_QUEUED_WALL_S = 5.0
_REFUSED = {httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE}


async def bursts(ours: str, count: int) -> list[float]:
    """Calls that come at one moment and meet a pool as large as they are; milliseconds of each."""
    job = jobs.printing()
    async with service_running(engine=LANES[ours], pool_size=BURST, running_max=BURST) as service:
        side = Proofbox(service, ours)
        await at_once(side, job, BURST)
        times = []
        for _ in range(count):
            await _settled(service)
            times += await at_once(side, job, BURST)
        return times


async def _settled(service: Service) -> None:
    """Waits until no container comes or goes any more: the pool is full."""
    before: set[int] = set()
    for _ in range(_SETTLE_TRIES):
        await asyncio.sleep(_SETTLE_LOOK_S)
        now = container_pids(service.name)
        if now and now == before:
            return
        before = now
    raise RuntimeError("the pool did not settle")


async def queued(ours: str, length: int) -> dict[str, float]:
    """So many calls at one moment, in the service's default settings; what became of them, and its memory."""
    job = jobs.printing()
    async with service_running(engine=LANES[ours]) as service:
        side = Proofbox(service, ours)
        await side.run(job)
        await asyncio.sleep(SETTLE_S)
        before = memory_mb(service.pid)
        began = time.perf_counter()
        async with _watching(service) as looks:
            limits = {"wall_s": _QUEUED_WALL_S}
            answers = await asyncio.gather(*(side.post(job, limits) for _ in range(length)), return_exceptions=True)
        elapsed_s = time.perf_counter() - began
        answered = refused = 0
        for answer in answers:
            if isinstance(answer, Answer):
                answered += _is_answer(answer)
                refused += _is_refusal(answer)
        return {
            "calls": length,
            "answered": answered,
            "refused": refused,
            "lost": length - answered - refused,
            "before_mb": before,
            "peak_mb": max(looks),
            "elapsed_s": elapsed_s,
        }


def _is_answer(answer: Answer) -> bool:
    if answer.status == httpx.codes.OK and not answer.json()["ok"]:
        raise CallFailedError(f"queue: {answer.json()['report'][:2000]}")
    return answer.status == httpx.codes.OK


def _is_refusal(answer: Answer) -> bool:
    if answer.status in _REFUSED and "retry-after" in answer.headers:
        return True
    if answer.is_error:
        raise CallFailedError(f"queue: {answer.status} {answer.text[:2000]}")
    return False


@contextlib.asynccontextmanager
async def _watching(service: Service) -> AsyncIterator[list[float]]:
    """Megabytes of the service, looked at again and again as long as the block runs."""
    looks = [memory_mb(service.pid)]

    async def look() -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            looks.append(memory_mb(service.pid))

    looking = asyncio.create_task(look())
    try:
        yield looks
    finally:
        looking.cancel()
        looks.append(memory_mb(service.pid))


async def with_files(sides: list[Side], counts: tuple[int, ...], rounds: int) -> list[Measured]:
    """The same program with more and more files."""
    rows = []
    for count in counts:
        job = jobs.many_files(count)
        row = Measured(f"files-{count}", job.title, 1, {side.name: [] for side in sides})
        for side in sides:
            await side.prepare(job)
            await side.run(job)
        for number in range(rounds):
            for side in turned(sides, number):
                row.sides[side.name].append(await calmly(side, job, 2))
        rows.append(row)
    return rows


async def with_pool(ours: str, size: int, calls: int) -> dict[str, float]:
    """One size of the pool: latency of a calm client, calls a second of busy ones, memory of it all."""
    job = jobs.printing()
    async with service_running(engine=LANES[ours], pool_size=size) as service:
        side = Proofbox(service, ours)
        await side.run(job)
        await asyncio.sleep(SETTLE_S)
        waiting = _held_mb(service)
        calm = await calmly(side, job, calls)
        busy = await busily(side, job, BURST, 3 * BURST)
        return {
            "size": size,
            "p50_ms": percentile(calm.latencies_ms, 50),
            "p90_ms": percentile(calm.latencies_ms, 90),
            "calls_per_s": busy.rate,
            "memory_mb": waiting,
        }


def _held_mb(service: Service) -> float:
    """Resident memory of a service, what it started, and its containers; pages that they share count for each."""
    return memory_mb(service.pid) + sum(_alone(container_pids(service.name) - family(service.pid)))


def _alone(pids: set[int]) -> Iterator[float]:
    return (memory_mb(pid) for pid in pids if not any(pid in family(other) for other in pids - {pid}))


async def idle(ours: str, for_s: float) -> dict[str, float]:
    """CPU seconds of a service, its waiting containers and the engine while nobody calls; their memory."""
    async with service_running(engine=LANES[ours]) as service:
        side = Proofbox(service, ours)
        await side.run(jobs.printing())
        await asyncio.sleep(2 * SETTLE_S)
        parts = {
            "service": family(service.pid),
            "pool": container_pids(service.name),
            "engine": engine_pids(),
        }
        before = {name: cpu_s(pids) for name, pids in parts.items()}
        began = time.perf_counter()
        await asyncio.sleep(for_s)
        took_s = time.perf_counter() - began
        spent = {name: cpu_s(pids) - before[name] for name, pids in parts.items()}
        return spent | {"for_s": took_s, "memory_mb": _held_mb(service)}


async def memory_growth_mb(ours: str, job: Job) -> float:
    """What the peak memory of a service grows by over what it held before, while it does a job twice."""
    async with service_running(engine=LANES[ours]) as service:
        side = Proofbox(service, ours)
        await side.run(jobs.printing())
        await asyncio.sleep(SETTLE_S)
        reset_peak(service.pid)
        before = peak_mb(service.pid)
        for _ in range(2):
            await side.run(job)
        return peak_mb(service.pid) - before
