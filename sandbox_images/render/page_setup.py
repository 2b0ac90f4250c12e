"""Pages of a request, for every paged format: size, margins, and what stands above and below the text."""

import re
from collections.abc import Iterator
from typing import Any, Literal

from render.model import RenderError

SIZES = {
    "a3": (297.0, 420.0), "a4": (210.0, 297.0), "a5": (148.0, 210.0), "letter": (215.9, 279.4),
    "legal": (215.9, 355.6), "tabloid": (279.4, 431.8),
}  # fmt: skip
"""Width and height by name, in mm."""
SIDE_MM_MIN, SIDE_MM_MAX = 20.0, 5_000.0
"""A PDF page has at most 14,400 points a side, 5,080 mm."""
MARGIN_MM = 20.0
LINE_CHARACTERS_MAX = 500
FIELD = re.compile(r"\{(page|pages|title|date|author)\}")
"""What is filled in where a running line names it."""
PICTURE = re.compile(r"!\[([^\[\]]{0,200})\]\(\s{0,9}<?([^()<>\"]{1,400}?)>?\s{0,9}\)")
"""A picture in a running line, as in Markdown: what it shows, and its path."""
RUNNING_PICTURE_PX = (170.0, 30.0)
"""The largest width and height of one: 45 by 8 mm, as a logo has."""
PAGE_NUMBERS = "{page} / {pages}"
_SIDES = ("top", "right", "bottom", "left")
_UNITS = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72, "px": 25.4 / 96, "": 25.4 / 96}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(mm|cm|in|pt|px|)")


def length_mm(value: Any) -> float | None:
    """A length such as ``20mm``, ``1in`` or a number of px, in mm; None if it is none."""
    match = _LENGTH.fullmatch(str(value).strip().lower()) if isinstance(value, str | int | float) else None
    return float(match[1]) * _UNITS[match[2]] if match else None


def page_size(options: dict[str, Any]) -> tuple[float, float]:
    """Width and height of a page in mm, turned if the request asks for landscape.

    Raises:
        RenderError: ``invalid_page_size``.
    """
    named = options.get("page_size") or "A4"
    words = str(named).replace("\u00d7", " ").replace(",", " ").lower().split()
    sides = [word for word in words if word not in {"portrait", "landscape", "x"}]
    known = SIZES.get(sides[0]) if len(sides) == 1 else None
    found = list(known) if known else [side for side in map(length_mm, sides) if side is not None]
    if len(found) != 2 or (not known and len(sides) != 2):  # noqa: PLR2004 - width and height
        raise RenderError(
            "invalid_page_size", f"The page size {str(named)[:60]} is neither {', '.join(SIZES)} nor two lengths."
        )
    width, height = (min(max(side, SIDE_MM_MIN), SIDE_MM_MAX) for side in found)
    turned = options.get("landscape") or "landscape" in words
    return (max(width, height), min(width, height)) if turned else (width, height)


def page_margins(options: dict[str, Any], size: tuple[float, float]) -> tuple[float, float, float, float]:
    """Top, right, bottom and left margin in mm; never so wide that no text fits.

    Args:
        options: ``margins`` is a mapping of sides, or one to four lengths as in CSS.
        size: width and height of the page in mm.
    """
    given = options.get("margins")
    sides: list[float | None]
    if isinstance(given, dict):
        sides = [length_mm(given.get(side)) for side in _SIDES]
    else:
        words = [length_mm(word) for word in str(given).split()] if given is not None else []
        sides = {1: words * 4, 2: words * 2, 3: [*words, *words[1:2]], 4: words}.get(len(words), [])
    top, right, bottom, left = [MARGIN_MM if side is None else side for side in sides] or [MARGIN_MM] * 4
    across, down = size[0] * 0.4, size[1] * 0.4
    return min(top, down), min(right, across), min(bottom, down), min(left, across)


def running_pieces(template: str) -> Iterator[tuple[Literal["text", "field", "picture"], str, str]]:
    """The pieces of a running line: a text, the name of a field, or the path of a picture with what it shows."""
    for index, part in enumerate(PICTURE.split(template)):
        if index % 3 == 0:
            for place, piece in enumerate(FIELD.split(part)):
                if piece:
                    yield ("field" if place % 2 else "text"), piece, ""
        elif index % 3 == 1:
            shown = part
        else:
            yield "picture", part.strip(), shown


def running_line(options: dict[str, Any], edge: Literal["header", "footer"]) -> dict[str, str]:
    """What stands above or below the text of every page: templates by ``left``, ``center`` and ``right``.

    Page numbers stand below unless the request has a footer or wants none; places without a text are left out.
    """
    given = options.get(edge)
    if edge == "footer" and given is None and options.get("page_numbers", True):
        given = PAGE_NUMBERS
    parts = given if isinstance(given, dict) else {"center": given}
    texts = {side: parts.get(side) for side in ("left", "center", "right")}
    return {
        side: text[:LINE_CHARACTERS_MAX] for side, text in texts.items() if isinstance(text, str) and text.strip()
    }
