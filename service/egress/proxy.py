"""The proxy of a program: one connection, from its first byte to its end.

It takes ``CONNECT host:port`` for TLS and ``http://host/path`` for plain HTTP. Whatever it does not make is
answered with a sentence, as an HTTP response, or as a TLS alert where the program expects TLS.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import h11

from proofbox.contracts.network import Endpoint
from proofbox.service.egress.client_hello import ClientHelloReader, NoClientHelloError
from proofbox.service.egress.http_relay import HEAD_BYTES_MAX, HttpExchange, read_url
from proofbox.service.egress.ledger import WHY_CHARS_MAX, Entry, Ledger
from proofbox.service.egress.refusal import ConnectionEnded, ConnectionRefusal
from proofbox.service.egress.upstream import Connector, LookupPlaces, Relay, Upstream
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
    """

    require_allowed: Callable[[Endpoint], None]
    connector: Connector
    resolving: LookupPlaces
    ledger: Ledger
    idle_s: float


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
                        _require_short(event)
                        return event
                    if isinstance(event, h11.ConnectionClosed):
                        return None
                    self._parser.receive_data(await self._program.read())
        except TimeoutError as exc:
            raise ConnectionRefusal(f"no request came within {_HEAD_S:g} s", HTTPStatus.REQUEST_TIMEOUT) from exc

    async def _connect(self, target: Endpoint) -> Upstream:
        self._entry.host, self._entry.port = target.host, target.port
        self._rules.require_allowed(target)
        upstream = await self._rules.connector.connect(target, self._rules.resolving)
        self._entry.address = upstream.address
        return upstream

    def _relay(self, upstream: Upstream) -> Relay:
        return Relay(self._program, upstream, self._rules.ledger, self._entry, idle_s=self._rules.idle_s)

    async def _exchange(self, request: h11.Request) -> None:
        url, target = read_url(request)
        upstream = await self._connect(target)
        self._entry.allowed = True
        exchange = HttpExchange(self._parser, request, url, self._program)
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
        upstream = await self._connect(target)
        try:
            await self._program.write(_ESTABLISHED)
            self._parser.next_event()  # the end of the request: what follows is the program's
            try:
                async with asyncio.timeout(_HEAD_S):
                    hello = await self._read_hello(target, self._parser.trailing_data[0])
            except (NoClientHelloError, TimeoutError) as exc:
                why = str(exc) or f"nothing came within {_HEAD_S:g} s"
                await self._alert(f"{target}: CONNECT is for TLS only: {why}")
                return
            self._entry.allowed = True
            relay = self._relay(upstream)
            await relay.run(_send_first(relay, hello), relay.receive_all())
            await upstream.close()
        finally:
            upstream.abort()

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
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while dropped < _LINGER_BYTES and (data := await self._program.read()):
                    dropped += len(data)


async def _send_first(relay: Relay, hello: bytes) -> None:
    await relay.send(hello)
    await relay.send_all()


def _require_short(request: h11.Request) -> None:
    """Refuses a head that is too long; the parser itself refuses only one that is not complete by then."""
    size = len(request.target) + sum(len(name) + len(value) for name, value in request.headers)
    if size > HEAD_BYTES_MAX:
        raise ConnectionRefusal(f"the head of the request has over {HEAD_BYTES_MAX} bytes", HTTPStatus.BAD_REQUEST)


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
