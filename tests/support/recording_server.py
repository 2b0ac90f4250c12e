"""A real HTTP server that keeps the raw bytes of each request, body and all."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.support.web_server import Answer, response

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass
class Recorded:
    """A request as it came."""

    head: bytes
    body: bytes

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1")

    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}


@dataclass
class RecordingServer:
    """A server that runs.

    Attributes:
        port: where it listens.
        answers: what it answers, one after another, the last one for ever; an answer may be a function that writes.
        requests: what came.
        connections: how many connections were made.
    """

    port: int = 0
    answers: list[Answer] = field(default_factory=lambda: [response(b'{"fine": true}', "application/json")])
    requests: list[Recorded] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            self.requests.append(Recorded(head, body))
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def recording_server() -> AsyncIterator[RecordingServer]:
    server = RecordingServer()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server
