"""A TCP relay in front of the service, which a test cuts and mends: the lost connection of a user."""

import contextlib
import socket
import threading
from typing import Self

_READ_BYTES = 65_536


class Relay:
    """Passes bytes on between browsers and a port of this machine; works in threads of its own.

    Args:
        port: the port of the service on loopback.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._is_cut = False
        self._sockets: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cut()
        self._listening.close()

    def cut(self) -> None:
        """End all connections, and refuse new ones until `mend`."""
        self._is_cut = True
        for each in list(self._sockets):
            _close(each)

    def mend(self) -> None:
        """Accept connections again."""
        self._is_cut = False

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                if self._is_cut:
                    _close(client)
                    continue
                server = socket.create_connection(self._target)
                self._sockets |= {client, server}
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_READ_BYTES):
                target.sendall(data)
        for each in (source, target):
            self._sockets.discard(each)
            _close(each)


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()
