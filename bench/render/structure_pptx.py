"""The structure of a PPTX file, read with python-pptx."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pptx import Presentation

from bench.render.structure_rows import (
    MONO,
    TICKS,
    WEB,
    R,
    ShownBlock,
    Structure,
    add_marks,
    plain_address,
    plain_words,
)
from bench.render.words import paragraph_text, words

A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_WINGDINGS_TICKS = "\u006f\u00a8\u00fc\u00fd\u00fe"
"""Empty boxes, a tick, and boxes with a cross or a tick."""


def of_pptx(path: Path, wanted: Structure) -> Structure:
    """Reads a PPTX file; ``wanted`` is what its source has, which tells a heading from bold text."""
    found = Structure()
    for slide in Presentation(str(path)).slides:
        targets = dict(slide.part.rels.items())
        for shape in _shapes(slide.shapes):
            _read_shape(found, shape, targets, wanted)
    return found


def _shapes(shapes: Any) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _shapes(shape.shapes)
        elif next(shape.element.iter("{*}cNvPr")).get("hidden") != "1":  # else a title for screen readers
            yield shape


def _read_shape(found: Structure, shape: Any, targets: dict[str, Any], wanted: Structure) -> None:
    description = next(shape.element.iter("{*}cNvPr")).get("descr") or ""
    if words(description):
        found.add("alt", plain_words(description))
    if getattr(shape, "has_table", False) and shape.has_table:
        _read_table(found, shape)
    kind = str(shape.placeholder_format.type) if shape.is_placeholder else ""
    for row, paragraph in _paragraphs(shape):
        _read_paragraph(found, paragraph, kind, wanted, is_header=row == 0)
        _read_links(found, paragraph, targets)


def _read_table(found: Structure, shape: Any) -> None:
    """The cells of a table; one with the first row of the table before goes on where that ended."""
    rows = [
        [(column, _cell_words(cell)) for column, cell in enumerate(row.findall(f"{A}tc")) if not _is_covered(cell)]
        for row in shape.element.iter(f"{A}tr")
    ]
    before = found.rows["table"]
    starts = [index for index, (line, column, _) in enumerate(before) if line == column == 0]
    head = [(0, *cell) for cell in rows[0]] if rows else []
    goes_on = bool(starts) and before[starts[-1] : starts[-1] + len(head)] == head
    first = before[-1][0] if goes_on else 0
    for line, row in enumerate(rows[1:] if goes_on else rows, first + goes_on):
        for column, text in row:
            found.add("table", line, column, text)


def _cell_words(cell: Any) -> str:
    return plain_words("\n".join(paragraph_text(item) for item in cell.iter(f"{A}p")))


def _is_covered(cell: Any) -> bool:
    return cell.get("hMerge") is not None or cell.get("vMerge") is not None


def _paragraphs(shape: Any) -> Iterator[tuple[int, Any]]:
    rows = list(shape.element.iter(f"{A}tr"))
    for paragraph in shape.element.iter(f"{A}p"):
        row = next(paragraph.iterancestors(f"{A}tr"), None)
        yield (rows.index(row) if row is not None else -1), paragraph


def _read_paragraph(found: Structure, paragraph: Any, kind: str, wanted: Structure, *, is_header: bool) -> None:
    text = plain_words(paragraph_text(paragraph))
    title = "TITLE" in kind and "SUB" not in kind
    pieces = [
        ("\n", frozenset[str]()) if item.tag == f"{A}br" else (item.findtext(f"{A}t") or "", _pptx_marks(item))
        for item in paragraph.iter(f"{A}r", f"{A}br")
    ]
    bold = bool(pieces) and all("bold" in marks for piece, marks in pieces if piece.strip())
    if text and (title or (bold and (0, text) in wanted.rows["heading"])):
        own = re.sub(r" \d+ \d+$", "", text) if (0, text) not in wanted.rows["heading"] else text
        if own == text or (0, own) not in found.rows["heading"][-1:]:  # not a slide that goes on
            found.add("heading", 0, own)
    elif not is_header:
        add_marks(found, _undressed(pieces, wanted))
    properties = paragraph.find(f"{A}pPr")
    bullet = (
        next((item for item in properties if item.tag in {f"{A}buChar", f"{A}buAutoNum", f"{A}buBlip"}), None)
        if properties is not None
        else None
    )
    none = properties is not None and properties.find(f"{A}buNone") is not None
    inherited = bullet is None and not none and kind.startswith(("BODY", "OBJECT"))
    if text and not title and (bullet is not None or inherited):
        depth = int((properties.get("lvl") if properties is not None else None) or 0) + 1
        if bullet is not None and _is_tick(bullet):
            found.add("list", "task", 0, text)
        else:
            ordered = bullet is not None and bullet.tag == f"{A}buAutoNum"
            found.add("list", "ordered" if ordered else "bullet", depth, text)


def _is_tick(bullet: Any) -> bool:
    """Whether a bullet is the box of a task: Wingdings has its own letters for those."""
    char = bullet.get("char") or ""
    font = bullet.getprevious()
    wingdings = font is not None and font.get("typeface") == "Wingdings"
    return char in (_WINGDINGS_TICKS if wingdings else TICKS) if char else False


def _undressed(pieces: list[ShownBlock], wanted: Structure) -> list[ShownBlock]:
    """Runs without the marks that all of a line of code or of a quotation has: those are the theme's."""
    pieces = [(piece, marks if not wanted.names_picture(piece) else frozenset()) for piece, marks in pieces]
    lines = {plain_words(line) for line in "".join(piece for piece, _ in pieces).split("\n")}
    shared = [marks for piece, marks in pieces if piece.strip()]
    dressed = frozenset.intersection(*shared) if shared and lines <= wanted.dressed else frozenset()
    return [(piece, marks - dressed) for piece, marks in pieces]


def _read_links(found: Structure, paragraph: Any, targets: dict[str, Any]) -> None:
    last, text = "", ""
    for run in [*paragraph.iter(f"{A}r"), None]:
        click = run.find(f"{A}rPr/{A}hlinkClick") if run is not None else None
        relation = targets.get(click.get(f"{R}id")) if click is not None else None
        target = "" if relation is None else relation.target_ref if relation.is_external else "#"
        if target != last:
            if words(text) and WEB.match(last):
                found.add("link", plain_address(last), plain_words(text))
            last, text = target, ""
        text += (run.findtext(f"{A}t") or "") if run is not None else ""


def _pptx_marks(run: Any) -> frozenset[str]:
    properties = run.find(f"{A}rPr")
    if properties is None:
        return frozenset()
    marks = {mark for key, mark in (("b", "bold"), ("i", "italic")) if properties.get(key) in {"1", "true"}}
    if properties.get("strike") not in {None, "noStrike"}:
        marks.add("strike")
    font = properties.find(f"{A}latin")
    if font is not None and MONO.search(font.get("typeface") or ""):
        marks.add("code")
    return frozenset(marks)
