"""Formulas: a cell that begins with ``=`` is one if Excel opens it and it stays inside its workbook."""

import re
from dataclasses import dataclass, field

from openpyxl.formula import Tokenizer
from openpyxl.formula.tokenizer import Token, TokenizerError
from openpyxl.utils import column_index_from_string
from render.xlsx.functions import KNOWN, reaches_out
from render.xlsx.limits import EXCEL_COLUMNS, EXCEL_ROWS, FORMULA_CHARACTERS_MAX, FORMULA_LEVELS_MAX
from render.xlsx.names import clean_name

_SHEET = r"(?:(?P<quoted>'(?:[^']|'')+')|(?P<bare>[^\W\d][\w.]*))!"
_CELL = r"\$?(?P<c1>[A-Z]{1,3})\$?(?P<r1>[1-9]\d{0,6})(?::\$?(?P<c2>[A-Z]{1,3})\$?(?P<r2>[1-9]\d{0,6}))?"
_WHOLE = r"\$?(?P<c3>[A-Z]{1,3}):\$?(?P<c4>[A-Z]{1,3})|\$?(?P<r3>[1-9]\d{0,6}):\$?(?P<r4>[1-9]\d{0,6})"
_REFERENCE = re.compile(rf"(?:{_SHEET})?(?:{_CELL}|{_WHOLE})", re.IGNORECASE)
_OUTSIDE = re.compile(r"[\[\]|\\]|//|file:|\.xls|\.ods|\.csv", re.IGNORECASE)
"""What references to other files and programs have, and those to cells of the workbook have not."""
_WEB = re.compile(r'"(?:https?://[^"\\]+|mailto:[^"]+|#[^"\[]+)"', re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d*)?(?:E[+-]?\d+)?|\.\d+(?:E[+-]?\d+)?", re.IGNORECASE)
_INFIX = frozenset({"+", "-", "*", "/", "^", "&", "=", "<>", "<", ">", "<=", ">="})
_MEANT = re.compile(r"=\s*[\w(\"'$+\-@{\[]")


@dataclass(frozen=True, slots=True)
class Reference:
    """Cells that a formula names: a sheet as the workbook names it, or None for its own; rows and columns from 1."""

    sheet: str | None
    first_row: int
    last_row: int
    first_column: int
    last_column: int


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula as a file has it, and the cells that it names."""

    text: str
    references: tuple[Reference, ...] = ()
    functions: frozenset[str] = field(default_factory=frozenset)


class FormulaRefusedError(ValueError):
    """A formula that reaches out of the workbook."""


def looks_meant(text: str) -> bool:
    """Whether a text that begins with ``=`` is meant as a formula, and not as an arrow or a rule."""
    return _MEANT.match(text) is not None


def read_formula(text: str, sheets: dict[str, str], own: tuple[int, int] | None = None) -> Formula:
    """A formula that can be written as one.

    Args:
        text: what stands in the cell, from ``=`` on.
        sheets: the names of the workbook's sheets, by these and by the names that were asked for, in lower case.
        own: row and column of the cell, from 1; a formula that counts with itself has no result.

    Raises:
        FormulaRefusedError: it asks another file, program or computer.
        ValueError: Excel would not open it; the message has the reason.
    """
    if len(text) > FORMULA_CHARACTERS_MAX:
        raise ValueError(f"it has more than {FORMULA_CHARACTERS_MAX:,} characters")
    bare = re.sub(r'"[^"]*"', '""', text)
    if _OUTSIDE.search(bare):
        raise FormulaRefusedError("it names another file or program")
    try:
        tokens = [token for token in Tokenizer(text).items if token.type != Token.WSPACE]
    except (TokenizerError, IndexError, ValueError, RecursionError) as exc:
        raise ValueError("it cannot be read as one") from exc
    if not tokens or tokens[0].type == Token.LITERAL:
        raise ValueError("it cannot be read as one")
    return _Reading(tokens, sheets, own).formula()


class _Reading:
    """Reads the tokens of one formula: operands and operators in turn, brackets in pairs."""

    def __init__(self, tokens: list[Token], sheets: dict[str, str], own: tuple[int, int] | None) -> None:
        self._tokens = tokens
        self._sheets = sheets
        self._own = own
        self._open: list[str] = []
        self._wants_operand = True
        self._signs = 0
        self._parts: list[str] = []
        self._references: list[Reference] = []
        self._functions: set[str] = set()

    def formula(self) -> Formula:
        for index, token in enumerate(self._tokens):
            self._parts.append(self._part(index, token))
        if self._open or self._wants_operand:
            raise ValueError("a bracket or an operand is missing")
        return Formula("=" + "".join(self._parts), tuple(self._references), frozenset(self._functions))

    def _part(self, index: int, token: Token) -> str:
        if token.type in {Token.FUNC, Token.PAREN} and token.subtype == Token.OPEN:
            self._expect(operand=True)
            self._open.append(token.type)
            if len(self._open) > FORMULA_LEVELS_MAX:
                raise ValueError(f"it has more than {FORMULA_LEVELS_MAX} levels of brackets")
            return self._function(index, token) if token.type == Token.FUNC else "("
        if token.type in {Token.FUNC, Token.PAREN}:
            return self._closed(index)
        if token.type == Token.SEP:
            if token.subtype != Token.ARG or self._open[-1:] != [Token.FUNC]:
                raise ValueError("arguments stand apart by commas")
            self._wants_operand = True
            return ","
        if token.type == Token.OPERAND:
            self._expect(operand=True)
            self._wants_operand = False
            return self._operand(token)
        return self._operator(token)

    def _expect(self, *, operand: bool) -> None:
        if self._wants_operand is not operand:
            raise ValueError("an operator is missing" if operand else "an operand is missing")

    def _closed(self, index: int) -> str:
        kind = self._open.pop() if self._open else ""
        before = self._tokens[index - 1]
        may_be_empty = kind == Token.FUNC and (before.type == Token.SEP or before.subtype == Token.OPEN)
        if not kind or (self._wants_operand and not may_be_empty):
            raise ValueError("a bracket or an operand is missing")
        self._wants_operand = False
        return ")"

    def _operator(self, token: Token) -> str:
        if token.type == Token.OP_PRE and token.value in "+-":
            self._expect(operand=True)
            self._signs += 1
            if self._signs > FORMULA_LEVELS_MAX:
                raise ValueError(f"it has more than {FORMULA_LEVELS_MAX} signs")
        elif token.type == Token.OP_POST:
            self._expect(operand=False)
        elif token.type == Token.OP_IN and token.value in _INFIX:
            self._expect(operand=False)
            self._wants_operand = True
        else:
            raise ValueError(f"{token.value.strip()[:20] or 'a blank'} is not read")
        return str(token.value)

    def _function(self, index: int, token: Token) -> str:
        name = token.value[:-1].strip().upper()
        for prefix in ("_XLFN.", "_XLWS."):
            name = name.removeprefix(prefix)
        if reaches_out(name):
            raise FormulaRefusedError(f"{name} reaches out of the workbook")
        if name == "HYPERLINK":
            link = self._tokens[index + 1] if index + 1 < len(self._tokens) else None
            after = self._tokens[index + 2] if index + 2 < len(self._tokens) else None
            ends = after is not None and (after.type == Token.SEP or after.subtype == Token.CLOSE)
            if link is None or not ends or not _WEB.fullmatch(link.value):
                raise FormulaRefusedError("HYPERLINK leads to an http, https or mailto address in quotes only")
        elif name not in KNOWN:
            raise ValueError(f"{name[:40]} is not a function that is written")
        self._functions.add(name)
        return f"{KNOWN.get(name, name)}("

    def _operand(self, token: Token) -> str:
        value = str(token.value)
        if token.subtype in {Token.TEXT, Token.ERROR}:
            return value
        if token.subtype == Token.NUMBER and _NUMBER.fullmatch(value):
            return value
        if value.upper() in {"TRUE", "FALSE"}:
            return value.upper()
        match = _REFERENCE.fullmatch(value)
        if match is None:
            raise ValueError(f"{value[:40]} is neither a cell nor a figure")
        return self._reference(match)

    def _reference(self, match: re.Match[str]) -> str:
        sheet = match["bare"] or (match["quoted"] or "")[1:-1].replace("''", "'") or None
        if sheet is not None:
            written = self._sheets.get(sheet.lower()) or self._sheets.get(clean_name(sheet).lower())
            if written is None:
                raise ValueError(f"there is no sheet {sheet[:40]}")
            sheet = written
        columns = [
            column_index_from_string(match[name].upper()) for name in ("c1", "c2", "c3", "c4") if match[name]
        ]
        rows = [int(match[name]) for name in ("r1", "r2", "r3", "r4") if match[name]]
        if max(columns, default=1) > EXCEL_COLUMNS or max(rows, default=1) > EXCEL_ROWS:
            raise ValueError(f"{match[0][:40]} is past the last cell")
        named = Reference(
            sheet,
            min(rows, default=1),
            max(rows, default=EXCEL_ROWS),
            min(columns, default=1),
            max(columns, default=EXCEL_COLUMNS),
        )
        if sheet is None and self._own and _covers(named, *self._own) and not self._is_about_place():
            raise ValueError(f"it counts with its own cell in {match[0][:40]}")
        self._references.append(named)
        cells = match[0].rpartition("!")[2].upper()
        if sheet is None:
            return cells
        return "'" + sheet.replace("'", "''") + "'!" + cells

    def _is_about_place(self) -> bool:
        """Whether the innermost function asks where cells are, not what is in them."""
        return bool(self._parts) and self._parts[-1] in {"ROW(", "COLUMN(", "ROWS(", "COLUMNS("}


def _covers(named: Reference, row: int, column: int) -> bool:
    return named.first_row <= row <= named.last_row and named.first_column <= column <= named.last_column
