"""A server of an API on loopback: connections stay open, and it notes each request that it reads."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

Answer = bytes | Callable[["Request", asyncio.StreamWriter], Awaitable[None]]
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked\r\n", re.IGNORECASE)


@dataclass
class Request:
    """One request.

    Attributes:
        head: its head, as it came.
        body: its body, without chunks.
    """

    head: bytes
    body: bytes = b""

    @property
    def line(self) -> bytes:
        return self.head.partition(b"\r\n")[0]

    def values(self, name: str) -> list[bytes]:
        """The values of a header, in order."""
        lines = [line.partition(b":") for line in self.head.split(b"\r\n")[1:]]
        return [value.strip() for key, _, value in lines if key.lower() == name.lower().encode()]


@dataclass
class ApiServer:
    """A server that runs.

    Attributes:
        port: where it listens.
        answers: by path with query: the bytes of a response, or a function that writes it; else 204.
        requests: what came.
        connections: how many were made.
        responding: the connections that are open.
    """

    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    connected: asyncio.Queue[None] = field(default_factory=asyncio.Queue)
    responding: dict[asyncio.Task[None], asyncio.StreamWriter] = field(default_factory=dict)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.connected.put_nowait(None)
        task = asyncio.ensure_future(self._respond(reader, writer))
        self.responding[task] = writer
        try:
            await task
        finally:
            del self.responding[task]
            writer.close()

    async def close(self) -> None:
        """Ends what is still open."""
        left = dict(self.responding)
        for task, writer in left.items():
            task.cancel()
            writer.transport.abort()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the next turn

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while True:
                request = Request(await reader.readuntil(b"\r\n\r\n"))
                self.requests.append(request)
                answer = self.answers.get(request.line.split(b" ")[1].decode(), NO_CONTENT)
                if isinstance(answer, bytes):
                    request.body = await _body(reader, request.head)
                    writer.write(answer)
                    await writer.drain()
                else:
                    await answer(request, writer)
                if isinstance(answer, bytes) and b"\r\nConnection: close\r\n" in answer:
                    break


NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


def ok(body: bytes, *headers: str) -> bytes:
    """A response whose connection stays open."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    if found := _LENGTH.search(head):
        return await reader.readexactly(int(found[1]))
    body = b""
    if _CHUNKED.search(head):
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
    return body


@asynccontextmanager
async def api_server(tls: ssl.SSLContext | None) -> AsyncIterator[ApiServer]:
    server = ApiServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server
        await server.close()
