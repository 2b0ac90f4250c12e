"""What both drivers share: settings of the HTTP library, and its errors as failures of the transport."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx2

from proofbox.client.api import Api, wrong_url
from proofbox.client.errors import ArgumentError
from proofbox.client.exchange import ConnectionCut, NotConnected, Reply, Request, Silence
from proofbox.client.uploads import UploadSource

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def connection_settings(api: Api) -> dict[str, Any]:
    """The settings of the HTTP library's client.

    Raises:
        ArgumentError: the library takes no such URL.
    """
    parts = urlsplit(api.url)
    try:
        httpx2.URL(api.url)
    except httpx2.InvalidURL:
        raise wrong_url(api.url) from None
    is_local = parts.hostname in _LOOPBACK
    return {
        "headers": dict(api.headers),
        "timeout": api.timeout_s,
        "follow_redirects": False,  # the key goes to this service only
        # The proxy of the environment cannot reach a service of this machine.
        "trust_env": not is_local,
        # Certificates are always verified. Without TLS there are none, and their authorities take long to load.
        "verify": parts.scheme == "https" or not is_local,
    }


def request_settings(api: Api, request: Request) -> dict[str, Any]:
    """The arguments of the HTTP library's request, without its body."""
    headers = dict(request.headers)
    if isinstance(request.body, UploadSource) and request.body.size_bytes is not None:
        headers["Content-Length"] = str(request.body.size_bytes)
    settings: dict[str, Any] = {"method": request.method, "url": api.url + request.target, "headers": headers}
    if request.silence_s is not None:
        settings["timeout"] = httpx2.Timeout(api.timeout_s, read=request.silence_s)
    return settings


def require_open(http: httpx2.Client | httpx2.AsyncClient) -> None:
    """Check that a client can send.

    Raises:
        ArgumentError: it was closed.
    """
    if http.is_closed:
        raise ArgumentError("client", "the client is closed; read files and events before its with block ends")


def reply_of(response: httpx2.Response) -> Reply:
    """Status and headers of a response."""
    return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()})


@contextmanager
def translated_failures() -> Iterator[None]:
    """Raise a `TransportFailure` in place of the errors of the HTTP library."""
    try:
        yield
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError) as exc:
        raise NotConnected(_reason(exc)) from exc
    except httpx2.ReadTimeout as exc:
        raise Silence(_reason(exc)) from exc
    except (httpx2.TransportError, httpx2.DecodingError) as exc:
        raise ConnectionCut(_reason(exc)) from exc


def _reason(exc: Exception) -> str:
    return str(exc) or type(exc).__name__
