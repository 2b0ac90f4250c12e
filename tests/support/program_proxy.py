"""The proxy of a program's network, with a listener on loopback in place of a sandbox."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

from proofbox.contracts.network import Endpoint, NetworkConnection
from proofbox.service.egress.host_headers import CallHeaders
from proofbox.service.egress.policy import CallerHosts, CallNetwork, CallProvisions, NetworkLimits, NetworkPolicy
from proofbox.service.egress.upstream import Connector

LOOPBACK = ("127.0.0.0/8",)
WITHOUT_LIMITS = CallerHosts(lambda _: None)
LIMITS = NetworkLimits(open_max=16, connections_max=200, bytes_max=1024**3, idle_s=60)


@dataclass
class Names:
    """A resolver whose names are those of the test: each answer is used once, the last one from then on."""

    answers: dict[str, list[Sequence[str]]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise OSError(f"{host} is unknown")
        left = self.answers[host]
        return left.pop(0) if len(left) > 1 else left[0]


def all_on(address: str, *hosts: str) -> Names:
    """Every host at one address."""
    return Names({host: [[address]] for host in hosts})


class _Wire:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        return await self._reader.read(65_536)

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def write_end(self) -> None:
        self._writer.write_eof()


class Program:
    """A program that sends pieces, and notes what it is sent; the end is None."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)
        self.got: list[bytes | None] = []

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self.got.append(bytes(data))

    async def write_end(self) -> None:
        self.got.append(None)


@dataclass
class Proxy:
    """A proxy that listens."""

    port: int
    network: CallNetwork
    ended: "asyncio.Queue[NetworkConnection]"

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, request: bytes) -> bytes:
        """All that comes back for some bytes."""
        reader, writer = await self.open()
        try:
            writer.write(request)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()

    async def connect(self, target: str) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """The head of the response to CONNECT, and the tunnel."""
        reader, writer = await self.open()
        writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        return await reader.readuntil(b"\r\n\r\n"), reader, writer


def call_network(
    allow: Sequence[str],
    resolve: Callable[[str, int], Awaitable[Sequence[str]]],
    *,
    opened: Sequence[str] = LOOPBACK,
    limits: NetworkLimits = LIMITS,
    on_connection: Callable[[NetworkConnection], None] = lambda _: None,
    secrets: tuple[CallHeaders, ssl.SSLContext] | None = None,
) -> CallNetwork:
    """The network of one call.

    Args:
        allow: its allow-list.
        resolve: resolves names.
        opened: networks beyond the public internet.
        limits: what its connections may use.
        on_connection: is called with each connection that has ended.
        secrets: headers with secrets, and what checks the certificates of their hosts.
    """
    headers, tls = secrets or (CallHeaders(), ssl.create_default_context())
    connector = Connector(resolve, [ip_network(text) for text in opened], tls=lambda: tls)
    allowed = [Endpoint.parse(entry) for entry in allow]
    return CallNetwork(allowed, limits, connector, [on_connection], CallProvisions(headers))


def network_policy(allowed: Sequence[str], of_callers: CallerHosts = WITHOUT_LIMITS) -> NetworkPolicy:
    """The policy of an operator whose hosts have no address."""
    return NetworkPolicy(allowed, LIMITS, Connector(Names({}), ()), of_callers)


def no_network() -> NetworkPolicy:
    """The policy of an operator who allows no host."""
    return network_policy(())


@asynccontextmanager
async def program_proxy(allow: Sequence[str], resolve: Any, **options: Any) -> AsyncIterator[Proxy]:
    ended: asyncio.Queue[NetworkConnection] = asyncio.Queue()
    network = call_network(allow, resolve, on_connection=ended.put_nowait, **options)
    tasks: set[asyncio.Task[Any] | None] = set()
    failures: list[Exception] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        try:
            await network.serve(_Wire(reader, writer))
        except OSError:
            pass
        except Exception as failure:  # noqa: BLE001 - raised at the end of the test
            failures.append(failure)
        finally:
            tasks.discard(asyncio.current_task())
            with contextlib.suppress(OSError):
                writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield Proxy(listening.sockets[0].getsockname()[1], network, ended)
        left = [task for task in tasks if task is not None]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
    if failures:
        raise failures[0]


@asynccontextmanager
async def listener() -> AsyncIterator[tuple[int, asyncio.Queue[bytes]]]:
    """A server that notes all that it is sent, and answers nothing."""
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            received.put_nowait(await reader.read())
        finally:
            writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], received


def client_hello(server_name: str | None) -> bytes:
    """The first message of a TLS client."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    connection = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name)
    with contextlib.suppress(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def with_extension(hello: bytes, kind: int, content: bytes) -> bytes:
    """A ClientHello of one record with another extension at its end."""
    body = bytearray(hello[9:])
    at = 34
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2])
    at += 1 + body[at]
    size = int.from_bytes(body[at : at + 2])
    extension = kind.to_bytes(2) + len(content).to_bytes(2) + content
    body[at : at + 2] = (size + len(extension)).to_bytes(2)
    body += extension
    return as_records(b"\x01" + len(body).to_bytes(3) + bytes(body))


def as_records(message: bytes, size: int = 16_384) -> bytes:
    """A handshake message, cut into TLS records."""
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece for piece in pieces)
