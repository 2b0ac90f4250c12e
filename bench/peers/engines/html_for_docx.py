"""html-for-docx, a library that walks HTML with Beautiful Soup and fills a python-docx document."""

from pathlib import Path
from typing import Any

from html4docx import HtmlToDocx

from engines.pages import WARM_UP, html_of


def warm(fmt: str) -> None:
    """Renders a small document."""
    del fmt
    HtmlToDocx().parse_html_string(WARM_UP)


def render(job: dict[str, Any], fmt: str, target: Path) -> list[str]:
    """Renders."""
    del fmt
    HtmlToDocx().parse_html_string(html_of(job)).save(str(target))
    return []
