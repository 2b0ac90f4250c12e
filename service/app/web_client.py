"""Build the client of the web: the fetcher of pages and the search engine."""

from proofbox.service.app.settings import Settings
from proofbox.service.web.client.fetcher import FetchBounds, HttpPageFetcher
from proofbox.service.web.client.resolver import SystemResolver
from proofbox.service.web.client.searxng import SearxngSearcher
from proofbox.service.web.client.tls import loaded_when_asked
from proofbox.service.web.port import PageFetcher, PageSearcher
from proofbox.service.web.urls import WebUrl


def build_web_client(settings: Settings, resolver: SystemResolver) -> tuple[PageFetcher, PageSearcher | None]:
    """Build the fetcher and, if the operator named a search engine, the searcher.

    Raises:
        OSError: the certificates of ``web_ca_file`` cannot be read.
    """
    tls = loaded_when_asked(settings.web_ca_file)
    bounds = FetchBounds(
        page_s=settings.web_page_s,
        bytes_max=settings.web_page_bytes_max,
        ports=frozenset(settings.web_ports),
        opened=settings.web_allowed_networks,
    )
    fetcher = HttpPageFetcher(bounds, resolver, tls)
    if not settings.web_search_url:
        return fetcher, None
    endpoint = WebUrl.parse(settings.web_search_url)
    return fetcher, SearxngSearcher(endpoint, settings.web_search_s, resolver, tls)
