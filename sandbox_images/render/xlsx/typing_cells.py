"""The cells of a sheet with their values: types by column, formulas with the format of what they count."""

import re
from collections import Counter
from dataclasses import dataclass, field

from render.docx.package import safe_url
from render.xlsx.columns import Column, Scalar, read_columns
from render.xlsx.findings import Findings, place
from render.xlsx.formulas import Formula, FormulaRefusedError, Reference, looks_meant, read_formula
from render.xlsx.limits import CELL_CHARACTERS_MAX, COMMENTS_MAX, LINKS_MAX, cut
from render.xlsx.model import SourceCell, SourceTable

_TOTAL = re.compile(
    r"(?:grand |sub)?total\b|sum(?:me)?\b|gesamt|insgesamt|overall\b|(?:grand )?totals\b", re.IGNORECASE
)
_YEAR = re.compile(r"[1-9]\d{0,3}")
_PERCENT_HEAD = re.compile(r"%|\bper ?cent\b", re.IGNORECASE)
_RATIO_HEAD = re.compile(r"\b(?:share|margin|growth|rate|anteil)\b", re.IGNORECASE)
"""Heads of percentages if the formula divides."""
_MONEY_HEAD = re.compile(
    r"\bper (?!cent\b)|\bshare price\b|\b(?:hourly|hour|daily|day|weekly|monthly|exchange|wage|pay|billing)[ -]rate\b|"
    r"[$\u20ac\u00a3\u00a5\u20b9]|\b(?:USD|EUR|GBP|CHF|JPY)\b",
    re.IGNORECASE,
)
"""Heads of money that have a word of percentages."""
_COUNTS = frozenset({"COUNT", "COUNTA", "COUNTBLANK", "COUNTIF", "COUNTIFS", "LEN", "MATCH", "XMATCH", "ROW", "COLUMN",
                     "ROWS", "COLUMNS", "RANK", "RANK.EQ", "DAYS", "DATEDIF", "YEAR", "MONTH", "DAY"})  # fmt: skip
_DATES = {"TODAY": "yyyy-mm-dd", "DATE": "yyyy-mm-dd", "EDATE": "yyyy-mm-dd", "EOMONTH": "yyyy-mm-dd",
          "WORKDAY": "yyyy-mm-dd", "NOW": "yyyy-mm-dd hh:mm"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypedCell:
    """A cell that is ready to be written.

    Attributes:
        source: the cell of the document.
        value: what it holds.
        number_format: how it is shown; empty: as it comes.
        is_formula: the value is one.
        is_right: it is at the right unless the source sets another side.
        href: where it leads to.
        comment: what else its reader sees of it.
    """

    source: SourceCell
    value: Scalar
    number_format: str = ""
    is_formula: bool = False
    is_right: bool = False
    href: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class TypedSheet:
    """A sheet that is ready to be written.

    Attributes:
        name: its name.
        table: the table of the document.
        cells: in the order of their rows.
        columns: what is known of each column.
        has_total: its last row is a total.
    """

    name: str
    table: SourceTable
    cells: list[TypedCell]
    columns: list[Column]
    has_total: bool


@dataclass(frozen=True, slots=True)
class Sheets:
    """What the sheets of a workbook know of each other.

    Attributes:
        names: of all sheets, by their names in lower case.
        columns: of the sheets that are typed, by their names in lower case.
    """

    names: dict[str, str]
    columns: dict[str, list[Column]] = field(default_factory=dict)


def type_sheet(table: SourceTable, name: str, book: Sheets, findings: Findings) -> TypedSheet:
    """Give each cell of a table its value.

    Args:
        table: what to write.
        name: of its sheet.
        book: the other sheets; this one is added.
        findings: what the reader should know is added.
    """
    heads = [""] * table.columns
    texts: list[list[str]] = [[] for _ in range(table.columns)]
    for cell in table.cells:
        if cell.row >= table.header_rows and cell.colspan == 1 and not cell.text.startswith("="):
            if cell.has_scripts:
                continue
            texts[cell.column].append(cell.text)
        elif cell.row < table.header_rows:
            for column in range(cell.column, min(cell.column + cell.colspan, table.columns)):
                heads[column] = cell.text or heads[column]
    # Of a chart only the categories may be ids.
    columns = read_columns(texts, heads if table.chart is None else [*heads[:1], *[""] * (table.columns - 1)])
    for facts, head in zip(columns, heads, strict=True):
        where = f"{name}, {head[:40] or 'a column'}"
        if facts.ambiguous:
            findings.ambiguous.append(f"{where}: {facts.ambiguous[0]}")
        if facts.guessed and table.chart is None:
            text = facts.guessed[0]
            findings.guessed.append(
                f"{where}: {text} with {'decimals' if facts.figures[text].decimals else 'thousands'}"
            )
        if facts.texts_with_digits:
            findings.numbers_as_text.append(f"{where}: {facts.texts_with_digits[0][:40]}")
    book.columns[name.lower()] = columns
    typing = _Typing(name, table, book, findings)
    plain = {id(cell): typing.plain(cell) for cell in table.cells if not typing.is_formula(cell)}
    cells = [plain.get(id(cell)) or typing.formula(cell, heads[cell.column]) for cell in table.cells]
    first_of_last = next((cell.text for cell in table.cells if cell.row == table.rows - 1 and cell.text), "")
    has_total = table.rows > table.header_rows + 1 and _TOTAL.match(first_of_last) is not None
    return TypedSheet(name, table, cells, columns, has_total)


class _Typing:
    def __init__(self, name: str, table: SourceTable, book: Sheets, findings: Findings) -> None:
        self._name = name
        self._table = table
        self._book = book
        self._columns = book.columns[name.lower()]
        self._findings = findings
        self._links = 0
        self._comments = 0

    def is_formula(self, cell: SourceCell) -> bool:
        return cell.text.startswith("=") and looks_meant(cell.text)

    def plain(self, cell: SourceCell) -> TypedCell:
        """A cell without a formula."""
        href = self._href(cell)
        if cell.row < self._table.header_rows:
            value: Scalar = int(cell.text) if _YEAR.fullmatch(cell.shown) else self._text(cell)
            return TypedCell(cell, value, href=href)
        column = self._columns[cell.column]
        is_short = cell.colspan == 1 or len(cell.text) < 40  # noqa: PLR2004 - no figure
        is_commented = bool(cell.references and cell.text)
        if cell.has_scripts or (is_commented and self._comments >= COMMENTS_MAX):
            column.kinds["text"] += 1
            return TypedCell(cell, self._text(cell), href=href)
        found = column.value(cell.text) if is_short else None
        if found is None or found.kind == "text" or "\n" in cell.text:
            return TypedCell(cell, self._text(cell), href=href)
        is_right = found.kind in {"number", "moment"}
        return TypedCell(
            cell, found.value, found.number_format, is_right=is_right, href=href, comment=self._comment(cell)
        )

    def _comment(self, cell: SourceCell) -> str:
        """The references of a cell that is no text; they are explained in the sheet of notes."""
        if not cell.references:
            return ""
        self._comments += 1
        return f"Notes: {cell.references}"

    def formula(self, cell: SourceCell, head: str) -> TypedCell:
        """A cell that begins with ``=``: a formula if it can be one, else a text, which is found."""
        where = place(self._name, cell.row, cell.column)
        shown = f"{where} {cell.text[:60]}"
        if cell.is_code:
            self._findings.as_text.append(f"{shown} (it is marked as code)")
            return TypedCell(cell, self._text(cell))
        if cell.has_scripts:
            self._findings.as_text.append(f"{shown} (it has raised or lowered characters)")
            return TypedCell(cell, self._text(cell))
        try:
            formula = read_formula(cell.text, self._book.names, (cell.row + 1, cell.column + 1))
        except FormulaRefusedError as exc:
            self._findings.refused.append(f"{shown} ({exc})")
            return TypedCell(cell, self._text(cell))
        except ValueError as exc:
            self._findings.as_text.append(f"{shown} ({exc})")
            return TypedCell(cell, self._text(cell))
        shape = self._format(formula, cell, head)
        if shape:
            self._columns[cell.column].formats[shape] += 1
        return TypedCell(
            cell, formula.text, shape, is_formula=True, is_right=bool(shape), comment=self._comment(cell)
        )

    def _format(self, formula: Formula, cell: SourceCell, head: str) -> str:
        """The number format of a formula: its column's, else that of the money or figures that it counts."""
        if formula.functions & _COUNTS:
            return ""
        own = _usual(self._columns[cell.column].formats)
        if own:
            return own
        is_ratio = "/" in formula.text and _RATIO_HEAD.search(head) and not _MONEY_HEAD.search(head)
        if _PERCENT_HEAD.search(head) or is_ratio:
            return "0.0%"
        dated = [shape for name, shape in _DATES.items() if name in formula.functions]
        if dated or "/" in formula.text:
            return dated[0] if dated else ""
        named = [_usual(column.formats) for column in map(self._named, formula.references) if column is not None]
        money = [shape for shape in named if '"' in shape]
        decimal = [shape for shape in named if "%" not in shape and ("." in shape or "," in shape)]
        same = named[:1] if named and set(named) == {named[0]} else []
        return next(iter([*money, *decimal, *same]), "")

    def _named(self, reference: Reference) -> Column | None:
        """The first column of some cells, here or on a sheet that was typed before."""
        columns = self._book.columns.get((reference.sheet or self._name).lower(), [])
        return columns[reference.first_column - 1] if reference.first_column <= len(columns) else None

    def _text(self, cell: SourceCell) -> str:
        text = cut(cell.shown, CELL_CHARACTERS_MAX)
        if text != cell.shown:
            where = place(self._name, cell.row, cell.column)
            self._findings.cut.append(f"{where} has {len(cell.shown):,} characters")
        return text

    def _href(self, cell: SourceCell) -> str:
        if not cell.href:
            return ""
        url = safe_url(cell.href) if not cell.href.startswith("#") else None
        if (
            url is None
            or self._links >= LINKS_MAX
            or not url.lower().startswith(("http://", "https://", "mailto:"))
        ):
            self._findings.links.append(f"{place(self._name, cell.row, cell.column)} {cell.href[:60]}")
            return ""
        self._links += 1
        return url


def _usual(formats: Counter[str]) -> str:
    return formats.most_common(1)[0][0] if formats else ""
