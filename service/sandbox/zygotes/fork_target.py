"""A container that processes are forked into: its namespaces and control groups, as open descriptors."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.linux.cgroups import Cgroups

_JOINED = (
    "cgroup",
    "ipc",
    "uts",
    "net",
    "mnt",
)  # in this order: what comes after the mounts would be the container's


@dataclass(frozen=True, slots=True)
class Target:
    """Descriptors of one container.

    Attributes:
        pids: its process namespace.
        namespaces: the others, in the order in which they are joined.
        control_groups: the files that a process writes itself to, one for each hierarchy of version 1.
        group: of version 2, its folder and the file that a process writes itself to; empty where there is none.
        label: what a security module such as AppArmor calls its processes; empty where there is none.
        user_id: the user of its processes, as seen inside.
    """

    pids: int
    namespaces: tuple[int, ...]
    control_groups: tuple[int, ...]
    group: tuple[int, ...]
    label: str
    user_id: int


@contextlib.contextmanager
def opened(cgroups: Cgroups, first_process: int, container_id: str, user_id: int) -> Iterator[Target]:
    """Opens what belongs to the container whose first process, as this machine counts, is ``first_process``.

    A folder of /proc that is open stays that of its process, whoever is given the number next. So what is read from
    it is of one process, and its control groups, which carry the container's id, show whether it is the right one.

    Raises:
        NotForkedError: there is no such process, or it is not the first one of that container.
    """
    with contextlib.ExitStack() as stack:

        def keep(path: str | Path, flags: int, folder: int | None = None) -> int:
            fd = os.open(path, flags | os.O_CLOEXEC, dir_fd=folder)
            stack.callback(os.close, fd)
            return fd

        try:
            process = keep(f"/proc/{first_process}", os.O_RDONLY | os.O_DIRECTORY)
            if not _is_first(process):
                raise NotForkedError("the container's process is not the first one of its namespace")
            folders, unified = _groups(cgroups, process, container_id)
            groups = [keep(folder / "tasks", os.O_WRONLY) for folder in folders]
            group: list[int] = []
            if unified is not None:
                group += keep(unified, os.O_RDONLY | os.O_DIRECTORY), keep(unified / "cgroup.procs", os.O_WRONLY)
            joined = [keep(f"ns/{name}", os.O_RDONLY, process) for name in (*_own_user(process), *_JOINED)]
            pids = keep("ns/pid", os.O_RDONLY, process)
            label = _label(process)
        except OSError as exc:
            raise NotForkedError(f"the container has ended, or cannot be entered: {exc}") from exc
        yield Target(pids, tuple(joined), tuple(groups), tuple(group), label, user_id)


def _read(process: int, name: str) -> str:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=process), encoding="utf-8") as file:  # noqa: PTH123
        return file.read()


def _label(process: int) -> str:
    try:
        return _read(process, "attr/current").rstrip("\0\n")
    except OSError:
        return ""


def _is_first(process: int) -> bool:
    for line in _read(process, "status").splitlines():
        if line.startswith("NSpid:"):
            return line.split()[-1] == "1"
    return False


def _own_user(process: int) -> tuple[str, ...]:
    """The namespace of users comes first, where the container has one: with it come the rights over the others."""
    theirs = os.stat("ns/user", dir_fd=process)
    ours = os.stat("/proc/self/ns/user")  # noqa: PTH116 - beside the other
    return () if (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino) else ("user",)


def _groups(cgroups: Cgroups, process: int, container_id: str) -> tuple[list[Path], Path | None]:
    """The control groups that are the container's own: those of version 1, and that of version 2."""
    folders: list[Path] = []
    unified = None
    counted = False
    for line in _read(process, "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        names = controllers.replace("name=", "").split(",")
        root = cgroups.v2 if controllers == "" else cgroups.v1.get(names[0])
        if container_id not in path.rpartition("/")[2]:
            continue
        if root is None or ".." in path.split("/"):
            raise NotForkedError(f"the control group {path} cannot be reached from here")
        if controllers == "":
            unified = root / path.lstrip("/")
        else:
            folders.append(root / path.lstrip("/"))
        counted = counted or "memory" in names or controllers == ""
    if not counted:
        raise NotForkedError("the process is not in the control group of its container")
    return folders, unified
