"""``@page`` of a request: size, margins, and what stands above and below the text."""

import re
from datetime import UTC, datetime
from urllib.parse import quote

from render.frontend.assets import BASE_URL, AssetRefused, read_asset
from render.frontend.figures.svg import data_uri
from render.model import Document
from render.page_setup import RUNNING_PICTURE_PX, page_margins, page_size, running_line, running_pieces
from render.to_ir.images import natural_size

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
    for kind, piece, alt in running_pieces(template):
        if kind == "picture":
            parts.append(_picture(document, piece, alt))
        elif kind == "field" and piece in {"page", "pages"}:
            parts.append(f"counter({piece})")
        else:
            parts.append(f'"{_quoted(texts[piece] if kind == "field" else piece)}"')
    return " ".join(part for part in parts if part) or "none"


def _picture(document: Document, path: str, alt: str) -> str:
    """A picture in a running line as the value of ``content``, as large as a logo; its words if it cannot be had."""
    try:
        asset = read_asset(document, path)
    except AssetRefused as refusal:
        document.warn(refusal.code, str(refusal), path=path[:200])
        return f'"{_quoted(alt)}"' if alt else ""
    size = natural_size(asset.data, asset.mime)
    if size is None:
        return f'"{_quoted(alt)}"' if alt else ""
    scale = min(RUNNING_PICTURE_PX[0] / size[0], RUNNING_PICTURE_PX[1] / size[1])
    width, height = size[0] * scale, size[1] * scale
    # An image in ``content`` has its own size: the drawing around it gives it another.
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.2f}" height="{height:.2f}"><image '
        f'href="{data_uri(asset.data, asset.mime)}" width="{width:.2f}" height="{height:.2f}"/></svg>'
    )
    return f'url("{data_uri(svg.encode(), "image/svg+xml")}")'


def _quoted(text: str) -> str:
    """Text inside of a CSS string: everything that could end it is escaped by number."""
    return re.sub(r'["\\\n\r\f<>]', lambda match: f"\\{ord(match[0]):x} ", text)
