"""Pages of a zygote that its forks are going to write to: a fork that waits for its call copies them ahead.

The kernel copies a page at the first write to it, some microseconds each, and a program that draws or typesets
writes to thousands. Which ones they are is found out once, by a fork that does a usual call's work. To copy them
ahead costs no less, but no call waits for it.
"""

import array
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator

Range = tuple[int, int]
"""Addresses: of the first byte, and of the first byte after it."""

_MADV_POPULATE_WRITE = 23  # Linux 5.14
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ENTRY_BYTES = 8
_PRESENT, _EXCLUSIVE = 1 << 63, 1 << 56  # of an entry of /proc/self/pagemap: mapped, and by one process only
_GAP_BYTES_MAX = _PAGE  # to copy a page more costs less than another system call
_WITHIN_S = 10.0
_LOOKED_UP_EVERY = 16
_READ_BYTES = 65_536
_madvise = ctypes.CDLL(None).madvise
_madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)


def written_by(work: Callable[[], object], within_s: float = _WITHIN_S) -> list[Range]:
    """The memory of this process that a fork writes to while it works; what it does is gone with it.

    Where nothing can be learned nothing is copied ahead, and a line on standard error says so: the work fails or
    takes longer, or the kernel does not tell of pages.
    """
    try:
        found: list[list[int]] = json.loads(_told_by_fork(work, within_s))
        return [(begin, end) for begin, end in found]
    except (OSError, ValueError) as exc:
        sys.stderr.write(f"no pages are copied ahead: {type(exc).__name__}: {exc}\n")
        return []


def write_ahead(ranges: list[Range], until: Callable[[], bool] = lambda: False) -> None:
    """Has the kernel give this process copies of its own, as long as not ``until``; older kernels do nothing."""
    for number, (begin, end) in enumerate(ranges):
        if number % _LOOKED_UP_EVERY == 0 and until():
            return
        _madvise(begin, end - begin, _MADV_POPULATE_WRITE)


def _told_by_fork(work: Callable[[], object], within_s: float) -> bytes:
    ours = list(_own_memory())
    read_fd, write_fd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_fd)
            work()
            with os.fdopen(write_fd, "w", encoding="ascii") as file:
                json.dump(_joined(_copied(ours)), file)
        finally:
            os._exit(0)
    os.close(write_fd)
    try:
        return _read(read_fd, time.monotonic() + within_s)
    finally:
        os.close(read_fd)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _read(fd: int, deadline: float) -> bytes:
    """All that is written until the other side ends, or until then."""
    told = b""
    while select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
        piece = os.read(fd, _READ_BYTES)
        if not piece:
            return told
        told += piece
    raise TimeoutError("it took too long")


def _own_memory() -> Iterator[Range]:
    """What a fork gets a copy of when it writes: private and writable."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            where, rights, *_ = line.split(maxsplit=2)
            if rights.startswith("rw") and rights.endswith("p"):
                begin, end = (int(address, 16) for address in where.split("-"))
                yield begin, end


def _copied(memory: list[Range]) -> Iterator[Range]:
    """Single pages that belong to this process alone, in the order of their addresses."""
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        for begin, end in memory:
            entries = array.array("Q")
            size, place = (end - begin) // _PAGE * _ENTRY_BYTES, begin // _PAGE * _ENTRY_BYTES
            entries.frombytes(os.pread(file.fileno(), size, place))
            for number, entry in enumerate(entries):
                if entry & _PRESENT and entry & _EXCLUSIVE:
                    yield begin + number * _PAGE, begin + (number + 1) * _PAGE


def _joined(pages: Iterator[Range]) -> list[Range]:
    joined: list[Range] = []
    for begin, end in pages:
        if joined and begin - joined[-1][1] <= _GAP_BYTES_MAX:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined
