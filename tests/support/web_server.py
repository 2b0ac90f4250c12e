"""A real web server on the loopback interface: each path answers what the test says."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class WebServer:
    """A server that runs.

    Attributes:
        port: where it listens.
        answers: by path (with its query): the whole HTTP answer, or a function that writes it.
        requests: the heads that came, in order.
        scheme: ``http`` or ``https``.
    """

    port: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    scheme: str = "http"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.requests.append(head)
            answer = self.answers.get(head.split(" ")[1], response(b"nothing here", status="404 Not Found"))
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def response(body: bytes, mime: str = "text/html; charset=utf-8", status: str = "200 OK", **headers: str) -> bytes:
    """A whole HTTP answer; ``content_encoding="gzip"`` becomes a header of that name."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"Content-Type: {mime}"] if mime else []
    lines += [f"{name.replace('_', '-').title()}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return response(b"", status=status, location=location)


@asynccontextmanager
async def web_server(tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[WebServer]:
    server = WebServer(scheme="https" if tls else "http")
    listening = await asyncio.start_server(server.serve, host, 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


def certificate(folder: Path, name: str) -> Path:
    """A certificate of its own authority for a host name, with its key, in one PEM file."""
    key, cert, both = folder / "key.pem", folder / "cert.pem", folder / "both.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    both.write_bytes(key.read_bytes() + cert.read_bytes())
    return both
