"""One program from start to end: output pumped and bounded, the wall clock kept, every process ended.

This process is PID 1 of the container. It has no signal handler, so the kernel lets no signal from inside
reach it, and it is not dumpable, so the program cannot read its memory or its descriptors although both run as
the same user.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import cgroup
import frames

_PR_SET_DUMPABLE = 4
_READ_BYTES = 65536
# A program that writes byte by byte would make a frame and an event of each: after a small piece a stream rests,
# and what comes meanwhile is one piece. Too short to be noticed by who watches; a large piece earns no rest.
_SMALL_BYTES = 4096
_REST_S = 0.025
_READY = struct.Struct(">d")  # the CPU seconds that the launcher took to start
_TAIL_BYTES = 16_000  # 4,000 characters of at most 4 bytes
_REAP_EVERY_S = 0.1
OnReaped = Callable[[int, int], None]  # process id and wait status
_HERE = os.path.dirname(os.path.abspath(__file__))


class Launcher:
    """The warm interpreter that becomes the program."""

    def __init__(self, env: dict[str, str], imports: list[str]) -> None:
        self._control, theirs = socket.socketpair()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()

        def wire() -> None:
            os.dup2(theirs.fileno(), 3)

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
        self.pid = process.pid
        process.returncode = 0  # reaped by us, never by subprocess
        self.stdout, self.stderr = out_read, err_read
        for fd in (out_write, err_write):
            os.close(fd)
        theirs.close()

    def wait_ready(self) -> None:
        """Waits until the interpreter is up; raises OSError if it died."""
        said = self._control.recv(_READY.size, socket.MSG_WAITALL)
        if len(said) != _READY.size:
            raise OSError("the launcher did not start")
        self.start_cpu_s: float = _READY.unpack(said)[0]

    def start(self, job: dict[str, Any]) -> None:
        """Hands over the job; from here on the launcher is the user's program."""
        self._control.sendall(json.dumps(job).encode() + b"\n")
        self._control.close()


def set_dumpable(*, readable: bool) -> None:
    """Lets processes of the same user read this one's memory and descriptors, or not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, int(readable), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


class Pump:
    """Passes output on, keeps its end, and counts it."""

    def __init__(self, channel: frames.Channel, pass_on_bytes: int) -> None:
        self._channel = channel
        self._pass_on = pass_on_bytes
        self.counted = {frames.STDOUT: 0, frames.STDERR: 0}
        self.log_tail = bytearray()
        self.stderr_tail = bytearray()

    @property
    def total(self) -> int:
        """All that was written so far, in bytes."""
        return sum(self.counted.values())

    def take(self, kind: int, piece: bytes) -> None:
        """One piece of output."""
        room = self._pass_on - self.counted[kind]
        self.counted[kind] += len(piece)
        if room > 0:
            # One byte in front says whether the rest of the stream is not passed on.
            self._channel.send(kind, (b"\1" if len(piece) > room else b"\0") + piece[:room])
        for tail in (self.log_tail, self.stderr_tail) if kind == frames.STDERR else (self.log_tail,):
            tail.extend(piece)
            del tail[:-_TAIL_BYTES]


class Run:
    """One run of a program, by one launcher."""

    def __init__(self, channel: frames.Channel, launcher: Launcher, job: dict[str, Any]) -> None:
        self._channel = channel
        self._launcher = launcher
        self._job = job
        self._pump = Pump(channel, job["pass_on_bytes"])
        self._status: int | None = None
        self._timed_out = False
        self._resting: dict[int, tuple[int, float]] = {}
        self._ended: set[int] = set()
        self._oom_before = cgroup.oom_kills()
        self._pids_before = cgroup.pids_hits()
        self._cpu_before = _children_cpu_s()

    def to_end(self) -> dict[str, Any]:
        """Runs the program until it ends or is ended; returns what EXIT says, disk_full left to the caller."""
        self._launcher.start(self._job)
        deadline = time.monotonic() + self._job["wall_s"]
        with selectors.DefaultSelector() as selector:
            selector.register(self._launcher.stdout, selectors.EVENT_READ, frames.STDOUT)
            selector.register(self._launcher.stderr, selectors.EVENT_READ, frames.STDERR)
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ, None)
            with _exit_notice(self._launcher.pid) as pidfd:
                if pidfd is not None:
                    selector.register(pidfd, selectors.EVENT_READ, None)
                self._watch(selector, deadline)
        end_all_processes(self._reaped)
        self._drain()
        return self._outcome()

    def _reaped(self, pid: int, status: int) -> None:
        if pid == self._launcher.pid:
            self._status = status

    def _watch(self, selector: selectors.BaseSelector, deadline: float) -> None:
        reap_at = 0.0
        while True:
            now = time.monotonic()
            if now >= deadline:
                self._timed_out = True
                return
            ready = selector.select(min(deadline - now, _REAP_EVERY_S, self._end_rest(selector, now)))
            # stdout first: what a program printed stands before the traceback that followed.
            for key, _ in sorted(ready, key=lambda found: found[0].fd):
                if key.data is not None:
                    self._read(selector, key)
                elif key.fd == sys.stdin.fileno():
                    raise frames.StreamEndedError  # during a run the service only ever hangs up
                else:
                    reap_at = 0.0
            if self._pump.total > self._job["output_bytes"]:
                return
            # Orphans of the program are ours to reap, or they would fill its process limit.
            if time.monotonic() >= reap_at:
                reap(self._reaped)
                reap_at = time.monotonic() + _REAP_EVERY_S
            if self._status is not None:
                return

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        piece = os.read(key.fd, _READ_BYTES)
        if not piece:
            self._ended.add(key.fd)
        else:
            self._pump.take(key.data, piece)
        if len(piece) < _SMALL_BYTES:
            self._rest(selector)

    def _rest(self, selector: selectors.BaseSelector) -> None:
        """Both streams rest together: apart, the pieces of a traceback and of what was printed before would mix."""
        until = time.monotonic() + _REST_S
        for key in list(selector.get_map().values()):
            if key.data is not None:
                selector.unregister(key.fd)
                self._resting[key.fd] = (key.data, until)

    def _end_rest(self, selector: selectors.BaseSelector, now: float) -> float:
        """Watches streams again that have rested; the seconds until the next has."""
        for fd, (kind, until) in list(self._resting.items()):
            if until <= now:
                del self._resting[fd]
                if fd not in self._ended:
                    selector.register(fd, selectors.EVENT_READ, kind)
        return min((until - now for _, until in self._resting.values()), default=_REAP_EVERY_S)

    def _drain(self) -> None:
        """What the program had written when it ended is still in the pipes."""
        for fd, kind in ((self._launcher.stdout, frames.STDOUT), (self._launcher.stderr, frames.STDERR)):
            os.set_blocking(fd, False)
            with contextlib.suppress(BlockingIOError):
                while piece := os.read(fd, _READ_BYTES):
                    self._pump.take(kind, piece)

    def _outcome(self) -> dict[str, Any]:
        exceeded = self._pump.total > self._job["output_bytes"]
        status = self._status
        code = os.waitstatus_to_exitcode(status) if status is not None else -signal.SIGKILL
        return {
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "timed_out": self._timed_out,
            "output_exceeded": exceeded,
            "oom_kills": cgroup.oom_kills() - self._oom_before,
            "pids_hits": cgroup.pids_hits() - self._pids_before,
            "stdout_bytes": self._pump.counted[frames.STDOUT],
            "stderr_bytes": self._pump.counted[frames.STDERR],
            "log_tail": self._pump.log_tail.decode("latin-1"),
            "stderr_tail": self._pump.stderr_tail.decode("latin-1"),
            "cpu_ms": max(0.0, _children_cpu_s() - self._cpu_before - self._launcher.start_cpu_s) * 1000,
            "memory_peak_bytes": cgroup.memory_peak_bytes(),
        }


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@contextlib.contextmanager
def _exit_notice(pid: int) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process ends; None where the kernel has none (gVisor)."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


def reap(on_reaped: OnReaped) -> None:
    """Collects every child that has ended, without waiting."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            on_reaped(pid, status)


def end_all_processes(on_reaped: OnReaped) -> None:
    """Kills every other process of the container and waits until none is left."""
    if os.getpid() != 1:
        raise RuntimeError("the runner has to be PID 1 of a container: it kills every process it can see")
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            on_reaped(pid, status)
        else:
            select.select([], [], [], 0.001)
