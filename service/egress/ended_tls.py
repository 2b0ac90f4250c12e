"""The requests of a program within TLS that ends at the proxy: written anew, with the operator's headers.

One parser reads the program, another one writes to the host, so that both see the same requests. A connection of
the program has one to the host; both stay open for further requests.
"""

import asyncio
from http import HTTPStatus

import h11

from proofbox.contracts.network import Endpoint
from proofbox.service.egress.host_headers import HostHeader
from proofbox.service.egress.http_relay import (
    HEAD_BYTES_MAX,
    HttpExchange,
    ResponseFilter,
    end_to_end,
    framing_of,
    require_one_length,
    require_short,
)
from proofbox.service.egress.refusal import ConnectionRefusal
from proofbox.service.egress.secret_mask import SecretMask
from proofbox.service.egress.upstream import Relay, end_tasks
from proofbox.service.sandbox.network import ProgramConnection

_HTTPS_PORT = 443
_REFUSED_METHODS = frozenset({b"CONNECT", b"TRACE"})  # TRACE responds with the headers that came
_WITHOUT_BODY = frozenset({HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})


class MaskedResponse(ResponseFilter):
    """Masks the secrets of a host in what it responds, where they stand as they are or in a usual encoding.

    Args:
        headers: whose secrets.
        method: of the request.
    """

    shows_mistakes = False

    def __init__(self, headers: tuple[HostHeader, ...], method: bytes) -> None:
        self._mask = SecretMask(headers)
        self._method = method

    def head(self, response: h11.Response) -> h11.Response:
        """See `ResponseFilter.head`."""
        encodings = {
            coding.strip().lower()
            for name, value in response.headers
            if name == b"content-encoding"
            for coding in value.split(b",")
        }
        has_body = self._method != b"HEAD" and response.status_code not in _WITHOUT_BODY
        if has_body and encodings - {b"", b"identity"}:
            raise ConnectionRefusal(
                "the host compressed its response, which was asked for without; the service could not see a secret "
                "in it",
                HTTPStatus.BAD_GATEWAY,
            )
        headers = [(name, self._mask.mask(value)) for name, value in response.headers]
        return h11.Response(
            status_code=response.status_code,
            headers=headers,
            reason=self._mask.mask(bytes(response.reason)),
            http_version=response.http_version,
        )

    def feed(self, piece: bytes) -> bytes:
        """See `ResponseFilter.feed`."""
        return self._mask.feed(piece)

    def end(self) -> bytes:
        """See `ResponseFilter.end`."""
        return self._mask.end()


class EndedTls:
    """The requests of one connection.

    Args:
        program: the program's side, within TLS.
        target: the host and port of CONNECT.
        headers: what is set in each request.
    """

    def __init__(self, program: ProgramConnection, target: Endpoint, headers: tuple[HostHeader, ...]) -> None:
        self._program = program
        self._target = target
        self._headers = headers
        self._replaced = {header.name.lower().encode() for header in headers} | {b"accept-encoding"}
        self._client = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES_MAX)
        self._server = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES_MAX)

    async def run(self, relay: Relay) -> None:
        """Serves requests until a side ends.

        Args:
            relay: to the host; it counts what it receives, and not what it sends.

        Raises:
            ConnectionEnded: a side does not speak HTTP, or a limit was reached.
            ConnectionRefusal: a request is not sent; the program is to read why, within TLS.
            OSError: a side was closed.
        """
        await relay.run(self._serve(relay))

    async def _serve(self, relay: Relay) -> None:
        while (request := await self._next_request(relay)) is not None:
            exchange = HttpExchange(
                self._client,
                self._server,
                self._head(request),
                self._program,
                response=MaskedResponse(self._headers, request.method),
                is_last=False,
            )
            await exchange.exchange(relay)
            states = {self._client.our_state, self._client.their_state}
            states |= {self._server.our_state, self._server.their_state}
            if states != {h11.DONE} or self._server.trailing_data[0]:
                return
            self._client.start_next_cycle()
            self._server.start_next_cycle()

    async def _next_request(self, relay: Relay) -> h11.Request | None:
        """The next request; None if a side has ended before it."""
        reading = asyncio.ensure_future(self._read_request())
        ended = asyncio.ensure_future(relay.receive())  # nothing comes before a request, but the end
        try:
            await asyncio.wait([reading, ended], return_when=asyncio.FIRST_COMPLETED)
            return None if ended.done() else await reading
        finally:
            await end_tasks([reading, ended])

    async def _read_request(self) -> h11.Request | None:
        try:
            while True:
                event = self._client.next_event()
                if isinstance(event, h11.Request):
                    self._require_clear(event)
                    return event
                if isinstance(event, h11.ConnectionClosed):
                    return None
                self._client.receive_data(await self._program.read())
        except h11.RemoteProtocolError as exc:
            why = f"the request is not valid HTTP/1.1: {exc}"
            raise ConnectionRefusal(why, HTTPStatus.BAD_REQUEST) from exc

    def _require_clear(self, request: h11.Request) -> None:
        """Refuses a request that another parser might read differently, or that is for another host."""
        require_short(request)
        require_one_length(request)
        names = [name for name, _ in request.headers]
        hosts = [value.decode("ascii", "replace").lower() for name, value in request.headers if name == b"host"]
        if hosts not in ([host] for host in self._authorities):
            raise ConnectionRefusal(
                f"the header Host names another host than CONNECT, {self._target}", HTTPStatus.BAD_REQUEST
            )
        if not request.target.startswith(b"/") and (request.method, request.target) != (b"OPTIONS", b"*"):
            raise ConnectionRefusal("the target of the request is no path; write /path", HTTPStatus.BAD_REQUEST)
        if request.method.upper() in _REFUSED_METHODS:
            method = request.method.decode("ascii", "replace")
            raise ConnectionRefusal(f"{method} is not sent to a host with a secret", HTTPStatus.METHOD_NOT_ALLOWED)
        if b"upgrade" in names:
            raise ConnectionRefusal(
                "a connection to a host with a secret stays HTTP/1.1; send no header Upgrade",
                HTTPStatus.NOT_IMPLEMENTED,
            )

    @property
    def _authorities(self) -> tuple[str, ...]:
        """The values that the header Host may have."""
        with_port = str(self._target)
        return (with_port, self._target.host) if self._target.port == _HTTPS_PORT else (with_port,)

    def _head(self, request: h11.Request) -> h11.Request:
        """The head that the host is sent."""
        passed_on = [(name, value) for name, value in end_to_end(request.headers) if name not in self._replaced]
        return h11.Request(
            method=request.method,
            target=request.target,
            headers=[
                (b"Host", self._authorities[-1].encode()),
                (b"Accept-Encoding", b"identity"),
                *passed_on,
                *(header.header for header in self._headers),
                *framing_of(request.headers),
            ],
        )
