"""What a container is on this machine beside its processes, and how all of it goes.

A container is a control group, a bundle folder and the runtime's record. Its id has all that a later process of
the service has to know of it: ``proofbox-<boot id>-<count>-<deadline, in seconds since 1970>``. Standard library
only: `cleanup_process` imports this.
"""

import contextlib
import os
import re
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from proofbox.service.sandbox.linux.cgroups import Cgroups

_ID = re.compile(r"proofbox-(?P<boot>[0-9a-f]+)-\d+-\d+")
_ZYGOTE_ID = re.compile(r"zygote-(?P<boot>[0-9a-f]+)-\d+")
DEFAULT_PARENT = "/proofbox"
"""The group above those of all services, if the operator names none."""
_GONE_WITHIN_S = 5.0
_LOOK_AGAIN_S = 0.002


@dataclass(frozen=True, slots=True)
class ContainerState:
    """Where the containers of one service are.

    Attributes:
        folder: its folder of bundles and of the runtime's records.
        cgroup: the group above those of its containers.
        cgroups: the machine's hierarchies.
    """

    folder: Path
    cgroup: str
    cgroups: Cgroups

    @property
    def records(self) -> Path:
        """The runtime's own folder, its ``--root``."""
        return self.folder / "runtime"

    @property
    def bundles(self) -> Path:
        """The folder of bundles."""
        return self.folder / "bundles"

    def bundle(self, container_id: str) -> Path:
        """The bundle of a container."""
        return self.bundles / container_id

    def cgroup_of(self, container_id: str) -> str:
        """The group of a container."""
        return f"{self.cgroup}/{container_id}"

    def containers(self) -> list[str]:
        """The ids of all containers of calls of which anything is left."""
        return sorted(name for name in self._names() if _ID.fullmatch(name))

    def zygotes(self) -> list[str]:
        """The ids of the containers of zygotes: ``zygote-<boot id>-<count>``."""
        return sorted(name for name in self._names() if _ZYGOTE_ID.fullmatch(name))

    def _names(self) -> set[str]:
        found = self.cgroups.children(self.cgroup)
        for folder in (self.records, self.bundles):
            with contextlib.suppress(FileNotFoundError):
                found |= {entry.name for entry in folder.iterdir()}
        return found

    def remove(self, container_id: str) -> None:
        """Ends a container and removes what is left of it; one that is gone is fine.

        Raises:
            OSError: its processes or its group do not go.
        """
        group = self.cgroup_of(container_id)
        deadline = time.monotonic() + _GONE_WITHIN_S
        while pids := self.cgroups.processes(group):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.cgroups.thaw(group)
            if time.monotonic() > deadline:
                raise TimeoutError(f"processes of {container_id} do not end")
            time.sleep(_LOOK_AGAIN_S)
        self.cgroups.remove(group, _GONE_WITHIN_S)
        for folder in (self.records / container_id, self.bundle(container_id)):
            shutil.rmtree(folder, ignore_errors=True)

    def remove_all(self, boot_id: str) -> int:
        """Removes every container of one process of the service, zygotes first; how many."""
        ids = [name for name in (*self.zygotes(), *self.containers()) if boot_of(name) == boot_id]
        for container_id in ids:
            self.remove(container_id)
        return len(ids)

    def leave(self) -> None:
        """Removes folders and groups of the service if they are empty; a parent that the operator named stays."""
        for folder in (self.records, self.bundles, self.folder, self.folder.parent):
            with contextlib.suppress(OSError):
                folder.rmdir()
        parent = str(Path(self.cgroup).parent)
        for group in (self.cgroup, parent) if parent == DEFAULT_PARENT else (self.cgroup,):
            with contextlib.suppress(OSError):
                self.cgroups.remove(group, 0)


def boot_of(container_id: str) -> str:
    """The process of the service that made a container."""
    found = _ID.fullmatch(container_id) or _ZYGOTE_ID.fullmatch(container_id)
    return found["boot"] if found else ""
