"""How a process that was forked into this container meets the runner: over a socket of the container's own network.

The service asks for it before any program runs here, or when none runs any more, and the socket is gone in between:
so whoever connects is ours. It brings nothing and is given what it needs. The kernel says which process it is, if
that is asked.
"""

from __future__ import annotations

import _socket
import os
import select
import struct

import frames
import run
from write_order import make_output_pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = b"\0proofbox"
_PEER = struct.Struct("3i")  # process, user and group as the kernel saw them
_PAIR = struct.Struct("2i")
_WHO_CONNECTS = 1
_PAUSE_MS = 50


class Door:
    """The socket that processes from outside come in by; open from the start until a program runs."""

    def __init__(self, channel: frames.Channel) -> None:
        self._channel = channel
        self._listener: _socket.socket | None = None
        self.open()

    def open(self) -> None:
        """Lets processes in; raises OSError while something of a program still has the name."""
        if self._listener is None:
            listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                listener.bind(_NAME)
                listener.listen(_WHO_CONNECTS)
            except OSError:
                listener.close()
                raise
            self._listener = listener

    def close(self) -> None:
        """Lets nobody in."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def launcher(self) -> run.Launcher | None:
        """The interpreter that comes in; None if the service says that none will."""
        while (connection := self._connection()) is not None:
            launcher = _welcomed(connection)
            if launcher is not None:
                return launcher
        return None

    def inspector(self, meanwhile: Callable[[], None]) -> int | None:
        """The socket of the inspector that comes in; None if the service says that none will.

        While none has come, ``meanwhile`` is called from time to time.
        """
        connection = self._connection(meanwhile)
        return None if connection is None else connection.detach()

    def inspector_within(self, seconds: float) -> int | None:
        """The same if it comes in time, whatever the service says; None if not, so late."""
        listener = self._listener
        if not select.select([] if listener is None else [listener.fileno()], [], [], seconds)[0]:
            return None
        return _accepted(listener)

    def _connection(self, meanwhile: Callable[[], None] | None = None) -> _socket.socket | None:
        listener, stream = self._listener, self._channel.read_fd
        if listener is None:
            return None
        poll = select.poll()
        poll.register(listener.fileno(), select.POLLIN)
        poll.register(stream, select.POLLIN)
        events: list[tuple[int, int]] = []
        while not events and not self._channel.has_buffered():
            events = poll.poll(None if meanwhile is None else _PAUSE_MS)
            if not events and meanwhile is not None:
                meanwhile()
        ready = {fd for fd, _ in events} or {stream}
        if stream not in ready:
            return _socket.socket(fileno=_accepted(listener))
        # What the service says comes first: that none will, though one may have knocked before it died.
        kind, _ = self._channel.receive()
        if kind != frames.LAUNCH:
            raise frames.StreamEndedError
        self.close()
        return None


def _accepted(listener: _socket.socket | None) -> int:
    fd, _ = listener._accept()  # type: ignore[union-attr]  # noqa: SLF001 - what accept is made of
    return int(fd)


def _process(connection: _socket.socket) -> int:
    peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _PEER.size)
    pid: int = _PEER.unpack(peer)[0]
    return pid


def _welcomed(connection: _socket.socket) -> run.Launcher | None:
    """Gives an interpreter its output; None if it ends before it is ready."""
    pid = _process(connection)
    ends: list[int] = []
    try:
        for _ in ("output", "error output"):
            ends += make_output_pipe()
        out_read, out_write, err_read, err_write = ends
        descriptors = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, _PAIR.pack(out_write, err_write))]
        connection.sendmsg([b"."], descriptors)
        launcher = run.Launcher(pid, connection.detach(), out_read, err_read)
        launcher.wait_ready()
    except OSError:
        connection.close()  # or the fork would wait for its output until it is given up
        for end in ends:
            os.close(end)
        return None
    for end in (out_write, err_write):
        os.close(end)
    return launcher
