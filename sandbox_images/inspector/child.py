"""Judges each file in a process of its own, so that a file can take down no more than its own verdict.

The child is bounded in wall-clock time (killed from outside), in memory, and can write no file; what it says
comes back over a pipe, bounded, and is checked before it is believed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import time
from pathlib import Path
from typing import Any, NoReturn

from formats import extension_of, format_of
from judge import import_family, judge
from memory import room_for_child
from request import Entry
from verdict import PROBLEM_CHARS_MAX, Limits, one_line

_ANSWER_BYTES_MAX = 65_536
_OUT_OF_MEMORY = "could not be opened: the checker ran out of memory"
_FIRST_TO_BE_KILLED = b"1000"
"""The highest oom_score_adj: when the sandbox is full, the kernel takes the judge and not what waits for it."""


def judge_in_child(root: Path, entry: Entry, limits: Limits) -> dict[str, Any]:
    """Return the verdict on one file: ``{id, ok, mime, problem, facts}``. Raises nothing for any file."""
    verdict: dict[str, Any] = {
        "id": entry.id,
        "ok": False,
        "mime": format_of(entry.path).mime,
        "problem": None,
        "facts": {},
    }
    try:
        # Imported before the fork: the next file of the format finds it loaded, and it costs this one no time.
        import_family(format_of(entry.path))
    except ImportError as error:
        sentence = f"cannot be opened by this image, which has no reader for .{extension_of(entry.path)} files"
        return verdict | {"problem": one_line(f"{sentence}: {error}", PROBLEM_CHARS_MAX)}
    answer, status = _ask(root, entry, limits)
    if answer is None:
        return verdict | {"problem": f"could not be checked within {limits.seconds_per_file:g} s"}
    try:
        return verdict | _believable(answer)
    except ValueError:
        return verdict | {"problem": _problem_of_death(status)}


def _ask(root: Path, entry: Entry, limits: Limits) -> tuple[bytes | None, int]:
    """Fork a judge; returns what it said (None: too late) and its wait status."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        _be_the_judge(writing, root, entry, limits)
    os.close(writing)
    try:
        answer = _read_until(time.monotonic() + limits.seconds_per_file, reading)
    finally:
        os.close(reading)
        # Harmless to a child that is dead already, and no child lives on after its answer.
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    return answer, status


def _read_until(deadline: float, descriptor: int) -> bytes | None:
    """Read to the end of the pipe; None if the deadline (monotonic seconds) comes first."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    answer = b""
    while len(answer) <= _ANSWER_BYTES_MAX:
        left_ms = (deadline - time.monotonic()) * 1000
        if left_ms <= 0 or not poll.poll(left_ms):
            return None
        chunk = os.read(descriptor, _ANSWER_BYTES_MAX)
        if not chunk:
            break
        answer += chunk
    return answer


def _be_the_judge(writing: int, root: Path, entry: Entry, limits: Limits) -> NoReturn:
    """The child's whole life: confine itself, judge, answer, end without running anyone's exit handlers."""
    try:
        _confine(limits)
        answer = json.dumps(judge(root, entry, limits)).encode()
    except MemoryError:
        answer = json.dumps({"ok": False, "problem": _OUT_OF_MEMORY, "facts": {}}).encode()
    except BaseException:  # noqa: BLE001 - whatever it is, the parent's copy of the stack must not run on
        os._exit(1)
    with contextlib.suppress(OSError):
        while answer:
            answer = answer[os.write(writing, answer) :]
    os._exit(0)


def _confine(limits: Limits) -> None:
    os.setpgid(0, 0)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        # C libraries print their warnings; on stdout they would be taken for verdicts.
        os.dup2(nowhere, standard)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_bytes(_FIRST_TO_BE_KILLED)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_DATA, room_for_child(limits.memory_bytes_max))


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _believable(answer: bytes) -> dict[str, Any]:
    """Return the child's answer if it has the shape of one.

    Raises:
        ValueError: It has not: the child died, or a hostile file made it talk.
    """
    said = json.loads(answer)
    if not isinstance(said, dict) or set(said) != {"ok", "problem", "facts"}:
        raise ValueError("not a verdict")
    problem = said["problem"]
    if said["ok"] is not (problem is None) or not isinstance(said["facts"], dict):
        raise ValueError("not a verdict")
    if problem is not None:
        said["problem"] = one_line(str(problem), PROBLEM_CHARS_MAX)
    return said


def _problem_of_death(status: int) -> str:
    """Say why a child ended without an answer, from its wait status."""
    if not os.WIFSIGNALED(status):
        return "could not be opened: the checker crashed"
    number = os.WTERMSIG(status)
    if number == signal.SIGKILL:
        return _OUT_OF_MEMORY
    return f"could not be opened: the checker crashed ({signal.Signals(number).name})"
