"""How much memory a judge may take before the kernel would kill something in its place."""

from __future__ import annotations

import os

_READ_BYTES = 65_536
_CGROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)
"""The limit and the use of this container's memory, in bytes: cgroup version 2, then 1."""

_RESERVE_BYTES = 16 * 1024 * 1024
"""Left for the runner and the page tables: a judge that meets its own limit can report it."""

_ROOM_BYTES_MIN = 64 * 1024 * 1024
"""Below this no library could open anything: better to try, and be killed if it comes to that."""


def memory_for_judge(bytes_max: int) -> int:
    """Return the private memory in bytes (as RLIMIT_DATA counts it) that a judge may reach.

    That is what the process holds already, plus ``bytes_max`` or what the container has left, whichever is less.
    """
    room = bytes_max
    for limit_file, use_file in _CGROUP_FILES:
        limit, use = _number_in(limit_file), _number_in(use_file)
        if limit is not None and use is not None:
            room = min(room, limit - use - _RESERVE_BYTES)
    return _data_bytes_held() + max(room, _ROOM_BYTES_MIN)


def _number_in(path: str) -> int | None:
    """Return the number that a kernel file holds; None if there is no such file or it has ``max``."""
    text = _read_kernel_file(path).strip()
    return int(text) if text.isdigit() else None


def _data_bytes_held() -> int:
    for line in _read_kernel_file("/proc/self/status").splitlines():
        if line.startswith(b"VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def _read_kernel_file(path: str) -> bytes:
    """Return the content of a kernel file, empty if there is none; a file object would cost more than reading."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
