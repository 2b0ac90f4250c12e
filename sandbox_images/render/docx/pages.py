"""Pages of DOCX: their size and margins, headers and footers, and the sections that wide tables are turned in."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

from render.docx.images import picture
from render.docx.package import Part
from render.docx.page import Page
from render.docx.tables import is_too_wide
from render.docx.watermark import watermark_run
from render.docx.writer_state import Place, State
from render.docx.xml import DECLARATION, NAMESPACES, is_rtl, text_elements
from render.ir import Block, Heading, Image, Table
from render.page_setup import RUNNING_PICTURE_PX, page_margins, page_size, running_line, running_pieces
from render.to_ir.images import fetch, natural_size

_TWIPS_PER_MM = 1440 / 25.4
_EDGE = 640
"""Twips between the edge of the paper and a header or footer, where the margin leaves so much."""
_LOGO = (170.0, 34.0)
"""The largest width and height of a logo, in pixels."""
_TAGS = {"header": "hdr", "footer": "ftr"}
Edge = Literal["header", "footer"]


def page_of(options: dict[str, Any]) -> Page:
    """The page that a request asks for.

    Raises:
        RenderError: ``invalid_page_size``.
    """
    size = page_size(options)
    lengths = (*size, *page_margins(options, size))
    return Page(*(round(length * _TWIPS_PER_MM) for length in lengths))


def section_xml(page: Page, references: str, *, bare_first: bool = False) -> str:
    """``w:sectPr``: the page of a section, and its header and footer, which its first page may do without."""
    first = "<w:titlePg/>" if bare_first else ""
    turned = ' w:orient="landscape"' if page.width > page.height else ""
    return (
        f'<w:sectPr>{references}<w:pgSz w:w="{page.width}" w:h="{page.height}"{turned}/>'
        f'<w:pgMar w:top="{page.top}" w:right="{page.right}" w:bottom="{page.bottom}" w:left="{page.left}" '
        f'w:header="{min(page.top, _EDGE)}" w:footer="{min(page.bottom, _EDGE)}" w:gutter="0"/>{first}</w:sectPr>'
    )


def sections(blocks: list[Block], page: Page) -> Iterator[tuple[list[Block], Page]]:
    """Blocks in runs that share a page: a table that is too wide for an upright page has one on its side."""
    upright: list[Block] = []
    for block in blocks:
        wide = page.width < page.height and isinstance(block, Table) and is_too_wide(block, page.text_width)
        if not wide:
            upright.append(block)
            continue
        turned: list[Block] = [block]
        while upright and isinstance(upright[-1], Heading):  # a heading stays with its table
            turned.insert(0, upright.pop())
        if upright:
            yield upright, page
        yield turned, page.turned()
        upright = []
    if upright or not blocks:
        yield upright, page


def running_parts(state: State, page: Page, number: int) -> Iterator[tuple[Edge, Part, str]]:
    """Header and footer of pages of a kind, as far as they have them: which, its part, its content.

    Args:
        state: the document.
        page: its width is where lines end.
        number: of the kind of page; it names the parts.
    """
    options = state.document.request.options
    edges: tuple[Edge, ...] = ("header", "footer")
    for edge in edges:
        texts = running_line(options, edge)
        part = Part(f"word/{edge}{number}.xml")
        logo = _logo(state, part) if edge == "header" and "right" not in texts else ""
        mark = watermark_run(state, (page.text_width, page.text_height)) if edge == "header" else ""
        if texts or logo or (mark and state.template is None):  # a template has headers of its own for it
            yield edge, part, _running_xml(state, part, texts, mark + logo, page.text_width)


def watermark_header(state: State, part: Part, page: Page) -> str:
    """A header that has the watermark alone; empty if there is none."""
    mark = watermark_run(state, (page.text_width, page.text_height))
    return _running_xml(state, part, {}, mark, page.text_width) if mark else ""


def _logo(state: State, part: Part) -> str:
    path = state.content.theme.logo
    found = fetch(path, state.document) if path else None
    natural = natural_size(*found) if found else None
    if found is None or natural is None:
        if path:
            state.document.warn("missing_asset", "The logo of the theme cannot be had.", path=path[:200])
        return ""
    scale = min(_LOGO[0] / natural[0], _LOGO[1] / natural[1])
    image = Image(*found, "Logo", natural[0] * scale, natural[1] * scale)
    state.number("logo")
    return picture(state, Place(part, 10_000), image)


def _running_xml(state: State, part: Part, texts: dict[str, str], drawn: str, width: int) -> str:
    pieces = {side: _runs(state, part, text) for side, text in texts.items()}
    if drawn:  # a logo at the right; a watermark has its own place
        pieces["right"] = pieces.get("right", "") + drawn
    bidi = "<w:bidi/>" if is_rtl("".join(texts.values())) else ""
    if len(pieces) == 1:
        side, runs = next(iter(pieces.items()))
        shape = f'{bidi}<w:jc w:val="{side}"/>'
    else:
        tab = "<w:r><w:tab/></w:r>"
        runs = tab.join(pieces.get(side, "") for side in ("left", "center", "right"))
        stops = (("center", width // 2), ("right", width))
        rows = "".join(f'<w:tab w:val="{side}" w:pos="{at}"/>' for side, at in stops)
        shape = f"<w:tabs>{rows}</w:tabs>{bidi}"
    edge = "header" if part.name.startswith("word/header") else "footer"
    tag, style = _TAGS[edge], edge.capitalize()
    return (
        f'{DECLARATION}<w:{tag} {NAMESPACES}><w:p><w:pPr><w:pStyle w:val="{style}"/>{shape}</w:pPr>'
        f"{runs}</w:p></w:{tag}>"
    )


def _runs(state: State, part: Part, template: str) -> str:
    metadata = state.document.metadata
    today = metadata.date or datetime.now(UTC).date().isoformat()
    texts = {"title": metadata.title, "date": today, "author": metadata.author}
    runs = ""
    for kind, piece, alt in running_pieces(template):
        if kind == "picture":
            runs += _running_picture(state, part, piece, alt)
        elif kind == "field" and piece in {"page", "pages"}:
            runs += field("PAGE" if piece == "page" else "NUMPAGES", "1")
        else:
            text = texts[piece] if kind == "field" else piece
            runs += f"<w:r>{text_elements(text)}</w:r>" if text else ""
    return runs


def _running_picture(state: State, part: Part, path: str, alt: str) -> str:
    """A picture in a running line, as large as a logo; its words if it cannot be had."""
    found = fetch(path, state.document)
    natural = natural_size(*found) if found else None
    if found is None or natural is None:
        state.document.warn(
            "missing_asset", f"{path[:200]} of the header or footer cannot be had.", path=path[:200]
        )
        return f"<w:r>{text_elements(alt)}</w:r>" if alt else ""
    scale = min(RUNNING_PICTURE_PX[0] / natural[0], RUNNING_PICTURE_PX[1] / natural[1])
    state.number("logo")
    return picture(state, Place(part, 10_000), Image(*found, alt, natural[0] * scale, natural[1] * scale))


def field(instruction: str, shown: str) -> str:
    """The runs of a field that a reader fills in."""
    return (
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
        f'<w:r><w:instrText xml:space="preserve"> {instruction} </w:instrText></w:r>'
        f'<w:r><w:fldChar w:fldCharType="separate"/></w:r><w:r>{text_elements(shown)}</w:r>'
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    )
