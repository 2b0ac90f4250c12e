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
        self._begun = b""
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
        while data := await self._reader.read(_BUFFER_BYTES):
            # The engine sends pieces of 32 KB at the most: those that are there are taken in one go.
            if pieces := self._pieces(self._begun + data):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return b""

    def _pieces(self, data: bytes) -> list[bytes]:
        """The whole pieces of standard output; what follows them is kept for the next time."""
        pieces = []
        at = 0
        while len(data) - at >= _HEADER.size:
            kind, length = _HEADER.unpack_from(data, at)
            begin = at + _HEADER.size
            if len(data) - begin < length:
                break
            at = begin + length
            if kind != _STDERR:
                pieces.append(data[begin:at])
            else:
                self.stderr_tail = (self.stderr_tail + data[begin:at])[-_STDERR_TAIL_BYTES:]
        self._begun = data[at:]
        return pieces

    async def write(self, data: bytes | bytearray) -> None:
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
