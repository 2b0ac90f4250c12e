"""One control group above all sandboxes of a service, so that no number of them takes the machine from the service.

Each sandbox has limits of its own; this is what bounds them together.
"""

import contextlib
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from proofbox.service.sandbox.hardening import CPU_PERIOD_US
from proofbox.service.sandbox.host_info import meminfo
from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.oci.container_state import DEFAULT_PARENT

_MIB = 1024 * 1024
_RESERVE_PART, _RESERVE_BYTES_MIN = 8, 512 * _MIB  # for the service and for all else on the machine
_KERNEL_LIMITS = ("/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max")
# All sandboxes together weigh what one process does that is in no group, or one group beside theirs.
_SHARES_V1, _WEIGHT_V2 = 1024, 100
_UNLIMITED_V1 = 1 << 62
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def group_name(service_name: str) -> str:
    """The service's name, or what stands for it where it is no name of a folder."""
    if _SAFE_NAME.fullmatch(service_name):
        return service_name
    return hashlib.sha256(service_name.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class TotalLimits:
    """What all sandboxes of a service may use together.

    Attributes:
        memory_bytes: memory, their temporary file systems included.
        pids: processes and threads.
        cpus: processors; 0: all, after whoever else wants them.
    """

    memory_bytes: int
    pids: int
    cpus: float

    @classmethod
    def of_machine(cls, memory_bytes: int, pids: int, cpus: float) -> "TotalLimits":
        """These, where a 0 for memory or processes stands for what this machine can spare."""
        whole = meminfo().get("MemTotal", 0)
        spared = whole - max(whole // _RESERVE_PART, min(_RESERVE_BYTES_MIN, whole // 2))
        return cls(memory_bytes or spared, pids or _kernel_tasks() // 2, cpus)


def _kernel_tasks() -> int:
    found = []
    for path in _KERNEL_LIMITS:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(path).read_text(encoding="ascii")))
    return min(found, default=0)


@dataclass(frozen=True, slots=True)
class Use:
    """What is used of a total: ``used`` of ``limit``, which is 0 where there is none."""

    used: int
    limit: int


class ServiceCgroup:
    """The group ``/<parent>/<service>``, with its limits."""

    def __init__(self, cgroups: Cgroups, path: str, totals: TotalLimits) -> None:
        self.path = path
        self.totals = totals
        self._cgroups = cgroups

    def make(self) -> None:
        """Makes the group unless it is there, and sets weight and limits. Blocks.

        Raises:
            OSError: the group cannot be made or refuses a limit.
        """
        parents = [*reversed(Path(self.path).parents[:-1]), Path(self.path)]
        if self._cgroups.v2 is not None and self._cgroups.is_v2:
            self._make_v2(self._cgroups.v2, parents)
        else:
            self._make_v1(parents)

    def keep(self) -> None:
        """Makes the group anew if it has gone, as when another process of the service has just left. Blocks."""
        if not self._file("memory.limit_in_bytes", "memory.max").exists():
            self.make()

    def bound_tcp(self, container_id: str) -> None:
        """Bounds what TCP sockets of one container hold; see `Cgroups.bound_tcp`. Blocks."""
        self._cgroups.bound_tcp(f"{self.path}/{container_id}")

    def remove(self) -> None:
        """Removes the group, and a parent that no operator has named, if nothing is in them; never raises.

        Below it gVisor leaves the group of a container now and then, with no process in it.
        """
        left = [f"{self.path}/{name}" for name in sorted(self._cgroups.children(self.path))]
        parent = str(Path(self.path).parent)
        for path in (*left, self.path, *([parent] if parent == DEFAULT_PARENT else [])):
            with contextlib.suppress(OSError):
                self._cgroups.remove(path, 0)

    def memory(self) -> Use:
        """Memory of all sandboxes of the service, in bytes."""
        return Use(
            self._number("memory.usage_in_bytes", "memory.current"),
            self._number("memory.limit_in_bytes", "memory.max"),
        )

    def pids(self) -> Use:
        """Processes and threads of all sandboxes of the service."""
        return Use(self._number("pids.current", "pids.current"), self._number("pids.max", "pids.max"))

    def _file(self, name_v1: str, name_v2: str) -> Path:
        cgroups = self._cgroups
        root = cgroups.v2 if cgroups.is_v2 else cgroups.v1[name_v1.partition(".")[0]]
        assert root is not None
        return root / self.path.lstrip("/") / (name_v2 if cgroups.is_v2 else name_v1)

    def _number(self, name_v1: str, name_v2: str) -> int:
        with contextlib.suppress(OSError, ValueError):  # "max", or gone
            number = int(self._file(name_v1, name_v2).read_text(encoding="ascii"))
            return number if number < _UNLIMITED_V1 else 0
        return 0

    def _make_v1(self, parents: list[Path]) -> None:
        roots = {name: self._cgroups.v1[name] for name in ("memory", "pids", "cpu")}
        for root in set(roots.values()):
            for parent in parents:
                (root / parent.relative_to("/")).mkdir(exist_ok=True)
        for parent in parents:
            _write(roots["cpu"] / parent.relative_to("/") / "cpu.shares", _SHARES_V1)
        # Memory twice around memory and swap: the second is never to be below the first, before and after.
        with contextlib.suppress(OSError):
            _write(self._file("memory.limit_in_bytes", ""), self.totals.memory_bytes)
        if self._cgroups.counts_swap:
            _write(self._file("memory.memsw.limit_in_bytes", ""), self.totals.memory_bytes)
        _write(self._file("memory.limit_in_bytes", ""), self.totals.memory_bytes)
        _write(self._file("pids.max", ""), self.totals.pids)
        quota = int(self.totals.cpus * CPU_PERIOD_US) if self.totals.cpus else -1
        _write(self._file("cpu.cfs_quota_us", ""), quota)

    def _make_v2(self, root: Path, parents: list[Path]) -> None:
        for parent in parents:
            group = root / parent.relative_to("/")
            # What a group bounds is settled in the group above it.
            _write(group.parent / "cgroup.subtree_control", "+memory +pids +cpu")
            group.mkdir(exist_ok=True)
            _write(group / "cpu.weight", _WEIGHT_V2)
        _write(self._file("", "memory.max"), self.totals.memory_bytes)
        with contextlib.suppress(FileNotFoundError):  # a kernel without swap
            _write(self._file("", "memory.swap.max"), 0)
        _write(self._file("", "pids.max"), self.totals.pids)
        quota = str(int(self.totals.cpus * CPU_PERIOD_US)) if self.totals.cpus else "max"
        _write(self._file("", "cpu.max"), f"{quota} {CPU_PERIOD_US}")


def _write(path: Path, value: object) -> None:
    path.write_text(str(value), encoding="ascii")
