"""One request of any method over the checked network, with every bound: time, sizes, ports, headers."""

import asyncio
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

import httpcore

from proofbox.contracts.codes import WebCode
from proofbox.contracts.media_types import is_mime
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import WebUrl

_CHARSET = re.compile(r"""charset\s*=\s*"?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_HEADER_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# What this module writes itself, and what belongs to the connection.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
REFUSED_HEADERS = _OWN_HEADERS | {"upgrade", "expect", "cookie", "te", "trailer", "keep-alive"}
"""Names in lower case that no request may have from a caller; ``Proxy-…`` is refused too."""
_GZIP = frozenset({"gzip", "x-gzip"})
_USER_AGENT = ("User-Agent", "Mozilla/5.0 (compatible; proofbox)")
_ACCEPT = ("Accept", "*/*")


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """A request that leaves the service.

    Attributes:
        method: GET, HEAD, POST, PUT, PATCH or DELETE.
        url: what to ask.
        headers: names and values in their order; those of the connection, such as ``Host``, are added.
        body: the exact bytes that are sent.
    """

    method: str
    url: WebUrl
    headers: Sequence[tuple[str, str]] = ()
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response.

    Attributes:
        status: the HTTP status.
        mime: the media type, in lower case; empty if there is none.
        charset: the encoding that the media type names.
        location: where a redirect leads; None if the response is not one.
        retry_after: the value of ``Retry-After``; empty if there is none.
    """

    status: int
    mime: str
    charset: str | None = None
    location: str | None = None
    retry_after: str = ""


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """How much of a body is read.

    Attributes:
        bytes_max: the largest body, compressed and decompressed.
        is_cut: whether a larger body is cut there; otherwise it is an error.
    """

    bytes_max: int
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class OutgoingResponse:
    """A response.

    Attributes:
        head: its head.
        body: its bytes, decompressed; empty for a redirect.
    """

    head: ResponseHead
    body: bytes


LimitBody = Callable[[ResponseHead], BodyLimit]
"""Decides by the head how much of a body is read; raises WebFailedError for a body that is not wanted."""


class OutgoingClient:
    """Sends requests, each over a connection of its own, without cookies, proxies and redirects.

    Args:
        network: what makes connections; `CheckedNetwork` for an address that somebody else than the operator named.
        tls: how certificates are checked.
        ports: the ports that are asked; None: any.
    """

    def __init__(
        self, network: httpcore.AsyncNetworkBackend, tls: Tls, ports: frozenset[int] | None = None
    ) -> None:
        self._network = network
        self._tls = tls
        self._ports = ports

    async def send(self, request: OutgoingRequest, limit_body: LimitBody, timeout_s: float) -> OutgoingResponse:
        """Sends a request once and returns the response of any status; a redirect is returned, not followed.

        Args:
            request: what to send.
            limit_body: called with the head of a response that is not a redirect, before its body is read.
            timeout_s: how long all of it may take.

        Raises:
            ValueError: the method or a header cannot be sent.
            WebFailedError: there is no response; the code is the reason. Of ``url_not_allowed``, ``dns_failed`` and
                ``connect_failed`` nothing was sent.
        """
        headers = _headers(request)
        url = request.url
        if self._ports is not None and url.port not in self._ports:
            allowed = ", ".join(map(str, sorted(self._ports)))
            raise WebFailedError(
                WebCode.URL_NOT_ALLOWED, f"port {url.port} of {url.host} is not allowed (allowed: {allowed})"
            )
        try:
            async with asyncio.timeout(timeout_s):
                return await self._send_once(request, headers, limit_body)
        except (TimeoutError, httpcore.TimeoutException) as exc:
            raise WebFailedError(
                WebCode.FETCH_TIMEOUT, f"{url.host} did not answer in full within {timeout_s:.0f} s"
            ) from exc
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as exc:
            if isinstance(exc.__cause__ or exc.__context__ or exc, ssl.SSLError) or isinstance(exc, ssl.SSLError):
                raise WebFailedError(
                    WebCode.TLS_FAILED, f"the certificate or TLS of {url.host} is not valid"
                ) from exc
            raise WebFailedError(WebCode.BAD_RESPONSE, f"{url.host} broke off or answered no valid HTTP") from exc

    async def _send_once(
        self, request: OutgoingRequest, headers: list[tuple[bytes, bytes]], limit_body: LimitBody
    ) -> OutgoingResponse:
        url = request.url
        wire_url = httpcore.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode("ascii")
        )
        tls = await asyncio.to_thread(self._tls) if url.scheme == "https" else None
        async with (
            httpcore.AsyncConnectionPool(ssl_context=tls, max_connections=1, network_backend=self._network) as pool,
            pool.stream(request.method, wire_url, headers=headers, content=request.body) as response,
        ):
            head = _head(response)
            if head.location is not None:
                return OutgoingResponse(head, b"")
            limit = limit_body(head)
            encoding = _header(response, b"content-encoding").strip().lower()
            if encoding not in {"", "identity", *_GZIP}:
                raise WebFailedError(
                    WebCode.BAD_RESPONSE, f"{url.host} sent an encoding that was not asked for: {encoding[:40]!a}"
                )
            body = await _read_body(response.aiter_stream(), url.host, limit, is_gzip=encoding in _GZIP)
        return OutgoingResponse(head, body)


async def _read_body(pieces: AsyncIterator[bytes], host: str, limit: BodyLimit, *, is_gzip: bool) -> bytes:
    body = bytearray()
    inflate = zlib.decompressobj(wbits=31) if is_gzip else None
    received = 0
    async for piece in pieces:
        received += len(piece)
        room = limit.bytes_max + 1 - len(body)
        try:
            body += piece if inflate is None else inflate.decompress(piece, room)
        except zlib.error as exc:
            raise WebFailedError(WebCode.BAD_RESPONSE, f"{host} sent gzip that cannot be read") from exc
        if max(len(body), received) > limit.bytes_max:
            if limit.is_cut:
                return bytes(body[: limit.bytes_max])
            raise WebFailedError(
                WebCode.TOO_LARGE, f"the response of {host} is larger than {limit.bytes_max} bytes"
            )
        if inflate is not None and inflate.eof:
            break
    if inflate is not None and not inflate.eof and received:
        raise WebFailedError(WebCode.BAD_RESPONSE, f"{host} broke off within a response")
    return bytes(body)


def _headers(request: OutgoingRequest) -> list[tuple[bytes, bytes]]:
    """Returns all headers of a request as they are sent.

    Raises:
        ValueError: the method is unknown, or a header is the connection's or cannot be written.
    """
    if request.method not in _METHODS:
        raise ValueError(f"method: unknown (got {request.method[:20]!a}); use one of {', '.join(sorted(_METHODS))}")
    own = [("Host", request.url.authority)]
    given = {name.lower() for name, _ in request.headers}
    own += [default for default in (_USER_AGENT, _ACCEPT) if default[0].lower() not in given]
    for name, value in request.headers:
        check_header(name, value)
    own += [("Accept-Encoding", "gzip"), ("Connection", "close"), *request.headers]
    if request.body or request.method in _WITH_BODY:
        own.append(("Content-Length", str(len(request.body))))
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in own]


def check_header(name: str, value: str) -> None:
    """Refuses a header that is not one line, or that belongs to the connection; nothing is ever cleaned.

    Raises:
        ValueError: it cannot be sent; the message does not have the value.
    """
    if not _HEADER_NAME.fullmatch(name):
        raise ValueError(f"headers: {name[:60]!a} is not a name of a header")
    if name.lower() in REFUSED_HEADERS or name.lower().startswith("proxy-"):
        raise ValueError(f"headers.{name}: cannot be set; the service writes it")
    if _HEADER_CONTROL.search(value):
        raise ValueError(f"headers.{name}: has a line break or another control character; remove it")
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(f"headers.{name}: has a character beyond Latin-1; remove it") from None


def _head(response: httpcore.Response) -> ResponseHead:
    content_type = _header(response, b"content-type").lower()
    mime = content_type.partition(";")[0].strip()
    charset = _CHARSET.search(content_type)
    location = _header(response, b"location") if response.status in _REDIRECTS else ""
    return ResponseHead(
        response.status,
        mime if is_mime(mime) else "",
        charset[1] if charset else None,
        location or None,
        _header(response, b"retry-after").strip(),
    )


def _header(response: httpcore.Response, name: bytes) -> str:
    for key, value in response.headers:
        if key.lower() == name:
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                return value.decode("latin-1")
    return ""
