"""How much one picture of a slide is like another, and how much of a slide is used."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from pptx import Presentation

WIDTH, HEIGHT = 640, 360
WINDOW = 7
ALIKE = 0.85
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
Grey = np.ndarray[Any, np.dtype[np.float64]]


def similarity(one: Grey, other: Grey) -> float:
    """SSIM of two grey pictures of one size: 1 for the same, 0 for nothing in common; windows of 7 by 7 pixels."""
    mean_one, mean_other = _means(one), _means(other)
    spread_one = np.maximum(_means(one * one) - mean_one**2, 0)
    spread_other = np.maximum(_means(other * other) - mean_other**2, 0)
    joint = _means(one * other) - mean_one * mean_other
    light = (2 * mean_one * mean_other + _C1) / (mean_one**2 + mean_other**2 + _C1)
    shape = (2 * joint + _C2) / (spread_one + spread_other + _C2)
    return float((light * shape).mean())


def _means(values: Grey) -> Grey:
    """The mean of the window at each place."""
    sums = np.cumsum(np.cumsum(np.pad(values, ((1, 0), (1, 0))), axis=0), axis=1)
    whole = sums[WINDOW:, WINDOW:] - sums[:-WINDOW, WINDOW:] - sums[WINDOW:, :-WINDOW] + sums[:-WINDOW, :-WINDOW]
    return np.asarray(whole / WINDOW**2, dtype=np.float64)


def pictures(pdf: Path) -> list[Grey]:
    """Each page of a PDF as a grey picture of 640 by 360 pixels."""
    found = []
    document = pypdfium2.PdfDocument(pdf)
    try:
        for page in document:
            picture = page.render(scale=1.5 * WIDTH / page.get_width()).to_pil().convert("L")
            found.append(np.asarray(picture.resize((WIDTH, HEIGHT)), dtype=np.float64))
    finally:
        document.close()
    return found


def likenesses(deck: Path, pages: Path) -> list[float]:
    """SSIM of each slide with the page of the same number; 0 for a slide or a page without a counterpart.

    Args:
        deck: a deck as another program printed it, a PDF.
        pages: the same source as a PDF of ours.
    """
    ours, theirs = pictures(deck), pictures(pages)
    pairs = [similarity(one, other) for one, other in zip(ours, theirs, strict=False)]
    return pairs + [0.0] * abs(len(ours) - len(theirs))


def used_shares(deck: Path) -> dict[int, float]:
    """For each content slide of a deck in a theme, by its number, the share of its area that is used.

    Used is the rectangle around all that is on the slide, its title included; titles and sections are left out.
    """
    presentation = Presentation(str(deck))
    found = {}
    for number, slide in enumerate(presentation.slides, 1):
        if slide.slide_layout.name in {"Title Slide", "Section Header"}:
            continue
        boxes = [
            (shape.left, shape.top, shape.left + shape.width, shape.top + shape.height)
            for shape in slide.shapes
            if not (_is_hidden(shape) or shape.name.startswith("Slide Number"))
        ]
        if boxes:
            wide = max(box[2] for box in boxes) - min(box[0] for box in boxes)
            tall = max(box[3] for box in boxes) - min(box[1] for box in boxes)
            found[number] = wide * tall / (presentation.slide_width * presentation.slide_height)
    return found


def _is_hidden(shape: Any) -> bool:
    return bool(shape._element.xpath("string(.//p:cNvPr/@hidden)") == "1")  # noqa: SLF001


def median(values: Sequence[float]) -> float | None:
    """The middle of some values; None if there are none."""
    return float(np.median(values)) if values else None
