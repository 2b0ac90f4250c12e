"""PowerPoint presentations: opened by python-pptx, slide by slide."""

from __future__ import annotations

from typing import Any

import pptx
from model import Problem, Subject, counted
from parsing.office_package import judge_package
from pptx.oxml.ns import qn

_DRAWN_WITHOUT_TEXT = frozenset({qn("p:pic"), qn("p:graphicFrame"), qn("p:cxnSp"), qn("p:contentPart")})


def inspect(subject: Subject) -> None:
    """Open every slide (``facts.pages``: slides, hidden ones included); blank if nothing is on any of them."""
    judge_package(subject)
    slides = pptx.Presentation(subject.file).slides
    pages = len(slides)
    subject.facts["pages"] = pages
    if pages > subject.limits.pages_max:
        bound = f"more than the {subject.limits.pages_max:,} that are checked"
        raise Problem(f"has {counted(pages, 'slide')}, {bound}")
    if pages == 0:
        raise Problem("has no slides")
    blank = True
    for slide in slides:
        blank = not _shows_something(slide.shapes.element) and blank
    if blank and subject.must_not_be_blank():
        raise Problem(f"is blank: nothing is on its {counted(pages, 'slide')}")


def _shows_something(shapes: Any) -> bool:
    """Return whether there is text, a picture, a chart, a table, a line or a drawn shape among a slide's shapes."""
    return any(
        element.tag in _DRAWN_WITHOUT_TEXT
        or (element.tag == qn("a:t") and (element.text or "").strip())
        or (element.tag == qn("p:sp") and _is_drawn(element))
        for element in shapes.iter()
    )


def _is_drawn(shape: Any) -> bool:
    """Return whether a shape shows without text: not an empty placeholder, not an empty text frame."""
    properties = shape.find(f"{qn('p:nvSpPr')}/{qn('p:cNvSpPr')}")
    is_text_frame = properties is not None and properties.get("txBox") in {"1", "true"}
    is_placeholder = shape.find(f"{qn('p:nvSpPr')}/{qn('p:nvPr')}/{qn('p:ph')}") is not None
    return not is_text_frame and not is_placeholder
