"""The inspector in a fork of this process: its modules are loaded while the container waits for a call.

It opens hostile files with libraries that can be hurt, so it gets nothing of the runner's but the loaded modules:
no descriptor of the stream, and the runner itself stays unreadable for it.
"""

import contextlib
import io
import os
import select
import signal
import sys
import time
from typing import NoReturn

import frames
import run

_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "inspector")
sys.path.append(_PROGRAM)

from inspection import inspect  # noqa: E402 - from the folder that was just added

# This interpreter runs without its site packages, so that nothing but the standard library is in the runner; so it
# does not know either that it is one of a virtual environment, and sys.prefix would be the system's.
_SITE_PACKAGES = os.path.join(
    os.path.dirname(os.path.dirname(sys.executable)),
    "lib",
    f"python{sys.version_info[0]}.{sys.version_info[1]}",
    "site-packages",
)
_READ_BYTES = 65_536
_SAID_BYTES_MAX = 64 * 1024 * 1024  # a verdict is 64 KiB at most; a contract has hundreds


def ask(request: bytes, seconds: float) -> bytes:
    """What the inspector says to a request, whole lines; it is ended after ``seconds``."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_inspector(request, writing)
    os.close(writing)
    try:
        said = _read(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return said[: said.rfind(b"\n") + 1]


def _read(fd: int, deadline: float) -> bytes:
    said = bytearray()
    while len(said) < _SAID_BYTES_MAX:
        readable, _, _ = select.select([fd, sys.stdin.fileno()], [], [], max(0.0, deadline - time.monotonic()))
        if sys.stdin.fileno() in readable:
            raise frames.StreamEndedError  # meanwhile the service only ever hangs up
        piece = os.read(fd, _READ_BYTES) if readable else b""
        if not piece:
            break
        said += piece
    return bytes(said)


def _be_the_inspector(request: bytes, writing: int) -> NoReturn:
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.dup2(writing, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        # An ordinary process again: the files below /proc/self, which its judges write to, are its own.
        run.set_dumpable(readable=True)
        sys.path.append(_SITE_PACKAGES)
        with io.TextIOWrapper(io.FileIO(3, "w"), encoding="utf-8") as out:
            inspect(request, out)
        status = 0
    finally:
        os._exit(status)
