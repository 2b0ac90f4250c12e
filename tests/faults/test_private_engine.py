"""The engine itself is struck, a daemon of the tests' own: dockerd, its containerd, and the shim of a container."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from engine_sides import DockerSide
from extent import pairs
from ledger import Outcome, ledger
from oracle import asked_again, assert_one_answer_and_nothing_left, assert_the_same_after_a_restart
from phases import PHASES
from rig import Rig
from rigs import Rigs

from tests.services.private_docker import PrivateDocker

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="an engine of one's own needs root"),
]

ANSWERS_WITHIN_S = 90.0


@dataclass(frozen=True)
class EngineFault:
    """One way in which an engine breaks; `strike` and `mend` as in `strikes.Fault`."""

    strike: Callable[[PrivateDocker], None]
    mend: Callable[[PrivateDocker], None] = field(default=lambda _: None)


def _kill_shims(engine: PrivateDocker) -> None:
    for pid in engine.shims().values():
        with suppress(ProcessLookupError):  # that of a container that was just removed
            os.kill(pid, signal.SIGKILL)


def _freeze(engine: PrivateDocker) -> None:
    os.kill(int(engine.pid("dockerd") or 0), signal.SIGSTOP)


def _thaw(engine: PrivateDocker) -> None:
    os.kill(int(engine.pid("dockerd") or 0), signal.SIGCONT)


ENGINE_FAULTS: dict[str, EngineFault] = {
    "shim killed": EngineFault(_kill_shims),
    "containerd killed": EngineFault(
        lambda engine: engine.end("containerd", signal.SIGKILL), lambda engine: engine.start_containerd()
    ),
    "containerd restarted": EngineFault(
        lambda engine: (engine.end("containerd", signal.SIGTERM), engine.start_containerd())[0]
    ),
    "dockerd frozen": EngineFault(_freeze, _thaw),
    "dockerd stopped": EngineFault(lambda engine: engine.end("dockerd"), lambda engine: engine.start_dockerd()),
    "dockerd killed": EngineFault(
        lambda engine: engine.end("dockerd", signal.SIGKILL), lambda engine: engine.start_dockerd()
    ),
    "dockerd restarted": EngineFault(lambda engine: engine.restart_dockerd()),
    "dockerd killed and restarted": EngineFault(lambda engine: engine.restart_dockerd(signal.SIGKILL)),
}
CHOSEN = [
    ("shim killed", "running"),
    ("dockerd killed and restarted", "running"),
    ("dockerd restarted", "acquiring"),
]
ENGINE_PHASES = ("queued", "acquiring", "starting", "running", "validating", "hosting")


@pytest.fixture(scope="module", params=[False, True], ids=["live-restore off", "live-restore on"])
def engine(request: pytest.FixtureRequest, private_docker: PrivateDocker) -> Iterator[PrivateDocker]:
    if private_docker.live_restore != request.param:
        private_docker.end("dockerd")
        private_docker.live_restore = request.param
        private_docker.start_dockerd()
    yield private_docker
    whole(private_docker)


def whole(engine: PrivateDocker) -> None:
    """Makes an engine good again that a case has left broken."""
    if not engine.pid("containerd"):
        engine.start_containerd()
    if not engine.answers():
        engine.restart_dockerd(signal.SIGKILL)


@pytest.fixture(scope="module")
def private_rigs(engine: PrivateDocker, make_rig: Callable[..., Rig]) -> Iterator[Rigs]:
    side = DockerSide(engine.host)
    shared = Rigs(lambda: make_rig(side, engine_socket=engine.host.removeprefix("unix://")))
    yield shared
    shared.close()
    side.close()


@pytest.fixture
def rig(request: pytest.FixtureRequest, engine: PrivateDocker, private_rigs: Rigs) -> Iterator[Rig]:
    yield private_rigs.rig
    if getattr(request.node, "has_failed", False):
        sys.stdout.write("\n".join(private_rigs.rig.service.complaints))
        private_rigs.close()
        whole(engine)


@pytest.mark.parametrize(("fault", "phase"), pairs(ENGINE_FAULTS, ENGINE_PHASES, CHOSEN))
def test_an_engine_that_is_struck_in_any_phase(rig: Rig, engine: PrivateDocker, fault: str, phase: str) -> None:
    struck = ENGINE_FAULTS[fault]
    with PHASES[phase](rig, {}) as held:
        rig.remember_containers()
        struck.strike(engine)
        held.release()
        first = held.call.answer(ANSWERS_WITHIN_S)
        struck.mend(engine)
    later = asked_again(rig, held.call.body)
    mode = "live-restore" if engine.live_restore else "no live-restore"
    ledger.append(Outcome(f"{fault} ({mode})", phase, first, later, rig.runs))
    assert_one_answer_and_nothing_left(rig, held.call.body)


def test_after_a_restart_the_calls_of_all_cases_on_an_engine_have_the_answers_they_had(rig: Rig) -> None:
    assert_the_same_after_a_restart(rig)
