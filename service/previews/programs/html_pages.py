"""Runs in a sandbox: HTML as pictures of pages. Scripts do not run, and only ``data:`` URLs are loaded."""

from typing import Any

from proofbox.service.previews.programs.pages import CannotShowError, PageWriter, add_pdf, run_program
from proofbox.service.text_encoding import find_file_encoding

_PAGE = "@page { size: 1024px 1366px; margin: 0 }"


def show_html(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request for a page of HTML."""
    with open(request["input"], encoding=find_file_encoding(request["input"]), errors="replace") as file:
        html = file.read()
    writer = PageWriter(request)
    return writer.answer(add_html(writer, html, _PAGE), exact=True)


def add_html(writer: PageWriter, html: str, page_css: str) -> int:
    """Add pages of HTML; how many it has.

    Raises:
        CannotShowError: it is empty.
    """
    import weasyprint  # noqa: PLC0415

    if not html.strip():
        raise CannotShowError("it is empty")
    # Other files of the sandbox are not a part of the page, and there is no network.
    fetcher = weasyprint.urls.URLFetcher(allowed_protocols={"data"})
    style = weasyprint.CSS(string=page_css, url_fetcher=fetcher)
    return add_pdf(writer, weasyprint.HTML(string=html, url_fetcher=fetcher).write_pdf(stylesheets=[style]))


if __name__ == "__main__":
    run_program(show_html)
