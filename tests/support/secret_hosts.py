"""A proxy whose operator has a secret for a host, and clients inside of its sandbox."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.network import Endpoint, NetworkConnection
from proofbox.service.egress.host_headers import HostHeader, HostHeaders
from tests.support.certificates import Issuer
from tests.support.program_proxy import Proxy, all_on, program_proxy

HOST = "api.test"
OTHER = "other.test"
SECRET = "sk-live-4f9d2c7ab1e05368"
VARIABLE = "API_KEY"


def host_header(*hosts: str, **fields: Any) -> HostHeader:
    """The secret of the operator as a header of hosts."""
    given: dict[str, Any] = {
        "variable": VARIABLE,
        "name": "Authorization",
        "secret": SECRET,
        "prefix": "Bearer ",
        "projects": (("*", "*"),),
    }
    return HostHeader(hosts=tuple(map(Endpoint.parse, hosts)), **{**given, **fields})


@dataclass
class Inside:
    """A TLS connection of a program to a host."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def send(self, text: str | bytes) -> None:
        self.writer.write(text if isinstance(text, bytes) else text.encode("latin-1"))

    async def ask(self, text: str | bytes) -> bytes:
        """All that comes back for a request, until the connection ends."""
        self.send(text)
        return await self.reader.read()

    async def response(self) -> bytes:
        """One response with a length, after which the connection stays open."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        return head + await self.reader.readexactly(int(lengths[0].partition(b":")[2]) if lengths else 0)


@dataclass
class Sandbox:
    """What a program in a sandbox of the test has.

    Attributes:
        proxy: its proxy.
        issuer: the authority of the servers.
        opened: its connections, which are closed with it.
    """

    proxy: Proxy
    issuer: Issuer
    opened: list[Inside] = field(default_factory=list)

    @property
    def trusted(self) -> ssl.SSLContext:
        """TLS as a client that trusts what this sandbox trusts."""
        return ssl.create_default_context(cadata=self.proxy.network.roots)

    async def inside(self, port: int, host: str = HOST, tls: ssl.SSLContext | None = None) -> Inside:
        """Connects to a host by CONNECT and TLS."""
        head, reader, writer = await self.proxy.connect(f"{host}:{port}")
        assert head.startswith(b"HTTP/1.1 200 "), head
        made = Inside(reader, writer)
        self.opened.append(made)
        try:
            await writer.start_tls(tls or self.trusted, server_hostname=host)
        except ssl.SSLError:
            writer.transport.abort()
            raise
        return made

    async def ended(self) -> NetworkConnection:
        """The entry of the connection that ends next, after all were closed."""
        for each in self.opened:
            each.writer.close()
        return await self.proxy.ended.get()


@asynccontextmanager
async def sandbox(
    issuer: Issuer, ports: Sequence[int], *headers: HostHeader, **options: Any
) -> AsyncIterator[Sandbox]:
    """A sandbox whose call may reach both hosts at some ports; the first port of the first host has the secret.

    Args:
        issuer: the authority of the servers, which the service trusts.
        ports: of the servers.
        headers: the headers with secrets; none: one for the first port.
        options: of the call's network.
    """
    allow = [f"{host}:{port}" for host in (HOST, OTHER) for port in ports]
    given = headers or (host_header(f"{HOST}:{ports[0]}"),)
    of_call = HostHeaders(given).of_call("acme", "books", [Endpoint.parse(entry) for entry in allow])
    names = options.pop("names", all_on("127.0.0.1", HOST, OTHER))
    async with program_proxy(allow, names, secrets=(of_call, issuer.client_tls()), **options) as proxy:
        made = Sandbox(proxy, issuer)
        yield made
        for each in made.opened:
            each.writer.close()


def request(path: str = "/", *lines: str, host: str = HOST, port: int = 443) -> str:
    """A GET request whose connection stays open."""
    authority = host if port == 443 else f"{host}:{port}"
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {authority}", *lines, "", ""])
