"""One GET with every bound: time, bytes before and after decompression, headers, media types."""

import asyncio
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpcore

from proofbox.contracts.codes import WebCode
from proofbox.contracts.media_types import is_mime
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import WebUrl

_CHARSET = re.compile(r"""charset\s*=\s*"?\s*([A-Za-z0-9_.:-]{1,40})""", re.IGNORECASE)
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_OK = 200
_USER_AGENT = "Mozilla/5.0 (compatible; proofbox)"


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a response.

    Attributes:
        status: the HTTP status.
        mime: the media type, in lower case; empty if there is none.
        charset: the encoding that the media type names.
        location: where a redirect leads; None if the response is not one.
    """

    status: int
    mime: str
    charset: str | None
    location: str | None


@dataclass(frozen=True, slots=True)
class Got:
    """An answer.

    Attributes:
        head: what stands before the body.
        body: the bytes, decompressed; empty for a redirect.
    """

    head: Head
    body: bytes


class LimitedGet:
    """Makes GET requests, each over a connection of its own, without cookies and without proxies.

    Args:
        network: what makes connections.
        tls: how certificates are checked.
        bytes_max: the largest body, compressed and decompressed.
    """

    def __init__(self, network: httpcore.AsyncNetworkBackend, tls: Tls, bytes_max: int) -> None:
        self._network = network
        self._tls = tls
        self._bytes_max = bytes_max

    async def get(self, url: WebUrl, accept: str, takes: Callable[[Head], None], seconds: float) -> Got:
        """One answer; a redirect is given back, not followed.

        Args:
            url: what to ask for.
            accept: the media types to ask for.
            takes: checks the head of a response that is not a redirect; raises if the body is not wanted.
            seconds: how long all of it may take.

        Raises:
            WebFailedError: it cannot be had; the code is the reason.
        """
        try:
            async with asyncio.timeout(seconds):
                return await self._get_once(url, accept, takes)
        except (TimeoutError, httpcore.TimeoutException) as exc:
            raise WebFailedError(
                WebCode.FETCH_TIMEOUT, f"{url.host} did not answer in full within {seconds:.0f} s"
            ) from exc
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as exc:
            if isinstance(exc.__cause__ or exc.__context__ or exc, ssl.SSLError) or isinstance(exc, ssl.SSLError):
                raise WebFailedError(
                    WebCode.TLS_FAILED, f"the certificate or TLS of {url.host} is not valid"
                ) from exc
            raise WebFailedError(WebCode.BAD_RESPONSE, f"{url.host} broke off or answered no valid HTTP") from exc

    async def _get_once(self, url: WebUrl, accept: str, takes: Callable[[Head], None]) -> Got:
        headers = [
            (b"Host", url.authority.encode("ascii")),
            (b"User-Agent", _USER_AGENT.encode("ascii")),
            (b"Accept", accept.encode("ascii")),
            (b"Accept-Encoding", b"gzip"),
            (b"Connection", b"close"),
        ]
        wire_url = httpcore.URL(
            scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.target.encode("ascii")
        )
        tls = await asyncio.to_thread(self._tls) if url.scheme == "https" else None
        async with (
            httpcore.AsyncConnectionPool(ssl_context=tls, max_connections=1, network_backend=self._network) as pool,
            pool.stream("GET", wire_url, headers=headers) as response,
        ):
            head = _head(response)
            if head.location is not None:
                return Got(head, b"")
            takes(head)
            encoding = _header(response, b"content-encoding").strip().lower()
            if encoding not in {"", "identity", "gzip", "x-gzip"}:
                raise WebFailedError(
                    WebCode.BAD_RESPONSE, f"{url.host} sent an encoding that was not asked for: {encoding[:40]!a}"
                )
            pieces = response.aiter_stream()
            body = await self._body(pieces, url, is_gzip=encoding in {"gzip", "x-gzip"})
        return Got(head, body)

    async def _body(self, pieces: AsyncIterator[bytes], url: WebUrl, *, is_gzip: bool) -> bytes:
        body = bytearray()
        inflate = zlib.decompressobj(wbits=31) if is_gzip else None
        received = 0
        async for piece in pieces:
            received += len(piece)
            room = self._bytes_max + 1 - len(body)
            try:
                body += piece if inflate is None else inflate.decompress(piece, room)
            except zlib.error as exc:
                raise WebFailedError(WebCode.BAD_RESPONSE, f"{url.host} sent gzip that cannot be read") from exc
            if max(len(body), received) > self._bytes_max:
                raise WebFailedError(
                    WebCode.TOO_LARGE, f"the page at {url.host} is larger than {self._bytes_max} bytes"
                )
            if inflate is not None and inflate.eof:
                break
        if inflate is not None and not inflate.eof and received:
            raise WebFailedError(WebCode.BAD_RESPONSE, f"{url.host} broke off within a page")
        return bytes(body)


def _head(response: httpcore.Response) -> Head:
    content_type = _header(response, b"content-type").lower()
    mime = content_type.partition(";")[0].strip()
    charset = _CHARSET.search(content_type)
    location = _header(response, b"location") if response.status in _REDIRECTS else ""
    return Head(response.status, mime if is_mime(mime) else "", charset[1] if charset else None, location or None)


def _header(response: httpcore.Response, name: bytes) -> str:
    for key, value in response.headers:
        if key.lower() == name:
            try:
                return value.decode("utf-8")
            except UnicodeDecodeError:
                return value.decode("latin-1")
    return ""


def wants_status_200(head: Head, host: str) -> None:
    """Refuses every answer but a page that is there.

    Raises:
        WebFailedError: ``http_status``.
    """
    if head.status != _OK:
        raise WebFailedError(WebCode.HTTP_STATUS, f"{host} answered with HTTP status {head.status}")
