"""Measures the engines of Proofbox and ``docker run`` of the same image side by side, in turn, in one run, as root.

Usage: python -m bench.engines [--quick]. Writes bench/results/engines.md and .json. CPU is that of everything that
a call costs, wherever it runs: the service, the container daemons and their helpers, the runtime, the container. It
is counted by control groups; the daemons count as a whole, so nothing else should use them meanwhile.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import shutil
import statistics
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from bench.serving import ROOT, serving
from bench.speed.docker_run import DOCKER_RUN, IMAGE

RESULTS = ROOT / "bench" / "results"
CLIENTS = 8
PROGRAM = "open('/out/a.txt', 'w').write('1'); print(1)"
SETTLE_S = 2.0  # after which pools are full again and what was used is removed
_V1 = Path("/sys/fs/cgroup/cpuacct")
_ROOT_GROUP = _V1 if _V1.is_dir() else Path("/sys/fs/cgroup")


class Account:
    """A control group whose CPU time is counted; containers that name it as their parent count in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._group = _ROOT_GROUP / name
        self._outside = self._group / "outside"
        self._outside.mkdir(parents=True, exist_ok=True)

    def adopt(self, pids: list[int]) -> None:
        """Counts processes, and what they start from now on, here."""
        for pid in pids:
            with contextlib.suppress(OSError):
                (self._outside / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def cpu_ms(self) -> float:
        """CPU time of all that was ever counted here."""
        if _ROOT_GROUP == _V1:
            return int((self._group / "cpuacct.usage").read_text(encoding="ascii")) / 1e6
        first = (self._group / "cpu.stat").read_text(encoding="ascii").splitlines()[0]
        return int(first.split()[1]) / 1e3

    def close(self) -> None:
        """Gives the processes back and removes the group, also where a runtime has made one of its name."""
        for pid in (self._outside / "cgroup.procs").read_text(encoding="ascii").split():
            with contextlib.suppress(OSError):
                (_ROOT_GROUP / "cgroup.procs").write_text(pid, encoding="ascii")
        groups = [self._outside, *Path("/sys/fs/cgroup").glob(f"*/{self.name}"), self._group]
        for group in groups:
            with contextlib.suppress(OSError):
                group.rmdir()


@dataclass
class Side:
    """One way to run a call, and what was measured of it."""

    name: str
    account: Account
    call: Callable[[], Awaitable[None]]
    cold: Callable[[], Awaitable[float]] | None = None
    daemons: list[int] = field(default_factory=list)
    times_ms: list[float] = field(default_factory=list)
    cold_ms: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)

    async def measure(self, rounds: int) -> None:
        """One turn of this side."""
        self.account.adopt(self.daemons)
        await asyncio.sleep(SETTLE_S)
        for _ in range(rounds):
            began = time.perf_counter()
            await self.call()
            self.times_ms.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(0.6)
        for _ in range(rounds if self.cold else 0):
            assert self.cold is not None
            self.cold_ms.append(await self.cold())
            await asyncio.sleep(0.3)
        await asyncio.sleep(SETTLE_S)
        count = rounds * 4
        cpu, began = self.account.cpu_ms(), time.perf_counter()
        left = iter(range(count))

        async def client() -> None:
            for _ in left:
                await self.call()

        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        self.rates.append(count / (time.perf_counter() - began))
        await asyncio.sleep(SETTLE_S)
        self.cpu_ms.append((self.account.cpu_ms() - cpu) / count)

    def result(self) -> dict[str, float | None]:
        """The figures; of CPU the least of all turns, because whatever else runs only adds to it."""
        ordered = sorted(self.times_ms)
        return {
            "p50_ms": statistics.median(ordered),
            "p95_ms": ordered[int(len(ordered) * 0.95)],
            "cold_ms": statistics.median(self.cold_ms) if self.cold_ms else None,
            "calls_per_s": max(self.rates),
            "cpu_ms": min(self.cpu_ms),
        }


def daemons() -> list[int]:
    """The processes of the container engine."""
    found = subprocess.run(["pgrep", "-x", "dockerd|containerd"], capture_output=True, text=True, check=False)
    return [int(pid) for pid in found.stdout.split()]


def docker_run() -> Side:
    """``docker run`` from start to removal, its output read."""
    account = Account("proofbox-bench-run")

    async def call() -> None:
        more = ["--cgroup-parent", f"/{account.name}", "--entrypoint", "python3", IMAGE, "-c", PROGRAM]
        process = await asyncio.create_subprocess_exec(
            *DOCKER_RUN, *more, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        account.adopt([process.pid])
        out, err = await process.communicate()
        if process.returncode != 0 or out != b"1\n":
            raise RuntimeError(f"docker run failed: {err.decode()}")

    return Side("`docker run`", account, call, daemons=daemons())


@contextlib.asynccontextmanager
async def proofbox(name: str, group: str, **settings: object) -> AsyncIterator[Side]:
    """A service on one engine."""
    account = Account(f"proofbox-bench-{group}")
    count = 0
    async with serving(cgroup_parent=f"/{account.name}", **settings) as client:
        port = client.base_url.port

        async def post(**extra: object) -> dict[str, dict[str, float]]:
            nonlocal count
            count += 1
            answer = await client.post(
                "/v1/tool-calls",
                json={
                    "tool_id": "exec_tools.execute_code_python",
                    "tool_call_id": f"bench_{count}",
                    "conversation_id": "bench",
                    "turn_id": f"turn_{count}",
                    "params": {"contract": [{"filename": "a.txt", "description": "one"}]},
                    "code": PROGRAM,
                    **extra,
                },
            )
            response: dict[str, dict[str, float]] = answer.json()
            if answer.status_code != httpx.codes.OK or not response["ok"]:
                raise RuntimeError(answer.text[:500])
            return response

        async def call() -> None:
            await post()

        async def cold() -> float:
            # A limit of its own asks for a container of its own.
            return (await post(limits={"pids": 100}))["timings_ms"]["acquire"]

        account.adopt(_listeners(port))
        uses_daemons = settings["engine"] == "docker"
        yield Side(name, account, call, cold, daemons() if uses_daemons else [])
    account.close()


def _listeners(port: int | None) -> list[int]:
    """The service that was started with this port, and the processes that it keeps."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"PROOFBOX_PORT={port}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


async def measure(rounds: int, turns: int) -> dict[str, dict[str, float | None]]:
    """All sides in turn, so that a noisy machine is noisy for all."""
    async with contextlib.AsyncExitStack() as stack:
        sides = [docker_run()]
        stack.callback(sides[0].account.close)
        sides.append(
            await stack.enter_async_context(proofbox("Proofbox, engine docker", "docker", engine="docker"))
        )
        for runtime in ("runc", "crun"):
            if shutil.which(runtime):
                side = proofbox(f"Proofbox, engine oci, {runtime}", runtime, engine="oci", oci_runtime=runtime)
                sides.append(await stack.enter_async_context(side))
        for _ in range(turns):
            for side in sides:
                await side.measure(rounds)
        return {side.name: side.result() for side in sides}


def table(result: dict[str, dict[str, float | None]]) -> str:
    """The figures as Markdown."""
    text = "| | one client, p50 | p95 | a cold start | 8 clients | CPU per call |\n|---|---|---|---|---|---|\n"
    for name, told in result.items():
        cold = "-" if told["cold_ms"] is None else f"{told['cold_ms']:.0f} ms"
        text += (
            f"| {name} | {told['p50_ms']:.1f} ms | {told['p95_ms']:.1f} ms | {cold} "
            f"| {told['calls_per_s']:.1f} calls/s | {told['cpu_ms']:.0f} ms |\n"
        )
    kernel = platform.release().split("-")[0]
    return f"{text}\n{os.cpu_count()} cores, Linux {kernel}. Times differ from machine to machine, ratios hold.\n"


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    quick = parser.parse_args().quick
    result = asyncio.run(measure(rounds=5, turns=2) if quick else measure(rounds=15, turns=3))
    text = table(result)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "engines.md").write_text(text, encoding="utf-8")
    (RESULTS / "engines.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
