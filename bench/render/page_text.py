"""The text of printed pages: which characters leave their page, and how well words stand out from their ground."""

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium

OFF_PAGE_PT = 2.0
"""Ascenders and slanted letters reach a little over their box."""
READABLE = 4.5
_SCALE = 2.0
_RING = 2
_ZERO_WIDTH = "\u00ad\u200b\u200c\u200d\u2060\ufeff\ufe0e\ufe0f\ufffe"
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a page.

    Attributes:
        text: its characters.
        box: left, top, right, bottom in points from the page's upper left corner.
        contrast: of its colour with the ground around it, 1 to 21; None where the ground is not even.
    """

    text: str
    box: tuple[float, float, float, float]
    contrast: float | None


@dataclass(frozen=True, slots=True)
class PageText:
    """The words of a page, and its size in points."""

    words: Sequence[Word]
    width: float
    height: float

    @property
    def outside(self) -> list[str]:
        """Words that leave the page."""
        edge = OFF_PAGE_PT
        return [
            word.text
            for word in self.words
            if word.box[0] < -edge
            or word.box[1] < -edge
            or word.box[2] > self.width + edge
            or word.box[3] > self.height + edge
        ]


def read_pages(pdf: Path) -> list[PageText]:
    """The text of each page of a PDF."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        return [_page(page) for page in document]
    finally:
        document.close()


def _page(page: Any) -> PageText:
    picture = np.asarray(page.render(scale=_SCALE).to_pil().convert("RGB"))
    text = page.get_textpage()
    words: list[Word] = []
    for first, last in _spans(text):
        boxes = [text.get_charbox(index) for index in range(first, last)]
        box = (
            min(one[0] for one in boxes),
            page.get_height() - max(one[3] for one in boxes),
            max(one[2] for one in boxes),
            page.get_height() - min(one[1] for one in boxes),
        )
        words.append(
            Word(text.get_text_range(first, last - first), box, _contrast(picture, box, _fill(text, first)))
        )
    return PageText(words, page.get_width(), page.get_height())


def _spans(text: Any) -> Iterator[tuple[int, int]]:
    """First and last index of each run of characters that are drawn."""
    start: int | None = None
    count = text.count_chars()
    for index in range(count + 1):
        code = pdfium.FPDFText_GetUnicode(text, index) if index < count else 32
        drawn = code > 32 and chr(code) not in _ZERO_WIDTH and not chr(code).isspace()  # noqa: PLR2004 - no control
        if drawn and start is None:
            start = index
        elif not drawn and start is not None:
            yield start, index
            start = None


def _fill(text: Any, index: int) -> tuple[int, int, int, int]:
    parts = [ctypes.c_uint() for _ in range(4)]
    pdfium.FPDFText_GetFillColor(text, index, *map(ctypes.byref, parts))
    red, green, blue, alpha = (part.value for part in parts)
    return red, green, blue, alpha


def _contrast(picture: Pixels, box: tuple[float, ...], fill: tuple[int, int, int, int]) -> float | None:
    """Contrast of a colour with the pixels in a ring around a word; None if these are of many colours."""
    left, top, right, bottom = (round(value * _SCALE) for value in box)
    height, width = picture.shape[:2]
    top, bottom, left, right = top - _RING, bottom + _RING, left - _RING, right + _RING
    if left < 0 or top < 0 or right >= width or bottom >= height or right <= left or bottom <= top:
        return None
    ring = np.concatenate(
        [
            picture[top, left:right],
            picture[bottom, left:right],
            picture[top:bottom, left],
            picture[top:bottom, right],
        ]
    ).astype(np.float64)
    ground = np.median(ring, axis=0)
    if np.mean(np.abs(ring - ground).max(axis=1) > 24) > 0.25:  # noqa: PLR2004 - an edge or a picture runs through
        return None
    share = fill[3] / 255
    ink = np.array(fill[:3]) * share + ground * (1 - share)
    one, other = _light(ink), _light(ground)
    return float((max(one, other) + 0.05) / (min(one, other) + 0.05))


def _light(colour: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    """Relative luminance, as WCAG has it."""
    parts = colour / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)  # noqa: PLR2004
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))
