"""Writes sheets: values, looks, widths, merged cells, the head that stays, the filter."""

import unicodedata
from datetime import date, datetime, time
from typing import Any

from render.xlsx.limits import CELL_CHARACTERS_MAX, cut
from render.xlsx.model import Note
from render.xlsx.styles import Look, Styles
from render.xlsx.typing_cells import TypedCell, TypedSheet
from xlsxwriter import Workbook
from xlsxwriter.utility import xl_range

_WIDTH_MIN, _WIDTH_MAX = 8.0, 55.0
"""Of a column, in digits of its type."""
_HEAD_WIDTH_MAX = 24.0
_NOTE_WIDTH = 100.0
_FORMULA_WIDTH = 12.0
_PADDING = 2.0
_FILTER_WIDTH = 2.5
_FROZEN_ROWS_MAX = 6
_FILTERED_ROWS_MIN = 3
_PAPER_WIDTH = 95.0
"""Digits across an upright page of A4; wider sheets are printed on their side."""
_A4 = 9
_NO_GRIDLINES = 2
_QUOTED = frozenset("=+-@")


def write_sheet(book: Workbook, sheet: TypedSheet, styles: Styles) -> Any:
    """Add a sheet to a workbook, with all of its cells."""
    page = book.add_worksheet(sheet.name)
    table = sheet.table
    is_filtered = _is_filtered(sheet)
    widths = _widths(sheet, is_filtered=is_filtered)
    for column, width in enumerate(widths):
        page.set_column(column, column, width)
    page.hide_gridlines(_NO_GRIDLINES)
    _set_page(page, sum(widths))
    if 0 < table.header_rows <= min(_FROZEN_ROWS_MAX, table.rows - 1):
        page.freeze_panes(table.header_rows, 0)
        page.repeat_rows(0, table.header_rows - 1)
    if is_filtered:
        page.autofilter(table.header_rows - 1, 0, table.rows - 1 - sheet.has_total, table.columns - 1)
    _write_cells(page, sheet, styles, widths)
    names = [column for column, facts in enumerate(sheet.columns) if facts.has_names]
    if names:
        ranges = " ".join(xl_range(0, column, table.rows - 1, column) for column in names)
        page.ignore_errors({"number_stored_as_text": ranges})
    return page


def _is_filtered(sheet: TypedSheet) -> bool:
    """Whether the head gets buttons to filter by: it names each column, and no cell below covers several rows."""
    table = sheet.table
    last = table.header_rows - 1
    heads = [cell.source for cell in sheet.cells if cell.source.row <= last < cell.source.row + cell.source.rowspan]
    is_cut = any(cell.source.rowspan > 1 and cell.source.row > last for cell in sheet.cells)
    rows = table.rows - table.header_rows - sheet.has_total
    return last >= 0 and rows >= _FILTERED_ROWS_MIN and len(heads) == table.columns and not is_cut


def _write_cells(page: Any, sheet: TypedSheet, styles: Styles, widths: list[float]) -> None:
    """Write all cells; those that the source has not are blank, with the looks of their row."""
    columns = sheet.table.columns
    written = {cell.source.row * columns + cell.source.column for cell in sheet.cells}
    for number in range(sheet.table.rows * columns):
        if number not in written:
            row, column = divmod(number, columns)
            page.write_blank(row, column, None, styles.format(Look(_role(sheet, row))))
    for typed in sheet.cells:
        source = typed.source
        look = _look(sheet, typed, sum(widths[source.column : source.column + source.colspan]))
        style = styles.format(look)
        if source.rowspan > 1 or source.colspan > 1:
            last = source.row + source.rowspan - 1, source.column + source.colspan - 1
            page.merge_range(source.row, source.column, *last, "", style)
        _write(page, typed, style)


def _role(sheet: TypedSheet, row: int) -> str:
    if row < sheet.table.header_rows:
        return "head"
    return "total" if sheet.has_total and row == sheet.table.rows - 1 else "body"


def _look(sheet: TypedSheet, typed: TypedCell, width: float) -> Look:
    source = typed.source
    role = _role(sheet, source.row)
    align = source.align or ("right" if typed.is_right and source.colspan == 1 else None)
    if role == "head" and align is None:
        align = "center" if source.colspan > 1 else "right" if sheet.columns[source.column].is_numeric else "left"
    text = typed.value if isinstance(typed.value, str) and not typed.is_formula else ""
    is_wrapped = "\n" in text or _length(text) + _PADDING > width or (role == "head" and " " in text)
    return Look(
        role,
        typed.number_format,
        align,
        is_wrapped=bool(text) and is_wrapped,
        is_bold=source.is_bold or (source.is_header and role == "body"),
        is_link=bool(typed.href),
        is_quoted=text[:1] in _QUOTED,
        is_tall=source.rowspan > 1,
        is_apart=align in {None, "left"} and source.column > 0 and not typed.is_formula,
    )


def _write(page: Any, typed: TypedCell, style: Any) -> None:
    row, column, value = typed.source.row, typed.source.column, typed.value
    if typed.href:  # the value that is written over its text keeps the link
        page.write_url(row, column, typed.href, style, str(value))
    if typed.is_formula:
        # Without a result: programs that show a file count it, and would believe one that stood there.
        page.write_formula(row, column, value, style, "")
    elif isinstance(value, bool):
        page.write_boolean(row, column, value, style)
    elif isinstance(value, int | float):
        page.write_number(row, column, value, style)
    elif isinstance(value, datetime | date | time):
        page.write_datetime(row, column, value, style)
    elif value and not typed.href:
        page.write_string(row, column, value, style)
    elif not typed.href:
        page.write_blank(row, column, None, style)
    if typed.comment:
        page.write_comment(row, column, typed.comment)


def _widths(sheet: TypedSheet, *, is_filtered: bool) -> list[float]:
    """Columns as wide as what stands in them, within bounds; heads may take two lines."""
    widths = [_WIDTH_MIN] * sheet.table.columns
    for typed in sheet.cells:
        source = typed.source
        if source.colspan > 1:
            continue
        if typed.is_formula:
            wide = _FORMULA_WIDTH
        elif source.row < sheet.table.header_rows:
            longest = max((_length(word) for word in source.shown.split()), default=0.0)
            wide = max(longest, min(_length(source.shown), _HEAD_WIDTH_MAX)) * 1.1 + _FILTER_WIDTH * is_filtered
        elif "\n" in source.shown:
            wide = max(_length(line) for line in source.shown.split("\n"))
        else:
            wide = _length(source.shown) * (1.1 if source.is_bold or source.row == sheet.table.rows - 1 else 1.0)
        wide += _PADDING + (source.column > 0)
        if wide > widths[source.column]:
            widths[source.column] = min(wide, _WIDTH_MAX)
    return [round(width, 1) for width in widths]


def _length(text: str) -> float:
    """How many digits wide a text is."""
    if text.isascii():
        return float(len(text))
    return float(sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text))


def _set_page(page: Any, width: float) -> None:
    """A4, as many pages down as it takes, one across."""
    page.set_paper(_A4)
    page.fit_to_pages(1, 0)
    if width > _PAPER_WIDTH:
        page.set_landscape()


def write_notes(book: Workbook, name: str, notes: list[Note], styles: Styles) -> None:
    """Add the sheet of the text outside of tables: a row for each paragraph."""
    page = book.add_worksheet(name)
    page.set_column(0, 0, _NOTE_WIDTH)
    page.hide_gridlines(_NO_GRIDLINES)
    _set_page(page, _NOTE_WIDTH)
    row = 0
    for note in notes:
        role = "heading" if note.level else "code" if note.is_code else "note"
        rest = note.text
        while rest:
            text = cut(rest, CELL_CHARACTERS_MAX)
            rest = rest[len(text) :]
            look = Look(role, is_wrapped=True, is_quoted=text[:1] in _QUOTED, level=note.level)
            page.write_string(row, 0, text, styles.format(look))
            row += 1
