"""The ports of the web: fetching pages and searching."""

import re
from dataclasses import dataclass
from typing import Protocol

from proofbox.contracts.codes import WebCode
from proofbox.service.web.urls import WebUrl

_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class WebFailedError(Exception):
    """A page or an answer of a search could not be had; the others of the call go on.

    Args:
        code: the stable code.
        message: one sentence for the model.
    """

    def __init__(self, code: WebCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """A fetched page, not parsed.

    Attributes:
        url: where it came from, after redirects.
        mime: its media type, in lower case.
        charset: the encoding that the server declares.
        body: its bytes, decompressed.
    """

    url: WebUrl
    mime: str
    charset: str | None
    body: bytes

    @property
    def is_html(self) -> bool:
        """Whether its text has to be taken out of markup."""
        return self.mime in {"text/html", "application/xhtml+xml"}


class PageFetcher(Protocol):
    """Fetches pages of the public web."""

    async def fetch(self, url: WebUrl) -> FetchedPage:
        """One page, redirects followed; bounded in time and in bytes.

        Raises:
            WebFailedError: the address, or one that it leads to, is not allowed, or the page cannot be had.
        """


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search.

    Attributes:
        url: the page.
        title: its title.
        text: what the search engine shows of it.
    """

    url: WebUrl
    title: str
    text: str


class PageSearcher(Protocol):
    """Asks the operator's search engine."""

    async def search(self, query: str, limit: int) -> list[Hit]:
        """At most ``limit`` results, the best first; results without a usable address are left out.

        Raises:
            WebFailedError: ``search_failed`` or ``fetch_timeout``.
        """


def clean_text(text: str) -> str:
    """A text of the web without what stores and prompts cannot carry: controls and halves of characters."""
    return _UNWANTED.sub("", text.replace("\r\n", "\n")).encode("utf-8", "replace").decode("utf-8")
