"""Clients: one that pauses between its calls, or many that do not."""

import asyncio
import time
from collections.abc import Sequence

from bench.speed.model import Job, Side, Turn


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
    """So many clients without a pause, measured when they are under way.

    The first calls, one for each client and at least three, are not counted: they use up what waited. The clock
    stops while all clients still have a call, so that no rate is that of a side with less to do.
    """
    lead = max(clients, 3)
    ends: list[float] = []
    latencies: list[float] = []

    async def client() -> None:
        while len(ends) < lead + calls:
            began = time.perf_counter()
            await side.run(job)
            ends.append(time.perf_counter())
            latencies.append((ends[-1] - began) * 1000)

    async with asyncio.TaskGroup() as group:
        for _ in range(clients):
            group.create_task(client())
    return Turn(latencies[lead : lead + calls], ends[lead + calls - 1] - ends[lead - 1])


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
