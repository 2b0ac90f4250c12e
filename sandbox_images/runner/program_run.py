"""One program from start to end: output pumped and bounded, the wall clock enforced, every process ended.

This process is PID 1 of the container. It has no signal handler, so the kernel lets no signal from inside
reach it, and it is not dumpable, so the program cannot read its memory or its descriptors although both run as
the same user.
"""

from __future__ import annotations

import _ctypes
import _signal
import _socket
import os
import resource
import select
import struct
import time

import cgroup
import frames
from full_places import FullPlaces
from output_record import OutputRecord
from runner_protocol import frame_format, network
from write_order import PIPE_PACKETS, ROUND_READS_MAX, WriteOrder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from connections import Connections

    OnReaped = Callable[[int, int], None]  # process id and wait status

_PR_SET_DUMPABLE = 4
_READ_BYTES = 65536
_PIPE_BYTES_MAX = 2 * 1024 * 1024  # twice what a program can set
# A program that writes byte by byte would make a frame and an event of each: after a small piece a stream rests,
# and what comes meanwhile is one piece. Too short to be noticed by who watches; a large piece earns no rest.
_SMALL_BYTES = 4096
_REST_S = 0.025
_REST_S_MIN = 0.001
# At first both rest: a program that ends soon is heard once, at its end. To be woken by what it prints would be to
# be put on its own processor, behind it: the kernel takes it that who writes into a pipe is about to wait.
_FIRST_REST_S = 0.005
_READY = struct.Struct(">d")  # the CPU seconds that the launcher took to start
_REAP_EVERY_S = 0.1
# Where the kernel has no descriptors of processes (gVisor): only reaping shows that the program has ended.
_REAP_EVERY_WITHOUT_PIDFD_S = 0.005
_KILL_AGAIN_S = 0.0005
_MOMENT_S = 0.05
_NAMES_MAX = 5  # of processes
_NAMES = {frame_format.STDOUT: 1, frame_format.STDERR: 2}  # of the streams, in the payload of EXIT


class Launcher:
    """The warm interpreter that becomes the program."""

    def __init__(self, pid: int, control_fd: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self._control = _socket.socket(fileno=control_fd)
        self.stdout, self.stderr = stdout, stderr
        self.start_cpu_s = 0.0
        self.oom_kills_before = self.pids_hits_before = 0

    def wait_ready(self) -> None:
        """Waits until the interpreter is up; raises OSError if it died.

        What the kernel has counted by then is not the program's.
        """
        message = self._control.recv(_READY.size, _socket.MSG_WAITALL)
        if len(message) != _READY.size:
            raise OSError("the launcher did not start")
        self.start_cpu_s = _READY.unpack(message)[0]
        self.oom_kills_before, self.pids_hits_before = cgroup.oom_kills(), cgroup.pids_hits()

    def start(self, job: dict[str, Any]) -> None:
        """Hands over the job; from here on the launcher is the user's program."""
        self._control.sendall(frames.write_json(job) + b"\n")
        self._control.close()

    def end(self) -> None:
        """Ends an interpreter that is not needed, and reaps it."""
        self._control.close()
        os.close(self.stdout)
        os.close(self.stderr)
        os.kill(self.pid, _signal.SIGKILL)
        os.waitpid(self.pid, 0)


def set_dumpable(*, readable: bool) -> None:
    """Lets processes of the same user read this one's memory and descriptors, or not."""
    # What the module ctypes is made of; that one costs half as much as starting the interpreter.
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None is itself
    if _ctypes.call_function(prctl, (_PR_SET_DUMPABLE, int(readable), 0, 0, 0)) != 0:
        raise OSError("prctl(PR_SET_DUMPABLE) was refused")


class Pump:
    """Passes output on, and counts it."""

    def __init__(self, channel: frames.Channel, pass_on_bytes: int) -> None:
        self._channel = channel
        self._pass_on = pass_on_bytes
        self.counted = {frame_format.STDOUT: 0, frame_format.STDERR: 0}

    @property
    def total(self) -> int:
        """All that was written so far, in bytes."""
        return sum(self.counted.values())

    def take(self, kind: int, piece: bytes) -> None:
        """One piece of output."""
        room = self._pass_on - self.counted[kind]
        self.counted[kind] += len(piece)
        if room > 0:
            # One byte in front is whether the rest of the stream is not passed on.
            self._channel.send(kind, (b"\1" if len(piece) > room else b"\0") + piece[:room])
        elif room == 0:  # the piece before filled it to the last byte, and could not know of this one
            self._channel.send(kind, b"\1")


class ProgramRun:
    """One run of a program, by one launcher."""

    def __init__(self, channel: frames.Channel, launcher: Launcher, job: dict[str, Any]) -> None:
        self._channel = channel
        self._launcher = launcher
        self._job = job
        self._pump = Pump(channel, job["pass_on_bytes"])
        self._streams = {launcher.stdout: frame_format.STDOUT, launcher.stderr: frame_format.STDERR}
        self._order = WriteOrder(self._streams)
        self._record = OutputRecord(_NAMES)
        self._places = FullPlaces()
        self._status: int | None = None
        self._timed_out = False
        self._left_running: list[str] = []
        self._resting: dict[int, float] = {}
        self._rest_s = _REST_S
        self._ended: set[int] = set()
        self._cpu_before = _children_cpu_s()
        self._reap_every_s = _REAP_EVERY_S
        self._connections: Connections | None = None

    def to_end(self) -> dict[str, Any]:
        """Runs the program until it ends or is ended, and kills what it left; returns the payload of EXIT."""
        for stream in self._streams:
            os.set_blocking(stream, False)
        poll = select.poll()
        if self._job["network"] is not None:
            from connections import Connections, write_roots  # noqa: PLC0415 - only calls with a network need it

            if not write_roots(self._job["network"]["roots"]):
                env = self._job["env"]
                self._job["env"] = {name: value for name, value in env.items() if value != network.CA_BUNDLE}
            self._connections = Connections(self._channel, poll, self._job["network"])
        self._launcher.start(self._job)
        deadline = time.monotonic() + self._job["wall_s"]
        pidfd = _open_pidfd(self._launcher.pid)
        if pidfd is None:
            self._reap_every_s = _REAP_EVERY_WITHOUT_PIDFD_S
        for fd in (self._launcher.stdout, self._launcher.stderr, self._channel.read_fd, pidfd):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        self._rest(poll, _FIRST_REST_S)
        self._watch(poll, deadline)
        if self._status is not None:
            self._left_running = find_running(self._reaped)
        self._places.look()
        end_all_processes(self._reaped)
        if self._connections is not None:
            self._connections.stop()
        if pidfd is not None:
            os.close(pidfd)
        self._drain()
        self._order.close()
        self._places.look()
        return self._outcome()

    def _reaped(self, pid: int, status: int) -> None:
        if pid == self._launcher.pid:
            self._status = status

    def _watch(self, poll: select.poll, deadline: float) -> None:
        reap_at = 0.0
        while True:
            now = time.monotonic()
            if now >= deadline:
                self._timed_out = True
                return
            ready = self._ready(poll, now, deadline)
            self._places.look_again()
            if not ready.isdisjoint(self._streams):
                self._hear(poll)
                ready.difference_update(self._streams)
            if self._connections is not None:
                ready = self._connections.serve(ready)
            elif self._channel.read_fd in ready:
                raise frames.StreamEndedError  # during a run without network the service only ever hangs up
            if ready:
                reap_at = 0.0
            if self._pump.total > self._job["output_bytes"]:
                return
            # Orphans of the program are ours to reap, or they would fill its process limit.
            if time.monotonic() >= reap_at:
                reap(self._reaped)
                reap_at = time.monotonic() + self._reap_every_s
            if self._status is not None:
                return

    def _ready(self, poll: select.poll, now: float, deadline: float) -> set[int]:
        """The descriptors that can be read or have ended; waits until there is one, or it is time to reap."""
        seconds = min(deadline - now, self._reap_every_s, self._end_rest(poll, now))
        if self._connections is not None:
            seconds = min(seconds, self._connections.seconds_to_rest(now))
        ready = {fd for fd, _ in poll.poll(seconds * 1000)}
        if not ready.isdisjoint(self._resting):
            # One has ended while it rested; what waits in the other was written before.
            self._end_rest(poll, float("inf"))
            ready = {fd for fd, _ in poll.poll(0)}
        return ready

    def _hear(self, poll: select.poll | None) -> bool:
        """Reads what both streams have, and puts it into its order; whether there was anything."""
        pieces: dict[int, bytes] = {}
        packets = 0
        for _ in range(ROUND_READS_MAX):
            read, all_read = self._read_streams(poll)
            for kind, writes in read.items():
                pieces[kind] = pieces.get(kind, b"") + b"".join(writes)
                packets = max(packets, len(writes))
            if not read or not all_read:
                break
        for kind, part in self._order.ordered(all_read=all_read, is_end=not pieces):
            self._record.add(kind, part)
        for kind, piece in pieces.items():
            self._pump.take(kind, piece)
        if poll is not None and pieces and max(map(len, pieces.values())) < _SMALL_BYTES:
            # A program that fills its pipe while its streams rest would wait for us.
            is_full = packets > PIPE_PACKETS // 2
            self._rest_s = max(_REST_S_MIN, self._rest_s / 2) if is_full else min(_REST_S, self._rest_s * 2)
            self._rest(poll, self._rest_s)
        return bool(pieces)

    def _read_streams(self, poll: select.poll | None) -> tuple[dict[int, list[bytes]], bool]:
        """What each stream has, a write each, and whether that was all."""
        self._order.note_writes()
        all_read = True
        read: dict[int, list[bytes]] = {}
        for fd, kind in self._streams.items():
            packets, is_empty = self._packets(poll, fd)
            all_read = all_read and is_empty
            for packet in packets:
                self._order.take(kind, packet)
            if packets:
                read[kind] = packets
        return read, all_read

    def _packets(self, poll: select.poll | None, fd: int) -> tuple[list[bytes], bool]:
        """What a stream has, a write each, and whether that was all."""
        packets: list[bytes] = []
        size = 0
        while size < _READ_BYTES and len(packets) < 2 * PIPE_PACKETS:
            packet = self._read(poll, fd) if fd not in self._ended else b""
            if not packet:
                return packets, True
            packets.append(packet)
            size += len(packet)
        return packets, False

    def _read(self, poll: select.poll | None, fd: int) -> bytes:
        try:
            piece = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return b""
        if not piece:
            self._ended.add(fd)
            self._order.end(self._streams[fd])
            self._resting.pop(fd, None)
            if poll is not None:
                poll.unregister(fd)
        return piece

    def _rest(self, poll: select.poll, seconds: float) -> None:
        """Both streams rest together: apart, the pieces of a traceback and of what was printed before would mix.

        Of a stream that rests nothing is heard but its end.
        """
        until = time.monotonic() + seconds
        for fd in (self._launcher.stdout, self._launcher.stderr):
            if fd not in self._resting and fd not in self._ended:
                self._resting[fd] = until
                poll.modify(fd, 0)

    def _end_rest(self, poll: select.poll, now: float) -> float:
        """Watches streams again that have rested; the seconds until the next has."""
        for fd, until in list(self._resting.items()):
            if until <= now:
                del self._resting[fd]
                poll.modify(fd, select.POLLIN)
        return min((until - now for until in self._resting.values()), default=_REAP_EVERY_S)

    def _drain(self) -> None:
        """What the program had written when it ended is still in the pipes."""
        # No more than a pipe holds: the program may have sent the other end to itself, and left it in flight.
        for _ in range(_PIPE_BYTES_MAX // _READ_BYTES):
            if not self._hear(None):
                return
        for kind, part in self._order.ordered(all_read=False, is_end=True):
            self._record.add(kind, part)

    def _outcome(self) -> dict[str, Any]:
        """The payload of EXIT; what of the output does not fit into it goes before."""
        exceeded = self._pump.total > self._job["output_bytes"]
        *parts, last = self._record.parts()
        for part in parts:
            self._channel.send_json(frame_format.PRINTED, {"output": part})
        status = self._status
        code = os.waitstatus_to_exitcode(status) if status is not None else -_signal.SIGKILL
        return {
            "exit_code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "timed_out": self._timed_out,
            "output_exceeded": exceeded,
            "left_running": self._left_running,
            "oom_kills": cgroup.oom_kills() - self._launcher.oom_kills_before,
            "pids_hits": cgroup.pids_hits() - self._launcher.pids_hits_before,
            "memory_peak_bytes": cgroup.memory_peak_bytes(),
            "stdout_bytes": self._pump.counted[frame_format.STDOUT],
            "stderr_bytes": self._pump.counted[frame_format.STDERR],
            "output": last,
            "rooms": self._places.rooms(),
            "cpu_ms": max(0.0, _children_cpu_s() - self._cpu_before - self._launcher.start_cpu_s) * 1000,
        }


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _open_pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the kernel has none (gVisor)."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def reap(on_reaped: OnReaped) -> bool:
    """Collects every child that has ended, without waiting; returns whether others are left."""
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return True
            on_reaped(pid, status)
    except ChildProcessError:
        return False


def find_running(on_reaped: OnReaped) -> list[str]:
    """The names of some processes that run on though the program has ended; many end a moment after it."""
    until = time.monotonic() + _MOMENT_S
    while reap(on_reaped) and (names := _names_of_others()):
        if time.monotonic() >= until:
            return names
        time.sleep(_KILL_AGAIN_S)
    return []


def _names_of_others() -> list[str]:
    names = dict.fromkeys(_name_of(pid) for pid in os.listdir("/proc") if pid.isdigit() and pid != "1")
    return [name for name in names if name][:_NAMES_MAX]


def _name_of(pid: str) -> str:
    """The name of a process; empty if it has ended, or serves those of multiprocessing, and ends after them."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as command, open(f"/proc/{pid}/comm", "rb") as file:
            name = "" if b"resource_tracker" in command.read() else file.read().decode(errors="replace").rstrip()
    except OSError:
        return ""
    return "".join(c if c.isprintable() else "?" for c in name)


def kill_all_others() -> bool:
    """Sends SIGKILL to every other process of the container; returns whether there is one."""
    if os.getpid() != 1:
        raise RuntimeError("the runner has to be PID 1 of a container: it kills every process it can see")
    try:
        os.kill(-1, _signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def end_all_processes(on_reaped: OnReaped) -> None:
    """Kills every other process of the container and waits until none is left."""
    while kill_all_others():
        if reap(on_reaped):
            # Some child has yet to end; those of its parents that end before it become children of this process.
            on_reaped(*os.waitpid(-1, 0))
        else:
            time.sleep(_KILL_AGAIN_S)  # they are no children of this process, or not yet
    reap(on_reaped)
