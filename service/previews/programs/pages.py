"""Runs in a sandbox: pages as PNG pictures in one file, one behind the other, and one line of JSON about them."""

import io
import json
import sys
from collections.abc import Callable
from typing import Any

from PIL import Image

Image.MAX_IMAGE_PIXELS = 100_000_000
HEIGHT_SHARE_MAX = 2.5
"""The largest height of a picture, as a share of its width; what is below is cut off."""


class CannotShowError(Exception):
    """A file that cannot be shown; the message is for the user."""


class PageWriter:
    """Writes the pictures of some pages.

    Args:
        request: ``{"input", "target", "first", "count", "width_px"}``, with the paths of the file and the result.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        self.first: int = request["first"]
        self.count: int = request["count"]
        self.width_px: int = request["width_px"]
        self.sizes: list[int] = []
        self._target = request["target"]
        self._pictures: list[bytes] = []

    def numbers(self, total: int) -> range:
        """Which pages to write, 0 for the first.

        Raises:
            CannotShowError: there is no such page.
        """
        if self.first > total:
            raise CannotShowError(f"page: {self.first} does not exist (the document has {total})")
        return range(self.first - 1, min(total, self.first - 1 + self.count))

    def add(self, picture: Image.Image) -> None:
        """Add the picture of a page, on white, not larger than asked for."""
        bounds = (self.width_px, int(self.width_px * HEIGHT_SHARE_MAX))
        if picture.width > bounds[0] or picture.height > bounds[1]:
            picture.thumbnail(bounds)
        if picture.mode != "RGB":
            picture = picture.convert("RGBA")
            ground = Image.new("RGB", picture.size, "white")
            ground.paste(picture, mask=picture.getchannel("A"))
            picture = ground
        written = io.BytesIO()
        picture.save(written, "PNG", compress_level=6)
        self._pictures.append(written.getvalue())

    def answer(self, total: int, *, exact: bool) -> dict[str, Any]:
        """Write the file; the fields of the answer."""
        with open(self._target, "wb") as target:
            target.writelines(self._pictures)
        sizes = [len(picture) for picture in self._pictures]
        return {"ok": True, "first": self.first, "total": total, "sizes": sizes, "exact": exact}


def add_pdf(writer: PageWriter, source: "str | bytes") -> int:
    """Add pages of a PDF; how many it has.

    Raises:
        CannotShowError: it cannot be opened.
    """
    import pypdfium2  # noqa: PLC0415 - pictures are shown without it

    try:
        document = pypdfium2.PdfDocument(source)
    except pypdfium2.PdfiumError as exc:
        reason = "it is protected by a password" if "password" in str(exc).lower() else "it is not a readable PDF"
        raise CannotShowError(reason) from exc
    total = len(document)
    for number in writer.numbers(total):
        page = document[number]
        width, height = page.get_size()
        scale = min(writer.width_px / max(1, width), writer.width_px * HEIGHT_SHARE_MAX / max(1, height))
        writer.add(page.render(scale=scale).to_pil())
    return total


def run_program(work: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answer the request of standard input with one line of JSON.

    Args:
        work: answers a request.
    """
    request = json.load(sys.stdin)
    try:
        answer = work(request)
    except CannotShowError as exc:
        answer = {"ok": False, "message": str(exc)}
    except MemoryError:
        answer = {"ok": False, "message": "opening it takes more memory than a sandbox has"}
    except Exception as exc:  # noqa: BLE001 - parsers fail with all kinds of errors on damaged files
        answer = {"ok": False, "message": f"it cannot be opened: {type(exc).__name__}"}
    print(json.dumps(answer))
