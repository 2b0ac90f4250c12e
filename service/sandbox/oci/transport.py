"""The stream to a runner over a socket pair, whose other end is standard input and output of the container."""

import asyncio
import contextlib
import os
import socket

_BUFFER_BYTES = 1024 * 1024
_PIECE_BYTES = 256 * 1024
_STDERR_BYTES = 4_096


class SocketTransport:
    """The port `ContainerTransport` over our end of the pair and the reading end of standard error's pipe."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, stderr_fd: int) -> None:
        self._reader = reader
        self._writer = writer
        self._stderr_fd = stderr_fd
        self._stderr_tail = b""

    @classmethod
    async def over(cls, connection: socket.socket, stderr_fd: int) -> "SocketTransport":
        """Takes over both descriptors."""
        connection.settimeout(0)  # asyncio's
        reader, writer = await asyncio.open_connection(sock=connection, limit=_BUFFER_BYTES)
        return cls(reader, writer, stderr_fd)

    async def read(self) -> bytes:
        """See `ContainerTransport.read`."""
        return await self._reader.read(_PIECE_BYTES)

    async def write(self, data: bytes | bytearray) -> None:
        """See `ContainerTransport.write`."""
        self._writer.write(data)
        await self._writer.drain()

    @property
    def is_open(self) -> bool:
        """See `ContainerTransport.is_open`."""
        return not self._reader.at_eof() and not self._writer.is_closing()

    @property
    def stderr_tail(self) -> bytes:
        """See `ContainerTransport.stderr_tail`."""
        if self._stderr_fd >= 0:
            self._stderr_tail = (self._stderr_tail + read_available(self._stderr_fd))[-_STDERR_BYTES:]
        return self._stderr_tail

    async def use_direct_socket(self) -> None:
        """See `ContainerTransport.use_direct_socket`: there is none."""

    async def close(self) -> None:
        """See `ContainerTransport.close`. What was not sent is not wanted: a runner may have stopped reading."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        if self._stderr_fd >= 0:
            os.close(self._stderr_fd)
            self._stderr_fd = -1


def read_available(fd: int) -> bytes:
    """What is in a pipe now, up to a bound; the pipe does not block."""
    with contextlib.suppress(BlockingIOError):
        return os.read(fd, 16 * _STDERR_BYTES)
    return b""
