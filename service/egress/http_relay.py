"""One plain HTTP request of a program to an allowed host: parsed, written anew, and answered the same way.

The program's framing does not reach the host, so no request hides behind another, and a connection carries one
request.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus

import h11

from proofbox.contracts.network import Endpoint
from proofbox.service.egress.refusal import ConnectionEnded, ConnectionRefusal
from proofbox.service.egress.upstream import Relay, end_tasks
from proofbox.service.sandbox.network import ProgramConnection
from proofbox.service.web.urls import WebUrl

HEAD_BYTES_MAX = 32 * 1024
_OF_CONNECTION = frozenset(
    {b"connection", b"keep-alive", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"expect", b"host"}
)
_EVENTS_PER_TURN = 256
_SMALL_CHUNKS_MAX = 10_000
_CHUNK_BYTES_MIN = 32
Headers = list[tuple[bytes, bytes]]
_Event = h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]


def read_url(request: h11.Request) -> tuple[WebUrl, Endpoint]:
    """The address of a request in absolute form, and the host and port that it names.

    Raises:
        ConnectionRefusal: it is none, or another part of the request contradicts it.
    """
    target = request.target.decode("ascii", "replace")
    try:
        url = WebUrl.parse(target)
        endpoint = Endpoint.parse(url.authority, default_port=80)
    except ValueError as exc:
        raise ConnectionRefusal(
            f"the request has no address in the form http://host/path: {exc}", HTTPStatus.BAD_REQUEST
        ) from exc
    if url.scheme != "http":
        raise ConnectionRefusal("an https address is reached by CONNECT", HTTPStatus.BAD_REQUEST)
    hosts = [value for name, value in request.headers if name == b"host"]
    if not all(_is_same(host.decode("ascii", "replace"), url) for host in hosts):
        raise ConnectionRefusal("the header Host names another host than the address", HTTPStatus.BAD_REQUEST)
    require_one_length(request)
    return url, endpoint


def require_one_length(request: h11.Request) -> None:
    """Refuses a request whose body may end in two places."""
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names and b"content-length" in names:
        raise ConnectionRefusal("the request has two lengths", HTTPStatus.BAD_REQUEST)


def require_short(request: h11.Request) -> None:
    """Refuses a head that is too long; the parser itself refuses only one that is not complete by then."""
    size = len(request.target) + sum(len(name) + len(value) for name, value in request.headers)
    if size > HEAD_BYTES_MAX:
        raise ConnectionRefusal(f"the head of the request has over {HEAD_BYTES_MAX} bytes", HTTPStatus.BAD_REQUEST)


def _is_same(host: str, url: WebUrl) -> bool:
    try:
        endpoint = Endpoint.parse(host, default_port=80)
    except ValueError:
        return False
    return (endpoint.host, endpoint.port, endpoint.is_below) == (url.host, url.port, False)


class MessageReader:
    """Reads the events of one side: the data of one read are one event, however small its chunks are.

    Args:
        parser: the parser of that side.
        receive: its next bytes; empty at its end.
    """

    def __init__(self, parser: h11.Connection, receive: Callable[[], Awaitable[bytes]]) -> None:
        self._parser = parser
        self._receive = receive
        self._waiting: _Event | None = None
        self._events = 0
        self._chunks = 0
        self._chunk_bytes = 0

    async def next(self) -> "_Event":
        """The next event, waiting for it; never ``NEED_DATA``.

        Raises:
            h11.RemoteProtocolError: the side does not speak HTTP.
            ConnectionEnded: its chunks are too small.
        """
        data = bytearray()
        while True:
            event, self._waiting = self._waiting or self._parser.next_event(), None
            self._events += 1
            if self._events % _EVENTS_PER_TURN == 0:
                await asyncio.sleep(0)  # a read can hold thousands of chunks, and others wait
            if isinstance(event, h11.Data):
                self._count(event)
                data += event.data
            elif data:
                self._waiting = None if event is h11.NEED_DATA else event
                return h11.Data(data=bytes(data))
            elif event is h11.NEED_DATA:
                self._parser.receive_data(await self._receive())
            else:
                return event

    def _count(self, event: h11.Data) -> None:
        self._chunks += event.chunk_start
        self._chunk_bytes += len(event.data)
        if self._chunks > _SMALL_CHUNKS_MAX and self._chunk_bytes < self._chunks * _CHUNK_BYTES_MIN:
            raise ConnectionEnded(
                f"over {_SMALL_CHUNKS_MAX} chunks with under {_CHUNK_BYTES_MIN} bytes on average; send larger ones"
            )


class ResponseFilter:
    """What is changed of a response: nothing.

    Attributes:
        shows_mistakes: whether the reason of a response that is no HTTP may quote it.
    """

    shows_mistakes = True

    def head(self, response: h11.Response) -> h11.Response:
        """The head that the program gets.

        Raises:
            ConnectionRefusal: the program does not get the response.
        """
        return response

    def feed(self, piece: bytes) -> bytes:
        """The next bytes of the body that the program gets; further ones may wait for the next piece."""
        return piece

    def end(self) -> bytes:
        """The rest of the body."""
        return b""


_UNCHANGED = ResponseFilter()


class HttpExchange:
    """A request whose head was read, and its response.

    Args:
        client: the parser of the program's side, after the head.
        server: the parser of the host's side.
        head: what the host is sent for the head.
        program: the program's side.
        response: changes the response.
        is_last: whether both connections end with it.
    """

    def __init__(
        self,
        client: h11.Connection,
        server: h11.Connection,
        head: h11.Request,
        program: ProgramConnection,
        *,
        response: ResponseFilter = _UNCHANGED,
        is_last: bool = True,
    ) -> None:
        self._client = client
        self._server = server
        self._head = head
        self._program = program
        self._response = response
        self._is_last = is_last
        self.has_sent_all = False
        """Whether the host was sent the whole request."""

    async def run(self, relay: Relay) -> None:
        """Sends the request and passes the response on, as all that the relay carries.

        Raises:
            ConnectionEnded: a side does not speak HTTP, or a limit was reached.
            ConnectionRefusal: the same, while no response has begun.
            OSError: a side was closed.
        """
        await relay.run(self.exchange(relay))

    async def exchange(self, relay: Relay) -> None:
        """Sends the request and passes the response on, within a relay that runs. Raises as `run`."""
        try:
            await self._exchange(relay)
        except h11.ProtocolError as exc:
            raise ConnectionEnded("the program or the host sent no valid HTTP") from exc

    async def _exchange(self, relay: Relay) -> None:
        await self._to_host(relay, self._head)
        upload = asyncio.ensure_future(self._upload(relay))
        download = asyncio.ensure_future(self._download(relay))
        try:
            await asyncio.wait([upload, download], return_when=asyncio.FIRST_COMPLETED)
            if not download.done():
                with contextlib.suppress(OSError):  # a host may respond to what it does not read to its end
                    upload.result()
            await download
        finally:
            await end_tasks([upload, download])

    async def _upload(self, relay: Relay) -> None:
        """Passes the body of the request on."""
        messages = MessageReader(self._client, self._read_program)
        try:
            while isinstance(event := await messages.next(), h11.Data):
                await self._to_host(relay, event)
        except h11.RemoteProtocolError as exc:
            raise self._failed(f"the program sent no valid HTTP: {exc}", HTTPStatus.BAD_REQUEST) from exc
        if isinstance(event, h11.EndOfMessage):
            await self._to_host(relay, h11.EndOfMessage())
            self.has_sent_all = True

    async def _read_program(self) -> bytes:
        if self._client.they_are_waiting_for_100_continue:
            await self._to_program(h11.InformationalResponse(status_code=HTTPStatus.CONTINUE, headers=[]))
        return await self._program.read()

    async def _download(self, relay: Relay) -> None:
        try:
            await self._pass_on_response(MessageReader(self._server, relay.receive))
        except h11.RemoteProtocolError as exc:
            quoted = f": {exc}" if self._response.shows_mistakes else ""
            raise self._failed(f"the host sent no valid HTTP{quoted}") from exc

    async def _pass_on_response(self, messages: "MessageReader") -> None:
        while True:
            event = await messages.next()
            if isinstance(event, h11.Response):
                await self._to_program(self._response_head(event))
            elif isinstance(event, h11.Data):
                if data := self._response.feed(bytes(event.data)):
                    await self._to_program(h11.Data(data=data))
            elif isinstance(event, h11.EndOfMessage):
                if rest := self._response.end():
                    await self._to_program(h11.Data(data=rest))
                await self._to_program(h11.EndOfMessage())
                return
            elif not isinstance(event, h11.InformationalResponse):
                raise self._failed("the host closed the connection before its response")

    def _response_head(self, event: h11.Response) -> h11.Response:
        changed = self._response.head(event)
        framing = [(name, value) for name, value in changed.headers if name == b"content-length"]
        headers = [*end_to_end(changed.headers), *framing]
        if self._is_last or not self.has_sent_all or _ends_connection(event):
            headers.append((b"Connection", b"close"))
        return h11.Response(status_code=changed.status_code, headers=headers, reason=changed.reason)

    def _failed(self, why: str, status: HTTPStatus = HTTPStatus.BAD_GATEWAY) -> Exception:
        """How it ends: the program reads the reason, unless a response has begun."""
        return (
            ConnectionRefusal(why, status) if self._client.our_state is h11.SEND_RESPONSE else ConnectionEnded(why)
        )

    async def _to_host(self, relay: Relay, event: h11.Request | h11.Data | h11.EndOfMessage) -> None:
        if data := self._server.send(event):
            await relay.send(data)

    async def _to_program(
        self, event: h11.InformationalResponse | h11.Response | h11.Data | h11.EndOfMessage
    ) -> None:
        if data := self._client.send(event):
            await self._program.write(data)


def _ends_connection(response: h11.Response) -> bool:
    return response.http_version < b"1.1" or b"close" in _named_by_connection(response.headers)


def _named_by_connection(headers: Sequence[tuple[bytes, bytes]]) -> set[bytes]:
    return {name.strip().lower() for key, value in headers if key == b"connection" for name in value.split(b",")}


def end_to_end(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """The headers that are not about the connection, nor about this proxy."""
    left_out = _OF_CONNECTION | _named_by_connection(headers) | {b"content-length"}
    return [(name, value) for name, value in headers if name not in left_out and not name.startswith(b"proxy-")]


def plain_head(request: h11.Request, url: WebUrl) -> h11.Request:
    """The head of a request in absolute form, as its host is sent it."""
    own = [(b"Host", url.authority.encode()), (b"Connection", b"close")]
    return h11.Request(
        method=request.method,
        target=url.target.encode("ascii"),
        headers=[*own, *end_to_end(request.headers), *framing_of(request.headers)],
    )


def framing_of(headers: Sequence[tuple[bytes, bytes]]) -> Headers:
    """How the length of a body is given: as the parser understood it."""
    for name, _ in headers:
        if name == b"transfer-encoding":
            return [(b"Transfer-Encoding", b"chunked")]
    return [(name, value) for name, value in headers if name == b"content-length"][:1]
