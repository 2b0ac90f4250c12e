"""Measures a neighbour under a flood: ``print(1)`` of one key, alone and beside 200 clients of another, in turn.

Usage: python -m bench.neighbours [--engines docker oci] [--rate CALLS_A_SECOND]. The 200 clients share a rate that
leaves a core to the neighbour and its client: they stand for clients on other machines. With ``--rate 0`` each
calls again at once, or a second after it was refused. Prints p50 and p95 of both, their ratios, and how many calls
had a warm container.
"""

import argparse
import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bench.lean_http import Answer
from bench.serving import ROOT, Service, service_running

CLIENTS = 200
RATES = {"docker": 2.0, "oci": 8.0}
"""Calls a second of the flood that leave a core free on two cores."""
ROUNDS = 6
CALLS = 15
PAUSE_S = 0.7
SETTLE_S = 4.0
_OK = 200
_REFUSED_S = 1.0  # as Retry-After asks for at the least


@dataclass(slots=True)
class Phase:
    """Milliseconds of the calls of a phase, and how many had a container that waited."""

    took: list[float] = field(default_factory=list)
    warm: int = 0


@dataclass(slots=True)
class Caller:
    """Calls with one key.

    Attributes:
        service: the service.
        key: the secret.
        name: the conversation.
        answered: how many calls were answered.
    """

    service: Service
    key: str
    name: str
    answered: int = 0
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def call(self) -> Answer:
        """One ``print(1)``."""
        number = next(self._numbers)
        body = {
            "tool_id": "exec_tools.execute_code_python",
            "tool_call_id": f"call_{number}",
            "conversation_id": self.name,
            "turn_id": f"turn_{number}",
            "params": {"contract": [{"glob": "*.txt", "description": "nothing", "min_count": 0}]},
            "code": "print(1)",
        }
        answer = await self.service.lean.send("POST", "/v1/tool-calls", json.dumps(body).encode(), self.key)
        self.answered += answer.status == _OK
        return answer

    async def timed(self, phase: Phase) -> None:
        """Some calls, one after the other with a pause.

        Raises:
            RuntimeError: one was not answered.
        """
        for _ in range(CALLS):
            await asyncio.sleep(PAUSE_S)
            began = time.perf_counter()
            answer = await self.call()
            phase.took.append((time.perf_counter() - began) * 1000)
            if answer.status != _OK:
                raise RuntimeError(f"{answer.status}: {answer.text[:500]}")
            phase.warm += answer.json()["sandbox"]["acquired"] == "warm"


@asynccontextmanager
async def flood(caller: Caller, rate: float) -> AsyncIterator[None]:
    """So many clients of one key, which share a rate of calls a second; 0: none waits between its calls."""
    begun = itertools.count()
    start = time.perf_counter()

    async def client() -> None:
        while True:
            if rate:
                await asyncio.sleep(start + next(begun) / rate - time.perf_counter())
            if (await caller.call()).status != _OK:
                await asyncio.sleep(_REFUSED_S)

    clients = [asyncio.create_task(client()) for _ in range(CLIENTS)]
    try:
        yield
    finally:
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


def new_key(data_dir: str, name: str) -> str:
    """The secret of a new key."""
    command = [
        sys.executable,
        "-m",
        "proofbox.cli",
        "keys",
        "create",
        "--name",
        name,
        "--limit",
        "calls_per_minute=0",
    ]
    environment = {**os.environ, "PROOFBOX_DATA_DIR": data_dir}
    ran = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def percentile(values: list[float], share: float) -> float:
    """A percentile of the values, between two of them if it lies there."""
    return statistics.quantiles(values, n=100, method="inclusive")[round(share * 100) - 1]


async def measure(engine: str, rate: float) -> None:
    """Quiet and flood in turn, and what came of them."""
    with tempfile.TemporaryDirectory(prefix="proofbox-neighbours-") as folder:
        keys = [await asyncio.to_thread(new_key, folder, name) for name in ("flood", "neighbour")]
        async with service_running(engine=engine, data_dir=folder, auth="required") as service:
            many, one = (Caller(service, key, name) for key, name in zip(keys, ("flood", "neighbour"), strict=True))
            quiet, flooded, flooded_s = Phase(), Phase(), 0.0
            await asyncio.sleep(2 * SETTLE_S)
            await one.timed(Phase())  # the first calls of a service are slower
            for _ in range(ROUNDS):
                await one.timed(quiet)
                began = time.perf_counter()
                async with flood(many, rate):
                    await asyncio.sleep(SETTLE_S)
                    await one.timed(flooded)
                flooded_s += time.perf_counter() - began
                await asyncio.sleep(2 * SETTLE_S)
    print(f"{engine}: {CLIENTS} clients at {rate or 'no'} calls/s, {many.answered / flooded_s:.1f} answered/s")
    for share in (0.5, 0.95):
        alone, beside = percentile(quiet.took, share), percentile(flooded.took, share)
        print(f"  p{share * 100:.0f}: quiet {alone:.1f} ms, beside {beside:.1f} ms, {beside / alone:.2f} times")
    print(f"  warm: quiet {quiet.warm} of {len(quiet.took)}, beside {flooded.warm} of {len(flooded.took)}")


def main() -> None:
    """Parses the arguments and measures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--engines", nargs="+", choices=list(RATES), default=list(RATES))
    parser.add_argument("--rate", type=float, help="calls a second of all 200 clients; 0 for no bound")
    arguments = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores")
    for engine in arguments.engines:
        asyncio.run(measure(engine, RATES[engine] if arguments.rate is None else arguments.rate))


if __name__ == "__main__":
    main()
