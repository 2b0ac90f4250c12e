"""The proxy of a program: one connection, from its first byte to its end.

It takes ``CONNECT host:port`` for TLS and ``http://host/path`` for plain HTTP. Whatever it does not make is
answered with a sentence, as an HTTP response, or as a TLS alert where the program expects TLS.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import h11

from proofbox.contracts.network import Endpoint
from proofbox.service.egress.client_hello import ClientHelloReader, NoClientHelloError
from proofbox.service.egress.ended_tls import EndedTls
from proofbox.service.egress.host_headers import CallHeaders, HostHeader
from proofbox.service.egress.http_relay import HEAD_BYTES_MAX, HttpExchange, plain_head, read_url, require_short
from proofbox.service.egress.ledger import WHY_CHARS_MAX, Entry, Ledger
from proofbox.service.egress.lookups import Places
from proofbox.service.egress.refusal import ConnectionEnded, ConnectionRefusal
from proofbox.service.egress.tls_side import NoTlsError, TlsSide
from proofbox.service.egress.upstream import Connector, Relay, Upstream
from proofbox.service.sandbox.network import ProgramConnection
from proofbox.service.visible_text import visible_line

_HEAD_S = 10.0
_LINGER_S = 2.0
_LINGER_BYTES = 1024 * 1024
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_UNRECOGNIZED_NAME = bytes((21, 3, 3, 0, 2, 2, 112))  # a fatal TLS alert, RFC 6066


@dataclass(frozen=True, slots=True)
class ProxyRules:
    """What the proxy of one call allows.

    Attributes:
        require_allowed: raises ConnectionRefusal for a host that the call may not connect to.
        connector: makes connections.
        resolving: bounds the names that are resolved at the same time.
        ledger: counts bytes.
        idle_s: how long a connection may stay open without a byte.
        headers: what is set in requests to some hosts, whose TLS ends here.
        server_tls: TLS as the server of one of those hosts.
    """

    require_allowed: Callable[[Endpoint], None]
    connector: Connector
    resolving: Places
    ledger: Ledger
    idle_s: float
    headers: CallHeaders
    server_tls: Callable[[str], Awaitable[ssl.SSLContext]]


class ProxiedConnection:
    """One connection of a program.

    Args:
        program: the program's side.
        entry: its entry in the ledger.
        rules: what is allowed.
    """

    def __init__(self, program: ProgramConnection, entry: Entry, rules: ProxyRules) -> None:
        self._program = program
        self._entry = entry
        self._rules = rules
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)

    async def serve(self) -> None:
        """Serves it to its end, and notes in the ledger how it went.

        Raises:
            OSError: a side was closed before its end.
        """
        try:
            request = await self._read_request()
            if request is None:
                self._entry.why = "the program closed the connection before it asked for a host"
            elif request.method == b"CONNECT":
                await self._tunnel(request)
            else:
                await self._exchange(request)
        except ConnectionRefusal as refusal:
            await self._refuse(refusal)
        except h11.RemoteProtocolError as exc:
            await self._refuse(
                ConnectionRefusal(f"the request is not valid HTTP/1.1: {exc}", HTTPStatus.BAD_REQUEST)
            )
        except ConnectionEnded as end:
            self._entry.why = end.why

    async def _read_request(self) -> h11.Request | None:
        try:
            async with asyncio.timeout(_HEAD_S):
                while True:
                    event = self._parser.next_event()
                    if isinstance(event, h11.Request):
                        require_short(event)
                        return event
                    if isinstance(event, h11.ConnectionClosed):
                        return None
                    self._parser.receive_data(await self._program.read())
        except TimeoutError as exc:
            raise ConnectionRefusal(f"no request came within {_HEAD_S:g} s", HTTPStatus.REQUEST_TIMEOUT) from exc

    async def _connect(self, target: Endpoint, *, ends_tls: bool = False) -> Upstream:
        self._entry.host, self._entry.port = target.host, target.port
        self._rules.require_allowed(target)
        connector = self._rules.connector
        connect = connector.connect_tls if ends_tls else connector.connect
        upstream = await connect(target, self._rules.resolving)
        self._entry.address = upstream.address
        return upstream

    def _relay(self, upstream: Upstream, *, counts_sent: bool = True) -> Relay:
        rules = self._rules
        return Relay(
            self._program, upstream, rules.ledger, self._entry, idle_s=rules.idle_s, counts_sent=counts_sent
        )

    async def _exchange(self, request: h11.Request) -> None:
        url, target = read_url(request)
        upstream = await self._connect(target)
        self._entry.allowed = True
        server = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)
        exchange = HttpExchange(self._parser, server, plain_head(request, url), self._program)
        try:
            await exchange.run(self._relay(upstream))
            await upstream.close()
        finally:
            upstream.abort()
        if not exchange.has_sent_all:
            with contextlib.suppress(OSError):
                await self._end()

    async def _tunnel(self, request: h11.Request) -> None:
        names = {name for name, _ in request.headers}
        if names & {b"content-length", b"transfer-encoding"}:
            raise ConnectionRefusal("CONNECT has no body", HTTPStatus.BAD_REQUEST)
        target = _target(request)
        headers = self._rules.headers.of(target)
        upstream = await self._connect(target, ends_tls=bool(headers))
        try:
            hello = await self._establish(target)
            if hello is None:
                return
            self._entry.allowed = True
            if headers:
                await self._end_tls(target, headers, upstream, hello)
            else:
                relay = self._relay(upstream)
                await relay.run(_send_first(relay, hello), relay.receive_all())
            await upstream.close()
        finally:
            upstream.abort()

    async def _establish(self, target: Endpoint) -> bytes | None:
        """Answers CONNECT; returns the ClientHello that follows, None if there is none for the host."""
        await self._program.write(_ESTABLISHED)
        self._parser.next_event()  # the end of the request: what follows is the program's
        try:
            async with asyncio.timeout(_HEAD_S):
                return await self._read_hello(target, self._parser.trailing_data[0])
        except (NoClientHelloError, TimeoutError) as exc:
            why = str(exc) or f"nothing came within {_HEAD_S:g} s"
            await self._alert(f"{target}: CONNECT is for TLS only: {why}")
            return None

    async def _end_tls(
        self, target: Endpoint, headers: tuple[HostHeader, ...], upstream: Upstream, hello: bytes
    ) -> None:
        """Is the server of the program's TLS, and passes its requests on with the operator's headers."""
        self._entry.tls_ended = True
        context = await self._rules.server_tls(target.host)
        count = partial(self._rules.ledger.count_sent, self._entry)
        inside = TlsSide(self._program, context, count)
        try:
            async with asyncio.timeout(_HEAD_S):
                await inside.accept(hello)
        except (NoTlsError, TimeoutError) as exc:
            self._entry.why = f"{target}: {str(exc) or f'the TLS handshake took over {_HEAD_S:g} s'}"
            await self._end()
            return
        self._program = inside  # which a refusal is written to as well
        await EndedTls(inside, target, headers).run(self._relay(upstream, counts_sent=False))
        with contextlib.suppress(OSError):
            await self._end()

    async def _read_hello(self, target: Endpoint, begun: bytes) -> bytes:
        """The bytes of a ClientHello that names the host of CONNECT.

        Raises:
            NoClientHelloError: it does not.
        """
        reader = ClientHelloReader()
        hello = reader.feed(begun)
        while hello is None:
            data = await self._program.read()
            if not data:
                raise NoClientHelloError("the program closed the connection")
            hello = reader.feed(data)
        if hello.is_encrypted:
            raise NoClientHelloError("the server name is encrypted, so it cannot be compared")
        if hello.server_name != (None if target.is_address else target.host):
            named = f"names {hello.server_name}" if hello.server_name else "names no server"
            raise NoClientHelloError(f"the ClientHello {named}, CONNECT {target.host}")
        return bytes(reader.received)

    async def _refuse(self, refusal: ConnectionRefusal) -> None:
        self._entry.why = refusal.why
        reason = visible_line(refusal.why)[:WHY_CHARS_MAX].encode("ascii", "backslashreplace").decode()
        body = f"{reason}\n".encode("ascii")
        head = (
            f"HTTP/1.1 {refusal.status.value} {reason}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        await self._program.write(head.encode("ascii") + body)
        await self._end()

    async def _alert(self, why: str) -> None:
        """Ends a connection whose program expects TLS by now."""
        self._entry.why = why
        await self._program.write(_UNRECOGNIZED_NAME)
        await self._end()

    async def _end(self) -> None:
        """Lets the program read the answer: what it still sends is dropped, or its end would reset the answer."""
        await self._program.write_end()
        dropped = 0
        with contextlib.suppress(OSError, ConnectionEnded):  # a timeout is one, too; the answer was given
            async with asyncio.timeout(_LINGER_S):
                while dropped < _LINGER_BYTES and (data := await self._program.read()):
                    dropped += len(data)


async def _send_first(relay: Relay, hello: bytes) -> None:
    await relay.send(hello)
    await relay.send_all()


def _target(request: h11.Request) -> Endpoint:
    text = request.target.decode("ascii", "replace")
    try:
        target = Endpoint.parse(text, default_port=None)
    except ValueError as exc:
        raise ConnectionRefusal(f"CONNECT: {exc}", HTTPStatus.BAD_REQUEST) from exc
    if target.is_below:
        raise ConnectionRefusal(f"CONNECT: {target} has a wildcard; name one host", HTTPStatus.BAD_REQUEST)
    for name, value in request.headers:
        if name == b"host" and value.decode("ascii", "replace").lower() not in {str(target), target.host}:
            raise ConnectionRefusal("the header Host names another host than CONNECT", HTTPStatus.BAD_REQUEST)
    return target
