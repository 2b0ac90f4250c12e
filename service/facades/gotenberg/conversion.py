"""``/forms/chromium/convert``: a page of HTML, or of HTML and Markdown, to PDF."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from proofbox.contracts.render_tools import ATTACHMENTS_MAX, PdfVariant
from proofbox.service.facades.gotenberg import documents
from proofbox.service.facades.gotenberg.browser_fields import read_browser_fields
from proofbox.service.facades.gotenberg.errors import RequestRefusedError
from proofbox.service.facades.gotenberg.fields import FieldReader
from proofbox.service.facades.gotenberg.form import FormFile
from proofbox.service.facades.gotenberg.html_scan import has_page_size
from proofbox.service.facades.gotenberg.pdf_fields import (
    Step,
    bookmark_steps,
    encrypting_steps,
    read_metadata,
    refuse_unsupported,
    rotating_steps,
    splitting_steps,
)
from proofbox.service.facades.gotenberg.work import Made, render, run_program, with_warnings
from proofbox.service.jobs.one_shot import OneShot

Source = Literal["html", "markdown"]
Edge = Literal["header", "footer"]
INDEX = "index.html"
_RUNNING: dict[str, Edge] = {"header.html": "header", "footer.html": "footer"}
_SIDES = ("Top", "Right", "Bottom", "Left")
_SIDE_MM_MIN, _SIDE_MM_MAX = 20.0, 5_000.0
_SINGLE_MM = 4_990.0  # below the bound of the renderer, whatever is rounded
_MARGIN_IN = 0.39
_RENDERED = {"Title": "title", "Author": "author", "Subject": "subject", "Keywords": "keywords"}
_VARIANTS = {"PDF/A-2b": PdfVariant.A_2B, "PDF/A-3b": PdfVariant.A_3B}
_SHEETS_BYTES_MAX = 10 * 1024 * 1024
_RANGES = re.compile(r"[0-9, -]{1,256}")


@dataclass(slots=True)
class ConversionFields:
    """The fields of a conversion.

    Attributes:
        size_mm: width and height of the paper.
        margins_mm: the margins, by side.
        params: the parameters of the renderer that the fields give.
        prefers_css_size: whether the size that the page names counts.
        is_single: whether all of it is one page.
        scale: the scale of the content.
        steps: what is done with the PDF.
        is_strict: whether a resource that cannot be loaded is an error.
    """

    size_mm: tuple[float, float]
    margins_mm: dict[str, float]
    params: dict[str, Any] = field(default_factory=dict)
    prefers_css_size: bool = False
    is_single: bool = False
    scale: float = 1.0
    steps: list[Step] = field(default_factory=list)
    is_strict: bool = False


def read_conversion(reader: FieldReader, source: Source) -> ConversionFields:
    """Reads the form of a conversion.

    Raises:
        InvalidFormError: a field is missing, wrong or cannot be honoured.
    """
    reader.require_file(INDEX)
    if source == "markdown":
        reader.require_files(".md")
    read = ConversionFields(
        (
            reader.length_mm("paperWidth", 8.5, _SIDE_MM_MIN, _SIDE_MM_MAX),
            reader.length_mm("paperHeight", 11, _SIDE_MM_MIN, _SIDE_MM_MAX),
        ),
        {side.lower(): reader.length_mm(f"margin{side}", _MARGIN_IN, 0, _SIDE_MM_MAX) for side in _SIDES},
    )
    read.is_strict = read_browser_fields(reader, media="print")
    read.prefers_css_size = reader.boolean("preferCssPageSize")
    prints_background = reader.boolean("printBackground")
    if reader.boolean("omitBackground") and not prints_background:
        reader.refuse("omitBackground requires printBackground set to true")
    for name in ("generateTaggedPdf", "generateDocumentOutline"):
        reader.boolean(name)  # every PDF has tags and an outline
    if reader.boolean("landscape"):
        read.size_mm = (read.size_mm[1], read.size_mm[0])
    read.scale = reader.number("scale", 1.0, 0.1, 2.0)
    _read_pages(reader, read)
    variant = _read_variant(reader)
    if variant is not None:
        read.params["pdf_variant"] = variant.value
    _read_steps(reader, read, is_archive=variant in _VARIANTS.values())
    reader.finish()
    return read


def _read_pages(reader: FieldReader, read: ConversionFields) -> None:
    ranges = reader.text("nativePageRanges").strip()
    read.is_single = reader.boolean("singlePage")
    if ranges and _RANGES.fullmatch(ranges) is None:
        reader.refuse(f"form field 'nativePageRanges' is invalid (got '{ranges[:80]}', expected such as 1-3,7)")
    elif ranges:
        read.params["pages"] = ranges
    if read.is_single and any(reader.file(name) for name in _RUNNING):
        reader.refuse("form field 'singlePage' is invalid (it takes no header.html or footer.html; leave them out)")


def _read_variant(reader: FieldReader) -> PdfVariant | None:
    """The standard that the PDF keeps; PDF/UA-1 is the renderer's default."""
    archive = reader.text("pdfa")
    accessible = reader.boolean("pdfua")
    if archive and archive not in _VARIANTS:
        listed = " or ".join(f"'{name}'" for name in _VARIANTS)
        reader.refuse(f"form field 'pdfa' is invalid (got '{archive[:80]}', resulting to expected {listed})")
        return None
    if archive and accessible:
        reader.refuse("form field 'pdfua' is invalid (a PDF is either PDF/A or PDF/UA here; leave one of them out)")
        return None
    return _VARIANTS.get(archive)


def _read_steps(reader: FieldReader, read: ConversionFields, *, is_archive: bool) -> None:
    refuse_unsupported(reader)
    if len(reader.embeds()) > ATTACHMENTS_MAX:
        reader.refuse(f"form files 'embeds' are more than {ATTACHMENTS_MAX}; send fewer")
    metadata = read_metadata(reader)
    read.params.update({_RENDERED[name]: value for name, value in metadata.items() if name in _RENDERED})
    further = {name: value for name, value in metadata.items() if name not in _RENDERED}
    reader.boolean("flatten")  # the PDF has no form fields
    read.steps = [
        *([{"do": "single_page"}] if read.is_single else []),
        *([{"do": "scale", "factor": read.scale}] if read.scale != 1 else []),
        *splitting_steps(reader, required=False),
        *rotating_steps(reader, required=False),
        *([{"do": "metadata", "metadata": further}] if further else []),
        *bookmark_steps(reader, required=False),
        *encrypting_steps(reader, required=False),
    ]
    if is_archive and read.steps:
        reader.refuse(
            "form field 'pdfa' is invalid (a PDF/A cannot be changed afterwards: leave out singlePage, scale, "
            "split, rotate, bookmarks, passwords and metadata but Title, Author, Subject and Keywords)"
        )


async def convert(run: OneShot, reader: FieldReader, source: Source, now: datetime) -> Made:
    """Converts a page to PDF.

    Raises:
        InvalidFormError, RequestRefusedError: the form is wrong, or its page cannot be rendered.
        ServiceError: the service cannot do it now.
    """
    read = read_conversion(reader, source)
    html, assets = await page_of(run, reader, source)
    css = [await asyncio.to_thread(_size_css, read, html, assets)]
    html = await asyncio.to_thread(_with_running_elements, reader, read, html, css, now)
    params = {
        "content": html,
        "format": "html",
        "page_numbers": False,
        "page_size": " ".join(f"{side:.3f}mm" for side in _laid_out_size(read)),
        "margins": {side: f"{length / read.scale:.3f}mm" for side, length in read.margins_mm.items()},
        "css": "\n".join(rule for rule in css if rule),
        **read.params,
    }
    embeds = reader.embeds()
    named = {asset.name for asset in assets}
    if embeds:
        params["attachments"] = [file.name for file in embeds]
    beside = [*assets, *(file for file in embeds if file.name not in named)]
    made = await render(run, "pdf", params, beside, is_strict=read.is_strict)
    if read.steps:
        steps = [_with_margins(step, read) for step in read.steps]
        laid = FormFile("files", "document.pdf", made.path)
        changed = await run_program(run, "pdf", {"steps": steps}, [laid])
        made = with_warnings(changed, made.warnings)
    return with_warnings(made, reader.warnings)


def _laid_out_size(read: ConversionFields) -> tuple[float, float]:
    """The paper before it is scaled; a single page is as tall as a page can be."""
    width, height = (min(max(side / read.scale, _SIDE_MM_MIN), _SIDE_MM_MAX) for side in read.size_mm)
    return width, _SINGLE_MM if read.is_single else height


def _with_margins(step: Step, read: ConversionFields) -> Step:
    if step["do"] != "single_page":
        return step
    points = 72 / 25.4 / read.scale
    bottom = read.margins_mm["bottom"] * points
    return {**step, "margin_bottom": bottom, "height_min": read.margins_mm["top"] * points}


def _size_css(read: ConversionFields, html: str, assets: Sequence[FormFile]) -> str:
    """The rule by which the size of the form counts, and not the one that the page names."""
    if read.prefers_css_size:
        return ""
    if not has_page_size(html) and not _have_page_size(assets):
        return ""
    width, height = _laid_out_size(read)
    return f"@page {{ size: {width:.3f}mm {height:.3f}mm !important }}"


def _have_page_size(assets: Sequence[FormFile]) -> bool:
    """Whether a style sheet names a size; assumed of sheets that are too large together to be searched."""
    sheets = [asset.path for asset in assets if asset.name.lower().endswith(".css")]
    if sum(path.stat().st_size for path in sheets) > _SHEETS_BYTES_MAX:
        return True
    return any(has_page_size(path.read_text("utf-8", "replace")) for path in sheets)


def _with_running_elements(
    reader: FieldReader, read: ConversionFields, html: str, css: list[str], now: datetime
) -> str:
    edges: list[Edge] = []
    fragments = ""
    for name, edge in _RUNNING.items():
        file = reader.file(name)
        if file is None:
            continue
        text = documents.read_html(file.path, name, documents.RUNNING_BYTES_MAX)
        fragments = documents.running_fragment(edge, text) + fragments
        edges.append(edge)
    if edges:
        title = str(read.params.get("title") or documents.title_of(html))
        css.append(documents.running_css(edges, read.margins_mm, title, now))
        html = documents.insert_at_start(html, fragments)
    return html


async def page_of(run: OneShot, reader: FieldReader, source: Source) -> tuple[str, list[FormFile]]:
    """The page of a form, with its Markdown in place, and the files beside it.

    Raises:
        RequestRefusedError: a file is missing or too large.
    """
    index = reader.file(INDEX)
    assert index is not None  # the form was read before
    html = await asyncio.to_thread(documents.read_html, index.path, INDEX)
    if not html.strip():
        raise RequestRefusedError(400, f"Invalid form data: form file '{INDEX}' is empty; send a page")
    if source == "markdown":
        html = await _expand(run, html, reader.files(".md"))
    taken = {INDEX, *_RUNNING}
    return html, [file for file in reader.files() if file.name not in taken]


async def _expand(run: OneShot, html: str, markdown: Sequence[FormFile]) -> str:
    pieces = await asyncio.to_thread(documents.split_template, html, {file.name for file in markdown})
    made = await run_program(run, "markdown", {"pieces": pieces}, markdown)
    return await asyncio.to_thread(documents.read_html, made.path, INDEX)
