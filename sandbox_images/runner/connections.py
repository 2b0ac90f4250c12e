"""The connections of a program to the proxy on loopback, carried to the service over the stream.

Process 1 carries bytes and reads none: the service is the proxy. See `runner_protocol.network`. Nothing here waits
for a connection; only the stream is written until it has taken all, and the service always reads it.
"""

from __future__ import annotations

import _socket
import os
import select
import sys
import time

from runner_protocol import frame_format
from runner_protocol.network import (
    CA_BUNDLE,
    CONNECTION,
    CREDIT,
    CREDIT_EVERY_BYTES,
    PIECE_BYTES,
    PROXY_PORT,
    WINDOW_BYTES,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import frames

_BACKLOG = 64
# A program that writes byte by byte would make a frame of each: after a small piece its connection rests.
_SMALL_BYTES = 4096
_REST_S = 0.002
_PUBLIC_ROOTS = (  # an image without certifi may have the system's
    f"/opt/proofbox/venv/lib/python3.{sys.version_info[1]}/site-packages/certifi/cacert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
)


def write_roots(roots: str, bundle: str = CA_BUNDLE, public: tuple[str, ...] = _PUBLIC_ROOTS) -> bool:
    """Writes the certificate authorities for a program: the public ones of the image, and those of its call.

    Returns:
        Whether there are any; without, no file is written, and no variable may name it.
    """
    found = next(filter(os.path.exists, public), None)
    if found is None and not roots:
        return False
    fd = os.open(bundle, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444)
    with open(fd, "wb") as file:
        if found is not None:
            with open(found, "rb") as read:
                file.write(read.read())
        file.write(roots.encode())
    return True


class _Connection:
    """One connection: its socket, and what is on its way."""

    def __init__(self, number: int, sock: _socket.socket) -> None:
        self.number = number
        self.socket = sock
        self.fd = sock.fileno()
        self.waiting = bytearray()  # of the service, not yet taken by the program
        self.window = WINDOW_BYTES  # what may still be sent to the service
        self.taken = 0  # by the program, without a credit for it
        self.has_ended = False  # the program sends nothing more
        self.is_to_end = False  # the service sends nothing more
        self.is_to_close = False
        self.is_shut = False
        self.rests_until = 0.0

    def interest(self) -> int:
        """The events that are waited for."""
        reads = not self.has_ended and not self.is_to_close and self.window > 0 and not self.rests_until
        return (select.POLLIN if reads else 0) | (select.POLLOUT if self.waiting else 0)


class Connections:
    """Listens for a program, and carries its connections.

    Args:
        channel: the stream to the service.
        poll: what the run waits on.
        bounds: ``open_max`` connections at a time, ``accepted_max`` in all; then nothing listens any more.
    """

    def __init__(self, channel: frames.Channel, poll: select.poll, bounds: dict[str, Any]) -> None:
        self._channel = channel
        self._poll = poll
        self._open_max: int = bounds["open_max"]
        self._left: int = bounds["accepted_max"]
        self._open: dict[int, _Connection] = {}
        self._by_fd: dict[int, _Connection] = {}
        self._events: dict[int, int] = {}  # that each descriptor is registered for
        self._resting: list[_Connection] = []
        self._number = 0
        self._listener: _socket.socket | None = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        self._listener.bind(("127.0.0.1", PROXY_PORT))
        self._listener.listen(_BACKLOG)
        self._listener.setblocking(False)  # noqa: FBT003
        self._listener_fd = self._listener.fileno()
        self._watch(self._listener_fd, select.POLLIN)

    def seconds_to_rest(self, now: float) -> float:
        """Until when the caller may wait; ends the rests that are over."""
        for connection in [each for each in self._resting if each.rests_until <= now]:
            self._resting.remove(connection)
            connection.rests_until = 0.0
            self._settle(connection)
        return min((each.rests_until - now for each in self._resting), default=float("inf"))

    def serve(self, ready: set[int]) -> set[int]:
        """Carries what is there; returns the descriptors that are none of its own."""
        if self._channel.read_fd in ready:
            for kind, payload in self._channel.receive_ready():
                self._obey(kind, payload)
        others = set()
        for fd in ready:
            if fd == self._listener_fd:
                self._accept()
            elif fd in self._by_fd:
                self._carry(self._by_fd[fd])
            elif fd != self._channel.read_fd and fd not in self._events:
                others.add(fd)
        return others

    def stop(self) -> None:
        """Closes everything, and waits until the service has, too: the stream has no frame of them then."""
        self._close_listener()
        for connection in list(self._open.values()):
            self._forget(connection)
        self._channel.send(frame_format.NET_STOP)
        while self._channel.receive()[0] != frame_format.NET_STOPPED:
            pass

    def _watch(self, fd: int, events: int) -> None:
        """Waits for events of a descriptor; for none, not even its end, if there are none."""
        if self._events.get(fd, 0) == events:
            return
        if events:
            self._poll.register(fd, events)
            self._events[fd] = events
        else:
            self._poll.unregister(fd)
            del self._events[fd]

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            fd, _ = self._listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - no module socket
        except OSError:
            return
        sock = _socket.socket(fileno=fd)
        sock.setblocking(False)  # noqa: FBT003
        sock.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
        self._number += 1
        self._left -= 1
        connection = self._open[self._number] = self._by_fd[fd] = _Connection(self._number, sock)
        self._channel.send(frame_format.NET_OPENED, CONNECTION.pack(self._number))
        if self._left <= 0:
            self._close_listener()
        elif len(self._open) >= self._open_max:
            self._watch(self._listener_fd, 0)
        self._settle(connection)

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._watch(self._listener_fd, 0)
            self._listener.close()
            self._listener = None
            self._listener_fd = -1

    def _obey(self, kind: int, payload: bytes) -> None:
        """Does what the service sends; a connection that is closed here may still get something."""
        number = CONNECTION.unpack_from(payload)[0]
        connection = self._open.get(number)
        if connection is None:
            return
        if kind == frame_format.NET_DATA:
            connection.waiting += memoryview(payload)[CONNECTION.size :]
        elif kind == frame_format.NET_CREDIT:
            connection.window += CREDIT.unpack(payload)[1]
        elif kind == frame_format.NET_END:
            connection.is_to_end = True
        elif kind == frame_format.NET_CLOSE:
            connection.is_to_close = True
        if connection.waiting:
            self._write(connection)
        self._settle(connection)

    def _carry(self, connection: _Connection) -> None:
        if connection.waiting:
            self._write(connection)
        if connection.interest() & select.POLLIN and connection.number in self._open:
            self._read(connection)
        self._settle(connection)

    def _read(self, connection: _Connection) -> None:
        try:
            piece = connection.socket.recv(min(PIECE_BYTES, connection.window))
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return
        number = CONNECTION.pack(connection.number)
        if not piece:
            connection.has_ended = True
            self._channel.send(frame_format.NET_ENDED, number)
            return
        connection.window -= len(piece)
        self._channel.send(frame_format.NET_SENT, number + piece)
        if len(piece) < _SMALL_BYTES:
            connection.rests_until = time.monotonic() + _REST_S
            self._resting.append(connection)

    def _write(self, connection: _Connection) -> None:
        try:
            written = connection.socket.send(connection.waiting)
        except BlockingIOError:
            return
        except OSError:
            self._close(connection)
            return
        del connection.waiting[:written]
        connection.taken += written
        if connection.taken >= CREDIT_EVERY_BYTES:
            self._channel.send(frame_format.NET_TAKEN, CREDIT.pack(connection.number, connection.taken))
            connection.taken = 0

    def _settle(self, connection: _Connection) -> None:
        """Ends what is to end, and waits for what can come next."""
        if connection.number not in self._open:
            return
        if not connection.waiting:
            if connection.is_to_close:
                self._forget(connection)  # the service knows
                return
            if connection.is_to_end and not connection.is_shut:
                connection.is_shut = True
                try:
                    connection.socket.shutdown(_socket.SHUT_WR)
                except OSError:
                    self._close(connection)
                    return
            if connection.is_shut and connection.has_ended:
                self._close(connection)
                return
        self._watch(connection.fd, connection.interest())

    def _close(self, connection: _Connection) -> None:
        """Closes a connection that is over here, and reports it."""
        if connection.number in self._open:
            self._forget(connection)
            self._channel.send(frame_format.NET_CLOSED, CONNECTION.pack(connection.number))

    def _forget(self, connection: _Connection) -> None:
        self._watch(connection.fd, 0)
        del self._open[connection.number]
        del self._by_fd[connection.fd]
        if connection.rests_until:
            self._resting.remove(connection)
        connection.socket.close()
        if self._listener is not None:
            self._watch(self._listener_fd, select.POLLIN)
