"""Whether processes have ended, before the kernel has taken them apart.

That takes some milliseconds for a process that holds much memory, and only then its parent is told. What is past
its last instruction already shows a flag (``PF_EXITING``), and a moment later no memory: until then the kernel may
write a word of a thread's to what the thread has mapped, a file for one. gVisor shows no flag, so there nothing is
ever seen.
"""

from __future__ import annotations

import os

_EXITING = 0x4  # include/linux/sched.h
_FLAGS, _MEMORY_BYTES = 6, 20  # of the fields behind the command in /proc/<pid>/stat, counted from 0
_STAT_BYTES = 1024
_STATUS_BYTES = 4096
_GONE = (FileNotFoundError, ProcessLookupError)


class Watched:
    """A process that is looked at again and again while it runs.

    Its state is read through a file that stays open: what is opened the kernel counts as memory of the container.
    When it has just killed a child of the program for lack of memory, and what that held is not free yet, there is
    none for a file either, and it kills the next one: the program.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        try:
            self._fd: int | None = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None

    def has_ended(self) -> bool:
        """Whether no thread of it runs any more; it may be gone. False where there is no memory to look with."""
        try:
            # The first as good as always runs, and is all that is looked at.
            return self._fd is not None and _is_exiting_by(self._fd) and _have_ended(self._pid, _threads(self._pid))
        except OSError:
            return False

    def close(self) -> None:
        """It is not looked at any more."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def ended_others(most: int) -> list[str] | None:
    """The other processes of our user if that is so of all; None too if there are more than ``most`` threads."""
    try:
        threads = {pid: _threads(pid) for pid in _others()}
        few = sum(map(len, threads.values())) <= most
        return list(threads) if few and all(_have_ended(pid, threads[pid]) for pid in threads) else None
    except OSError:
        return None


def others_are_there() -> bool:
    """Whether there are others of our user, as a program has started; True where there is no memory to look."""
    try:
        return bool(_others())
    except OSError:
        return True


def is_there(pid: str) -> bool:
    """Whether a process has not been reaped yet; True where there is no memory to look."""
    try:
        os.stat(f"/proc/{pid}")
    except _GONE:
        return False
    except OSError:
        return True
    return True


def _others() -> list[str]:
    own = str(os.getpid())
    return [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != own and _is_of_our_user(pid)]


def _is_of_our_user(pid: str) -> bool:
    """An inspector that waits is not, and no program can be another's.

    Who owns the folder below /proc does not tell: a program can have it belong to root.
    """
    try:
        fd = os.open(f"/proc/{pid}/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            said = os.read(fd, _STATUS_BYTES)
        finally:
            os.close(fd)
    except _GONE:
        return False
    return _is_said_to_be_of(said, os.getuid())


def _is_said_to_be_of(status: bytes, user: int) -> bool:
    # The last such line: gVisor shows a name as it is, line ends and all. Where there is none, it may be.
    _, found, rest = status.rpartition(b"\nUid:")
    return not found or rest.partition(b"\n")[0].split() == [str(user).encode()] * 4


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
    except _GONE:
        return True
    try:
        return _is_exiting_by(fd)
    finally:
        os.close(fd)


def _is_exiting_by(stat_fd: int) -> bool:
    try:
        said = os.pread(stat_fd, _STAT_BYTES, 0)
    except _GONE:
        return True
    fields = said[said.rindex(b")") + 2 :].split()
    return bool(int(fields[_FLAGS]) & _EXITING) and fields[_MEMORY_BYTES] == b"0"
