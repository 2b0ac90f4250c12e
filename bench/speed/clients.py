"""Clients: one that pauses between its calls, or many that do not."""

import asyncio
import time
from collections.abc import Sequence

from bench.speed.model import Job, Side, Turn

DRAINING = 16
"""Calls that take what a pool has ready, and what it had begun to start."""


async def calmly(side: Side, job: Job, calls: int) -> Turn:
    """One client; before each call the pause that the side asks for."""
    latencies = []
    for _ in range(calls):
        await asyncio.sleep(side.pause_s)
        began = time.perf_counter()
        await side.run(job)
        latencies.append((time.perf_counter() - began) * 1000)
    return Turn(latencies)


async def busily(side: Side, job: Job, clients: int, calls: int) -> Turn:
    """So many clients without a pause, timed from the first call to the end of the last.

    Some calls before, which do not count, use up what waited. Calls that start together end together: a rate needs
    two calls of each client at the least, and whole ones, or it is that of a wave.

    Raises:
        ValueError: fewer calls than that.
    """
    if calls < 2 * clients:
        raise ValueError(f"{calls} calls of {clients} clients say nothing of a rate: {2 * clients} are needed")
    await at_once(side, job, DRAINING)
    latencies: list[float] = []
    left = iter(range(calls))

    async def client() -> None:
        for _ in left:
            started = time.perf_counter()
            await side.run(job)
            latencies.append((time.perf_counter() - started) * 1000)

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return Turn(latencies, time.perf_counter() - began)


async def at_once(side: Side, job: Job, calls: int) -> list[float]:
    """So many calls at one moment; milliseconds of each."""

    async def one() -> float:
        began = time.perf_counter()
        await side.run(job)
        return (time.perf_counter() - began) * 1000

    return list(await asyncio.gather(*(one() for _ in range(calls))))


def turned(sides: Sequence[Side], number: int) -> list[Side]:
    """The sides in the order of a round: each comes first once, none always after the same load."""
    start = number % len(sides)
    return [*sides[start:], *sides[:start]]
