"""The stream to a runner through its engine, and past it.

The attach stream takes standard input raw and gives output in pieces with a header of 8 bytes. Where the service
can take a socket from the container's first process, they talk over that:
see docs/adr/0028-latency-what-we-tried-what-we-kept.md.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable

from proofbox.service.sandbox.docker.direct_socket import DirectSocketError

_HEADER = struct.Struct(">BxxxI")
_STDERR = 2
_STDERR_TAIL_BYTES = 4_096
_BUFFER_BYTES = 1024 * 1024
_PIECE_BYTES = 256 * 1024
_COMPLAINT_S = 0.2
_RELAY_BYTES = 65_536

TakeSocket = Callable[[], Awaitable[socket.socket]]
"""Takes the socket that a runner has laid out; raises DirectSocketError."""


class AttachTransport:
    """The port `ContainerTransport` over a hijacked connection to the engine, and over a socket that was taken."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        take_socket: TakeSocket | None = None,
    ) -> None:
        self._attached = reader, writer
        self._reader = reader
        self._writer = writer
        self._take_socket = take_socket
        self._listening: asyncio.Task[None] | None = None
        self._begun = b""
        self.stderr_tail = b""
        """The end of what the runner itself complained about; empty unless it is broken."""

    @classmethod
    async def over(cls, connection: socket.socket, take_socket: TakeSocket | None = None) -> "AttachTransport":
        """Takes over a connection that the engine has switched to the attach stream."""
        if isinstance(connection, ssl.SSLSocket):
            connection = _relay(connection)
        connection.settimeout(0)  # asyncio's
        reader, writer = await asyncio.open_connection(sock=connection, limit=_BUFFER_BYTES)
        return cls(reader, writer, take_socket)

    async def use_direct_socket(self) -> None:
        """See `ContainerTransport.use_direct_socket`. The runner's errors still come over the attach stream."""
        if self._take_socket is None:
            return
        with contextlib.suppress(DirectSocketError):
            connection = await self._take_socket()
            connection.settimeout(0)  # asyncio's
            self._reader, self._writer = await asyncio.open_connection(sock=connection, limit=_BUFFER_BYTES)
            self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        """Collects the runner's errors until it ends; nothing else comes here."""
        with contextlib.suppress(OSError):
            await self._read_attached()

    async def read(self) -> bytes:
        """The next piece of what the runner sends; empty at its end."""
        if self._listening is None:
            return await self._read_attached()
        data = await self._reader.read(_PIECE_BYTES)
        if not data:
            # Its last complaint still comes through the engine.
            await asyncio.wait({self._listening}, timeout=_COMPLAINT_S)
        return data

    async def _read_attached(self) -> bytes:
        while data := await self._attached[0].read(_BUFFER_BYTES):
            # The engine sends pieces of 32 KB at the most: those that are there are taken in one go.
            if pieces := self._pieces(self._begun + data):
                return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        return b""

    def _pieces(self, data: bytes) -> list[bytes]:
        """The whole pieces of standard output; what follows them waits for the next time."""
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
        """See `ContainerTransport.write`."""
        self._writer.write(data)
        await self._writer.drain()

    @property
    def is_open(self) -> bool:
        """See `ContainerTransport.is_open`."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    async def close(self) -> None:
        """Hangs up, which ends the container. What was not sent is not wanted: a runner may not read any more."""
        writers = {self._writer, self._attached[1]}
        for writer in writers:
            writer.transport.abort()
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})
        for writer in writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _relay(connection: ssl.SSLSocket) -> socket.socket:
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
