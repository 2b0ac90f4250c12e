"""Writes a document as PNG: laid out on one tall page and rastered, so nothing ends at a viewport's height."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2
import weasyprint
from PIL import Image, PngImagePlugin
from render.frontend.headings import fill_contents
from render.model import Document, RenderError
from render.paged.wide_tables import fit_tables
from render.themes import hex_colour
from render.weasy.engine import fewer_collections, noticing, style_sheets
from render.weasy.losses import lay_out_whole, warn_unseen
from render.weasy.positions import Rectangle, canvas_colour, element_rectangles, painted_rectangle
from render.weasy.usable_styles import with_usable_styles

FITS = ("content", "viewport", "page")
PIXELS_MAX = 60_000_000
"""An image of this size takes 240 MB while it is made."""
SIDE_PX_MAX = 60_000
WIDTH_PX_MIN, WIDTH_PX_MAX = 16, 10_000
PADDING_PX_MAX = 1_000
TALL_PX = 150_000
"""Height of the page that is laid out; what is longer makes further pages, which are put below one another."""
PAGES_MAX = 200
_VIEWPORT_HEIGHT = re.compile(r"(?<![\w.#-])(\d+(?:\.\d+)?|\.\d+)[dsl]?(vh|vb|vmin|vmax)\b")
_FROM_BELOW = re.compile(r"(?<![\w-])(?:bottom|inset)\s*:")


@dataclass(frozen=True, slots=True)
class _View:
    """The request's options, checked."""

    width: int
    height: int
    scale: float
    padding: int
    fit: str
    selector: str
    background: tuple[int, int, int, int]


def write_png(document: Document, target_path: str) -> dict[str, Any]:
    """Writes the PNG.

    Options: ``width``, ``height``, ``device_scale_factor`` (1 to 4), ``padding_px``, ``fit``, ``selector``,
    ``background``. With ``content`` the picture is what the document paints and the padding; with ``page`` it has
    the full width, and the viewport's height at least; with ``viewport`` it is the viewport.

    Args:
        document: what to draw; its tree is changed by it.
        target_path: where, an absolute path.

    Returns:
        ``width``, ``height`` (in pixels of the file), ``size_bytes``.

    Raises:
        RenderError: ``invalid_option``, ``selector_not_found``, ``image_too_large``, ``layout_failed``.
    """
    view = _read_options(document)
    _settle_viewport(document, view)
    fill_contents(document)
    fit_tables(document, view.width / 96 * 25.4, view.width / 96 * 25.4)
    with noticing(document), fewer_collections():
        image = with_usable_styles(document, lambda: _draw(document, view))
    information = PngImagePlugin.PngInfo()
    information.add_itxt("Title", document.metadata.title, lang=document.metadata.language)
    dots = 96 * view.scale
    image.save(target_path, "PNG", pnginfo=information, dpi=(dots, dots))
    return {"width": image.width, "height": image.height, "size_bytes": Path(target_path).stat().st_size}


def _draw(document: Document, view: _View) -> Image.Image:
    laid, areas = _laid_out(document, view)
    warn_unseen(document, laid, edges=False)
    return _raster(laid, areas, view, canvas_colour(laid.pages[0]))


def _read_options(document: Document) -> _View:
    options = document.request.options
    width = _number(options, "width", 1280, (WIDTH_PX_MIN, WIDTH_PX_MAX))
    height = _number(options, "height", 800, (WIDTH_PX_MIN, SIDE_PX_MAX))
    scale = _number(options, "device_scale_factor", 2.0, (1.0, 4.0))
    padding = _number(options, "padding_px", 32, (0, PADDING_PX_MAX))
    fit = str(options.get("fit") or "content")
    if fit not in FITS:
        raise RenderError("invalid_option", f"fit is one of {', '.join(FITS)}, not {fit[:40]}.")
    selector = str(options.get("selector") or "")[:500]
    return _View(round(width), round(height), scale, round(padding), fit, selector, _background(document))


def _number(options: dict[str, Any], name: str, default: float, bounds: tuple[float, float]) -> float:
    value = options.get(name)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not bounds[0] <= value <= bounds[1]:
        raise RenderError(
            "invalid_option", f"{name} is a number from {bounds[0]:g} to {bounds[1]:g}, not {str(value)[:40]}."
        )
    return float(value)


def _background(document: Document) -> tuple[int, int, int, int]:
    named = str(document.request.options.get("background") or "white").strip()
    if named == "transparent":
        return 255, 255, 255, 0
    colour = document.theme.colours["background"] if named == "white" else hex_colour(named)
    if colour is None:
        raise RenderError("invalid_option", f"background is white, transparent or a colour, not {named[:40]}.")
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16), 255


def _settle_viewport(document: Document, view: _View) -> None:
    """``100vh`` is the height of the viewport that was asked for, not of the tall page it is laid out on."""

    def pixels(match: re.Match[str]) -> str:
        side = {"vmin": min(view.width, view.height), "vmax": max(view.width, view.height)}.get(
            match[2], view.height
        )
        return f"{float(match[1]) * side / 100:g}px"

    for element in document.tree.iter():
        if element.tag == "style" and element.text:
            element.text = _VIEWPORT_HEIGHT.sub(pixels, element.text)
        style = element.get("style")
        if style and "v" in style:
            element.set("style", _VIEWPORT_HEIGHT.sub(pixels, style))


def _laid_out(document: Document, view: _View) -> tuple[weasyprint.Document, list[Rectangle]]:
    """The layout, and what of each page belongs to the picture, in CSS px."""
    height = view.height if view.fit == "viewport" else TALL_PX
    laid = _lay_out(document, view, height)
    if view.fit == "viewport":
        if len(laid.pages) > 1:
            document.warn("content_cut", "The content is taller than the viewport; fit=page shows all of it.")
        return laid.copy(laid.pages[:1]), [Rectangle(0, 0, view.width, view.height)]
    painted = [painted_rectangle(page) for page in laid.pages]
    css = "".join(
        element.get("style", "") + (element.text or "" if element.tag == "style" else "")
        for element in document.tree.iter()
    )
    if len(laid.pages) == 1 and painted[0] and _FROM_BELOW.search(css):
        # What hangs from the lower edge would hang from that of the tall page.
        laid = _lay_out(
            document, view, max(view.height, round(painted_rectangle(laid.pages[0], flow_only=True).bottom + 1))
        )
        painted = [painted_rectangle(page) for page in laid.pages]
    if view.selector:
        return _selected(document, laid, view)
    least = view.height if view.fit == "page" else 1
    if view.fit == "page":
        return laid, [
            Rectangle(0, 0, view.width, max(area.bottom + _inset(document, view), least))
            for area in painted[:PAGES_MAX]
        ]
    areas = [area.within(max(view.width, area.right), TALL_PX) for area in painted[:PAGES_MAX] if area]
    if not areas:
        return laid.copy(laid.pages[:1]), [Rectangle(0, 0, view.width, 1)]
    left, right = min(area.left for area in areas), max(area.right for area in areas)
    return laid.copy([page for page, area in zip(laid.pages, painted, strict=False) if area]), [
        Rectangle(left, area.top, right, area.bottom) for area in areas
    ]


def _inset(document: Document, view: _View) -> int:
    """Room at the edges of a page of Markdown, which has no margins; an HTML page is as its author made it."""
    return view.padding if view.fit != "content" and document.request.source_format == "markdown" else 0


def _lay_out(document: Document, view: _View, height: float) -> weasyprint.Document:
    colours = document.theme.colours
    css = (
        f"@page {{ size: {view.width}px {height:g}px !important; margin: 0 !important; background: none }}\n"
        f"html {{ height: auto !important; font-size: 16px; padding: {_inset(document, view)}px }}\n"
        f"body {{ color: {colours['text']} }}\n"
    )
    return lay_out_whole(document, style_sheets(document, css), media="screen")


def _selected(
    document: Document, laid: weasyprint.Document, view: _View
) -> tuple[weasyprint.Document, list[Rectangle]]:
    """The first page that holds what the selector names, and where."""
    try:
        found = element_rectangles(document.tree, laid, view.selector)
    except ValueError as exc:
        raise RenderError("invalid_option", f"{view.selector[:100]} is not a CSS selector.") from exc
    if found is None:
        raise RenderError(
            "selector_not_found", f"Nothing in the document matches the selector {view.selector[:100]}."
        )
    page, area = found
    return laid.copy([page]), [area]


def _raster(laid: weasyprint.Document, areas: list[Rectangle], view: _View, canvas: str | None) -> Image.Image:
    padding = 0 if view.fit in {"viewport", "page"} and not view.selector else view.padding
    width = round((max(area.width for area in areas) + 2 * padding) * view.scale)
    heights = [max(round(area.height * view.scale), 1) for area in areas]
    height = sum(heights) + round(2 * padding * view.scale)
    if width * height > PIXELS_MAX or max(width, height) > SIDE_PX_MAX:
        raise RenderError(
            "image_too_large",
            f"The picture would have {width:,} by {height:,} pixels; at most {PIXELS_MAX:,} "
            f"in all and {SIDE_PX_MAX:,} a side are drawn. "
            "A smaller device_scale_factor, a selector or fit=viewport makes it smaller.",
        )
    for page, area in zip(laid.pages, areas, strict=False):
        page.height = min(page.height, max(area.bottom, 1))
    ground = view.background
    if canvas:
        ground = (int(canvas[1:3], 16), int(canvas[3:5], 16), int(canvas[5:7], 16), 255)
    image = Image.new("RGBA", (max(width, 1), max(height, 1)), ground)
    try:
        pdf = pypdfium2.PdfDocument(laid.write_pdf())
    except (pypdfium2.PdfiumError, ValueError) as exc:
        raise RenderError("layout_failed", f"The picture could not be drawn: {exc}"[:300]) from exc
    top = round(padding * view.scale)
    for number, area in enumerate(areas):
        picture = _page(pdf[number], area, view, ground)
        image.paste(picture, (round(padding * view.scale), top))
        top += heights[number]
        picture.close()
    return image if view.background[3] == 0 and not canvas else image.convert("RGB")


def _page(page: pypdfium2.PdfPage, area: Rectangle, view: _View, ground: tuple[int, int, int, int]) -> Image.Image:
    """One page's part of the picture."""
    wide, high = page.get_size()
    left, top = min(max(area.left * 0.75, 0), wide - 1), min(max(area.top * 0.75, 0), high - 1)
    right, bottom = (
        min(max(wide - area.right * 0.75, 0), wide - left - 0.75),
        min(max(high - area.bottom * 0.75, 0), high - top - 0.75),
    )
    bitmap = page.render(
        scale=view.scale * 96 / 72,
        crop=(left, bottom, right, top),
        fill_color=ground,
        force_bitmap_format=pypdfium2.raw.FPDFBitmap_BGRA,
        rev_byteorder=True,
    )
    picture: Image.Image = bitmap.to_pil()
    return picture
