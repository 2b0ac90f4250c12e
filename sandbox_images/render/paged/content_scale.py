"""Content of a fixed width that is wider than the page: slides get pages of their size, the rest a smaller scale."""

import re

import weasyprint
from render.model import Document
from render.weasy.positions import content_edges, fixed_blocks, fixed_body, painted_rectangle

SCALE_MIN = 0.5
"""Text of 16 px is 6 pt then; what is wider yet is cut."""
EXAMINED_PAGES = 30
SLIDE_PX_MIN, SLIDE_PX_MAX = 200.0, 4_000.0
_WIDTH = re.compile(r"(?<![\w-])(?:min-)?width\s*:|white-space\s*:|grid-template|(?<![\w-])flex")
_SIZED_PAGE = re.compile(r"@page[^{]*\{[^{}]*\bsize\s*:", re.IGNORECASE)
_BODY = "html, body { margin: 0 !important }"
_SLIDES = (
    f"{_BODY} body {{ padding: 0 !important }}"
    " body > * { margin: 0 !important; break-before: page; break-inside: avoid }"
)
"""A browser's window has margins around slides, a page has none; and each begins a page, whatever the last one left."""
_PLACES = [f"{edge}-{side}" for edge in ("top", "bottom") for side in ("left", "center", "right")]


def wider_page(document: Document, laid: weasyprint.Document) -> tuple[str, float] | None:
    """CSS of the page that holds what was cut at the right edge, and the zoom to write it with.

    None: nothing was cut, or the author has set how large the page is.
    """
    own = "".join(style.text or "" for style in document.tree.iter("style"))
    inline = (element.get("style") or "" for element in document.tree.iter())
    if _SIZED_PAGE.search(own) or not any(map(_WIDTH.search, (own, *inline))):
        return None
    pages = laid.pages[:EXAMINED_PAGES]
    left, right = content_edges(pages[0])
    painted = [painted_rectangle(page, flow_only=True) for page in pages]
    reach = max(area.right for area in painted)
    if reach <= pages[0].width + 1:  # text from right to left is cut at the left edge
        reach = pages[0].width - min(area.left for area in painted)
    if reach <= pages[0].width + 1 or right <= left:
        return None
    slide, is_body = _slide_size(laid) if document.request.options.get("page_size") is None else (None, False)
    if slide:
        empty = " ".join(f"@{place} {{ content: none !important }}" for place in _PLACES)
        page = f"@page {{ size: {slide[0]:g}px {slide[1]:g}px !important; margin: 0 !important; {empty} }}"
        return f"{page} {_BODY if is_body else _SLIDES}", 1.0
    factor = min((reach - left) / (right - left), 1 / SCALE_MIN)
    document.warn(
        "scaled_to_fit", f"The content is wider than the page and was scaled to {1 / factor:.0%} of its size."
    )
    page = pages[0]
    size = f"{page.width * factor:.1f}px {page.height * factor:.1f}px"
    edges = f"margin-left: {left * factor:.1f}px !important; margin-right: {(page.width - right) * factor:.1f}px"
    return f"@page {{ size: {size} !important; {edges} !important }}", 1 / factor


def _slide_size(laid: weasyprint.Document) -> tuple[tuple[float, float] | None, bool]:
    """The size of the slides, if all that the body holds are blocks of one fixed size, or if it is a slide itself."""
    body = fixed_body(laid.pages[0])
    sizes = {body} if body is not None and len(laid.pages) == 1 else set(fixed_blocks(laid.pages[0]))
    if len(sizes) != 1:
        return None, False
    width, height = sizes.pop()
    fits = all(SLIDE_PX_MIN <= side <= SLIDE_PX_MAX for side in (width, height))
    return ((width, height) if fits else None), body is not None and len(laid.pages) == 1
