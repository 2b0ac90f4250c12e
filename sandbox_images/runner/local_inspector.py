"""The inspector in a fork of this process, where none can be forked into the container from outside.

It opens hostile files with libraries that can be hurt, so it inherits only the loaded modules of the runner:
no descriptor of the stream, and the runner itself stays unreadable for it.
"""

import io
import os
import sys
from typing import NoReturn

import open_files
import program_run

_PROGRAM = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "inspector")
sys.path.append(_PROGRAM)

from session import inspect  # noqa: E402 - from the folder that was just added

# This interpreter runs without its site packages, so that nothing but the standard library is in the runner; so it
# does not know either that it is one of a virtual environment, and sys.prefix would be the system's.
_SITE_PACKAGES = os.path.join(
    os.path.dirname(os.path.dirname(sys.executable)),
    "lib",
    f"python{sys.version_info[0]}.{sys.version_info[1]}",
    "site-packages",
)


def start(request: bytes) -> int:
    """Forks it; returns the reading end of the pipe that it answers to."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_the_inspector(request, writing)
    os.close(writing)
    return reading


def _be_the_inspector(request: bytes, writing: int) -> NoReturn:
    status = 1
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)
        os.dup2(writing, 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        open_files.LIMITS.lower()
        # An ordinary process again: the files below /proc/self, which its judges write to, are its own.
        program_run.set_dumpable(readable=True)
        sys.path.append(_SITE_PACKAGES)
        with io.TextIOWrapper(io.FileIO(3, "w"), encoding="utf-8") as out:
            inspect(request, out)
        status = 0
    finally:
        os._exit(status)
