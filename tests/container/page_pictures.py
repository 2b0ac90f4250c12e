"""Pictures of rendered pages, side by side on one small sheet, and how far two of them are apart.

The reference sheets are in ``documents/pictures``. They are renewed by ``make golden``; look at what has changed
before you commit it.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pypdfium2
from PIL import Image

PICTURES = Path(__file__).parent / "documents" / "pictures"
# A page is as wide as a thumb nail on the sheet: a heading is several pixels high, a hair line is a shade.
PAGE_WIDTH_PX = 240
PAGES_MAX = 4
# Side of the squares whose mean colours are compared. Within one, text may be drawn a little differently.
BLOCK_PX = 4
# How far a square's mean may be off, in steps of 255 of any colour. One image draws a page the same every time; a
# heading in another blue is off by 20 and more, one that is missing by 60.
TOLERANCE = 12


def sheet(path: Path) -> Image.Image:
    """The first pages of a PDF, or a PNG, as one picture."""
    pages = [page.convert("RGB") for page in (_pages(path) if path.suffix == ".pdf" else _picture(path))]
    small = [
        page.resize((PAGE_WIDTH_PX, max(1, round(page.height * PAGE_WIDTH_PX / page.width))), Image.Resampling.BOX)
        for page in pages
    ]
    joined = Image.new("RGB", (PAGE_WIDTH_PX * len(small), max(page.height for page in small)), "white")
    for number, page in enumerate(small):
        joined.paste(page, (number * PAGE_WIDTH_PX, 0))
    return joined


def differences(one: Image.Image, other: Image.Image) -> list[tuple[int, int]]:
    """Where two sheets differ: column and row of squares; all of them if the sheets are not of one size."""
    size = (-(-one.width // BLOCK_PX), -(-one.height // BLOCK_PX))
    if one.size != other.size:
        return [(x, y) for y in range(size[1]) for x in range(size[0])]
    first, second = (picture.convert("RGB").resize(size, Image.Resampling.BOX) for picture in (one, other))
    return [
        (x, y)
        for y in range(size[1])
        for x in range(size[0])
        if max(abs(a - b) for a, b in zip(first.getpixel((x, y)), second.getpixel((x, y)), strict=True)) > TOLERANCE
    ]


def reference(name: str, shown: Image.Image) -> Image.Image:
    """The reference sheet of a file; ``PROOFBOX_TEST_RENEW_PICTURES=1`` makes ``shown`` the reference first."""
    path = PICTURES / f"{name}.png"
    if os.environ.get("PROOFBOX_TEST_RENEW_PICTURES") == "1":
        PICTURES.mkdir(exist_ok=True)
        shown.save(path, optimize=True)
    with Image.open(path) as picture:
        return picture.convert("RGB")


def _pages(path: Path) -> Iterator[Image.Image]:
    document = pypdfium2.PdfDocument(path)
    for page in list(document)[:PAGES_MAX]:
        # Twice as large as it is shown: scaling down evens out how edges are smoothed.
        yield page.render(scale=2 * PAGE_WIDTH_PX / page.get_width()).to_pil()
    document.close()


def _picture(path: Path) -> Iterator[Image.Image]:
    with Image.open(path) as picture:
        picture.load()
        yield picture
