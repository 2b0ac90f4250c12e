"""Whether processes have ended, before the kernel has taken them apart.

That takes some milliseconds for a process that holds much memory, and only then its parent is told. What is past
its last instruction already shows a flag (``PF_EXITING``); gVisor shows none, so there nothing is ever seen.
"""

from __future__ import annotations

import os

_EXITING = 0x4  # include/linux/sched.h
_FLAGS = 6  # of the fields behind the command in /proc/<pid>/stat, counted from 0
_STAT_BYTES = 1024


def has_ended(pid: int | str) -> bool:
    """Whether no thread of a process runs any more; it may be gone."""
    if not _is_exiting(f"/proc/{pid}/stat"):
        return False  # as nearly always
    threads = _threads(pid)
    # A thread that was begun meanwhile by one that has ended since is in the second list.
    return all(_is_exiting(f"/proc/{pid}/task/{thread}/stat") for thread in threads) and threads == _threads(pid)


def others_have_ended(most: int) -> bool:
    """Whether that is so of all processes but this, which has killed them; False also of more than ``most``."""
    own = str(os.getpid())
    pids = [name for name in os.listdir("/proc") if name.isdigit() and name != own]
    return len(pids) <= most and all(has_ended(pid) for pid in pids)


def _threads(pid: int | str) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def _is_exiting(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return True  # it is gone
    try:
        said = os.read(fd, _STAT_BYTES)
    except OSError:
        return True
    finally:
        os.close(fd)
    return bool(int(said[said.rindex(b")") + 2 :].split()[_FLAGS]) & _EXITING)
