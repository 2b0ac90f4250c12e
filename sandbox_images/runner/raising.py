"""How a zygote is started: the first process of a container of its own makes ready and becomes one.

Command and environment are those of an interpreter that the runner starts itself: a program cannot tell which of
the two it runs in.
"""

from __future__ import annotations

import os
import sys

import home

_HERE = os.path.dirname(os.path.abspath(__file__))
_COMMANDS = {"programs": ("-B", "launcher.py"), "inspectors": ("-I", "-B", "inspecting_zygote.py")}
_DOOR_FD = 3


def become_zygote(of: str) -> None:
    """Executes the zygote of ``programs`` or ``inspectors``; standard input is the socket to the service."""
    home.make()
    os.dup2(0, _DOOR_FD)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    # A pipe, as a program's is: what kind it is, Python finds out at its start.
    os.dup2(2, 1)
    os.closerange(_DOOR_FD + 1, os.sysconf("SC_OPEN_MAX"))
    os.chdir("/")
    *flags, script = _COMMANDS[of]
    command = [sys.executable, *flags, os.path.join(_HERE, script)]
    os.execve(sys.executable, command, home.environment())  # noqa: S606 - becoming it is the purpose
