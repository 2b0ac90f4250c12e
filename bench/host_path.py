"""What the service itself costs: calls over HTTP whose sandboxes are played by a process, so no container counts.

Usage: python -m bench.host_path [--calls N] [JOB ...]. Prints, of each job, milliseconds of a call and of its
phases, and milliseconds of CPU of the service; of `print` also calls/s of eight clients.
"""

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bench.lean_http import LeanClient
from proofbox.contracts.tools import Language, exec_tool_id

PROMISES = {
    "print": [{"glob": "*.txt", "description": "nothing, or notes", "min_count": 0}],
    "3 files": [{"filename": f"{name}.txt", "description": "a file"} for name in "abc"],
    "100 files": [{"glob": "*.txt", "description": "files", "min_count": 100, "visibility": "internal"}],
    "100 hosted": [{"glob": "*.txt", "description": "files", "min_count": 100}],
    "50 MB": [{"filename": "large.tar", "description": "an archive"}],
}
_INPUTS = " ".join(f"turn_1/attachments/part-{number}.txt" for number in range(100))
JOBS: dict[str, dict[str, object]] = {
    "print": {"stdout": "1"},
    "3 files": {"files": dict.fromkeys(("a.txt", "b.txt", "c.txt"), 3_000)},
    "100 files": {"files": {f"part-{number}.txt": 10_000 for number in range(100)}, "reads": _INPUTS},
    "100 hosted": {"files": {f"part-{number}.txt": 10_000 for number in range(100)}},
    "50 MB": {"files": {"large.tar": 50_000_000}},
}
PHASES = ("queue", "acquire", "rehost", "run", "validate", "host", "total")


def request(job: str, number: int, conversation: str) -> bytes:
    """One call of a job."""
    return json.dumps(
        {
            "tool_id": exec_tool_id(Language.PYTHON),
            "tool_call_id": f"call_{number}",
            "conversation_id": conversation,
            "turn_id": f"turn_{number}",
            "params": {"contract": PROMISES[job]},
            "code": json.dumps(JOBS[job]),
        }
    ).encode()


def cpu_ms(pid: int) -> float:
    """What a process has used."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6


async def called(client: LeanClient, job: str, number: int, conversation: str) -> tuple[float, dict[str, float]]:
    """Milliseconds of one call, and of its phases."""
    body = request(job, number, conversation)
    began = time.perf_counter()
    answer = await client.send("POST", "/v1/tool-calls", body)
    took = (time.perf_counter() - began) * 1000
    response = answer.json()
    if not response.get("ok"):
        sys.exit(f"{job}: {answer.text[:2000]}")
    return took, response["timings_ms"]


async def one_client(pid: int, port: int, job: str, calls: int, pause_s: float) -> None:
    """Calls of one client, one after the other."""
    conversation = job.replace(" ", "-")
    async with LeanClient(port) as client:
        if "reads" in JOBS[job]:
            for number in range(100):
                path = f"/v1/conversations/{conversation}/turns/turn_1/attachments/part-{number}.txt"
                await client.send("PUT", path, b"%d " % number * 4_000)
        for number in range(2, 5):
            await called(client, job, number, conversation)
        before = cpu_ms(pid)
        times, phases = [], []
        for number in range(5, 5 + calls):
            await asyncio.sleep(pause_s)
            took, said = await called(client, job, number, conversation)
            times.append(took)
            phases.append(said)
        used = (cpu_ms(pid) - before) / calls
    middle = {phase: statistics.median(said[phase] for said in phases) for phase in PHASES}
    beyond = statistics.median(
        took - said["acquire"] - said["run"] - said["validate"] for took, said in zip(times, phases, strict=True)
    )
    told = " ".join(f"{phase} {value:.2f}" for phase, value in middle.items())
    times.sort()
    p90 = times[len(times) * 9 // 10]
    print(
        f"{job:10} p50 {statistics.median(times):7.2f} ms  p90 {p90:7.2f}  beyond the sandbox {beyond:6.2f}  "
        f"CPU {used:6.2f}  [{told}]"
    )


async def many_clients(pid: int, port: int, clients: int, calls: int) -> None:
    """Calls of many clients at one time, each in a conversation of its own."""
    numbers = iter(range(calls))

    async def client(own: int) -> None:
        async with LeanClient(port) as connection:
            for number in numbers:
                await called(connection, "print", number, f"busy-{own}")

    before, began = cpu_ms(pid), time.perf_counter()
    await asyncio.gather(*(client(own) for own in range(clients)))
    took = time.perf_counter() - began
    print(
        f"print, {clients} clients: {calls / took:.0f} calls/s, CPU {(cpu_ms(pid) - before) / calls:.2f} ms a call"
    )


@contextlib.asynccontextmanager
async def service_running() -> AsyncIterator[tuple[int, int]]:
    """The pid and the port of a service."""
    with tempfile.TemporaryDirectory(prefix="proofbox-host-") as folder:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.host_path", "--serve", folder, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        try:
            yield process.pid, int(await process.stdout.readline())
        finally:
            process.terminate()
            await process.wait()


async def serve(folder: Path) -> None:
    """The service itself, on a free port that it prints."""
    import socket  # noqa: PLC0415 - the rest is the other process's

    from proofbox.service.api.server import DrainingServer  # noqa: PLC0415
    from proofbox.service.app import bootstrap as main  # noqa: PLC0415
    from proofbox.service.app.serving import http_config  # noqa: PLC0415
    from proofbox.service.app.settings import Settings  # noqa: PLC0415
    from tests.support.scripted_containers import ScriptedContainers  # noqa: PLC0415

    service = main.build(Settings(data_dir=folder, running_max=8, pool_size=8), ScriptedContainers())
    with socket.socket(proto=socket.IPPROTO_TCP) as door:  # asyncio sets TCP_NODELAY only then
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", 0))
        door.listen(64)
        config = http_config(service)
        async with main.running(service):
            print(door.getsockname()[1], flush=True)
            await DrainingServer(config, lambda: service.calls.close(1)).serve([door])


async def measure(jobs: Sequence[str], calls: int, pause_s: float) -> None:
    """All jobs."""
    async with service_running() as (pid, port):
        for job in jobs:
            await one_client(pid, port, job, min(calls, 20) if job != "print" else calls, pause_s)
        if "print" in jobs:
            await many_clients(pid, port, 8, calls * 4)


def main() -> None:
    """Measures, or serves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(JOBS))
    parser.add_argument("--calls", type=int, default=100)
    parser.add_argument("--pause", type=float, default=0.02)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(serve(arguments.serve))
    else:
        asyncio.run(measure(arguments.jobs or list(JOBS), arguments.calls, arguments.pause))


if __name__ == "__main__":
    main()
