"""Renders a batch of documents inside a container, each in a process of its own, and measures those processes.

``python3 driver.py BATCH.json``: ``{"engine", "format", "limit_s", "workers", "jobs": […]}`` with, for each job,
``{"folder", "source_format", "options"}``. Its folder holds ``source.md`` or ``source.html`` and ``turn_1/files``
with the files that it names; the result is written beside those as ``turn_1/files/result.FORMAT``. One line of JSON
a job is printed as it ends: ``{"index", "ok", "error", "warnings", "cpu_s", "wall_s", "peak_mb"}``.

An engine that is a library is imported here once, and has rendered one small document before the first job: each
job is a fork of that warm process. One that is a program is started for each job. The figures are those of
``wait4``: CPU time of the process and its children, resident memory of the largest of them.
"""

import contextlib
import importlib
import json
import os
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


class Engine(Protocol):
    """One renderer: a module of this folder."""

    def warm(self, fmt: str) -> None:
        """Imports and starts what many documents share."""

    def render(self, job: dict[str, Any], fmt: str, target: Path) -> list[str]:
        """Renders a job in this process, which then ends; gives warnings. Every exception is the job's error."""


@dataclass
class Running:
    """A job that has not ended."""

    index: int
    pid: int
    answer: Path
    began: float


def start(engine: Engine, index: int, batch: dict[str, Any], answers: Path) -> Running:
    """Forks for one job."""
    job = batch["jobs"][index]
    answer = answers / str(index)
    sys.stdout.flush()
    began = time.perf_counter()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os._exit(_child(engine, job, batch["format"], answer))
    return Running(index, pid, answer, began)


def _child(engine: Engine, job: dict[str, Any], fmt: str, answer: Path) -> int:
    try:
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        files = Path(job["folder"], "turn_1", "files")
        os.chdir(files)
        target = files / f"result.{fmt}"
        said: dict[str, Any] = {"ok": True, "warnings": engine.render(job, fmt, target)}
        if not target.is_file() or target.stat().st_size == 0:
            said = {"ok": False, "error": "no_file: the program ended without a file"}
    except BaseException as exc:  # noqa: BLE001 - whatever it is, it is this job's outcome
        where = traceback.extract_tb(exc.__traceback__)[-1]
        said = {"ok": False, "error": f"{type(exc).__name__}: {exc}"[:500] + f" ({where.name})"}
    answer.write_text(json.dumps(said), encoding="utf-8")
    return 0


def finish(running: Running, limit_s: float) -> dict[str, Any] | None:
    """The outcome of a job if it has ended, or has just been ended because its time is up."""
    pid, status, usage = os.wait4(running.pid, os.WNOHANG)
    wall_s = time.perf_counter() - running.began
    late = pid == 0 and wall_s > limit_s
    if pid == 0 and not late:
        return None
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(running.pid, signal.SIGKILL)
    if late:
        _, status, usage = os.wait4(running.pid, 0)
    row: dict[str, Any] = {"ok": False, "error": f"timeout: not done after {limit_s:g} s"}
    if not late:
        try:
            row = json.loads(running.answer.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            row = {"ok": False, "error": f"killed: the process ended with status {status}"}
    return {
        "index": running.index,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "wall_s": wall_s,
        "peak_mb": usage.ru_maxrss * MEMORY_UNIT / 1e6,
        **row,
    }


def main() -> None:
    """Reads the batch, renders it, prints the outcomes."""
    batch = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.path.insert(0, str(Path(__file__).parent))
    engine: Engine = importlib.import_module(f"engines.{batch['engine']}")
    said = sys.stdout
    sys.stdout = sys.stderr
    engine.warm(batch["format"])
    waiting = list(range(len(batch["jobs"])))[::-1]
    running: list[Running] = []
    with tempfile.TemporaryDirectory() as answers:
        while waiting or running:
            while waiting and len(running) < batch["workers"]:
                running.append(start(engine, waiting.pop(), batch, Path(answers)))
            for item in tuple(running):
                row = finish(item, batch["limit_s"])
                if row is not None:
                    running.remove(item)
                    print(json.dumps(row), file=said, flush=True)
            time.sleep(POLL_S)


if __name__ == "__main__":
    main()
