"""Mixed calls for long, from several clients, good and bad; then a look at what is left.

    python -m tests.faults.soak [--calls 1000 | --minutes 10]

The baseline is taken after the first calls, when every pool of threads and connections has been used once. The exit
status is 1 if anything has grown beyond it, or an answer is not what it has to be.
"""

import argparse
import contextlib
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

REPOSITORY = Path(__file__).parents[2]
sys.path[:0] = [str(REPOSITORY / "tests" / "security"), str(REPOSITORY / "tests" / "faults")]

from engine_sides import chosen  # noqa: E402 - found by the line above
from rig import told  # noqa: E402
from service_process import ServiceProcess, eventually, request, serving  # noqa: E402

from proofbox.service.app.settings import Settings  # noqa: E402
from tests.support.store_check import findings  # noqa: E402

CLIENTS = 8
WARM_CALLS = 64
SETTLES_WITHIN_S = 60.0
# Of what a process keeps for itself: pools of connections and threads, and what an allocator does not give back.
SPARE = {"descriptors": 6, "threads": 12, "resident MiB": 48}
WRITES = "open('out.txt', 'w').write('x')"
CHART = """
import matplotlib
matplotlib.use('Agg')
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [3, 1, 2])
plt.savefig('chart.png')
"""
HOSTILE = """
import os
os.symlink('/etc/passwd', 'out.txt')
os.mkfifo('pipe.txt')
for number in range(300):
    open(f'extra-{number}', 'w').write('x')
open('sparse.bin', 'wb').truncate(1 << 40)
"""
Expected = frozenset[str]


def _tool(tool: str, params: dict[str, Any]) -> dict[str, Any]:
    return request(WRITES) | {"tool_id": tool, "params": params, "code": None}


def _render() -> dict[str, Any]:
    return _tool(
        "rendering_tools.write_pdf",
        {
            "path": "report.pdf",
            "format": "markdown",
            "content": "# A title\n\nText\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
        },
    )


def _write() -> dict[str, Any]:
    return _tool("react.write", {"path": "note.md", "channel": "canvas", "content": "# Note\n", "kind": "display"})


def _plan() -> dict[str, Any]:
    return _tool("react.plan", {"steps": ["run", "check"], "status": {"1": "in_progress"}})


def _ok() -> dict[str, Any]:
    return request(WRITES)


def _prints() -> dict[str, Any]:
    return request(f"print('x' * 100_000)\n{WRITES}")


def _three() -> dict[str, Any]:
    code = "for name in ('a.txt', 'b.json', 'c.csv'): open(name, 'w').write('{\"a\": 1}')"
    return request(code, "a.txt", "b.json", "c.csv")


def _chart() -> dict[str, Any]:
    return request(CHART, "chart.png")


def _fails() -> dict[str, Any]:
    return request("raise ValueError('no')")


def _hangs() -> dict[str, Any]:
    return request("import time\ntime.sleep(60)", limits={"wall_s": 0.5})


def _is_hostile() -> dict[str, Any]:
    return request(HOSTILE)


def _eats_memory() -> dict[str, Any]:
    return request("bytearray(1 << 30)", limits={"memory_bytes": 64 << 20})


KINDS: list[tuple[Callable[[], dict[str, Any]], Expected]] = [
    (_ok, frozenset({"200 ok"})),
    (_prints, frozenset({"200 ok"})),
    (_three, frozenset({"200 ok"})),
    (_chart, frozenset({"200 ok"})),
    (_render, frozenset({"200 ok"})),
    (_write, frozenset({"200 ok"})),
    (_plan, frozenset({"200 ok"})),
    (_fails, frozenset({"200 nonzero_exit"})),
    (_hangs, frozenset({"200 timeout"})),
    (_is_hostile, frozenset({"200 artifact_invalid", "200 execution_failed", "200 disk_limit"})),
    (_eats_memory, frozenset({"200 out_of_memory"})),
]
# A container of theirs may be killed by the soak itself.
KILLED = frozenset({"200 sandbox_failed", "503 engine_unavailable"})


class Soak:
    """Calls of every kind, and how many of them were not answered as they have to be."""

    def __init__(self, service: ServiceProcess) -> None:
        self.service = service
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._lock = threading.Lock()

    def one(self, number: int) -> None:
        """One call, of a kind that its number says."""
        chance = random.Random(number)
        if number % 17 == 3:
            self._note("cancelled", self._cancelled(), frozenset({"200 cancelled", "200 done"}))
        elif number % 17 == 7:
            self._note("client gone", self._abandoned(), frozenset({"cancelled", "done", "forgotten"}))
        elif number % 17 == 11:
            self._note("container killed", self._killed(), KILLED | {"200 ok"})
        else:
            make, expected = chance.choice(KINDS)
            # Beside one whose container is killed, this one's may have been the one.
            self._note(make.__name__.strip("_"), told(self.service.post(make())), expected | KILLED)

    def _note(self, kind: str, outcome: str, expected: Expected) -> None:
        with self._lock:
            self.seen[f"{kind}: {outcome}"] += 1
            if outcome not in expected:
                self.wrong.append(f"{kind}: {outcome}")

    def _cancelled(self) -> str:
        body = request("import time\ntime.sleep(30)")
        self.service.post(body, Prefer="respond-async")
        answered = self.service.cancel(body)
        return f"{answered.status_code} {answered.json()['status']}"

    def _abandoned(self) -> str:
        body = request("import time\ntime.sleep(30)")
        with contextlib.suppress(httpx.ReadTimeout):
            httpx.post(f"{self.service.url}/v1/tool-calls", json=body, timeout=httpx.Timeout(30, read=0.5))

        def status() -> str:
            asked = self.service.client.get(f"/v1/tool-calls/{body['tool_call_id']}")
            return "forgotten" if asked.status_code == 404 else str(asked.json()["status"])

        return eventually(status, lambda told_: told_ not in {"queued", "running"})

    def _killed(self) -> str:
        body = request(f"import time\ntime.sleep(1)\n{WRITES}")
        self.service.post(body, Prefer="respond-async")
        containers = self.service.containers()
        if containers:
            with contextlib.suppress(Exception):  # it may have gone by itself
                self.service.kill_container(random.choice(containers))
        ended = eventually(lambda: self.service.status(body), lambda status: status["status"] != "running", 60)
        eventually(lambda: self.service.status(body)["status"], lambda status: status not in {"queued", "running"})
        del ended
        return told(self.service.post(body))


def held(service: ServiceProcess) -> dict[str, float]:
    """What a service holds, inside its process and outside."""
    process = Path(f"/proc/{service.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text(encoding="ascii").splitlines())
    children = sum(len((task / "children").read_text().split()) for task in (process / "task").iterdir())
    containers = service.containers()
    names = [container.rpartition("/")[2] for container in containers] + [service.name]
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    groups = {path.name for path in Path("/sys/fs/cgroup").glob("*/*/*") if path.name in names}
    return {
        "containers": len(containers),
        "control groups": len(groups - {service.name}),
        "mounts": sum(any(name in line for name in names) for line in mounts) - len(containers),
        "loop devices": sum(1 for _ in Path("/sys/block").glob("loop*/backing_file")),
        "processes": children,
        "descriptors": sum(1 for _ in (process / "fd").iterdir()),
        "threads": int(status["Threads"]),
        "staged files": len(service.staged()),
        "temporary files": sum("proofbox" in path.name for path in Path(tempfile.gettempdir()).iterdir()),
        "calls under way": float(
            _metric(service, "proofbox_calls_running") + _metric(service, "proofbox_calls_queued")
        ),
        "resident MiB": round(int(status["VmRSS"].split()[0]) / 1024, 1),
    }


def _metric(service: ServiceProcess, name: str) -> float:
    text = service.client.get("/metrics").text
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.split(" ")[0].split("{")[0] == name)


def grown(before: dict[str, float], after: dict[str, float]) -> list[str]:
    """What is beyond the baseline and what is spared."""
    return [name for name, value in after.items() if value > before[name] + SPARE.get(name, 0)]


def main() -> int:
    """Runs the soak; 0 if everything is back where it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000, help="how many calls")
    parser.add_argument("--minutes", type=float, default=0, help="for how long, in place of a number of calls")
    asked = parser.parse_args()
    side = chosen()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        settings = {"running_max": 6, "wall_s": 60, "queue_s": 300, "starts_max": 3, "lost_connection_grace_s": 0}
        with serving(Path(folder) / "data", side, **settings) as service, ThreadPoolExecutor(CLIENTS) as clients:
            soak = Soak(service)
            list(clients.map(soak.one, range(WARM_CALLS)))
            waiting = eventually(
                lambda: len(service.containers()), lambda count: count <= Settings().pool_size * 3, 30
            )
            before = held(service)
            began, count = time.monotonic(), WARM_CALLS
            while (time.monotonic() - began < asked.minutes * 60) if asked.minutes else count < asked.calls:
                list(clients.map(soak.one, range(count, count + 4 * CLIENTS)))
                count += 4 * CLIENTS
                _say(f"\r{count} calls")
            took_s = time.monotonic() - began
            after = eventually(lambda: held(service), lambda now: not grown(before, now), SETTLES_WITHIN_S)
            unforeseen = [
                line for line in service.log.splitlines() if "unforeseen way" in line or "never retr" in line
            ]
        found = findings(Path(folder) / "data")
    side.close()
    del waiting
    _report(soak, before, after, f"{count} calls in {took_s:.0f} s, {CLIENTS} clients")
    wrong = grown(before, after) + soak.wrong[:20] + unforeseen[:20] + found[:20]
    for line in wrong:
        _say(f"not as it was: {line}\n")
    return 1 if wrong else 0


def _report(soak: Soak, before: dict[str, float], after: dict[str, float], title: str) -> None:
    _say(f"\r{title}\n\n")
    for kind, count in sorted(soak.seen.items()):
        _say(f"  {kind:<40} {count:>6}\n")
    _say(f"\n  {'':<20} {'before':>10} {'after':>10} {'spare':>8}\n")
    for name, value in after.items():
        _say(f"  {name:<20} {before[name]:>10g} {value:>10g} {SPARE.get(name, 0):>8g}\n")


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
