"""The text of a PDF, page by page, by PDFium."""

from collections.abc import Iterator
from pathlib import Path

import pypdfium2

_NO_TEXT = "(no text on this page: it may be a picture)"


def lines(path: Path) -> Iterator[str]:
    """The lines of a PDF: ``## Page 3`` and what stands on it."""
    document = pypdfium2.PdfDocument(path)
    for number in range(len(document)):
        page = document[number]
        text = page.get_textpage().get_text_bounded(errors="replace")
        yield from ("", f"## Page {number + 1}", "")
        yield from text.replace("\r\n", "\n").strip().split("\n") if text.strip() else [_NO_TEXT]
        page.close()
