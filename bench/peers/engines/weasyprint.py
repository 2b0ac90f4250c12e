"""WeasyPrint as its users call it: one line, from HTML."""

import logging
from pathlib import Path
from typing import Any

from weasyprint import HTML

from engines.pages import WARM_UP, html_of


def warm(fmt: str) -> None:
    """Renders a small document."""
    del fmt
    logging.getLogger("weasyprint").setLevel(logging.CRITICAL)
    HTML(string=WARM_UP).write_pdf()


def render(job: dict[str, Any], fmt: str, target: Path) -> list[str]:
    """Renders; pictures are found beside the target."""
    del fmt
    HTML(string=html_of(job), base_url=f"{target.parent}/").write_pdf(target)
    return []
