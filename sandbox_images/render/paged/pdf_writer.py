"""Writes a document as PDF: tagged for accessibility, with outline, metadata, page numbers and contents."""

import gc
import re
from functools import partial
from pathlib import Path
from typing import Any

import pydyf
import weasyprint
from render.frontend.assets import AssetRefused, read_file
from render.frontend.headings import fill_contents
from render.model import Document, RenderError
from render.page_setup import SIDE_MM_MAX, page_margins, page_size
from render.paged.content_scale import wider_page
from render.paged.page_css import page_css
from render.paged.pdf_parts import PdfParts, place_pdf_parts, put_pages
from render.paged.pdf_ua import mend
from render.paged.protection import protect
from render.paged.watermark import add_watermark
from render.paged.wide_tables import fit_tables
from render.weasy.engine import fewer_collections, noticing, style_sheets
from render.weasy.flex_rows import part_flex_rows
from render.weasy.losses import lay_out_whole, warn_unseen
from render.weasy.usable_styles import with_usable_styles

VARIANTS = ("pdf/ua-1", "pdf/ua-2", "pdf/a-2b", "pdf/a-2u", "pdf/a-2a", "pdf/a-3b", "pdf/a-3u", "pdf/a-3a")
ATTACHMENTS_MAX = 20
_CONTENTS_CSS = "nav.pb-toc a::after { content: leader('.') target-counter(attr(href), page); color: %s }\n"
_FROM_BASE = re.compile(rb"^file:(?:///out-dir/|(?://)?)")
_ARCHIVE_CSS = "img, svg { image-rendering: crisp-edges }\n"


def write_pdf(document: Document, target_path: str) -> dict[str, Any]:
    """Writes the PDF.

    Options: ``page_size``, ``landscape``, ``margins``, ``header``, ``footer``, ``page_numbers``, ``toc``,
    ``pdf_variant``, ``attachments`` (OUT_DIR-relative paths), ``pages`` (such as ``1-3,7``), ``watermark``,
    ``password``, ``permissions``, ``merge``.

    Args:
        document: what to write; its tree is changed by it.
        target_path: where, an absolute path.

    Returns:
        ``pages``, ``size_bytes``, ``variant``, ``title``.

    Raises:
        RenderError: ``invalid_page_size``, ``invalid_option``, ``invalid_part``, ``layout_failed``.
    """
    options = document.request.options
    variant = _variant(options)
    size = page_size(options)
    margins = page_margins(options, size)
    fill_contents(document)
    add_watermark(document)
    wide = fit_tables(document, size[0] - margins[1] - margins[3], max(size) - margins[1] - margins[3])
    parts = place_pdf_parts(document)
    if parts.pages and variant.startswith("pdf/a"):
        raise RenderError("invalid_option", f"merge: {variant} takes no other PDFs; leave pdf_variant out.")
    variant = "" if parts.pages else variant  # pages of others are not tagged
    css = page_css(document) + parts.css + _CONTENTS_CSS % document.theme.colours["muted"] + "\n".join(wide)
    if variant.startswith("pdf/a"):
        css += _ARCHIVE_CSS
    with noticing(document), fewer_collections():
        pages = with_usable_styles(document, lambda: _write(document, css, variant, target_path, parts))
    protect(target_path, options, variant)
    size_bytes = Path(target_path).stat().st_size
    return {
        "pages": pages,
        "size_bytes": size_bytes,
        "variant": variant or "pdf",
        "title": document.metadata.title,
    }


def _variant(options: dict[str, Any]) -> str:
    variant = str(options.get("pdf_variant") or "pdf/ua-1").lower()
    if variant not in VARIANTS:
        raise RenderError("invalid_option", f"There is no PDF variant {variant[:40]}: {', '.join(VARIANTS)}.")
    return variant


class _NotWritten(Exception):  # noqa: N818 - caught where it is raised for
    """WeasyPrint laid a document out and could not write it, as with a page of no size."""


def _write(document: Document, css: str, variant: str, target_path: str, parts: PdfParts) -> int:
    """Lays out and writes; gives the number of pages."""
    claimed = variant or None
    laid = lay_out_whole(document, style_sheets(document, css), pdf_variant=claimed)
    if part_flex_rows(laid):
        del laid
        gc.collect()
        laid = lay_out_whole(document, style_sheets(document, css), pdf_variant=claimed)
    wider, zoom = wider_page(document, laid) or ("", 1.0)
    if wider:
        del laid
        gc.collect()  # the first layout, which is full of cycles
        laid = lay_out_whole(document, style_sheets(document, css, wider), pdf_variant=claimed)
    if any(max(page.width, page.height) * zoom > SIDE_MM_MAX / 25.4 * 96 for page in laid.pages):
        raise _NotWritten(f"a page is larger than {SIDE_MM_MAX:,.0f} mm")
    warn_unseen(document, laid)
    laid = _chosen(laid, document.request.options.get("pages"))
    attached = _attachments(document)
    try:
        laid.write_pdf(
            target_path,
            zoom,
            finisher=partial(_finish, variant),
            pdf_variant=claimed,
            pdf_tags=True,
            attachments=attached,
        )
    except (OSError, RenderError):
        raise
    except Exception as exc:
        raise _NotWritten(f"{type(exc).__name__}: {exc}"[:200]) from exc
    put_pages(target_path, parts, parts.places(laid))
    return len(laid.pages)


def _chosen(laid: weasyprint.Document, ranges: Any) -> weasyprint.Document:
    """The pages of a range such as ``1-3,7``; all of them if none was given."""
    if not ranges:
        return laid
    numbers: list[int] = []
    for part in str(ranges).split(","):
        match = re.fullmatch(r"\s*(\d{1,6})?\s*(-?)\s*(\d{1,6})?\s*", part)
        if match is None or not (match[1] or match[3]):
            raise RenderError("invalid_option", f"{part[:40]} is not a range of pages, such as 1-3.")
        first = int(match[1] or 1)
        last = int(match[3] or len(laid.pages)) if match[2] else first
        numbers += range(first, min(last, len(laid.pages)) + 1)
    pages = [laid.pages[number - 1] for number in numbers if 1 <= number <= len(laid.pages)]
    if not pages:
        raise RenderError(
            "invalid_option", f"The document has {len(laid.pages)} pages, none of them in {str(ranges)[:40]}."
        )
    return laid.copy(pages)


def _attachments(document: Document) -> list[weasyprint.Attachment]:
    """The files that the request attaches; missing ones are reported."""
    found = []
    given = document.request.options.get("attachments") or []
    for path in given[:ATTACHMENTS_MAX] if isinstance(given, list) else []:
        try:
            data, found_at = read_file(document, str(path))
        except AssetRefused as refusal:
            document.warn(refusal.code, str(refusal), path=str(path)[:200])
            continue
        name = Path(found_at).name
        found.append(weasyprint.Attachment(string=data, name=name, description=name))
    return found


def _finish(variant: str, _laid: weasyprint.Document, pdf: pydyf.PDF) -> None:
    """Links relative to the document stay relative, and the metadata stream stays readable for archives."""
    mend(pdf, archive=variant.startswith("pdf/a"))
    for item in pdf.objects:
        if isinstance(item, pydyf.Stream) and item.extra.get("Type") == "/Metadata":
            item.compress = False
        action: Any = item.get("A") if isinstance(item, pydyf.Dictionary) else None
        uri = action.get("URI") if isinstance(action, dict) else None
        if isinstance(uri, pydyf.String):
            text = uri.string.encode() if isinstance(uri.string, str) else uri.string
            if text.startswith(b"file:"):  # made of a relative address; the document's own ones are gone
                action["URI"] = pydyf.String(_FROM_BASE.sub(b"", text).decode())
