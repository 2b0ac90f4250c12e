"""Pages of a zygote that its forks are going to write to: each fork copies them ahead, while it waits for its call.

The kernel copies a page at the first write to it, some microseconds each, and a program that draws or typesets
writes to thousands. Which ones they are is found out once, by a fork that does a usual call's work. To copy them
ahead costs no less, but no call waits for it.
"""

import array
import ctypes
import json
import mmap
import os
from collections.abc import Callable, Iterator

Stretch = tuple[int, int]
"""Addresses: of the first byte, and of the first byte after it."""

_MADV_POPULATE_WRITE = 23  # Linux 5.14
_PAGE = mmap.PAGESIZE
_ENTRY_BYTES = 8
_PRESENT, _OF_ONE_PROCESS = 1 << 63, 1 << 56  # of an entry of /proc/self/pagemap
_GAP_BYTES_MAX = _PAGE  # to copy a page more costs less than another system call
_madvise = ctypes.CDLL(None).madvise
_madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)


def written_by(work: Callable[[], object]) -> list[Stretch]:
    """The memory of this process that a fork writes to while it works; what it does is gone with it.

    Nothing is known, and so nothing copied ahead, where the work fails or the kernel does not tell of pages.
    """
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
    with os.fdopen(read_fd, encoding="ascii") as file:
        told = file.read()
    os.waitpid(pid, 0)
    return [(begin, end) for begin, end in json.loads(told)] if told else []


def write_ahead(stretches: list[Stretch]) -> None:
    """Has the kernel give this process copies of its own; older kernels do nothing."""
    for begin, end in stretches:
        _madvise(begin, end - begin, _MADV_POPULATE_WRITE)


def _own_memory() -> Iterator[Stretch]:
    """What a fork gets a copy of when it writes: private and writable."""
    with open("/proc/self/maps", encoding="utf-8") as file:
        for line in file:
            where, rights, *_ = line.split(maxsplit=2)
            if rights.startswith("rw") and rights.endswith("p"):
                begin, end = (int(address, 16) for address in where.split("-"))
                yield begin, end


def _copied(memory: list[Stretch]) -> Iterator[Stretch]:
    """Single pages that belong to this process alone, in the order of their addresses."""
    with open("/proc/self/pagemap", "rb", buffering=0) as file:
        for begin, end in memory:
            entries = array.array("Q")
            entries.frombytes(
                os.pread(file.fileno(), (end - begin) // _PAGE * _ENTRY_BYTES, begin // _PAGE * _ENTRY_BYTES)
            )
            for number, entry in enumerate(entries):
                if entry & _PRESENT and entry & _OF_ONE_PROCESS:
                    yield begin + number * _PAGE, begin + (number + 1) * _PAGE


def _joined(pages: Iterator[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for begin, end in pages:
        if joined and begin - joined[-1][1] <= _GAP_BYTES_MAX:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined
