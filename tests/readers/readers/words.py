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
        ``{"pages": [{"size_pt": [width, height], "boxes": [[word, x0, y0, x1, y1], …], "poppler": [word, …],
        "pdfium": [word, …], "pypdf": [word, …]}, …]}``: the boxes are Poppler's, in points from the top left, the
        letters of a word as they stand from left to right; or ``{"error": why}``.
    """
    try:
        boxed = _boxes(path)
        poppler = _poppler(path)
        pdfium = _pdfium(path)
        plain = [page.extract_text().split() for page in pypdf.PdfReader(path).pages]
    except (OSError, subprocess.CalledProcessError, pypdfium2.PdfiumError, pypdf.errors.PyPdfError) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return {
        "pages": [
            {"size_pt": size, "boxes": boxes, "poppler": words, "pdfium": seen, "pypdf": read}
            for (size, boxes), words, seen, read in zip(boxed, poppler, pdfium, plain, strict=True)
        ]
    }


def _poppler(path: Path) -> list[list[str]]:
    done = subprocess.run(["pdftotext", "-enc", "UTF-8", path, "-"], capture_output=True, check=True)
    # A form feed ends each page.
    return [page.split() for page in done.stdout.decode(errors="replace").split("\f")[:-1]]


def _boxes(path: Path) -> list[tuple[list[float], list[list[Any]]]]:
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
