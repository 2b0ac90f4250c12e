"""Documents rendered through the program's own function, and what a reader sees of their pages."""

from pathlib import Path

import pypdf
import pypdfium2
from PIL import Image
from render.__main__ import render
from render.request import request_of


def rendered(folder: Path, content: str, output="pdf", source_format="html", **fields) -> tuple[dict, Path]:
    """The answer to a rendering, and the file."""
    request = {"output": output, "source_format": source_format, "content": content}
    target = f"turn_1/files/a.{output}"
    return render(request_of({**request, "root": str(folder), "target": target, **fields})), folder / target


def page_picture(file: Path, page: int = 0) -> Image.Image:
    """A page of a PDF at 144 dpi, or a PNG."""
    if file.suffix == ".png":
        return Image.open(file).convert("RGB")
    return pypdfium2.PdfDocument(file)[page].render(scale=2).to_pil().convert("RGB")


def shows(file: Path, colour: str, page: int = 0) -> bool:
    """Whether some part of a page has exactly a colour, ``#rrggbb``."""
    wanted = tuple(int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return any(found == wanted for _, found in page_picture(file, page).getcolors(1 << 24))


def page_words(file: Path) -> list[str]:
    """The words of a PDF, in order."""
    return " ".join(page.extract_text() for page in pypdf.PdfReader(file).pages).split()


def codes(answer: dict) -> list[str]:
    """The codes of the warnings of an answer."""
    return [warning["code"] for warning in answer["warnings"]]
