"""A fetcher of pages that is made when a call first wants one: most services are spared its library."""

import asyncio
from collections.abc import Callable

from service.web.port import FetchedPage, PageFetcher
from service.web.urls import WebUrl


class LateFetcher:
    """The port ``PageFetcher`` over one that is made at the first fetch.

    Args:
        make: makes it; may block for the time of importing.
    """

    def __init__(self, make: Callable[[], PageFetcher]) -> None:
        self._make = make
        self._made: PageFetcher | None = None

    async def fetch(self, url: WebUrl) -> FetchedPage:
        """See `PageFetcher.fetch`."""
        if self._made is None:
            self._made = await asyncio.to_thread(self._make)
        return await self._made.fetch(url)
