"""Writes XLSX: a sheet for each table and chart, from A1 on, and one for the text around them."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

from render.font_families import shown_face
from render.frontend.title_block import word
from render.model import Document, RenderError
from render.xlsx.charts import add_chart
from render.xlsx.csv_text import read_csv
from render.xlsx.findings import Findings
from render.xlsx.model import Contents, Note, SourceTable
from render.xlsx.names import SheetNames, fits
from render.xlsx.reading import read_contents
from render.xlsx.sheets import write_notes, write_sheet
from render.xlsx.sizes import require_size
from render.xlsx.styles import SIZE, Styles
from render.xlsx.typing_cells import Sheets, type_sheet
from xlsxwriter import Workbook

NOTES = "Notes"


def write_xlsx(document: Document, target: str) -> dict[str, Any]:
    """Write the tables and charts of a document as a workbook.

    Options of the request: ``sheets``, the names of the sheets in their order.

    Args:
        document: what to write.
        target: path of the file to write.

    Returns:
        ``bytes`` of the file; ``sheets``: their names; ``rows``: of all tables; ``formulas`` and ``charts``: how many.

    Raises:
        RenderError: ``no_tables``, ``too_many_sheets`` and the other limits, ``write_failed``.
    """
    contents = _contents(document)
    if not contents.tables:
        raise RenderError(
            "no_tables",
            "content: there is no table or chart in it (got text only); write_xlsx takes tables of Markdown or HTML, "
            "or CSV; for text use write_docx or write_pdf.",
        )
    names = SheetNames()
    given = _given_names(document)
    if len(given) > len(contents.tables):
        document.warn(
            "unused_sheets",
            f"sheets has {len(given)} names for {len(contents.tables)} tables; left over: "
            f"{', '.join(name[:40] for name in given[len(contents.tables) :][:5])}.",
        )
    titles = [_name_sheet(document, contents, number, given, names) for number in range(len(contents.tables))]
    changed = [f"{own[:40]} is {title}" for own, title in zip(given, titles, strict=False) if own and own != title]
    if changed:
        document.warn("sheet_renamed", f"Excel takes other names of sheets: {'; '.join(changed[:5])}.")
    try:
        counts = _write(document, contents, titles, names, target)
        return {"bytes": Path(target).stat().st_size, **counts}
    except OSError as exc:
        raise RenderError("write_failed", f"The file could not be written: {exc.strerror or exc}.") from exc


def _write(
    document: Document, contents: Contents, titles: list[str], names: SheetNames, target: str
) -> dict[str, Any]:
    """Write the file; gives the names of its sheets, and how much is in it."""
    notes = _notes(contents, titles, len(_given_names(document)))
    findings = Findings()
    font = {"font_name": shown_face(document.theme.body_font), "font_size": SIZE}
    book, others = Workbook(target, {"default_format_properties": font}), Sheets(names.known)
    styles = Styles(book, document.theme)
    counts = {"rows": 0, "formulas": 0, "charts": 0}
    for table, name in zip(contents.tables, titles, strict=True):
        sheet = type_sheet(table, name, others, findings)
        page = write_sheet(book, sheet, styles)
        counts["charts"] += add_chart(book, page, sheet, document.theme)
        counts["rows"] += table.rows
        counts["formulas"] += sum(cell.is_formula for cell in sheet.cells)
    all_names = list(titles)
    if notes:
        all_names.append(names.give(NOTES))
        write_notes(book, all_names[-1], notes, styles)
    findings.warn(document)
    book.set_properties(_properties(document))
    book.close()
    return {"sheets": all_names, **counts}


def _contents(document: Document) -> Contents:
    if document.request.source_format != "csv":
        return read_contents(document)
    table = read_csv(document.request.content)
    tables = [table] if table is not None else []
    require_size(tables)
    return Contents(tables)


def _given_names(document: Document) -> list[str]:
    """The names that the front matter gives, else the request."""
    own = _front_matter(document).get("sheets")
    if isinstance(own, str):
        own = [own] if own.strip() else None
    given = own if isinstance(own, list) else document.request.options.get("sheets")
    return [word(name) for name in given] if isinstance(given, list) else []


def _front_matter(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(document.tree.get("data-front-matter") or "{}")
    return found


def _name_sheet(document: Document, contents: Contents, number: int, given: list[str], names: SheetNames) -> str:
    table = contents.tables[number]
    own = given[number] if number < len(given) else ""
    is_only = len(contents.tables) == 1
    title = word(_front_matter(document).get("title")) or document.request.metadata.title
    fallback = (title, PurePosixPath(document.request.target).stem) if is_only else (f"Table {number + 1}",)
    return names.give(own, table.caption, table.heading, *fallback)


def _notes(contents: Contents, titles: list[str], given: int) -> list[Note]:
    """The text outside of tables that no sheet's name shows; a title alone makes no sheet of notes.

    The headings of the first ``given`` tables stand behind names of the request.
    """
    headings = [_heading(table) for table in contents.tables]
    shown = set(headings[:given]) | {
        heading
        for heading, title in zip(headings, titles, strict=True)
        if fits(heading) and title.casefold().startswith(heading.casefold())
    }
    captions = [
        Note(f"{title}: {table.caption}")
        for table, title in zip(contents.tables, titles, strict=True)
        if table.caption and not (fits(table.caption) and title.casefold().startswith(table.caption.casefold()))
    ]
    notes = [note for note in contents.notes if not (note.level and note.text in shown)]
    is_title_alone = len(notes) == 1 and notes[0].level == 1
    return [*([] if is_title_alone else notes), *captions]


def _heading(table: SourceTable) -> str:
    return "" if table.caption else table.heading


def _properties(document: Document) -> dict[str, Any]:
    metadata = document.metadata
    return {
        "title": metadata.title,
        "author": metadata.author or "Proofbox",
        "subject": metadata.subject,
        "keywords": ", ".join(metadata.keywords),
    }
