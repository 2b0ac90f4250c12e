"""Asks the operator's search engine, which answers as SearXNG does."""

import json
from typing import Any
from urllib.parse import quote

from proofbox.contracts.codes import WebCode
from proofbox.service.web.client.limited_get import LimitedGet, wants_status_200
from proofbox.service.web.client.outgoing import ResponseHead
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.resolver import Resolver
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.port import Hit, WebFailedError, clean_text
from proofbox.service.web.urls import UrlRefusedError, WebUrl

_BYTES_MAX = 4 * 1024 * 1024
_TITLE_CHARS_MAX = 500
_TEXT_CHARS_MAX = 4_000


class SearxngSearcher:
    """The port ``PageSearcher`` over SearXNG's JSON.

    The engine is the operator's choice, so it may stand on a private network; what it finds is not fetched here.

    Args:
        endpoint: where it answers, such as ``https://search.example.org/search``.
        answer_s: how long one search may take.
        resolve: how names become addresses.
        tls: how certificates are checked.
    """

    def __init__(self, endpoint: WebUrl, answer_s: float, resolve: Resolver, tls: Tls) -> None:
        self._endpoint = endpoint
        self._answer_s = answer_s
        self._http = LimitedGet(CheckedNetwork(resolve, None), tls, _BYTES_MAX)

    async def search(self, query: str, limit: int) -> list[Hit]:
        """See `PageSearcher.search`."""
        query_string = f"q={quote(query.encode(errors='replace'), safe='')}&format=json"
        joint = "&" if "?" in self._endpoint.target else "?"
        url = WebUrl(
            self._endpoint.scheme,
            self._endpoint.host,
            self._endpoint.port,
            f"{self._endpoint.target}{joint}{query_string}",
        )
        try:
            got = await self._http.get(url, "application/json", _wants_200, self._answer_s)
        except WebFailedError as exc:
            if exc.code is WebCode.FETCH_TIMEOUT:
                raise WebFailedError(exc.code, "the search engine did not answer in time; try again later") from exc
            raise _failed(exc.message) from exc
        if got.head.location is not None:
            raise _failed("it redirects; the operator has to name its final address")
        try:
            rows = json.loads(got.body)["results"]
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise _failed("its answer is not the JSON of SearXNG; is its format json enabled?") from exc
        if not isinstance(rows, list):
            raise _failed("its answer is not the JSON of SearXNG")
        hits = [hit for row in rows if (hit := _hit(row)) is not None]
        return hits[:limit]


def _wants_200(head: ResponseHead) -> None:
    wants_status_200(head, "the search engine")


def _failed(reason: str) -> WebFailedError:
    return WebFailedError(WebCode.SEARCH_FAILED, f"the search engine cannot be used: {reason}")


def _hit(row: Any) -> Hit | None:
    """A result; None if it has no address that could be fetched."""
    if not isinstance(row, dict):
        return None
    url, title, text = row.get("url"), row.get("title"), row.get("content")
    if not isinstance(url, str):
        return None
    try:
        parsed = WebUrl.parse(url)
    except UrlRefusedError:
        return None
    return Hit(
        parsed,
        clean_text(title)[:_TITLE_CHARS_MAX] if isinstance(title, str) else "",
        clean_text(text)[:_TEXT_CHARS_MAX] if isinstance(text, str) else "",
    )
