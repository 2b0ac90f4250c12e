"""The engine without a daemon: its runtime, cleanup process and service are killed in each phase of a call."""

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from checked import checked
from engine_sides import OciSide
from extent import pairs
from ledger import Outcome, ledger
from phases import SLEEPS, SLOW_TO_CHECK, WRITES, WRITES_SLOW
from rig import Call, told
from service_process import ServiceProcess, eventually, request

pytestmark = pytest.mark.oci

GONE_WITHIN_S = 60.0
# The real runtime, which notes each start and waits while a file lies there.
RUNTIME = """#!/bin/sh
case " $* " in
*" run "*)
  echo $$ >>'{folder}/starts'
  while [ -e '{folder}/hold' ]; do sleep 0.05; done
  ;;
esac
exec {runtime} "$@"
"""


@dataclass
class Held:
    """A call that stands still in its phase, and what lets it go on."""

    call: Call
    release: Callable[[], None] = field(default=lambda: None)


class Bench:
    """One service on the engine oci, the starts of whose runtime are counted and can be held."""

    def __init__(self, folder: Path, side: OciSide) -> None:
        self.folder, self.side = folder, side
        self.runtime = folder / "crun"
        real = next(found for name in ("crun", "runc") if (found := _which(name)))
        self.runtime.write_text(RUNTIME.format(folder=folder, runtime=real), encoding="ascii")
        self.runtime.chmod(0o755)
        self.service: ServiceProcess

    @property
    def starts(self) -> list[int]:
        with contextlib.suppress(FileNotFoundError):
            return [int(line) for line in (self.folder / "starts").read_text(encoding="ascii").split()]
        return []

    def hold(self) -> None:
        (self.folder / "hold").touch()

    def release(self) -> None:
        (self.folder / "hold").unlink(missing_ok=True)

    @property
    def cleanup_process(self) -> int | None:
        return self.side.cleanup_process(self.service.name)

    def left(self) -> dict[str, object]:
        """What is left of the service's containers, by where it is."""
        place = self.side._run_dir / self.service.name
        # Not by a walk over all groups: those of others come and go meanwhile.
        groups = [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/proofbox/{self.service.name}/proofbox-*")]
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        found = {
            "containers": self.service.containers(),
            "groups": groups,
            "bundles": [str(path) for path in place.glob("*/proofbox-*")],
            "mounts": [line for line in mounts.splitlines() if self.service.name in line],
            "staged": self.service.staged(),
            "runtimes": [pid for pid in self.starts if str(self.folder) in _command(pid)],
        }
        return {name: value for name, value in found.items() if value}


def _which(name: str) -> str:
    return subprocess.run(["which", name], capture_output=True, text=True, check=False).stdout.strip()


def _command(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    return ""


# ---- phases ----


@contextlib.contextmanager
def acquiring(bench: Bench) -> Iterator[Held]:
    bench.hold()
    call = Call(bench.service.url, request(WRITES))
    eventually(lambda: len(bench.starts), lambda count: count == 1)
    yield Held(call, bench.release)
    bench.release()


@contextlib.contextmanager
def running(bench: Bench) -> Iterator[Held]:
    call = Call(bench.service.url, request(SLEEPS))
    assert len(eventually(bench.service.busy, lambda busy: len(busy) == 1)) == 1
    yield Held(call, bench.service.end_sleeps)


@contextlib.contextmanager
def validating(bench: Bench) -> Iterator[Held]:
    body = request(WRITES_SLOW, SLOW_TO_CHECK)
    call = Call(bench.service.url, body)
    where = f"/v1/tool-calls/{body['tool_call_id']}"
    eventually(lambda: bench.service.client.get(where).status_code, lambda status: status == 200)
    eventually(lambda: bench.service.status(body)["status"], lambda status: status == "running")
    assert eventually(lambda: _checks(bench.service), bool) is True
    yield Held(call)


@contextlib.contextmanager
def finishing(bench: Bench) -> Iterator[Held]:
    """Its answer waits for the database, which another process has locked."""
    call = Call(bench.service.url, request("import subprocess\nsubprocess.run(['sleep', '987'])"))
    assert len(eventually(bench.service.busy, lambda busy: len(busy) == 1)) == 1
    file = bench.service.data_dir / "proofbox.sqlite3"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        bench.service.end_sleeps()
        eventually(bench.service.containers, lambda found: found == [])
        yield Held(call, lambda: other.execute("ROLLBACK"))


def _checks(service: ServiceProcess) -> bool:
    """Whether the inspector, a fork of the runner, is at work: the program has run, and has ended by then."""
    processes = [service.processes_in(container) for container in service.containers()]
    return any(told.count("/opt/proofbox/runner") > 1 and "launcher" not in told for told in processes)


PHASES: dict[str, Callable[[Bench], contextlib.AbstractContextManager[Held]]] = {
    "acquiring": acquiring,
    "running": running,
    "validating": validating,
    "finishing": finishing,
}

# ---- faults ----


def _kill_service(bench: Bench) -> None:
    bench.service.signal(signal.SIGKILL)
    bench.service.wait()


def _stop_service(bench: Bench) -> None:
    bench.service.signal(signal.SIGTERM)


def _kill_cleanup_process(bench: Bench) -> None:
    pid = bench.cleanup_process
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def _kill_both(bench: Bench) -> None:
    _kill_cleanup_process(bench)
    _kill_service(bench)


def _kill_runtime(bench: Bench) -> None:
    for pid in bench.starts:
        if str(bench.folder) in _command(pid):
            os.kill(pid, signal.SIGKILL)


def _kill_container(bench: Bench) -> None:
    for container in bench.service.containers():
        bench.service.kill_container(container)


CHOSEN = [
    ("service killed", "acquiring"),
    ("runtime killed", "acquiring"),
    ("cleanup process and service killed", "running"),
]
FAULTS: dict[str, Callable[[Bench], None]] = {
    "service killed": _kill_service,
    "service told to stop": _stop_service,
    "cleanup process killed": _kill_cleanup_process,
    "cleanup process and service killed": _kill_both,
    "runtime killed": _kill_runtime,
    "container killed": _kill_container,
}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    side = OciSide()
    made = Bench(tmp_path, side)
    settings = {"pool_size": 0, "sweep_every_s": 0.5, "shutdown_grace_s": 0.3, "inspect_s_per_file": 4}
    with checked(tmp_path / "data", side, engine="oci", oci_runtime=made.runtime, **settings) as service:
        made.service = service
        yield made
        made.release()
        sys.stdout.write("\n".join(service.complaints))
    side.close()


@pytest.mark.parametrize(("fault", "phase"), pairs(FAULTS, PHASES, CHOSEN))
def test_a_fault_without_a_daemon_in_any_phase(bench: Bench, fault: str, phase: str) -> None:
    service = bench.service
    with PHASES[phase](bench) as held:
        FAULTS[fault](bench)
        held.release()
        first = held.call.answer(90)
    assert bench.service.process is not None
    if "service" in fault:
        service.wait()
        left = eventually(bench.left, lambda found: found == {} or "both" in fault, GONE_WITHIN_S)
        if fault != "cleanup process and service killed":
            assert {name: value for name, value in left.items() if name != "staged"} == {}
        service.start()
    starts = len(bench.starts)
    later = service.post(held.call.body)
    ledger.append(Outcome(f"{fault} (oci)", phase, first, told(later), len(bench.starts)))
    assert later.status_code == 200 or later.headers.get("idempotent-replayed") == "true", later.text
    # It ran at most once: a second start only for a call that had no sandbox yet.
    assert len(bench.starts) - starts <= (1 if phase == "acquiring" else 0)
    assert service.post(held.call.body).content == later.content
    assert told(service.post(request(WRITES))) == "200 ok"
    assert eventually(bench.left, lambda found: found == {}, GONE_WITHIN_S) == {}
    assert eventually(lambda: bench.cleanup_process, lambda pid: pid is not None) is not None
