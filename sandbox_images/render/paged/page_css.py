"""``@page`` of a request: size, margins, and what stands above and below the text."""

import re
from datetime import UTC, datetime
from typing import Any

from render.document import Document, RenderError

SIZES = {
    "a3": (297.0, 420.0), "a4": (210.0, 297.0), "a5": (148.0, 210.0), "letter": (215.9, 279.4),
    "legal": (215.9, 355.6), "tabloid": (279.4, 431.8),
}  # fmt: skip
"""Width and height by name, in mm."""
SIDE_MM_MIN, SIDE_MM_MAX = 20.0, 5_000.0
"""A PDF page has at most 14,400 points a side, 5,080 mm."""
MARGIN_MM = 20.0
_UNITS = {"mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72, "px": 25.4 / 96, "": 25.4 / 96}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(mm|cm|in|pt|px|)")
_FIELD = re.compile(r"\{(page|pages|title|date|author)\}")


def length_mm(value: Any) -> float | None:
    """A length such as ``20mm``, ``1in`` or a number of px, in mm; None if it is none."""
    match = _LENGTH.fullmatch(str(value).strip().lower()) if isinstance(value, str | int | float) else None
    return float(match[1]) * _UNITS[match[2]] if match else None


def page_size(options: dict[str, Any]) -> tuple[float, float]:
    """Width and height of a page in mm, turned if the request says landscape.

    Raises:
        RenderError: ``invalid_page_size``.
    """
    named = options.get("page_size") or options.get("size") or "A4"
    sides: Any = [named.get("width"), named.get("height")] if isinstance(named, dict) else named
    if isinstance(sides, str):
        words = sides.replace("\u00d7", " ").replace(",", " ").split()
        turned = [word for word in words if word.lower() not in {"portrait", "landscape", "x"}]
        if len(turned) == 1 and turned[0].lower() in SIZES:
            sides = list(SIZES[turned[0].lower()])
            sides = [f"{side}mm" for side in sides]
            options = {
                **options,
                "landscape": options.get("landscape") or "landscape" in sides or "landscape" in words,
            }
        else:
            sides = turned
    if not isinstance(sides, list) or len(sides) != 2 or None in (found := [length_mm(side) for side in sides]):  # noqa: PLR2004
        raise RenderError(
            "invalid_page_size", f"The page size {str(named)[:60]} is neither {', '.join(SIZES)} nor two lengths."
        )
    width, height = (min(max(side or 0.0, SIDE_MM_MIN), SIDE_MM_MAX) for side in found)
    return (max(width, height), min(width, height)) if options.get("landscape") else (width, height)


def page_margins(options: dict[str, Any], size: tuple[float, float]) -> tuple[float, float, float, float]:
    """Top, right, bottom and left margin in mm; never so wide that no text fits."""
    given = options.get("margins", options.get("margin"))
    sides: list[float | None]
    if isinstance(given, dict):
        sides = [length_mm(given.get(side)) for side in ("top", "right", "bottom", "left")]
    else:
        words = [length_mm(word) for word in str(given).split()] if given is not None else []
        sides = {1: words * 4, 2: words * 2, 3: [*words, words[1] if len(words) > 1 else None], 4: words}.get(
            len(words), []
        )
    full = [MARGIN_MM if side is None else side for side in sides] or [MARGIN_MM] * 4
    top, right, bottom, left = full
    across, down = size[0] * 0.4, size[1] * 0.4
    return min(top, down), min(right, across), min(bottom, down), min(left, across)


def page_css(document: Document) -> str:
    """The ``@page`` rules of a document."""
    options = document.request.options
    size = page_size(options)
    top, right, bottom, left = page_margins(options, size)
    colours = document.theme.colours
    small = f'font: 8pt "{document.theme.body_font}", sans-serif; color: {colours["muted"]}'
    rows = [f"size: {size[0]:g}mm {size[1]:g}mm; margin: {top:g}mm {right:g}mm {bottom:g}mm {left:g}mm"]
    if colours["background"] != "#ffffff":
        rows.append(f"background: {colours['background']}")
    boxes = _boxes(document)
    rows += [f"@{place} {{ {small}; content: {content} }}" for place, content in boxes.items()]
    if document.theme.logo and "top-right" not in boxes:
        logo = _quoted(document.theme.logo)
        rows.append(f'@top-right {{ content: ""; background: url("{logo}") right / contain no-repeat; '
                    f"height: 9mm; width: 45mm; margin-top: {max(top - 13, 2) / 2:g}mm }}")  # fmt: skip
    landscape = f"size: {max(size):g}mm {min(size):g}mm"
    turned = f"@page pb-landscape {{ {landscape} }}\n.pb-landscape {{ page: pb-landscape }}\n"
    return f"@page {{ {'; '.join(rows)} }}\n{turned}"


def _boxes(document: Document) -> dict[str, str]:
    """Content of the margin boxes; page numbers stand below unless the request has a footer or wants none."""
    options = document.request.options
    boxes: dict[str, str] = {}
    footer = options.get("footer")
    if footer is None and options.get("page_numbers", True):
        footer = {"center": "{page} / {pages}"}
    for edge, given in (("top", options.get("header")), ("bottom", footer)):
        parts: dict[str, Any] = given if isinstance(given, dict) else {"center": given}
        for side in ("left", "center", "right"):
            template = parts.get(side)
            if isinstance(template, str) and template.strip():
                boxes[f"{edge}-{side}"] = _content(document, template[:500])
    return boxes


def _content(document: Document, template: str) -> str:
    """A template with its fields as the value of ``content``."""
    metadata = document.metadata
    today = metadata.date or datetime.now(UTC).date().isoformat()
    texts = {"title": metadata.title, "date": today, "author": metadata.author}
    parts = []
    for number, part in enumerate(_FIELD.split(template)):
        if number % 2 and part in {"page", "pages"}:
            parts.append(f"counter({part})")
        elif part:
            parts.append(f'"{_quoted(texts[part] if number % 2 else part)}"')
    return " ".join(parts)


def _quoted(text: str) -> str:
    """Text inside of a CSS string: everything that could end it is escaped by number."""
    return re.sub(r'["\\\n\r\f<>]', lambda match: f"\\{ord(match[0]):x} ", text)
