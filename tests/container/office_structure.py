"""The structure of DOCX and PPTX files as python-docx and python-pptx read it, in the terms of `GoldenDocument`."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docx
import pptx
from docx.oxml.ns import qn
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.util import Length

_BULLETS = frozenset("•◦▪\N{EN DASH}-")
# The last two are the boxes of Wingdings, which PowerPoint's own check lists use.
_TASKS = {"☐": "o", "☒": "x", "☑": "x", "✓": "x", "\N{DIAERESIS}": "o", "\N{LATIN SMALL LETTER THORN}": "x"}


@dataclass
class Structure:
    """What was found in a file; the fields are those of `GoldenDocument`."""

    headings: list[tuple[int, str]] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    lists: list[tuple[int, str, str]] = field(default_factory=list)
    tables: list[list[list[str]]] = field(default_factory=list)
    alts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    slides: list[str] = field(default_factory=list)
    formulas: int = 0


def item(depth: int, marker: str, text: str) -> tuple[int, str, str]:
    """A list item: bullets of every shape are ``•``, a task's box is ``x`` or ``o`` wherever it is written."""
    text = " ".join(text.split())
    if text[:1] in _TASKS:
        return depth, _TASKS[text[0]], text[1:].strip()
    if marker[:1] in _TASKS:
        return depth, _TASKS[marker[0]], text
    return depth, "•" if marker[:1] in _BULLETS else marker.rstrip(". "), text


# ---- DOCX ----


def docx_structure(path: Path) -> Structure:
    """Reads a DOCX."""
    document = docx.Document(str(path))
    found = Structure()
    body = document.element.body
    numbers = _Numbers(document)
    for paragraph in body.iter(qn("w:p")):
        text = _text(paragraph)
        style = paragraph.find(f"{qn('w:pPr')}/{qn('w:pStyle')}")
        name = (
            document.styles.element.xpath(f"w:style[@w:styleId='{style.get(qn('w:val'))}']/w:name/@w:val")[0]
            if (style is not None)
            else ""
        )
        if match := re.fullmatch(r"[Hh]eading ([1-9])", name):
            found.headings.append((int(match[1]), text))
            continue
        numbered = paragraph.find(f"{qn('w:pPr')}/{qn('w:numPr')}")
        if numbered is not None:
            depth, marker = numbers.next(
                numbered.find(qn("w:numId")).get(qn("w:val")), int(numbered.find(qn("w:ilvl")).get(qn("w:val")))
            )
            found.lists.append(item(depth, marker, text))
        elif text[:1] in _TASKS:
            found.lists.append(item(0, "", text))
    for link in body.iter(qn("w:hyperlink")):
        if (identity := link.get(qn("r:id"))) is not None:
            found.links.append(document.part.rels[identity].target_ref)
    for table in body.iter(qn("w:tbl")):
        grid = _docx_grid(table)
        if len(grid) > 1 and len(grid[0]) > 1:  # a box or a column is a table too
            found.tables.append(grid)
    found.alts = [place.get("descr", "") for place in body.iter(qn("wp:docPr"))]
    found.formulas = sum(1 for _ in body.iter("{http://schemas.openxmlformats.org/officeDocument/2006/math}oMath"))
    return found


def _text(element: Any) -> str:
    return "".join(piece.text or "" for piece in element.iter(qn("w:t")))


def _docx_grid(table: Any) -> list[list[str]]:
    rows: list[list[str]] = []
    for row in table.findall(qn("w:tr")):
        cells: list[str] = []
        for cell in row.findall(qn("w:tc")):
            span = cell.find(f"{qn('w:tcPr')}/{qn('w:gridSpan')}")
            merge = cell.find(f"{qn('w:tcPr')}/{qn('w:vMerge')}")
            goes_on = merge is not None and merge.get(qn("w:val")) != "restart"
            text = rows[-1][len(cells)] if goes_on else _text(cell)
            cells += [text] * int(span.get(qn("w:val")) if span is not None else 1)
        rows.append(cells)
    return rows


class _Numbers:
    """Counts list items as Word does: a level starts anew after an item of a level above it."""

    def __init__(self, document: Any) -> None:
        self._numbering = document.part.numbering_part.element
        self._counts: dict[tuple[str, int], int] = {}

    def next(self, identity: str, level: int) -> tuple[int, str]:
        (number,) = self._numbering.xpath(f"w:num[@w:numId='{identity}']")
        abstract = number.find(qn("w:abstractNumId")).get(qn("w:val"))
        (rules,) = self._numbering.xpath(f"w:abstractNum[@w:abstractNumId='{abstract}']/w:lvl[@w:ilvl='{level}']")
        shown = rules.find(qn("w:lvlText")).get(qn("w:val"))
        if rules.find(qn("w:numFmt")).get(qn("w:val")) == "bullet":
            return level, shown
        starts = number.xpath(f"w:lvlOverride[@w:ilvl='{level}']/w:startOverride/@w:val") or rules.xpath(
            "w:start/@w:val"
        )
        count = self._counts.get((identity, level), int(starts[0]) - 1) + 1
        self._counts[identity, level] = count
        for deeper in [key for key in self._counts if key[0] == identity and key[1] > level]:
            del self._counts[deeper]
        return level, shown.replace(f"%{level + 1}", str(count))


# ---- PPTX ----


def pptx_structure(path: Path) -> Structure:
    """Reads a PPTX; its headings are the titles of its slides, all of level 1."""
    found = Structure()
    for slide in pptx.Presentation(str(path)).slides:
        title = slide.shapes.title
        shown = title is not None and not _is_hidden(title)
        found.slides.append(title.text_frame.text if shown else "")
        if slide.has_notes_slide:
            found.notes += [line for line in slide.notes_slide.notes_text_frame.text.splitlines() if line]
        for shape in slide.shapes:
            if shape.has_text_frame:
                found.lists += _listed(shape.text_frame.paragraphs)
            elif shape.has_table:
                found.tables.append(_pptx_grid(shape.table))
            properties = shape._element.xpath(".//p:cNvPr")[0]
            if shape._element.tag.endswith("}pic"):
                found.alts.append(properties.get("descr", ""))
            for link in shape._element.iter("{http://schemas.openxmlformats.org/drawingml/2006/main}hlinkClick"):
                relation = slide.part.rels[link.get(qn("r:id"))]
                if relation.is_external:
                    found.links.append(relation.target_ref)
    found.headings = [(1, text) for text in found.slides if text]
    return found


def _is_hidden(shape: Any) -> bool:
    """Whether a shape is there for outlines and screen readers only."""
    return bool(shape._element.xpath(".//p:cNvPr/@hidden")[:1] == ["1"])


def _listed(paragraphs: Iterable[Any]) -> Iterator[tuple[int, str, str]]:
    """The paragraphs with a bullet; numbers start anew after a paragraph of a level above or without a number."""
    counts: dict[int, int] = {}
    for paragraph in paragraphs:
        properties = paragraph._p.pPr
        bullet = properties.find(qn("a:buChar")) if properties is not None else None
        number = properties.find(qn("a:buAutoNum")) if properties is not None else None
        for deeper in [level for level in counts if level > paragraph.level]:
            del counts[deeper]
        if number is not None:
            start = int(number.get("startAt", "1"))
            counts[paragraph.level] = max(counts.get(paragraph.level, 0) + 1, start)
            yield item(paragraph.level, str(counts[paragraph.level]), paragraph.text)
        else:
            counts.pop(paragraph.level, None)
            if bullet is not None or paragraph.text[:1] in _TASKS:
                yield item(paragraph.level, bullet.get("char") if bullet is not None else "", paragraph.text)


def _pptx_grid(table: Any) -> list[list[str]]:
    grid = [[cell.text_frame.text for cell in row.cells] for row in table.rows]
    for y, row in enumerate(table.rows):
        for x, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                for below in range(cell.span_height):
                    for beside in range(cell.span_width):
                        grid[y + below][x + beside] = cell.text_frame.text
    return grid


@dataclass(frozen=True)
class Place:
    """Where a shape is, in points: left, top, right, bottom."""

    slide: int
    name: str
    kind: str
    text: str
    box: tuple[float, float, float, float]


def slide_places(path: Path) -> tuple[tuple[float, float], list[Place]]:
    """The size of a deck's slides in points, and where every shape of every slide is; slides count from 0."""
    deck = pptx.Presentation(str(path))
    places = []
    for number, slide in enumerate(deck.slides):
        for shape in slide.shapes:
            if _is_hidden(shape):
                continue
            left, top, width, height = (
                Length(value).pt for value in (shape.left, shape.top, shape.width, shape.height)
            )
            text = shape.text_frame.text if shape.has_text_frame else ""
            if shape.has_table:
                text = " ".join(cell.text_frame.text for row in shape.table.rows for cell in row.cells)
            is_page_number = shape.is_placeholder and shape.placeholder_format.type == PP_PLACEHOLDER.SLIDE_NUMBER
            kind = (
                "number"
                if is_page_number
                else "table"
                if shape.has_table
                else "chart"
                if shape.has_chart
                else "shape"
            )
            places.append(Place(number, shape.name, kind, text, (left, top, left + width, top + height)))
    return (Length(deck.slide_width).pt, Length(deck.slide_height).pt), places
