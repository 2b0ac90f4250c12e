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

_NAME = b"\0proofbox"
_PEER = struct.Struct("3i")  # process, user and group as the kernel saw them
_PAIR = struct.Struct("2i")
_WHO_CONNECTS = 1


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

    def inspector(self) -> _socket.socket | None:
        """The socket of the inspector that comes in; None if the service says that none will."""
        return self._connection()

    def _connection(self) -> _socket.socket | None:
        listener, stream = self._listener, self._channel.read_fd
        if listener is None:
            return None
        ready = {stream}
        if not self._channel.has_buffered():
            ready = set(select.select([listener.fileno(), stream], [], [])[0])
        if stream not in ready:
            fd, _ = listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - accept without the module socket
            return _socket.socket(fileno=fd)
        # The service's message comes first: that none will come, though one may have connected before it died.
        kind, _ = self._channel.receive()
        if kind != frames.LAUNCH:
            raise frames.StreamEndedError
        self.close()
        return None


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
