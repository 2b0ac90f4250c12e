"""How the rate of waiting programs grows with the number of workers."""

import asyncio
import time
from dataclasses import dataclass

from tests.support.scale.clients import Clients
from tests.support.scale.cluster import Cluster

SLOTS = 4
"""Calls that a worker runs at the same time."""
_QUEUED = 2  # calls in flight for each slot, so that no slot waits for a client
_WORKERS = (1, 2, 4)
_SETTLE_S = 3.0
"""The pools of the workers fill meanwhile."""
BAR = 0.85


@dataclass(frozen=True, slots=True)
class Load:
    """Calls of one measurement.

    Attributes:
        sleep_s: how long each program waits.
        waves: calls for each slot of the workers.
        rounds: how often each number of workers is measured.
    """

    sleep_s: float
    waves: int
    rounds: int


@dataclass(frozen=True, slots=True)
class RateFigures:
    """The rate with some workers.

    Attributes:
        workers: how many ran.
        calls: calls of each round.
        sleep_s: how long each program waited.
        per_s: calls per second of each round.
        ideal_per_s: the rate if a call took nothing but its wait.
    """

    workers: int
    calls: int
    sleep_s: float
    per_s: list[float]
    ideal_per_s: float


def build_settings() -> dict[str, object]:
    """The settings of the processes: workers with as many waiting containers as slots."""
    return {"running_max": SLOTS, "pool_size": SLOTS, "pool_max": 2 * SLOTS}


async def measure_rates(load: Load) -> list[RateFigures]:
    """Measure each number of workers in each round, the numbers in turn.

    Raises:
        RuntimeError: a call failed.
    """
    rates: dict[int, list[float]] = {count: [] for count in _WORKERS}
    with Cluster(apis=2, workers=max(_WORKERS), settings=build_settings()) as cluster:
        cluster.start()
        for number in range(load.rounds):
            for count in _WORKERS:
                await asyncio.to_thread(_let_run, cluster, count)
                calls = load.waves * count * SLOTS
                name, in_flight = f"rate-{number}-{count}", count * SLOTS * _QUEUED
                took_s = await _send(cluster, name, calls, in_flight, load.sleep_s)
                rates[count].append(calls / took_s)
    return [
        RateFigures(count, load.waves * count * SLOTS, load.sleep_s, found, count * SLOTS / load.sleep_s)
        for count, found in rates.items()
    ]


def _let_run(cluster: Cluster, count: int) -> None:
    """Let so many workers run, and end the others."""
    for number, worker in enumerate(cluster.workers.values()):
        if number < count and not worker.is_running:
            worker.launch()
        elif number >= count:
            worker.stop()
    for worker in list(cluster.workers.values())[:count]:
        worker.wait_until_ready()
    time.sleep(_SETTLE_S)


async def _send(cluster: Cluster, name: str, count: int, in_flight: int, sleep_s: float) -> float:
    """Send calls, so many at a time; how long all took, in seconds."""
    free = asyncio.Semaphore(in_flight)
    async with Clients(cluster) as clients:
        calls = [clients.build_call(f"{name}-{number}", sleep_s) for number in range(count)]

        async def send_one(number: int) -> None:
            async with free:
                await clients.send(calls[number], number)

        began = time.monotonic()
        await asyncio.gather(*(send_one(number) for number in range(count)))
    failed = [f"{sent.call}: {sent.outcome} {sent.message}" for sent in calls if not sent.is_ok]
    if failed:
        raise RuntimeError(f"{len(failed)} calls failed, the first: {failed[0]}")
    return max(sent.ended or 0.0 for sent in calls) - began
