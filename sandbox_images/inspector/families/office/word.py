"""Word documents: opened by python-docx; their pages are a lower bound, for only a layout engine knows them."""

from __future__ import annotations

import zipfile
from typing import Any

import docx
from docx.oxml.ns import qn
from lxml import etree
from model import Problem, Subject, counted
from parsing.office_package import judge_package

_APP_PROPERTIES = "docProps/app.xml"
_PAGES = "{http://schemas.openxmlformats.org/officeDocument/2006/extended-properties}Pages"
_SAME_PAGE_SECTIONS = frozenset({"continuous", "nextColumn"})
_INK = frozenset({qn("w:drawing"), qn("w:pict"), qn("w:object"), qn("m:t")})


def inspect(subject: Subject) -> None:
    """Open the document (``facts.pages``).

    The pages are the largest of three figures: one more than the breaks that the author put in (page breaks,
    paragraphs that begin a page, sections that do), one more than the breaks that a word processor recorded when
    it last laid the document out, and the page count that it left in the document's properties. A text that
    merely flows over several pages has none of them if a library wrote it, so it may really have more.
    """
    judge_package(subject)
    document = docx.Document(subject.file)
    body = document.element.body
    pages = max(1 + _author_breaks(body), 1 + _recorded_breaks(body), _recorded_pages(subject))
    subject.facts["pages"] = pages
    if pages > subject.limits.pages_max:
        bound = f"more than the {subject.limits.pages_max:,} that are checked"
        raise Problem(f"claims {counted(pages, 'page')}, {bound}")
    if subject.must_not_be_blank() and not _has_content(body):
        raise Problem("is blank: its body has neither text nor a picture")


def _author_breaks(body: Any) -> int:
    breaks = sum(1 for element in body.iter(qn("w:br")) if element.get(qn("w:type")) == "page")
    breaks += sum(
        1
        for element in body.iter(qn("w:pageBreakBefore"))
        if element.get(qn("w:val"), "1") not in {"0", "false", "off"}
    )
    sections = list(body.iter(qn("w:sectPr")))
    # A section's type is about its own beginning: that of the first one is no break.
    for section in sections[1:]:
        kind = section.find(qn("w:type"))
        if kind is None or kind.get(qn("w:val")) not in _SAME_PAGE_SECTIONS:
            breaks += 1
    return breaks


def _recorded_breaks(body: Any) -> int:
    return sum(1 for _ in body.iter(qn("w:lastRenderedPageBreak")))


def _recorded_pages(subject: Subject) -> int:
    """Return the page count of the document's properties; 0 if it has none."""
    subject.file.seek(0)
    with zipfile.ZipFile(subject.file) as archive:
        if _APP_PROPERTIES not in archive.namelist():
            return 0
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
        with archive.open(_APP_PROPERTIES) as content:
            text = etree.parse(content, parser).getroot().findtext(_PAGES) or ""
    return int(text) if text.isascii() and text.isdigit() else 0


def _has_content(body: Any) -> bool:
    return any(
        element.tag in _INK or (element.tag == qn("w:t") and (element.text or "").strip())
        for element in body.iter()
    )
