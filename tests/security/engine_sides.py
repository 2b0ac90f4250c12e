"""What an operator of the engine sees of a service's containers, past the service: one class for each engine."""

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Protocol

import docker
import pytest

from proofbox.service.app.settings import Settings
from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.oci.container_state import ContainerState
from tests.support.engines import can_run_oci

IMAGE = Settings().sandbox_image
USERS = range(Settings().sandbox_user_first, Settings().sandbox_user_first + Settings().sandbox_users)


def is_of_sandboxes(user: str) -> bool:
    """Whether a user id is one that containers take in turn."""
    return int(user) in USERS


class EngineSide(Protocol):
    def containers(self, service_name: str) -> list[str]:
        """All containers of a service, running or not."""

    def is_there(self, container: str) -> bool: ...

    def commands_in(self, container: str) -> str:
        """The command lines of a container's processes; empty when it is gone."""

    def kill(self, container: str) -> None: ...

    def end_sleeps(self, container: str) -> None:
        """Ends each ``sleep 987`` in a container: its program goes on."""

    def pause(self, container: str) -> None: ...

    def leave(self, service_name: str) -> str:
        """Makes a container as a life of that service would have left it that is dead now."""

    def remove(self, container: str) -> None: ...

    def close(self) -> None: ...


class DockerSide:
    def __init__(self, host: str = "") -> None:
        self._client = docker.DockerClient(base_url=host) if host else docker.from_env()

    def containers(self, service_name: str) -> list[str]:
        label = f"proofbox.service={service_name}"
        return [row["Id"] for row in self._client.api.containers(all=True, filters={"label": label})]

    def is_there(self, container: str) -> bool:
        try:
            self._client.api.inspect_container(container)
        except docker.errors.NotFound:
            return False
        return True

    def commands_in(self, container: str) -> str:
        if "runsc" in Settings().runtime:  # seen from outside, a gVisor is one program
            return self._commands_seen_inside(container)
        try:
            return json.dumps(self._client.api.top(container)["Processes"])
        except docker.errors.APIError:
            return ""

    def _commands_seen_inside(self, container: str) -> str:
        look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
        try:
            command = self._client.api.exec_create(container, ["sh", "-c", look])
            return self._client.api.exec_start(command["Id"]).decode()
        except docker.errors.APIError:
            return ""

    def kill(self, container: str) -> None:
        self._client.api.kill(container)

    def end_sleeps(self, container: str) -> None:
        if "runsc" in Settings().runtime:
            ends = "for p in /proc/[0-9]*; do grep -qsx 'sleep.987.' $p/cmdline && kill ${p#/proc/}; done"
            command = self._client.api.exec_create(container, ["sh", "-c", ends])
            self._client.api.exec_start(command["Id"])
            return
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if container in (process / "cgroup").read_text(encoding="ascii"):
                    _end_sleep(int(process.name))

    def pause(self, container: str) -> None:
        self._client.api.pause(container)

    def leave(self, service_name: str) -> str:
        labels = {"proofbox.service": service_name, "proofbox.boot": "dead", "proofbox.deadline": "99999999999"}
        return self._client.api.create_container(IMAGE, labels=labels, network_disabled=True)["Id"]

    def remove(self, container: str) -> None:
        with contextlib.suppress(docker.errors.APIError):
            self._client.api.remove_container(container, force=True, v=True)

    def close(self) -> None:
        self._client.close()


class OciSide:
    """A container is named ``<service>/<id>`` here: ids of two services may be the same."""

    def __init__(self) -> None:
        self._run_dir = Settings().oci_run_dir
        self._cgroups = Cgroups.of_machine()
        self._sleepers: list[subprocess.Popen[bytes]] = []

    def _place(self, service_name: str) -> ContainerState:
        return ContainerState(self._run_dir / service_name, f"/proofbox/{service_name}", self._cgroups)

    def _found(self, container: str) -> tuple[ContainerState, str]:
        service_name, _, container_id = container.partition("/")
        return self._place(service_name), container_id

    def _processes(self, container: str) -> list[int]:
        place, container_id = self._found(container)
        return self._cgroups.processes(place.cgroup_of(container_id))

    def containers(self, service_name: str) -> list[str]:
        return [f"{service_name}/{container_id}" for container_id in self._place(service_name).containers()]

    def cleanup_process(self, service_name: str) -> int | None:
        """The one that runs; a killed one may still wait to be reaped, and has no command line then."""
        command = ["pgrep", "-f", f"oci.cleanup_process .*{service_name}"]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        return int(found.stdout) if found.stdout else None

    def is_there(self, container: str) -> bool:
        place, container_id = self._found(container)
        return container_id in place.containers()

    def commands_in(self, container: str) -> str:
        told = []
        for pid in self._processes(container):
            with contextlib.suppress(OSError):
                told.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
        return json.dumps(told)

    def kill(self, container: str) -> None:
        for pid in self._processes(container):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end_sleeps(self, container: str) -> None:
        for pid in self._processes(container):
            _end_sleep(pid)

    def pause(self, container: str) -> None:
        place, container_id = self._found(container)
        group = place.cgroup_of(container_id).lstrip("/")
        if self._cgroups.v2 is not None and self._cgroups.is_v2:
            (self._cgroups.v2 / group / "cgroup.freeze").write_text("1")
        else:
            (self._cgroups.v1["freezer"] / group / "freezer.state").write_text("FROZEN")

    def leave(self, service_name: str) -> str:
        place, container_id = self._place(service_name), "proofbox-dead-1-99999999999"
        place.bundle(container_id).mkdir(parents=True)
        roots = [self._cgroups.v2] if self._cgroups.is_v2 else self._cgroups.v1.values()
        sleeper = subprocess.Popen(["sleep", "300"])
        self._sleepers.append(sleeper)
        for root in {str(root) for root in roots}:
            group = Path(root, place.cgroup_of(container_id).lstrip("/"))
            group.mkdir(parents=True)
            if "cpuset" not in root:  # has no processors yet
                (group / "cgroup.procs").write_text(str(sleeper.pid))
        return f"{service_name}/{container_id}"

    def remove(self, container: str) -> None:
        place, container_id = self._found(container)
        place.remove(container_id)
        place.leave()

    def close(self) -> None:
        for sleeper in self._sleepers:
            sleeper.kill()
            sleeper.wait()


def _end_sleep(pid: int) -> None:
    with contextlib.suppress(OSError):
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep\x00987"):
            os.kill(pid, signal.SIGTERM)


def kinds_held_by(pid: int) -> dict[str, str]:
    """Of which kind each descriptor of a process is, but for those closed meanwhile; none if it has ended."""
    kinds = {}
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                kinds[entry.name] = str(entry.readlink()).partition(":")[0]
    return kinds


def side_of(engine: str) -> EngineSide:
    return {"docker": DockerSide, "oci": OciSide}[engine]()


def chosen() -> EngineSide:
    """The side of the engine that the settings choose: PROOFBOX_ENGINE."""
    return side_of(Settings().engine)


def tested() -> list[str]:
    """The engines that are compared here: the chosen one, or all that this machine and this user can run."""
    if "PROOFBOX_ENGINE" in os.environ:
        return [Settings().engine]
    return ["docker", "oci"] if can_run_oci() else ["docker"]


def first_and_slow(names: list[str]) -> list[Any]:
    """Parameters of a test that takes long on each of these engines: `make tests-slow` runs all but the first."""
    return [*names[:1], *(pytest.param(name, marks=pytest.mark.slow) for name in names[1:])]
