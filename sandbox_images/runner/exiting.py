"""Whether processes have ended, before the kernel has taken them apart.

That takes some milliseconds for a process that holds much memory, and only then its parent is told. What is past
its last instruction already shows a flag (``PF_EXITING``); gVisor shows none, so there nothing is ever seen.
"""

from __future__ import annotations

import os

_EXITING = 0x4  # include/linux/sched.h
_FLAGS = 6  # of the fields behind the command in /proc/<pid>/stat, counted from 0
_STAT_BYTES = 1024
_GONE = (FileNotFoundError, ProcessLookupError)


def has_ended(pid: int | str) -> bool:
    """Whether no thread of a process runs any more; it may be gone. False where there is no memory to look with."""
    try:
        # The first as good as always runs, and is all that is looked at.
        return _is_exiting(f"/proc/{pid}/stat") and _have_ended(pid, _threads(pid))
    except OSError:
        return False


def others_have_ended(most: int) -> bool:
    """Whether that is so of all processes but this, which has killed them; False of more than ``most`` threads."""
    own = str(os.getpid())
    try:
        threads = {pid: _threads(pid) for pid in os.listdir("/proc") if pid.isdigit() and pid != own}
        few = sum(map(len, threads.values())) <= most
        return few and all(_have_ended(pid, threads[pid]) for pid in threads)
    except OSError:
        return False


def _have_ended(pid: int | str, threads: list[str]) -> bool:
    # A thread that was begun by one that has ended since is in the second list.
    return all(_is_exiting(f"/proc/{pid}/task/{thread}/stat") for thread in threads) and threads == _threads(pid)


def _threads(pid: int | str) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except _GONE:
        return []


def _is_exiting(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            said = os.read(fd, _STAT_BYTES)
        finally:
            os.close(fd)
    except _GONE:
        return True
    return bool(int(said[said.rindex(b")") + 2 :].split()[_FLAGS]) & _EXITING)
