"""The interpreter that becomes the program, started by this runner where none can be forked in."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import open_files
import program_run
from write_order import make_output_pipe

_HERE = os.path.dirname(os.path.abspath(__file__))


def launch(env: dict[str, str], imports: list[str]) -> program_run.Launcher:
    """Starts an interpreter and waits until it is up; raises OSError if it died."""
    control, theirs = socket.socketpair()
    out_read, out_write = make_output_pipe()
    err_read, err_write = make_output_pipe()

    def wire() -> None:
        os.dup2(theirs.fileno(), 3)
        open_files.LIMITS.lower()

    # An exec of its own, not a fork: a forked child would stay undumpable and could not use /proc/self.
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-B", os.path.join(_HERE, "launcher.py"), *imports],
        stdin=subprocess.DEVNULL,
        stdout=out_write,
        stderr=err_write,
        pass_fds=(3,),
        preexec_fn=wire,  # noqa: PLW1509 - this process has one thread
        start_new_session=True,
        env=env,
        cwd="/",
    )
    process.returncode = 0  # reaped by us, never by subprocess
    for fd in (out_write, err_write):
        os.close(fd)
    theirs.close()
    launcher = program_run.Launcher(process.pid, control.detach(), out_read, err_read)
    launcher.wait_ready()
    return launcher
