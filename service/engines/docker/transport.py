"""The attach stream of a container: standard input raw, output in the engine's 8-byte-header pieces."""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading

_HEADER = struct.Struct(">BxxxI")
_STDERR = 2
_STDERR_TAIL_BYTES = 4_096
_BUFFER_BYTES = 1024 * 1024
_RELAY_BYTES = 65_536


class AttachTransport:
    """The port `Transport` over a hijacked connection to the engine."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.stderr_tail = b""
        """The end of what the runner itself complained about; empty unless it is broken."""

    @classmethod
    async def over(cls, connection: socket.socket) -> "AttachTransport":
        """Takes over a connection that the engine has switched to the attach stream."""
        if isinstance(connection, ssl.SSLSocket):
            connection = _relayed(connection)
        connection.settimeout(0)  # asyncio's
        reader, writer = await asyncio.open_connection(sock=connection, limit=_BUFFER_BYTES)
        return cls(reader, writer)

    async def read(self) -> bytes:
        """The next piece of the runner's standard output; empty at its end."""
        while True:
            try:
                kind, length = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
                payload = await self._reader.readexactly(length)
            except asyncio.IncompleteReadError:
                return b""
            if kind != _STDERR:
                return payload
            self.stderr_tail = (self.stderr_tail + payload)[-_STDERR_TAIL_BYTES:]

    async def write(self, data: bytes) -> None:
        """Writes to the runner's standard input, waiting while it is slow."""
        self._writer.write(data)
        await self._writer.drain()

    @property
    def is_open(self) -> bool:
        """False once the other side has hung up: the container has ended."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def close(self) -> None:
        """Hangs up, which ends the container."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def _relayed(connection: ssl.SSLSocket) -> socket.socket:
    """A plain socket in place of one that is TLS already, which asyncio cannot take over: two threads copy."""
    ours, theirs = socket.socketpair()

    def copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(_RELAY_BYTES):
                target.sendall(piece)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    for source, target in ((connection, theirs), (theirs, connection)):
        threading.Thread(target=copy, args=(source, target), daemon=True).start()
    return ours
