"""The words of a PDF's pages, as three readers see them, and where Poppler sees them."""

import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pypdf
import pypdfium2

_PAGE = re.compile(r'<page width="([\d.]+)" height="([\d.]+)">(.*?)</page>', re.DOTALL)
_WORD = re.compile(
    r'<word xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([-\d.]+)" yMax="([-\d.]+)">(.*?)</word>', re.DOTALL
)


def pages(path: Path) -> dict[str, Any]:
    """What the pages of a PDF hold.

    Returns:
        ``{"pages": [{"size_pt": [width, height], "poppler": [[word, x0, y0, x1, y1], …], "pdfium": [word, …],
        "pypdf": [word, …]}, …]}`` with boxes in points from the top left; or ``{"error": why}``.
    """
    try:
        boxed = _poppler(path)
        pdfium = _pdfium(path)
        plain = [page.extract_text().split() for page in pypdf.PdfReader(path).pages]
    except (OSError, subprocess.CalledProcessError, pypdfium2.PdfiumError, pypdf.errors.PyPdfError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "pages": [
            {"size_pt": size, "poppler": words, "pdfium": seen, "pypdf": read}
            for (size, words), seen, read in zip(boxed, pdfium, plain, strict=True)
        ]
    }


def _poppler(path: Path) -> list[tuple[list[float], list[list[Any]]]]:
    done = subprocess.run(["pdftotext", "-bbox", path, "-"], capture_output=True, check=True)
    return [
        (
            [float(width), float(height)],
            [[unescape(word), *map(float, box)] for *box, word in _WORD.findall(content)],
        )
        for width, height, content in _PAGE.findall(done.stdout.decode(errors="replace"))
    ]


def _pdfium(path: Path) -> list[list[str]]:
    document = pypdfium2.PdfDocument(path)
    try:
        return [page.get_textpage().get_text_bounded().split() for page in document]
    finally:
        document.close()
