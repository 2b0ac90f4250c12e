"""The start of a zygote: the first process of a container of its own prepares and becomes one.

Command and environment are those of an interpreter that the runner starts itself: a program cannot see which of
the two it runs in.
"""

from __future__ import annotations

import os
import socket
import stat
import sys

import environment
from runner_protocol.descriptors import LAID_OUT_FD

_RUNNER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_COMMANDS = {"programs": ("-B", "launcher.py"), "inspectors": ("-I", "-B", "zygote/inspector.py")}
_SERVICE_FD = 3


def become_zygote(forks: str) -> None:
    """Executes the zygote whose ``forks`` are ``programs`` or ``inspectors``.

    Standard input is the socket to the service, if that could hand one over. If not, it takes the other end of one
    that is made here, from this process.
    """
    environment.make_home()
    os.closerange(_SERVICE_FD, os.sysconf("SC_OPEN_MAX"))
    if stat.S_ISSOCK(os.fstat(0).st_mode):
        os.dup2(0, _SERVICE_FD)
    else:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        os.dup2(theirs.fileno(), LAID_OUT_FD)
        os.dup2(ours.detach(), _SERVICE_FD)
        os.set_inheritable(_SERVICE_FD, True)  # noqa: FBT003 - it may have been that number before
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    # A pipe, as a program's is: what kind it is, Python finds out at its start.
    os.dup2(2, 1)
    os.chdir("/")
    *flags, script = _COMMANDS[forks]
    command = [sys.executable, *flags, os.path.join(_RUNNER, script)]
    os.execve(sys.executable, command, environment.program_variables())  # noqa: S606 - becoming it is the purpose
