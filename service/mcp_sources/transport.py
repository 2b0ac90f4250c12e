"""HTTP for the SDK: each connection goes to a checked address, and what comes back is counted.

Imported with the SDK, at the first use of an MCP server.
"""

import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import anyio
import httpcore2
import httpx2

from proofbox.contracts.codes import WebCode
from proofbox.service.gateway.tool_call import Effected
from proofbox.service.mcp_sources.endpoint_event import EndpointEvent
from proofbox.service.mcp_sources.json_marks import JsonMarks
from proofbox.service.mcp_sources.limits import GOODBYE_S, REDIRECTS_MAX, REQUESTS_MAX
from proofbox.service.web.client.pinned_network import CONNECT_S, CheckedNetwork, refused_connection
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import WebUrl

_DEFAULT_PORTS = {"http": 80, "https": 443}
_METHOD_NOT_ALLOWED = 405
_SAME_METHOD = frozenset({307, 308})


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """`CheckedNetwork` for the HTTP library of the SDK.

    Args:
        network: resolves names and checks addresses.
    """

    def __init__(self, network: CheckedNetwork) -> None:
        self._network = network
        self._plain = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """See `CheckedNetwork.connect_tcp`."""
        del timeout
        for address in await self._network.find_addresses(host, port):
            try:
                return await self._plain.connect_tcp(address, port, CONNECT_S, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout, OSError):
                continue
        raise refused_connection(host, port)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Never.

        Raises:
            WebFailedError: always.
        """
        del timeout, socket_options
        raise WebFailedError(WebCode.URL_NOT_ALLOWED, f"{path} is no host")

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await self._plain.sleep(seconds)


@dataclass(slots=True)
class ByteBudget:
    """How much may come back in one operation, in all responses together.

    Attributes:
        bytes_max: of all of it.
        values_max: commas and brackets outside texts: what JSON of many values costs is more than its bytes.
        received: bytes so far.
        values: commas and brackets so far.
    """

    bytes_max: int
    values_max: int
    received: int = 0
    values: int = 0

    def take(self, size_bytes: int, values: int, host: str) -> None:
        """Counts a piece of a response.

        Raises:
            WebFailedError: ``too_large``.
        """
        self.received += size_bytes
        self.values += values
        if self.received > self.bytes_max:
            raise _too_large(host, f"{self.bytes_max:,} bytes")
        if self.values > self.values_max:
            raise _too_large(host, f"{self.values_max:,} commas and brackets")


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends the requests of one operation to one server: no proxies, no other origin, no encoding of bodies.

    Args:
        network: checks addresses.
        tls: how certificates are checked; None for a server without TLS.
        url: the server's endpoint; nothing is sent beyond its origin.
        budget: how much may come back.
        stream_url: of the older transport: where its stream of messages is opened. None: none is; another server
            could end and get it again for ever.
    """

    def __init__(
        self,
        network: CheckedNetwork,
        tls: ssl.SSLContext | None,
        url: WebUrl,
        budget: ByteBudget,
        stream_url: str | None,
    ) -> None:
        self._url = url
        self._budget = budget
        self._stream_url = stream_url
        self._begun = 0
        self._redirects = 0  # of one message
        self._on_failure: Callable[[], None] = _ignore
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=tls, network_backend=CheckedBackend(network))
        self._sent: list[_Sent] = []
        self.failure: WebFailedError | None = None
        self.last_status: int | None = None

    @property
    def host(self) -> str:
        """The host of the server."""
        return self._url.host

    def on_failure(self, end: Callable[[], None]) -> None:
        """Sets what ends the operation when there will be no result."""
        self._on_failure = end

    def fail(self, failure: WebFailedError) -> None:
        """Ends the operation: the SDK may hide a failure, or wait for what cannot come."""
        if self.failure is None:
            self.failure = failure
            self._on_failure()

    @property
    def effects(self) -> list[Effected]:
        """Every request that left the service, in order."""
        return [sent.effect(self._url.authority) for sent in self._sent]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request.

        Raises:
            WebFailedError: there is no response; it is `failure` too, for the SDK may hide it.
        """
        if self.failure is not None:
            raise self.failure
        if request.method == "GET" and self._stream_url is None and "last-event-id" not in request.headers:
            return httpx2.Response(_METHOD_NOT_ALLOWED, request=request)
        try:
            self._count_request()
            if request.method == "DELETE":  # the session ends, maybe because the call was cancelled
                with anyio.fail_after(GOODBYE_S):
                    return await self._send(request)
            return await self._send(request)
        except WebFailedError as exc:
            self.fail(exc)
            raise

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._pool.aclose()

    def _count_request(self) -> None:
        self._begun += 1
        if self._begun > REQUESTS_MAX:
            message = f"{self._url.host} needs too many requests (limit {REQUESTS_MAX})"
            raise WebFailedError(WebCode.BAD_RESPONSE, message)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        url, own = request.url, self._url
        self._require_own(url)
        # The body first: the library's stream is read once.
        body = await request.aread()
        sent = _Sent(request.method)
        outgoing = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(scheme=url.raw_scheme, host=own.host.encode(), port=own.port, target=url.raw_path),
            headers=request.headers.raw,
            content=body,
            extensions=request.extensions,
        )
        try:
            response = await self._pool.handle_async_request(outgoing)
        except WebFailedError as exc:
            if exc.code is not WebCode.URL_NOT_ALLOWED:
                self._sent.append(sent)
            raise
        except BaseException:
            self._sent.append(sent)
            raise
        self._sent.append(sent)
        sent.status = self.last_status = response.status
        encoding = httpx2.Headers(response.headers).get("content-encoding", "identity")
        if encoding.strip().lower() != "identity":
            await response.aclose()
            raise WebFailedError(WebCode.BAD_RESPONSE, f"{own.host} sent an encoding that was not asked for")
        endpoint = None
        if self._stream_url is not None and request.method == "POST":
            self._require_taken(url, response)
        elif self._stream_url is not None:
            endpoint = EndpointEvent(self._stream_url)
        stream = _CountedStream(response, self, sent, endpoint)
        return httpx2.Response(
            status_code=response.status,
            headers=[_without_charset(*header) for header in response.headers],
            stream=stream,
            extensions=response.extensions,
        )

    def _require_own(self, url: httpx2.URL) -> None:
        own, port = self._url, url.port or _DEFAULT_PORTS.get(url.scheme, 0)
        if (url.scheme, url.raw_host.decode("ascii"), port) != (own.scheme, own.host, own.port):
            raise WebFailedError(WebCode.URL_NOT_ALLOWED, f"{own.host} leads to another origin")

    def _require_taken(self, url: httpx2.URL, response: httpcore2.Response) -> None:
        """Requires that the older transport took a message; else the SDK waits for an answer that never comes.

        Raises:
            WebFailedError: ``bad_response``, ``url_not_allowed``.
        """
        status, host = response.status, self._url.host
        self._redirects = self._redirects + 1 if status in _SAME_METHOD else 0
        location = httpx2.Headers(response.headers).get("location")
        if status in _SAME_METHOD and location is not None:
            if self._redirects > REDIRECTS_MAX:
                message = f"{host} redirects a message too often (limit {REDIRECTS_MAX})"
                raise WebFailedError(WebCode.BAD_RESPONSE, message)
            try:
                target = url.join(location)
            except httpx2.InvalidURL as exc:
                message = f"{host} leads to an address that cannot be read"
                raise WebFailedError(WebCode.BAD_RESPONSE, message) from exc
            self._require_own(target)
            if target.userinfo:  # the SDK would not follow it
                raise WebFailedError(WebCode.URL_NOT_ALLOWED, f"{host} leads to an address with a user name")
        elif not httpx2.codes.is_success(status):
            where = " without Location" if status in _SAME_METHOD else ""
            message = f"{host} answered a message with HTTP status {status}{where}"
            raise WebFailedError(WebCode.BAD_RESPONSE, message)

    def count(self, sent: "_Sent", piece: bytes, marks: JsonMarks, endpoint: EndpointEvent | None) -> None:
        """Counts a piece of a response, and reads the event that has to come first in one.

        Raises:
            WebFailedError: ``too_large``; or of `EndpointEvent`.
        """
        sent.size_bytes += len(piece)
        try:
            self._budget.take(len(piece), marks.count(piece), self._url.host)
            if endpoint is not None:
                endpoint.feed(piece)
        except WebFailedError as exc:
            self.fail(exc)
            raise


class _Sent:
    """A request that left the service."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.status: int | None = None
        self.size_bytes = 0
        self.began = time.monotonic()
        self.ended: float | None = None

    def effect(self, host: str) -> Effected:
        ended = time.monotonic() if self.ended is None else self.ended
        ms = round((ended - self.began) * 1000, 3)
        return Effected(host, self.method, self.status, 1, self.size_bytes, ms)


class _CountedStream(httpx2.AsyncByteStream):
    def __init__(
        self,
        response: httpcore2.Response,
        transport: CheckedTransport,
        sent: _Sent,
        endpoint: EndpointEvent | None = None,
    ) -> None:
        self._response = response
        self._transport = transport
        self._sent = sent
        self._endpoint = endpoint

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream: Any = self._response.stream
        marks = JsonMarks()
        async for piece in stream:
            self._transport.count(self._sent, piece, marks, self._endpoint)
            yield piece

    async def aclose(self) -> None:
        self._sent.ended = time.monotonic()
        await self._response.aclose()


def _ignore() -> None:
    pass


def _without_charset(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """A header of a response; JSON and event streams are UTF-8, and in no other encoding they are counted."""
    return name, value.partition(b";")[0] if name.lower() == b"content-type" else value


def _too_large(host: str, limit: str) -> WebFailedError:
    return WebFailedError(WebCode.TOO_LARGE, f"the response of {host} is too large (limit {limit})")
