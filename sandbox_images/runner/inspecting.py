"""The inspector, asked: one that was forked into this container from outside, or a fork of this runner."""

from __future__ import annotations

import _signal
import _socket
import os
import select
import time

import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    import adopting

_READ_BYTES = 65_536
_SAID_BYTES_MAX = 64 * 1024 * 1024  # a verdict is 64 KiB at most; a contract has hundreds


class Inspector:
    """Opens hostile files with libraries that can be hurt: a process that has nothing of the runner's.

    ``door`` is None where nothing is forked in.
    """

    def __init__(self, channel: frames.Channel, door: adopting.Door | None) -> None:
        self._channel = channel
        self._door = door

    def call(self) -> None:
        """Asks the service for one, which it forks; to be called before `ask`."""
        if self._door is not None:
            self._door.open()
            self._channel.send(frames.INSPECTOR)

    def ask(self, request: bytes, seconds: float) -> bytes:
        """What it says to a request, whole lines; it is ended after ``seconds``."""
        deadline = time.monotonic() + seconds
        pid, answers = self._started(request)
        try:
            said = self._read(answers, deadline)
        finally:
            os.close(answers)
            end(pid)
        return said[: said.rfind(b"\n") + 1]

    def _started(self, request: bytes) -> tuple[int, int]:
        """The process and a descriptor that its answers are read from."""
        came = self._door.inspector() if self._door is not None else None
        if came is None:
            import forked_inspector  # noqa: PLC0415 - with it come the inspector's modules

            return forked_inspector.start(request)
        pid, fd = came
        with_request = _socket.socket(fileno=fd)
        try:
            with_request.sendall(request)
            with_request.shutdown(_socket.SHUT_WR)
        except OSError:
            pass  # it has died, and says nothing
        return pid, with_request.detach()

    def _read(self, fd: int, deadline: float) -> bytes:
        said = bytearray()
        while len(said) < _SAID_BYTES_MAX:
            readable, _, _ = select.select(
                [fd, self._channel.read_fd], [], [], max(0.0, deadline - time.monotonic())
            )
            if self._channel.read_fd in readable:
                raise frames.StreamEndedError  # meanwhile the service only ever hangs up
            try:
                piece = os.read(fd, _READ_BYTES) if readable else b""
            except ConnectionResetError:
                piece = b""
            if not piece:
                break
            said += piece
        return bytes(said)


def end(pid: int) -> None:
    """Kills a process of ours, if it still runs, and reaps it."""
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
