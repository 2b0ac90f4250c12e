"""Renders a batch of documents inside a container, each in a process of its own, and measures those processes.

``python3 driver.py BATCH.json``: ``{"engine", "format", "limit_s", "workers", "together", "jobs": […]}`` with,
for each job, ``{"folder", "source_format", "options"}``. Its folder holds ``source.md`` or ``source.html`` and
``turn_1/files`` with the files that it names; the result is written beside those as ``turn_1/files/result.FORMAT``.
A line of JSON is printed for each job: ``{"index", "ok", "error", "warnings", "cpu_s", "wall_s", "peak_mb"}``.

An engine that is a library is imported here once, and has rendered one small document before the first job: each
job is a fork of that warm process. One that is a program is started for each job. The figures are those of
``wait4``: CPU time of the process and its children, resident memory of the largest of them.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

MEMORY_UNIT = 1024  # of ru_maxrss, on Linux
POLL_S = 0.002
WALL_TO_CPU = 10
"""The limit is CPU time, which a noisy machine does not change; so much more wall clock ends a job that waits."""
WARM_S_MAX = 120
"""Who is not ready by then never will be; the signal ends the container."""


class Engine(Protocol):
    """One renderer: a module of `engines`.

    Instead of ``render`` it may have ``render_measured``, which gives ``cpu_s`` and ``peak_mb`` where they are not
    those of this process, and beside it ``render_together``, which renders several jobs at once.
    """

    def warm(self, fmt: str) -> None:
        """Imports and starts what many documents share."""

    def render(self, job: dict[str, Any], fmt: str, target: Path) -> list[str]:
        """Renders a job in this process, which then ends; gives warnings. Every exception is the job's error."""


@dataclass
class Running:
    """One or more jobs in a process that has not ended."""

    indices: list[int]
    pid: int
    answer: Path
    began: float


def start(engine: Engine, indices: list[int], batch: dict[str, Any], answers: Path) -> Running:
    """Forks for one job, or for some that are rendered together."""
    answer = answers / str(indices[0])
    jobs = [batch["jobs"][index] for index in indices]
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        limit_s = int(batch["limit_s"] * len(jobs))
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 1))
        os._exit(_child(engine, jobs, batch["format"], answer))
    return Running(indices, pid, answer, began)


def _target(job: dict[str, Any], fmt: str) -> Path:
    return Path(job["folder"], "turn_1", "files", f"result.{fmt}")


def _child(engine: Any, jobs: list[dict[str, Any]], fmt: str, answer: Path) -> int:
    silent = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(silent, descriptor)
    said: dict[str, Any] = {}
    try:
        target = _target(jobs[0], fmt)
        os.chdir(target.parent)
        if len(jobs) > 1:
            engine.render_together(jobs, fmt)
        elif hasattr(engine, "render_measured"):
            said = engine.render_measured(jobs[0], fmt, target)
        else:
            said = {"warnings": engine.render(jobs[0], fmt, target)}
    except BaseException as exc:  # noqa: BLE001 - whatever it is, it is this job's outcome
        where = traceback.extract_tb(exc.__traceback__)[-1]
        said = {"error": f"{type(exc).__name__}: {exc}"[:500] + f" ({where.name})"}
    answer.write_text(json.dumps(said), encoding="utf-8")
    return 0


def finish(running: Running, batch: dict[str, Any]) -> list[dict[str, Any]]:
    """The outcomes of a process if it has ended, or has just been ended because its time is up; else nothing."""
    limit_s = batch["limit_s"] * len(running.indices)
    wall_s_max = limit_s * WALL_TO_CPU
    pid, status, usage = os.wait4(running.pid, os.WNOHANG)
    wall_s = time.perf_counter() - running.began
    late = pid == 0 and wall_s > wall_s_max
    if pid == 0 and not late:
        return []
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
    said: dict[str, Any] = {"error": f"timeout: not done after {limit_s:g} s of CPU or {wall_s_max:g} s"}
    if late:
        _, status, usage = os.wait4(running.pid, 0)
    elif not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        try:
            said = json.loads(running.answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            said = {"error": f"killed: the process ended with status {status}"}
    measured = {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss * MEMORY_UNIT / 1e6}
    if len(running.indices) > 1:
        measured["cpu_s"] = None
    return [
        {**measured, "wall_s": wall_s, **said, **_verdict(_target(batch["jobs"][index], batch["format"]), said)}
        | {"index": index}
        for index in running.indices
    ]


def _verdict(target: Path, said: dict[str, Any]) -> dict[str, Any]:
    written = target.is_file() and target.stat().st_size > 0
    if "error" in said:
        return {"ok": False, "error": said["error"]}
    return {"ok": written, "error": None if written else "no_file: the program ended without a file"}


def main() -> None:
    """Reads the batch, renders it, prints the outcomes."""
    batch = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path.insert(0, str(Path(__file__).parent))
    engine: Engine = importlib.import_module(f"engines.{batch['engine']}")
    said = sys.stdout
    sys.stdout = sys.stderr
    signal.alarm(WARM_S_MAX)
    engine.warm(batch["format"])
    signal.alarm(0)
    together = batch["together"]
    waiting = [list(range(len(batch["jobs"])))[at : at + together] for at in range(0, len(batch["jobs"]), together)]
    running: list[Running] = []
    with tempfile.TemporaryDirectory() as answers:
        while waiting or running:
            while waiting and len(running) < batch["workers"]:
                running.append(start(engine, waiting.pop(0), batch, Path(answers)))
            for item in tuple(running):
                rows = finish(item, batch)
                if rows:
                    running.remove(item)
                for row in rows:
                    print(json.dumps(row), file=said, flush=True)
            time.sleep(POLL_S)


if __name__ == "__main__":
    main()
