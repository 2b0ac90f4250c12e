"""What the kernel counts for this container, on cgroup v2 and v1; zero or None where it does not say (gVisor)."""

from __future__ import annotations

_OOM = (("/sys/fs/cgroup/memory.events", "oom_kill"), ("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill"))
_PIDS = (("/sys/fs/cgroup/pids.events", "max"), ("/sys/fs/cgroup/pids/pids.events", "max"))
_PEAK = ("/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes")


def _keyed(places: tuple[tuple[str, str], ...]) -> int:
    for path, key in places:
        try:
            with open(path, encoding="ascii") as file:
                for line in file:
                    name, _, value = line.partition(" ")
                    if name == key:
                        return int(value)
        except (OSError, ValueError):
            continue
    return 0


def oom_kills() -> int:
    """How many processes of this container the kernel has killed for memory."""
    return _keyed(_OOM)


def pids_hits() -> int:
    """How often the kernel has refused this container a new process."""
    return _keyed(_PIDS)


def memory_peak_bytes() -> int | None:
    """The most memory that this container has held, or None."""
    for path in _PEAK:
        try:
            with open(path, encoding="ascii") as file:
                return int(file.read())
        except (OSError, ValueError):
            continue
    return None
