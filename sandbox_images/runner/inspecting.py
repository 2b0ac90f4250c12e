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
        self._own: tuple[int, int] | None = None

    def call(self, *, of_plain_files: bool) -> None:
        """Asks the service for one, which it forks; to be called before `ask`.

        Args:
            of_plain_files: whether no library is needed for the files that it will open.
        """
        if self._door is not None:
            self._door.open()
            self._channel.send(frames.INSPECTOR, b"\1" if of_plain_files else b"\0")

    def ask(self, request: bytes, lines: int, seconds: float) -> bytes:
        """What it says to a request: so many lines, or those that there are after ``seconds``, or when it ends."""
        answers = self._started(request)
        said = self._read(answers, lines, time.monotonic() + seconds)
        return said[: said.rfind(b"\n") + 1]

    def end(self, seconds: float) -> None:
        """Ends a fork of this runner that has said all, having waited for its end ``seconds`` at most.

        One from outside waits, and ends with the container: the kernel takes some milliseconds to take a process
        apart, which the answer to the call would wait for.
        """
        if self._own is None:
            return
        pid, answers = self._own
        try:
            self._read(answers, 0, time.monotonic() + seconds)
        finally:
            os.close(answers)
            end(pid)

    def _started(self, request: bytes) -> int:
        """A descriptor that its answers are read from."""
        came = self._door.inspector() if self._door is not None else None
        if came is None:
            import forked_inspector  # noqa: PLC0415 - with it come the inspector's modules

            self._own = forked_inspector.start(request)
            return self._own[1]
        with_request = _socket.socket(fileno=came)
        try:
            with_request.sendall(request)
            with_request.shutdown(_socket.SHUT_WR)
        except OSError:
            pass  # it has died, and says nothing
        return with_request.detach()

    def _read(self, fd: int, lines: int, deadline: float) -> bytes:
        """What comes until so many lines are there, or until nothing more will be; 0: the latter."""
        said, seen = bytearray(), 0
        while len(said) < _SAID_BYTES_MAX and (not lines or seen < lines):
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
            seen += piece.count(b"\n")
        return bytes(said)


def end(pid: int) -> None:
    """Kills an inspector, if it still runs, and reaps it if it is a child of this process."""
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
