"""``@page`` of a request: size, margins, and what stands above and below the text."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

from render.document import Document
from render.page_setup import FIELD, page_margins, page_size, running_line
from render.source.assets import BASE_URL

_PLACES = [f"{edge}-{side}" for edge in ("top", "bottom") for side in ("left", "center", "right")]
_BARE_PAGE = re.compile(r"@page\s*\{[^{}]*\bmargin\s*:\s*0(?![.\d])", re.IGNORECASE)


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
        logo = _quoted(_address(document.theme.logo))
        rows.append(f'@top-right {{ content: ""; background: url("{logo}") right / contain no-repeat; '
                    f"height: 8mm; width: 45mm; vertical-align: top; margin-top: {max(top - 13, 2):g}mm; margin-bottom: auto }}")  # fmt: skip
    cover = "\n".join(f"@{place} {{ content: none; background: none }}" for place in _PLACES)
    landscape = f"size: {max(size):g}mm {min(size):g}mm"
    turned = f"@page pb-landscape {{ {landscape} }}\n.pb-landscape {{ page: pb-landscape }}\n"
    # WeasyPrint 70 leaves a named page for another name only: without one, text stays on the page of a wide table.
    turned += "html:has(.pb-landscape, [class*=pb-wide-]) { page: pb-text }\n"
    if options.get("cover"):
        # Not ``:first``: the author's own rules, and a document that asks for another first page, stay as they are.
        turned += f"@page pb-cover {{ {cover} }}\nhtml:has(.pb-cover) {{ page: pb-text }}\n"
    return f"@page {{ {'; '.join(rows)} }}\n{turned}"


def _address(logo: str) -> str:
    """A page's rules have no address of their own: a path is given in full."""
    return logo if logo[:5].lower() == "data:" else BASE_URL + quote(logo)


def _boxes(document: Document) -> dict[str, str]:
    """Content of the margin boxes, by their CSS names."""
    options = document.request.options
    if _is_without_margin(document):
        options = {**options, "page_numbers": False}
    lines = {"top": running_line(options, "header"), "bottom": running_line(options, "footer")}
    return {
        f"{edge}-{side}": _content(document, template)
        for edge, line in lines.items()
        for side, template in line.items()
    }


def _is_without_margin(document: Document) -> bool:
    """Whether the author's own pages have no margin, such as slides: there is no place for a page number."""
    return any(_BARE_PAGE.search(style.text or "") for style in document.tree.iter("style"))


def _content(document: Document, template: str) -> str:
    """A template with its fields as the value of ``content``."""
    metadata = document.metadata
    today = metadata.date or datetime.now(UTC).date().isoformat()
    texts = {"title": metadata.title, "date": today, "author": metadata.author}
    parts = []
    for number, part in enumerate(FIELD.split(template)):
        if number % 2 and part in {"page", "pages"}:
            parts.append(f"counter({part})")
        elif part:
            parts.append(f'"{_quoted(texts[part] if number % 2 else part)}"')
    return " ".join(parts)


def _quoted(text: str) -> str:
    """Text inside of a CSS string: everything that could end it is escaped by number."""
    return re.sub(r'["\\\n\r\f<>]', lambda match: f"\\{ord(match[0]):x} ", text)
