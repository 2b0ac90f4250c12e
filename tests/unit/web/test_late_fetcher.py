"""A fetcher that is made when it is first needed."""

from service.web.client.late_fetcher import LateFetcher
from service.web.port import FetchedPage
from service.web.urls import WebUrl

URL = WebUrl.parse("https://example.org/")


class Fetcher:
    async def fetch(self, url):
        return FetchedPage(url, "text/html", None, b"page")


async def test_nothing_is_made_before_a_page_is_wanted_and_then_once():
    made = []

    def make():
        made.append(Fetcher())
        return made[-1]

    fetcher = LateFetcher(make)
    assert made == []
    pages = [await fetcher.fetch(URL) for _ in range(2)]
    assert (len(made), [page.body for page in pages]) == (1, [b"page", b"page"])
