"""Event streams of spaces with many listeners: how late events arrive, and what a listener costs."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.gateway.process import ServiceProcess
from bench.serving import ROOT
from bench.speed.processes import cpu_s, memory_mb

CONNECTIONS_MAX = 8_000
SETTLE_S = 3.0
_LINE_BYTES_MAX = 1 << 28
_AT_ONCE = 8


@dataclass(slots=True)
class Load:
    """A time with a rate of messages.

    Attributes:
        per_s: messages per second over all spaces; 0: eight clients post, each again at once.
        messages: how many were posted.
        took_s: from the first one to the last event.
        cpu_s: processor time of the service.
        post_ms: milliseconds of each post.
        latencies_ms: milliseconds from the begin of a post to an event at a listener, for each.
    """

    per_s: float
    messages: int = 0
    took_s: float = 0
    cpu_s: float = 0
    post_ms: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StreamFigures:
    """What was measured.

    Attributes:
        database: ``SQLite`` or ``PostgreSQL``.
        spaces: spaces.
        per_space: listeners of each.
        opened_s: how long opening all streams took.
        before_mb, opened_mb, after_mb: memory of the service before, with all streams, and after all loads.
        idle_cpu: the service's share of a core while nothing happens, heartbeats included.
        loads: the loads.
        lost: events that did not arrive.
    """

    database: str
    spaces: int
    per_space: int
    opened_s: float
    before_mb: float
    opened_mb: float
    after_mb: float
    idle_cpu: float
    loads: list[Load]
    lost: int


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured.

    Attributes:
        spaces: spaces.
        per_space: listeners of each.
        rates: messages per second, one load each.
        load_s: how long each takes.
        idle_s: how long the idle service is measured.
    """

    spaces: int
    per_space: int
    rates: tuple[float, ...]
    load_s: float
    idle_s: float


@asynccontextmanager
async def _listening(port: int, plan: Plan, spaces: list[str]) -> AsyncIterator[tuple[Any, float]]:
    """The process of the listeners, and how long opening their streams took."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "bench.gateway.listeners", str(port), str(plan.per_space), *spaces),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LINE_BYTES_MAX,
    )
    try:
        yield process, (await _line(process))["opened_s"]
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await process.wait()


async def _line(process: Any) -> Any:
    line = await process.stdout.readline()
    if not line:
        raise RuntimeError("the listeners ended")
    return json.loads(line)


async def measure_streams(folder: Path, database: str, plan: Plan, **settings: object) -> StreamFigures:
    """Open the streams, and post under each load.

    Raises:
        RuntimeError: a stream was not opened, or ended; a message was not taken.
    """
    limits = {"connections_max": CONNECTIONS_MAX, "connections_per_address_max": CONNECTIONS_MAX}
    service = ServiceProcess(folder, **limits, **settings)
    try:
        await service.start()
        person = {"type": "human", "handle": "ann", "display_name": "Ann", "user": "local"}
        await service.send("PUT", "/v1/entities/ann", person, expected=201)
        creations = [{"name": f"Space {number}", "members": ["ann"]} for number in range(plan.spaces)]
        made = [await service.send("POST", "/v1/spaces", creation, expected=201) for creation in creations]
        spaces = [space["space_id"] for space in made]
        for space in spaces:  # what the first messages of a process load is no listener's
            await _post(service, space, Load(0))
        before_mb = memory_mb(service.pid)
        async with _listening(service.port, plan, spaces) as (process, opened_s):
            await asyncio.sleep(SETTLE_S)
            opened_mb = memory_mb(service.pid)
            used = cpu_s([service.pid])
            await asyncio.sleep(plan.idle_s)
            idle_cpu = (cpu_s([service.pid]) - used) / plan.idle_s
            loads, lost = [], await _collect(process, Load(0, plan.spaces), plan)
            for rate in plan.rates:
                load = Load(rate)
                used, began = cpu_s([service.pid]), time.perf_counter()
                await _run_load(service, spaces, load, plan.load_s)
                lost += await _collect(process, load, plan)
                load.took_s = time.perf_counter() - began
                load.cpu_s = cpu_s([service.pid]) - used
                loads.append(load)
                await asyncio.sleep(SETTLE_S)
            after_mb = memory_mb(service.pid)
        sizes = (before_mb, opened_mb, after_mb)
        return StreamFigures(database, plan.spaces, plan.per_space, opened_s, *sizes, idle_cpu, loads, lost)
    finally:
        await service.stop()


async def _collect(process: Any, load: Load, plan: Plan) -> int:
    """Fetch the latencies of a load; how many events are missing."""
    expected = load.messages * plan.per_space
    process.stdin.write(f"{expected}\n".encode())
    found = await _line(process)
    if found["ended"]:
        raise RuntimeError(f"the service ended {found['ended']} streams")
    load.latencies_ms = found["latencies"]
    return expected - len(load.latencies_ms)


async def _run_load(service: ServiceProcess, spaces: list[str], load: Load, for_s: float) -> None:
    """Post messages to one space after the other."""
    began = time.perf_counter()
    if load.per_s:
        posts = []
        for number in range(int(for_s * load.per_s)):
            await asyncio.sleep(began + number / load.per_s - time.perf_counter())
            posts.append(asyncio.create_task(_post(service, spaces[number % len(spaces)], load)))
        await asyncio.gather(*posts)
        return

    async def client(first: int) -> None:
        number = first
        while time.perf_counter() - began < for_s:
            await _post(service, spaces[number % len(spaces)], load)
            number += _AT_ONCE

    await asyncio.gather(*(client(first) for first in range(_AT_ONCE)))


async def _post(service: ServiceProcess, space: str, load: Load) -> None:
    began = time.perf_counter_ns()
    body = {"text": f"sent {began}", "entity_id": "ann"}
    await service.send("POST", f"/v1/spaces/{space}/messages", body, expected=201)
    load.post_ms.append((time.perf_counter_ns() - began) / 1e6)
    load.messages += 1
