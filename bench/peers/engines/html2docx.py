"""html2docx, a library that walks HTML and fills a python-docx document."""

from pathlib import Path
from typing import Any

from html2docx import html2docx

from engines.pages import WARM_UP, html_of


def warm(fmt: str) -> None:
    """Renders a small document."""
    del fmt
    html2docx(WARM_UP, title="x")


def render(job: dict[str, Any], fmt: str, target: Path) -> list[str]:
    """Renders."""
    del fmt
    target.write_bytes(html2docx(html_of(job), title="x").getvalue())
    return []
