"""PDF/UA-1 and PDF/A by `page-validation`, which holds itself to veraPDF's corpus of test files."""

import re
from pathlib import Path
from typing import Any

import page

_PART = re.compile(rb"""pdfaid:part(?:>|=["'])\s*(\d)""")
_LEVEL = re.compile(rb"""pdfaid:conformance(?:>|=["'])\s*([ABUabu])""")


def failures(path: Path, profile: str) -> list[str]:
    """The rules of a profile (``ua1``, ``2b``, ``3b`` …) that a PDF breaks; empty if it conforms."""
    try:
        report = page.validate_pdf(path, profile=profile)
    except page.PageError as error:
        return [f"cannot be read: {error}"]
    return [f"{failure.rule_id}: {failure.message}" for failure in report.failures]


def archive(path: Path) -> dict[str, Any] | None:
    """The PDF/A level that a PDF claims and the rules of it that are broken; None if it claims none.

    The claim is read from the metadata, which PDF/A wants uncompressed.
    """
    content = path.read_bytes()
    part, level = _PART.search(content), _LEVEL.search(content)
    if part is None or level is None:
        return None
    claimed = (part[1] + level[1]).decode().lower()
    return {"claims": claimed, "failures": failures(path, claimed)}
