"""A word across each page, over what stands there, faint enough to read it."""

from html import escape
from xml.etree.ElementTree import Element

from render.frontend.element_tree import body_of, make
from render.frontend.figures.svg import data_uri
from render.model import Document

CHARACTERS_MAX = 60
_CLASS = "pb-watermark"
_WIDTH, _HEIGHT = 1_000, 1_000
_LETTER = 0.62
"""About how wide a capital letter is, by the size of type."""
_SIZE_MAX = 230.0


def add_watermark(document: Document) -> None:
    """Add the element that is repeated on every page, if the request has a watermark."""
    text = watermark_text(document)
    if text:
        body_of(document.tree).append(_mark(document, text))


def watermark_text(document: Document) -> str:
    """The word of the request; empty if it has none."""
    return " ".join(str(document.request.options.get("watermark") or "").split())[:CHARACTERS_MAX]


def _mark(document: Document, text: str) -> Element:
    size = min(_SIZE_MAX, 1.2 * _WIDTH / (_LETTER * len(text)))
    colour, font = document.theme.colours["text"], document.theme.heading_font
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}">'
        f'<text x="500" y="500" transform="rotate(-45 500 500)" text-anchor="middle" dominant-baseline="central" '
        f'font-family="{escape(font)}" font-weight="bold" font-size="{size:.0f}" fill="{colour}" fill-opacity="0.12">'
        f"{escape(text)}</text></svg>"
    )
    picture = make("img", {"src": data_uri(svg.encode(), "image/svg+xml"), "alt": ""})
    return make("div", {"class": _CLASS, "aria-hidden": "true"}, None, picture)
