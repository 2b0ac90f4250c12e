"""Measures one call of Proofbox over HTTP against ``docker run`` of the same image, both sides in turn in one run.

Usage: python bench/side_by_side.py [--quick]. Writes bench/results/side_by_side.md and .json.
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable

import httpx
from serving import ROOT, serving

RESULTS = ROOT / "bench" / "results"
IMAGE = "proofbox-sandbox:latest"
CLIENTS = 8
PROGRAM = "open('/out/a.txt', 'w').write('1'); print(1)"
SECCOMP = ROOT / "sandbox_images" / "seccomp" / "sandbox.json"
# Hardened as our own containers are, so that both sides do the same work.
DOCKER_RUN = [
    "docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL",
    "--security-opt", "no-new-privileges", "--security-opt", f"seccomp={SECCOMP}",
    "--memory", "1g", "--memory-swap", "1g", "--pids-limit", "256", "--log-driver", "none",
    "--tmpfs", "/out:rw,nosuid,nodev,size=256m,uid=10001", "--tmpfs", "/tmp:rw,nosuid,nodev,size=64m,uid=10001",  # noqa: S108 - in the container
    "--entrypoint", "python3", IMAGE, "-c", PROGRAM,
]  # fmt: skip

Call = Callable[[], Awaitable[None]]


async def docker_run() -> None:
    """One ``docker run``, from start to removal, its output read."""
    process = await asyncio.create_subprocess_exec(
        *DOCKER_RUN, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    if process.returncode != 0 or out != b"1\n":
        raise RuntimeError(f"docker run failed: {err.decode()}")


class Proofbox:
    """Calls of a running service."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._count = 0
        self.acquired: list[str] = []

    async def call(self) -> None:
        """One call: fresh container, one promised file opened and stored, report and blocks built."""
        self._count += 1
        answer = await self._client.post(
            "/v1/tool-calls",
            json={
                "tool_id": "exec_tools.execute_code_python",
                "tool_call_id": f"bench_{self._count}",
                "conversation_id": "bench",
                "turn_id": f"turn_{self._count}",
                "params": {"contract": [{"filename": "a.txt", "description": "one"}]},
                "code": PROGRAM,
            },
        )
        response = answer.json()
        if answer.status_code != httpx.codes.OK or not response["ok"]:
            raise RuntimeError(answer.text[:500])
        self.acquired.append(response["sandbox"]["acquired"])


async def latencies_ms(call: Call, rounds: int, pause_s: float) -> list[float]:
    """One client, a pause between calls; milliseconds of each."""
    times = []
    for _ in range(rounds):
        await asyncio.sleep(pause_s)
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1000)
    return times


async def calls_per_s(call: Call, count: int) -> float:
    """``CLIENTS`` clients without a pause, ``count`` calls in all."""
    left = iter(range(count))

    async def client() -> None:
        for _ in left:
            await call()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return count / (time.perf_counter() - began)


async def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Both sides in turn, so that a noisy machine is noisy for both."""
    result: dict[str, dict[str, float]] = {}
    async with serving() as client:
        proofbox = Proofbox(client)
        await asyncio.sleep(2)
        sides: dict[str, Call] = {"docker run": docker_run, "proofbox": proofbox.call}
        times: dict[str, list[float]] = {name: [] for name in sides}
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(3):
            for name, call in sides.items():
                times[name] += await latencies_ms(call, rounds, pause_s=0.7)
        for _ in range(3):
            for name, call in sides.items():
                rates[name].append(await calls_per_s(call, rounds * 4))
                await asyncio.sleep(1)
        for name in sides:
            ordered = sorted(times[name])
            result[name] = {
                "p50_ms": statistics.median(ordered),
                "p95_ms": ordered[int(len(ordered) * 0.95)],
                "calls_per_s": statistics.median(rates[name]),
            }
    return result


def table(result: dict[str, dict[str, float]]) -> str:
    """The figures and their ratios, as Markdown."""
    docker, ours = result["docker run"], result["proofbox"]
    version = subprocess.run(
        ["docker", "version", "-f", "{{.Server.Version}}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    row = "| {what} | {docker} | {ours} | {ratio:.1f} |\n"
    text = "| | `docker run` | Proofbox | times as good |\n|---|---|---|---|\n"
    for name in ("p50", "p95"):
        theirs, mine = docker[f"{name}_ms"], ours[f"{name}_ms"]
        text += row.format(
            what=f"one client, {name}",
            docker=f"{theirs:.0f} ms",
            ours=f"{mine:.0f} ms",
            ratio=theirs / mine,
        )
    theirs, mine = docker["calls_per_s"], ours["calls_per_s"]
    text += row.format(
        what=f"{CLIENTS} clients",
        docker=f"{theirs:.1f} calls/s",
        ours=f"{mine:.1f} calls/s",
        ratio=mine / theirs,
    )
    kernel = platform.release().split("-")[0]
    return (
        f"{text}\n{os.cpu_count()} cores, Docker {version}, Linux {kernel}, Python {platform.python_version()}. "
        "Times differ from machine to machine, ratios hold.\n"
    )


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 5 if parser.parse_args().quick else 20
    result = asyncio.run(measure(rounds))
    text = table(result)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "side_by_side.md").write_text(text, encoding="utf-8")
    (RESULTS / "side_by_side.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
