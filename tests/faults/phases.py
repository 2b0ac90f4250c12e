"""The phases of a call, each with a real reason to last: who waits at a gate, behind a lock, or for a program."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from rig import Call, Rig
from service_process import eventually, request

WRITES = "open('out.txt', 'w').write('x')"
# A number that nothing else sleeps for.
SLEEPS = f"import subprocess\nsubprocess.run(['sleep', '987'])\n{WRITES}"
# A pattern that backtracks without end holds the inspector until its time is over.
SLOW_TO_CHECK = {
    "filename": "slow.json",
    "description": "slow to check",
    "json_schema": {"properties": {"x": {"pattern": "^(a+)+$"}}},
}
WRITES_SLOW = "open('slow.json', 'w').write('{\"x\": \"' + 'a' * 60 + '!\"}')"


@dataclass
class Held:
    """A call that stands still in its phase.

    Attributes:
        call: the call and its client.
        release: ends what holds it.
    """

    call: Call
    release: Callable[[], None] = field(default=lambda: None)


Phase = Callable[[Rig, dict[str, str]], AbstractContextManager[Held]]


@contextlib.contextmanager
def _behind_gate(rig: Rig, gate: str, pattern: bytes, headers: dict[str, str]) -> Iterator[Held]:
    body = rig.body(WRITES)
    held = getattr(rig, gate)
    held.hold(pattern)
    try:
        call = rig.call(body, **headers)
        assert held.held.wait(30), "nothing came to the gate"
        yield Held(call, held.open)
    finally:
        held.open()


@contextlib.contextmanager
def _behind_lock(rig: Rig, table: str, headers: dict[str, str], *, once_running: bool) -> Iterator[Held]:
    body = rig.body(SLEEPS if once_running else WRITES)
    with contextlib.ExitStack() as locks:
        if not once_running:
            locks.enter_context(rig.locked(table))
        call = rig.call(body, **headers)
        if once_running:
            _runs(rig)
            locks.enter_context(rig.locked(table))
            end_sleep(rig)
        assert eventually(rig.waiting_for_locks, bool) > 0
        yield Held(call, locks.close)


@contextlib.contextmanager
def claiming(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    with _behind_lock(rig, "calls", headers, once_running=False) as held:
        yield held


@contextlib.contextmanager
def queued(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    before = request(SLEEPS)
    assert rig.service.post(before, Prefer="respond-async").status_code == 202
    _runs(rig)
    body = rig.body_without_seed(WRITES)
    call = rig.call(body, **headers)
    eventually(lambda: rig.service.client.get(f"/v1/tool-calls/{body['tool_call_id']}").status_code, _is_200)
    assert rig.service.status(body)["status"] == "queued"
    yield Held(call, lambda: end_sleep(rig))


@contextlib.contextmanager
def rehosting(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    with _behind_gate(rig, "objects_gate", rb"^GET /", headers) as held:
        yield held


@contextlib.contextmanager
def acquiring(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    with _behind_gate(rig, "engine_gate", rb"^POST /\S+/containers/create", headers) as held:
        yield held


@contextlib.contextmanager
def starting(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    with _behind_gate(rig, "engine_gate", rb"^POST /\S+/containers/\w+/start", headers) as held:
        yield held


@contextlib.contextmanager
def running(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    call = rig.call(rig.body(SLEEPS), **headers)
    _runs(rig)
    yield Held(call, lambda: end_sleep(rig))


@contextlib.contextmanager
def validating(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    call = rig.call(rig.body(WRITES_SLOW, SLOW_TO_CHECK), **headers)
    assert eventually(lambda: rig.runs, lambda runs: runs == 1) == 1
    assert eventually(lambda: _checks(rig), bool) is True
    yield Held(call)


@contextlib.contextmanager
def hosting(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    with _behind_gate(rig, "objects_gate", rb"^(PUT|POST|HEAD) /", headers) as held:
        yield held


@contextlib.contextmanager
def saving(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    with _behind_lock(rig, "artifacts", headers, once_running=True) as held:
        yield held


@contextlib.contextmanager
def finishing(rig: Rig, headers: dict[str, str]) -> Iterator[Held]:
    with _behind_lock(rig, "calls", headers, once_running=True) as held:
        yield held


PHASES: dict[str, Phase] = {
    "claiming": claiming,
    "queued": queued,
    "rehosting": rehosting,
    "acquiring": acquiring,
    "starting": starting,
    "running": running,
    "validating": validating,
    "hosting": hosting,
    "saving": saving,
    "finishing": finishing,
}


def end_sleep(rig: Rig) -> None:
    """Lets the program go on: its ``sleep`` is ended, from outside, and no program can tell by what."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[:2] == [b"sleep", b"987"] and any(seen in _groups_of(process) for seen in rig.seen_containers):
                os.kill(int(process.name), signal.SIGTERM)


def _groups_of(process: Path) -> str:
    return (process / "cgroup").read_text(encoding="ascii")


def _runs(rig: Rig) -> None:
    assert len(eventually(rig.service.busy, lambda busy: len(busy) == 1)) == 1
    rig.remember_containers()


def _checks(rig: Rig) -> bool:
    """Whether the inspector, a fork of the runner, is at work: the program has ended by then."""
    rig.remember_containers()
    for container in rig.service.containers():
        told = " ".join(_commands_in(container))
        if told.count("/opt/proofbox/runner") > 1 and "launcher" not in told:
            return True
    return False


def _commands_in(container: str) -> Iterator[str]:
    """The command lines of its processes, whole: what an engine lists of them may be cut off."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if container in _groups_of(process):
                yield (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def _is_200(status: int) -> bool:
    return status == 200
