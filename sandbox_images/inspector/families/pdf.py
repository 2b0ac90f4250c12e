"""PDF: pypdf walks the page tree, PDFium loads the first page as a viewer would, and renders to find ink."""

from __future__ import annotations

import pypdfium2 as pdfium
from model import Problem, Subject, Unmet, counted
from parsing.pdf_reader import FrugalReader
from pypdf.generic import DictionaryObject, IndirectObject

_HEADER_WITHIN_BYTES = 1_024
_END_WITHIN_BYTES = 1_024
"""Where viewers look for the header and for the end-of-file marker (ISO 32000-1, Annex H)."""

_RENDER_PX = 400
"""The longer side of a page rendered in the search for ink: small is fast, and a hairline still leaves a trace."""


def inspect(subject: Subject) -> None:
    """Count the pages (``facts.pages``), load the first one, find ink if the contract asks for it.

    The pages are those that the tree really holds: the count that a document claims for itself is not believed.
    """
    if b"%PDF-" not in subject.head(_HEADER_WITHIN_BYTES):
        raise subject.wrong_format()
    if b"%%EOF" not in subject.tail(_END_WITHIN_BYTES):
        raise Problem("is cut off: a PDF's end-of-file marker is missing")
    document = _open(subject)
    try:
        pages = _count_pages(subject, document)
        subject.facts["pages"] = pages
        if pages == 0:
            raise Problem("has no pages")
        document[0].close()
        if subject.must_not_be_blank() and not any(_has_ink(document, index) for index in range(pages)):
            raise Unmet(f"is blank: there is neither text nor ink on its {counted(pages, 'page')}")
    finally:
        document.close()


def _open(subject: Subject) -> pdfium.PdfDocument:
    try:
        document = pdfium.PdfDocument(subject.file)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            return _open_protected(subject)
        # PDFium calls a document without pages a failure, with the reason 'Success'.
        if _count_pages(subject, None) == 0:
            subject.facts["pages"] = 0
            raise Problem("has no pages") from error
        raise Problem(f"could not be opened as a PDF: {error}") from error
    if "password" in subject.checks:
        document.close()
        raise Unmet("opens without a password, the contract asks for one")
    return document


def _open_protected(subject: Subject) -> pdfium.PdfDocument:
    password = subject.checks.get("password")
    if not isinstance(password, str):
        raise Problem(
            "is protected by a password; if that was asked for, give it as the check password in the contract"
        )
    subject.file.seek(0)
    try:
        return pdfium.PdfDocument(subject.file, password=password)
    except pdfium.PdfiumError as error:
        raise Problem("does not open with the password of the contract") from error


def _count_pages(subject: Subject, document: pdfium.PdfDocument | None) -> int:
    subject.file.seek(0)
    reader = FrugalReader(subject.file)
    if reader.is_encrypted and document is not None:
        # A password opened it, perhaps an empty one, and PDFium has all it needs; pypdf may lack the cipher.
        return _count_with_pdfium(document, subject.limits.pages_max)
    root = reader.trailer["/Root"].get_object()
    if not isinstance(root, DictionaryObject) or "/Pages" not in root:
        raise Problem("could not be opened as a PDF: it has no page tree")
    return _count_leaves(root.raw_get("/Pages"), subject.limits.pages_max)


def _count_leaves(top: object, pages_max: int) -> int:
    """Count the leaves of a page tree without recursion; a branch that is met twice is a problem."""
    pages, branches, waiting = 0, set(), [top]
    while waiting:
        reference = waiting.pop()
        node = reference.get_object() if isinstance(reference, IndirectObject) else reference
        if not isinstance(node, DictionaryObject):
            continue
        claimed = node.get("/Count")
        if isinstance(claimed, int) and claimed > pages_max:
            raise Problem(f"claims {counted(claimed, 'page')}, more than the {pages_max:,} that are checked")
        if "/Kids" not in node:
            pages += 1
            if pages > pages_max:
                raise Problem(f"has more than {pages_max:,} pages, the most that are checked")
            continue
        name = reference.idnum if isinstance(reference, IndirectObject) else id(node)
        if name in branches:
            raise Problem("could not be opened as a PDF: its page tree runs in a circle")
        branches.add(name)
        kids = node["/Kids"]
        waiting.extend(kids if isinstance(kids, list) else [])
    return pages


def _count_with_pdfium(document: pdfium.PdfDocument, pages_max: int) -> int:
    claimed = len(document)
    if claimed > pages_max:
        raise Problem(f"claims {counted(claimed, 'page')}, more than the {pages_max:,} that are checked")
    return sum(1 for index in range(claimed) if _exists(document, index))


def _exists(document: pdfium.PdfDocument, index: int) -> bool:
    """Return whether there is a page behind a number that the document merely claims."""
    try:
        document.get_page_size(index)
    except pdfium.PdfiumError:
        return False
    return True


def _has_ink(document: pdfium.PdfDocument, index: int) -> bool:
    """Return whether a page has text or renders to more than one colour; a page that does not load has none."""
    try:
        page = document[index]
    except (pdfium.PdfiumError, IndexError):
        return False
    try:
        text = page.get_textpage()
        try:
            if text.get_text_bounded().strip():
                return True
        finally:
            text.close()
        scale = _RENDER_PX / max(*page.get_size(), 1)
        bitmap = page.render(scale=scale, rev_byteorder=False, prefer_bgrx=False)
        try:
            return _is_uneven(bitmap)
        finally:
            bitmap.close()
    finally:
        page.close()


def _is_uneven(bitmap: pdfium.PdfBitmap) -> bool:
    """Return whether two pixels of a bitmap differ."""
    pixels = memoryview(bitmap.buffer).cast("B")
    row_bytes = bitmap.width * bitmap.n_channels
    even_row = bytes(pixels[: bitmap.n_channels]) * bitmap.width
    return any(
        bytes(pixels[start : start + row_bytes]) != even_row
        for start in range(0, bitmap.height * bitmap.stride, bitmap.stride)
    )
