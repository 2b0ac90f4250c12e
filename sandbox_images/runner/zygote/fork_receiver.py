"""How a process that was forked into this container meets the runner: over a socket of the container's own network.

The service forks one before any program runs here, or when none runs any more, and the socket is closed in between:
so whoever connects is ours. It brings nothing and is given what it needs. The kernel knows which process it is, if
that is asked.
"""

from __future__ import annotations

import _socket
import os
import select
import struct

import frames
import program_run
from runner_protocol import frame_format
from write_order import make_output_pipe

from zygote.runner_address import RUNNER_ADDRESS

_PEER = struct.Struct("3i")  # process, user and group as the kernel saw them
_PAIR = struct.Struct("2i")
_BACKLOG = 1


class ForkReceiver:
    """The listening socket that forked processes connect to; open from the start until a program runs."""

    def __init__(self, channel: frames.Channel) -> None:
        self._channel = channel
        self._listener: _socket.socket | None = None
        self.open()

    def open(self) -> None:
        """Listens; raises OSError while a socket of a program still has the name."""
        if self._listener is None:
            listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                listener.bind(RUNNER_ADDRESS)
                listener.listen(_BACKLOG)
            except OSError:
                listener.close()
                raise
            self._listener = listener

    def close(self) -> None:
        """Stops to listen."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    def receive_interpreter(self) -> program_run.Launcher | None:
        """The interpreter that connects; None if the service reports that none will."""
        while (connection := self._accept()) is not None:
            launcher = _equip(connection)
            if launcher is not None:
                return launcher
        return None

    def receive_inspector(self) -> _socket.socket | None:
        """The socket of the inspector that connects; None if the service reports that none will."""
        return self._accept()

    def _accept(self) -> _socket.socket | None:
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
        if kind != frame_format.LAUNCH:
            raise frames.StreamEndedError
        self.close()
        return None


def _peer_of(connection: _socket.socket) -> int:
    peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _PEER.size)
    pid: int = _PEER.unpack(peer)[0]
    return pid


def _equip(connection: _socket.socket) -> program_run.Launcher | None:
    """Hands an interpreter its output pipes; None if it ends before it is ready."""
    pid = _peer_of(connection)
    ends: list[int] = []
    try:
        for _ in ("output", "error output"):
            ends += make_output_pipe()
        out_read, out_write, err_read, err_write = ends
        descriptors = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, _PAIR.pack(out_write, err_write))]
        connection.sendmsg([b"."], descriptors)
        launcher = program_run.Launcher(pid, connection.detach(), out_read, err_read)
        launcher.wait_ready()
    except OSError:
        connection.close()  # or the fork would wait for its output until it is given up
        for end in ends:
            os.close(end)
        return None
    for end in (out_write, err_write):
        os.close(end)
    return launcher
