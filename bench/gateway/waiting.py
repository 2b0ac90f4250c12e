"""Calls that wait for a person while the service is killed and started again."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gateway.process import ServiceProcess
from bench.speed.processes import memory_mb

RUN_CALLS = 20
"""Calls of a run that may wait at one time."""
AGENT_RUNS = 20
"""Runs of an agent at one time."""
_SPACE_RUNS = 5
_AT_ONCE = 16
_TOOL = {
    "name": "ask",
    "executionType": "space",
    "execution": {"timeout": 3_600_000},
    "inputSchema": {"type": "object", "properties": {"question": {"type": "string"}}},
}
_PAGE = 100


@dataclass(frozen=True, slots=True)
class WaitingFigures:
    """What was measured.

    Attributes:
        database: ``SQLite`` or ``PostgreSQL``.
        calls: calls that waited.
        empty_start_s: from the start of the process to its first answer, without any call.
        start_s: the same with the waiting calls; the first request asks how one of them stands.
        still_waiting: calls that waited after the restart.
        answered: calls with exactly one answer, the one that was submitted, in the call and in its record.
        refused: second, other answers that were refused.
        answer_ms: milliseconds of each submitted answer, 16 at a time.
        answers_s: how long all took.
        empty_mb, killed_mb, started_mb, answered_mb: memory of the service without a call, before it was killed,
            after the restart and after all answers.
    """

    database: str
    calls: int
    empty_start_s: float
    start_s: float
    still_waiting: int
    answered: int
    refused: int
    answer_ms: list[float]
    answers_s: float
    empty_mb: float
    killed_mb: float
    started_mb: float
    answered_mb: float


@dataclass(frozen=True, slots=True)
class _Call:
    tool_call_id: str
    run: dict[str, Any]
    question: str

    @property
    def path(self) -> str:
        return f"/v1/tool-calls/{self.tool_call_id}"


async def measure_restart(folder: Path, database: str, count: int, **settings: object) -> WaitingFigures:
    """Let calls wait, kill the service, start it and answer them.

    Raises:
        RuntimeError: a call does not wait, or its answer was not taken.
    """
    service = ServiceProcess(folder, **settings)
    try:
        await service.start()  # it makes its tables
        await service.kill()
        empty_start_s = await service.start()
        empty_mb = memory_mb(service.pid)
        calls, spaces = await _wait_all(service, count)
        killed_mb = memory_mb(service.pid)
        await service.kill()
        start_s = await service.start(calls[-1].path)
        started_mb = memory_mb(service.pid)
        standing = await _each(calls, lambda call: service.send("GET", call.path))
        took: list[float] = []
        began = time.perf_counter()
        await _each(calls, lambda call: _answer(service, call, took))
        answers_s = time.perf_counter() - began
        answered_mb = memory_mb(service.pid)
        other = {"result": "another answer"}
        await _each(calls, lambda call: service.send("POST", f"{call.path}/result", other, expected=409))
        return WaitingFigures(
            database,
            count,
            empty_start_s,
            start_s,
            sum(call["status"] == "waiting" for call in standing),
            await _count_answered(service, calls, spaces),
            count,  # else it has raised
            took,
            answers_s,
            empty_mb,
            killed_mb,
            started_mb,
            answered_mb,
        )
    finally:
        await service.stop()


async def _wait_all(service: ServiceProcess, count: int) -> tuple[list[_Call], list[str]]:
    """Make runs with their spaces, and calls of them that wait."""
    person = {"type": "human", "handle": "ann", "display_name": "Ann", "user": "local"}
    await service.send("PUT", "/v1/entities/ann", person, expected=201)
    runs_needed = -(-count // RUN_CALLS)
    runs: list[dict[str, Any]] = []
    spaces: list[str] = []
    for number in range(runs_needed):
        agent = f"agent-{number // AGENT_RUNS}"
        if number % AGENT_RUNS == 0:
            document = {"version": "2", "agent": {"name": agent}, "tools": [_TOOL]}
            await service.send("PUT", f"/v1/agents/{agent}", document, expected=201)
        if number % _SPACE_RUNS == 0:
            creation = {"name": f"Desk {number}", "members": ["ann", f"agent:{agent}"]}
            spaces.append((await service.send("POST", "/v1/spaces", creation, expected=201))["space_id"])
        order = {"agent_id": agent, "space_id": spaces[-1]}
        runs.append(await service.send("POST", "/v1/runs", order, expected=201))
    calls = [
        _Call(f"call-{number}", run, f"question {number}")
        for number, run in zip(range(count), itertools.cycle(runs), strict=False)
    ]
    await _each(calls, lambda call: _begin(service, call))
    return calls, spaces


async def _begin(service: ServiceProcess, call: _Call) -> None:
    body = {
        "tool_id": "ask",
        "tool_call_id": call.tool_call_id,
        "conversation_id": call.run["conversation_id"],
        "run_id": call.run["run_id"],
        "params": {"question": call.question},
    }
    await service.send("POST", "/v1/tool-calls", body, expected=202, lease=call.run["lease"]["number"])


async def _answer(service: ServiceProcess, call: _Call, took: list[float]) -> None:
    began = time.perf_counter()
    await service.send("POST", f"{call.path}/result", {"result": f"answer to {call.question}"})
    took.append((time.perf_counter() - began) * 1000)


async def _count_answered(service: ServiceProcess, calls: list[_Call], spaces: list[str]) -> int:
    """How many calls have their own answer, which also is the output of exactly one record in the spaces."""
    shown: dict[str, list[Any]] = {}
    for space in spaces:
        before: int | None = None
        while before != 1:
            query = f"limit={_PAGE}" + ("" if before is None else f"&before={before}")
            items = (await service.send("GET", f"/v1/spaces/{space}/messages?{query}"))["items"]
            if not items:
                break
            before = items[0]["seq"]
            for tool in (item["tool"] for item in items):
                shown.setdefault(tool["tool_call_id"], []).append((tool["state"], tool["output"]))
    answers = await _each(calls, lambda call: service.send("GET", call.path))
    return sum(
        answer["status"] == "done"
        and answer["response"]["ret"] == f"answer to {call.question}"
        and shown[call.tool_call_id] == [("done", answer["response"]["ret"])]
        for call, answer in zip(calls, answers, strict=True)
    )


async def _each(calls: Iterable[_Call], work: Callable[[_Call], Awaitable[Any]]) -> list[Any]:
    """The results of work on each call, 16 at a time."""
    free = asyncio.Semaphore(_AT_ONCE)

    async def one(call: _Call) -> Any:
        async with free:
            return await work(call)

    return await asyncio.gather(*(one(call) for call in calls))
