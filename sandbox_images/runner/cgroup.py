"""What the kernel counts for this container, on cgroup v2 and v1; zero or None where it does not count (gVisor)."""

from __future__ import annotations

import os

_READ_BYTES = 4096
_OOM = (("/sys/fs/cgroup/memory.events", b"oom_kill"), ("/sys/fs/cgroup/memory/memory.oom_control", b"oom_kill"))
_PIDS = (("/sys/fs/cgroup/pids.events", b"max"), ("/sys/fs/cgroup/pids/pids.events", b"max"))
_HELD = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
_PEAK = ("/sys/fs/cgroup/memory.peak", "/sys/fs/cgroup/memory/memory.max_usage_in_bytes")


def _read(path: str) -> bytes:
    """The content of a file of the kernel's; a file object would cost more than the reading."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _READ_BYTES)
    finally:
        os.close(fd)


def _keyed(places: tuple[tuple[str, bytes], ...]) -> int:
    for path, key in places:
        try:
            for line in _read(path).splitlines():
                name, _, value = line.partition(b" ")
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
            return int(_read(path))
        except (OSError, ValueError):
            continue
    return None


def memory_left_bytes() -> int:
    """How much more memory this container may hold; 0 where the kernel does not count."""
    for bound, held in _HELD:
        try:
            return int(_read(bound)) - int(_read(held))
        except (OSError, ValueError):
            continue
    return 0
