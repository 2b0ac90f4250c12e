"""A gate on the way to a real server: what passes it can be counted, held, slowed, or cut off."""

import contextlib
import re
import socket
import struct
import threading
import time
from typing import Self

_READ_BYTES = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing resets the connection


class Gate:
    """Passes bytes on between clients and a server of this machine; blocking, in threads of its own.

    Args:
        target: the server's socket file, or its port on loopback.
    """

    def __init__(self, target: str | int) -> None:
        self._target = target
        # It never listens: it keeps the port while the gate is cut, which else a client of another test may get.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port: int = self._place.getsockname()[1]
        self._listener = self._listening()
        self.held = threading.Event()
        """Set once something waits at the gate."""
        self._open = threading.Event()
        self._open.set()
        self._pattern: re.Pattern[bytes] | None = None
        self._stalled = False
        self._bytes_per_s = 0.0
        self._marker = b""
        self._seen = 0
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Resets all connections, and gives the port back."""
        self.cut()
        self.open()
        self._place.close()

    # ---- told

    def count(self, marker: bytes) -> None:
        """From now on it is counted how often clients send this."""
        with self._lock:
            self._marker, self._seen = marker, 0

    @property
    def seen(self) -> int:
        """How often clients have sent what is counted."""
        return self._seen

    def hold(self, pattern: bytes) -> None:
        """What clients send and holds the pattern waits, and so does all behind it on that connection."""
        self.held.clear()
        self._open.clear()
        self._pattern = re.compile(pattern)

    def stall(self) -> None:
        """Nothing that clients send is passed on: the server seems to hang."""
        self.held.clear()
        self._open.clear()
        self._stalled = True

    def slow_down(self, bytes_per_s: float) -> None:
        """What clients send is passed on at this speed."""
        self._bytes_per_s = bytes_per_s

    def open(self) -> None:
        """Nothing waits any more."""
        self._pattern, self._stalled, self._bytes_per_s = None, False, 0.0
        self._open.set()

    def cut(self) -> None:
        """Resets all connections and refuses new ones."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            connections, self._connections = self._connections, set()
        for connection in connections:
            _reset(connection)

    def mend(self) -> None:
        """Takes connections again."""
        self._listener = self._listening()
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    # ---- passed on

    def _listening(self) -> socket.socket:
        return socket.create_server(("127.0.0.1", self.port), backlog=512)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            try:
                server = self._connected()
            except OSError:
                _reset(client)
                continue
            with self._lock:
                self._connections |= {client, server}
            threading.Thread(target=self._upward, args=(client, server), daemon=True).start()
            threading.Thread(target=self._downward, args=(server, client), daemon=True).start()

    def _connected(self) -> socket.socket:
        if isinstance(self._target, int):
            return socket.create_connection(("127.0.0.1", self._target))
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(self._target)
        except OSError:
            server.close()
            raise
        return server

    def _upward(self, client: socket.socket, server: socket.socket) -> None:
        tail = b""
        try:
            while data := client.recv(_READ_BYTES):
                pattern = self._pattern
                if self._stalled or (pattern is not None and pattern.search(data)):
                    self.held.set()
                    self._open.wait()
                if self._bytes_per_s:
                    self.held.set()
                    time.sleep(len(data) / self._bytes_per_s)
                tail = self._counted(tail, data)
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(client, server)

    def _downward(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(_READ_BYTES):
                client.sendall(data)
        self._drop(client, server)

    def _counted(self, tail: bytes, data: bytes) -> bytes:
        marker = self._marker
        if not marker:
            return b""
        text = tail + data
        with self._lock:
            self._seen += text.count(marker)
        return text[-(len(marker) - 1) :]

    def _drop(self, *connections: socket.socket) -> None:
        with self._lock:
            self._connections -= set(connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


def _reset(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.shutdown(socket.SHUT_RD)  # wakes the thread that reads
    connection.close()
