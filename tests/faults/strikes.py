"""The faults: how each strikes, and how an operator makes it good again."""

import contextlib
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

import docker
from phases import Held
from rig import Rig


@dataclass(frozen=True)
class Fault:
    """One way in which something breaks.

    Attributes:
        strike: breaks it, while a call stands still in its phase.
        mend: makes it good again; what recovers by itself needs nothing.
        mended_first: whether the call goes on only after that; otherwise its answer comes while the fault lasts.
    """

    strike: Callable[[Rig, Held], None]
    mend: Callable[[Rig], None] = field(default=lambda _: None)
    mended_first: bool = False


def _kill_service(rig: Rig, _: Held) -> None:
    rig.service.signal(signal.SIGKILL)
    rig.service.wait()


def _stop_service(rig: Rig, _: Held) -> None:
    rig.service.signal(signal.SIGTERM)
    rig.service.wait()


def _start_service(rig: Rig) -> None:
    rig.service.start()


def _kill_containers(rig: Rig, _: Held) -> None:
    for container in rig.service.containers():
        with contextlib.suppress(docker.errors.APIError):  # not started yet, or being removed
            rig.service.kill_container(container)


def _cancel(rig: Rig, held: Held) -> None:
    rig.service.cancel(held.call.body)


FAULTS: dict[str, Fault] = {
    "service killed": Fault(_kill_service, _start_service),
    "service told to stop": Fault(_stop_service, _start_service),
    "container killed": Fault(_kill_containers),
    "engine away": Fault(lambda rig, _: rig.engine_gate.cut(), lambda rig: rig.engine_gate.mend()),
    "engine away for a moment": Fault(
        lambda rig, _: (rig.engine_gate.cut(), rig.engine_gate.mend())[0], mended_first=True
    ),
    "engine hangs": Fault(lambda rig, _: rig.engine_gate.stall(), lambda rig: rig.engine_gate.open()),
    "database away": Fault(lambda rig, _: rig.database_gate.cut(), lambda rig: rig.database_gate.mend()),
    "database restarted": Fault(lambda rig, _: rig.end_database_connections()),
    "object store away": Fault(lambda rig, _: rig.objects_gate.cut(), lambda rig: rig.objects_gate.mend()),
    "client gone": Fault(lambda _, held: held.call.hang_up()),
    "cancelled": Fault(_cancel),
}
