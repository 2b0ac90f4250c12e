"""The control groups of sandboxes: on cgroup v1 one folder in each hierarchy, on v2 one folder.

Standard library only: the cleanup process imports this.
"""

import contextlib
import logging
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

_MOUNT = re.compile(r"^\d+ \d+ \S+ / (?P<where>\S+) .* - (?P<kind>cgroup2?) \S+ (?P<options>\S+)$", re.MULTILINE)
_V1_NEEDED = ("memory", "pids", "cpu", "devices")
_V1_SEEN_INSIDE = ("memory", "pids", "cpu")
_V2_NEEDED = ("memory", "pids", "cpu")
_LOOK_AGAIN_S = 0.002
_TCP_BYTES = 64 * 1024 * 1024
_log = logging.getLogger("proofbox.cgroups")


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Where this machine has its hierarchies.

    Attributes:
        v1: the root of each hierarchy of version 1, by controller.
        v2: the root of the hierarchy of version 2; on a hybrid machine it is there and has no controllers.
    """

    v1: dict[str, Path]
    v2: Path | None

    @classmethod
    def of_machine(cls, mountinfo: str = "") -> "Cgroups":
        """What is mounted; ``mountinfo`` as in /proc/self/mountinfo, read from there if empty."""
        text = mountinfo or Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        v1: dict[str, Path] = {}
        v2 = None
        for found in _MOUNT.finditer(text):
            where = Path(found["where"])
            if found["kind"] == "cgroup2":
                v2 = where
            else:
                v1 |= dict.fromkeys(found["options"].replace("name=", "").split(","), where)
        return cls({name: where for name, where in v1.items() if name not in {"rw", "ro"}}, v2)

    @property
    def is_v2(self) -> bool:
        """Whether the controllers are those of version 2."""
        return "memory" not in self.v1 and self.v2 is not None

    @property
    def is_hybrid(self) -> bool:
        """Whether version 2 is mounted beside a version 1 that has the controllers."""
        return "memory" in self.v1 and self.v2 is not None

    @property
    def counts_swap(self) -> bool:
        """Whether the kernel can bound memory and swap together."""
        if self.is_v2:
            return True
        return (self.v1["memory"] / "memory.memsw.limit_in_bytes").exists()

    @property
    def seen_inside(self) -> dict[str, Path]:
        """Of version 1, the hierarchies whose counters a sandbox reads; empty for version 2, which has one."""
        return {} if self.is_v2 else {name: self.v1[name] for name in _V1_SEEN_INSIDE if name in self.v1}

    def missing(self) -> str | None:
        """What sandboxes need and this machine lacks, in words; None if it has everything."""
        if self.is_v2:
            assert self.v2 is not None
            there = (self.v2 / "cgroup.controllers").read_text(encoding="ascii").split()
            lacking = [name for name in _V2_NEEDED if name not in there]
        else:
            lacking = [name for name in _V1_NEEDED if name not in self.v1]
        if lacking:
            return f"no cgroup controller {', '.join(lacking)}"
        for root in self._roots():
            if not os.access(root, os.W_OK):
                return f"no write access to {root}"
        return None

    def _roots(self) -> list[Path]:
        return sorted({*self.v1.values(), *([self.v2] if self.v2 is not None else [])})

    def _counting(self, path: str) -> Path:
        """The folder that counts memory and lists processes."""
        root = self.v2 if self.is_v2 else self.v1["memory"]
        assert root is not None
        return root / path.lstrip("/")

    def oom_kills(self, path: str) -> int:
        """How many processes of a group the kernel has killed for memory; 0 if the group is gone."""
        counters = self._counting(path) / ("memory.events" if self.is_v2 else "memory.oom_control")
        with contextlib.suppress(OSError, ValueError):
            for line in counters.read_text(encoding="ascii").splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
        return 0

    def set_limits(self, path: str, *, memory_bytes: int, pids: int, cpu_quota_us: int, cpu_period_us: int) -> None:
        """Lowers the limits of a group.

        Raises:
            OSError: the kernel refuses one, as when more memory is in use than there is to be.
        """
        if self.is_v2:
            values = {"memory.max": memory_bytes, "pids.max": pids, "cpu.max": f"{cpu_quota_us} {cpu_period_us}"}
            roots = dict.fromkeys(values, self.v2)
        else:
            # In this order: what bounds memory and swap together is never below what bounds memory.
            values = {"memory.limit_in_bytes": memory_bytes, "memory.memsw.limit_in_bytes": memory_bytes}
            if not self.counts_swap:
                del values["memory.memsw.limit_in_bytes"]
            values |= {"pids.max": pids, "cpu.cfs_quota_us": cpu_quota_us}
            roots = {name: self.v1[name.partition(".")[0]] for name in values}
        for name, value in values.items():
            root = roots[name]
            assert root is not None
            (root / path.lstrip("/") / name).write_text(str(value), encoding="ascii")

    def bound_tcp(self, path: str) -> None:
        """Bounds what TCP sockets of a group hold, which version 1 counts only if it is bounded; never raises.

        A kernel may no longer have this, the group may be gone, or not ours to write to: a container runs without.
        """
        if not self.is_v2:
            try:
                bound = self._counting(path) / "memory.kmem.tcp.limit_in_bytes"
                bound.write_text(str(_TCP_BYTES), encoding="ascii")
            except OSError as exc:
                _log.debug("TCP sockets of %s are not bounded: %s", path, exc)

    def give_full_share(self, path: str) -> None:
        """Gives a group the share of the CPU that it has by default, if it has less."""
        root, name, value = (self.v2, "cpu.weight", 100) if self.is_v2 else (self.v1["cpu"], "cpu.shares", 1024)
        assert root is not None
        (root / path.lstrip("/") / name).write_text(str(value), encoding="ascii")

    def processes(self, path: str) -> list[int]:
        """The processes of a group."""
        with contextlib.suppress(OSError):
            return [int(pid) for pid in (self._counting(path) / "cgroup.procs").read_text("ascii").split()]
        return []

    def thaw(self, path: str) -> None:
        """Lets a group run again that somebody has frozen: a frozen process of version 1 cannot be killed."""
        root, name, value = self.v1.get("freezer"), "freezer.state", "THAWED"
        if self.is_v2:
            root, name, value = self.v2, "cgroup.freeze", "0"
        if root is not None:
            with contextlib.suppress(OSError):
                (root / path.lstrip("/") / name).write_text(value, encoding="ascii")

    def children(self, path: str) -> set[str]:
        """The names of the groups below a group, in any hierarchy."""
        found = set()
        for root in self._roots():
            with contextlib.suppress(OSError):
                found |= {entry.name for entry in os.scandir(root / path.lstrip("/")) if entry.is_dir()}
        return found

    def remove(self, path: str, within_s: float) -> None:
        """Removes a group in every hierarchy; one that is gone is fine.

        Raises:
            OSError: a process is still in it after ``within_s``.
        """
        deadline = time.monotonic() + within_s
        for root in self._roots():
            while True:
                try:
                    (root / path.lstrip("/")).rmdir()
                except FileNotFoundError:
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(_LOOK_AGAIN_S)
                else:
                    break
