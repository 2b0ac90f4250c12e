"""Fetches pages of the public web: every hop is checked, and no response is parsed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from proofbox.contracts.codes import WebCode
from proofbox.contracts.media_types import is_text
from proofbox.service.web.client.address_policy import Network
from proofbox.service.web.client.limited_get import LimitedGet, wants_status_200
from proofbox.service.web.client.outgoing import ResponseHead
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.port import FetchedPage, WebFailedError
from proofbox.service.web.urls import UrlRefusedError, WebUrl

_REDIRECTS_MAX = 5
_ACCEPT = "text/html,application/xhtml+xml;q=0.9,text/*;q=0.8,application/json;q=0.8,application/xml;q=0.7"


@dataclass(frozen=True, slots=True)
class FetchBounds:
    """What fetching a page may cost, and where it may go.

    Attributes:
        page_s: wall clock of one page, redirects and all.
        bytes_max: the largest page, compressed and decompressed.
        ports: the ports that are asked.
        opened: networks that the operator opens beyond the public internet.
    """

    page_s: float
    bytes_max: int
    ports: frozenset[int]
    opened: Sequence[Network]


class HttpPageFetcher:
    """The port ``PageFetcher`` over HTTP.

    Args:
        bounds: what it may do.
        resolve: how names become addresses.
        tls: how certificates are checked.
    """

    def __init__(self, bounds: FetchBounds, resolve: Resolver, tls: Tls) -> None:
        self._bounds = bounds
        self._http = LimitedGet(CheckedNetwork(resolve, bounds.opened), tls, bounds.bytes_max)

    async def fetch(self, url: WebUrl) -> FetchedPage:
        """See `PageFetcher.fetch`."""
        ends = time.monotonic() + self._bounds.page_s
        for _ in range(_REDIRECTS_MAX + 1):
            if url.port not in self._bounds.ports:
                raise WebFailedError(
                    WebCode.URL_NOT_ALLOWED, f"port {url.port} is not among those that pages are fetched from"
                )
            got = await self._http.get(url, _ACCEPT, partial(_wants_page, host=url.host), ends - time.monotonic())
            if got.head.location is None:
                return FetchedPage(url, got.head.mime, got.head.charset, got.body)
            url = _next(url, got.head.location)
        raise WebFailedError(WebCode.TOO_MANY_REDIRECTS, f"the page redirects more than {_REDIRECTS_MAX} times")


def _wants_page(head: ResponseHead, host: str) -> None:
    """Refuses a body that is not readable text; a PDF or a picture is named, so that the model knows what it was.

    Raises:
        WebFailedError: ``http_status`` or ``unsupported_type``.
    """
    wants_status_200(head, host)
    is_markup = head.mime.startswith("application/") and head.mime.endswith(("+xml", "+json"))
    if not (is_text(head.mime) or is_markup):
        raise WebFailedError(
            WebCode.UNSUPPORTED_TYPE,
            f"{host} sent {head.mime or 'no media type'}; only HTML, text, JSON and XML can be read",
        )


def _next(url: WebUrl, location: str) -> WebUrl:
    """Where a redirect leads; from https never to http: what is cited as https has to have come by it."""
    try:
        target = url.joined(location)
    except UrlRefusedError as exc:
        raise WebFailedError(
            WebCode.URL_NOT_ALLOWED, f"the page redirects where nothing is fetched: {exc}"
        ) from exc
    if url.scheme == "https" and target.scheme == "http":
        raise WebFailedError(
            WebCode.URL_NOT_ALLOWED,
            f"the page redirects from https to http at {target.host}, which is not followed",
        )
    return target
