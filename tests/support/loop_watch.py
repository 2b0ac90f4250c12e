"""Lists what the event loop's thread asks of files, databases and the system while a block runs."""

import gc
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

# None waits for a disk, a lock or what another process does; sched_yield lets those run first that could.
_QUICK = frozenset(
    {
        *("posix.getpid", "posix.urandom", "posix.fspath", "posix.cpu_count", "posix.getcwd", "posix.fsdecode"),
        "posix.sched_yield",
    }
)
_MODULES = frozenset({"posix", "fcntl", "sqlite3", "posixsubprocess", "grp", "pwd"})
_FILES = frozenset({"FileIO", "BufferedReader", "BufferedWriter", "BufferedRandom", "TextIOWrapper"})
_DATABASES = frozenset({"Connection", "Cursor"})
_NAMES = frozenset({"open", "open_code", "sleep", "getaddrinfo", "gethostbyname", "fsync"})
_OUR_FRAMES = 3


@contextmanager
def watched_loop() -> Iterator[list[str]]:
    """The blocking operations of this thread, each with the innermost of our frames that led to it.

    Every call of a function that is written in C is seen, whoever makes it; what opens, reads, writes, syncs, lists
    or removes something counts, and ``time.sleep``. Sockets of the loop do not: they never block.
    """
    seen: list[str] = []

    def profile(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and (name := _blocking(function)) is not None:
            where = [
                f"{entry.filename.rpartition('/service/')[2]}:{entry.name}"
                for entry in traceback.extract_stack(frame)
                if "/service/" in entry.filename and "site-packages" not in entry.filename
            ]
            seen.append(f"{name} in {' > '.join(where[-_OUR_FRAMES:]) or frame.f_code.co_qualname}")

    # What was left over elsewhere, an answer that its reader forgot for one, is closed by whoever runs just then.
    gc.collect()
    collects = gc.isenabled()
    gc.disable()
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield seen
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def _blocking(function: Any) -> str | None:
    of = getattr(function, "__self__", None)
    kind = type(of).__name__
    module = type(of).__module__
    if (module == "_io" and kind in _FILES) or (module == "sqlite3" and kind in _DATABASES):
        return f"{kind}.{function.__name__}"
    module = str(getattr(function, "__module__", None) or getattr(of, "__name__", "")).lstrip("_")
    name = f"{module}.{function.__name__}"
    if module in _MODULES or (module in {"io", "time", "socket"} and function.__name__ in _NAMES):
        return None if name in _QUICK else name
    return None
