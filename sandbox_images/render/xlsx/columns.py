"""The types of a table's cells: decided by column, so that ids stay texts and figures of a kind look alike."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from render.xlsx.moments import Moment, Order, is_slashed, is_time, read_moment, read_time, slashed_order
from render.xlsx.numbers import Figure, Marks, evidence, is_ambiguous, money_evidence, number_format, read_figure

Kind = Literal["text", "number", "moment", "boolean"]
Scalar = str | int | float | bool | Moment

_IDS = re.compile(
    r"(?:^|[\s_-])(?:(?:zip|postal|post ?code|plz|phone|tel|telephone|sku|ean|upc|isbn|issn|gtin|iban|imei|vin|ssn|siren|"
    r"siret|version|(?:area|bar|item|article|product) ?code)(?:[\s_-]?(?:code|no|nr|number|id|#))?|"
    r"(?:mobile|fax|code|release|build|serial|account|order)[\s_-]?(?:no|nr|number|id|#))[.:]?$",
    re.IGNORECASE,
)
"""Heads of columns whose figures are names: nobody counts with them, and 1.10 is not 1.1.

Words that measures have too, such as code and release, need a word such as number."""
_PROTECTED = re.compile(r"0\d[\d-]*|\d{16,}|\+\d[\d\s()/.-]{6,}")
"""Leading zeros, more digits than a cell holds, phone numbers: a column with one of these has ids."""
_FIGURES = re.compile(r"\d+(?:\.\d+)?")
_DIGITS = re.compile(r"[-+]?\d[\d.,]*(?:[eE]\d+)?%?")
"""What Excel reports as a number that is stored as text."""
_BOOLEANS = {"true": True, "false": False}
_SPREAD_MAX = 4
"""Decimals up to which all figures of a column are shown with as many as the longest has."""
_SAMPLE_MAX = 5
_THOUSAND = 1_000


@dataclass(frozen=True, slots=True)
class Value:
    """What a cell holds, and the number format that shows it."""

    value: Scalar
    kind: Kind = "text"
    number_format: str = ""


@dataclass(slots=True)
class Column:
    """What is known of a column from all of its cells.

    Attributes:
        marks: the decimal mark of its figures.
        is_of_ids: whole numbers and versions in it are texts.
        order: of its dates with slashes.
        has_times: all of its cells are times of day.
        decimals: of its figures, by currency or percent.
        grouped: the currencies or percent whose figures have thousands apart; money always has.
        lakhs: the currencies or percent whose figures have thousands in twos.
        is_accounting: it has figures in brackets.
        has_plus: it has figures with a plus.
        ambiguous: dates that can be read in two ways; they stay texts.
        guessed: figures whose mark was taken for what it mostly is.
        texts_with_digits: what is no figure and has digits.
        kinds: how many cells are of each kind.
        formats: how many figures have each number format.
        has_names: it has texts of digits alone, which a reader need not be warned of.
        figures: by their texts.
    """

    marks: Marks = "point"
    is_of_ids: bool = False
    order: Order | None = None
    has_times: bool = False
    decimals: dict[tuple[str, str], int] = field(default_factory=dict)
    grouped: set[tuple[str, str]] = field(default_factory=set)
    lakhs: set[tuple[str, str]] = field(default_factory=set)
    is_accounting: bool = False
    has_plus: bool = False
    ambiguous: list[str] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)
    texts_with_digits: list[str] = field(default_factory=list)
    kinds: Counter[Kind] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    has_names: bool = False
    figures: dict[str, Figure] = field(default_factory=dict)

    @property
    def is_numeric(self) -> bool:
        """Whether most of its cells are numbers or dates, which stand at the right."""
        return self.kinds["number"] + self.kinds["moment"] > self.kinds["text"] + self.kinds["boolean"]

    def value(self, text: str) -> Value:
        """The value of one cell of the column; its kind is counted."""
        value = self._value(text.strip())
        if text.strip():
            self.kinds[value.kind] += 1
            if value.kind == "text" and _DIGITS.fullmatch(text.strip()):
                self.has_names = True
            if value.kind == "number":
                self.formats[value.number_format] += 1
        return value

    def _value(self, text: str) -> Value:
        boolean = _BOOLEANS.get(text.lower())
        if boolean is not None:
            return Value(boolean, "boolean")
        moment = read_time(text) if self.has_times else read_moment(text, self.order)
        if moment is not None:
            return Value(moment[0], "moment", moment[1])
        figure = None if self._is_id(text) else self.figures.get(text)
        if figure is None or (figure.is_accounting and not self.is_accounting):
            return Value(text)
        key = figure.before, figure.after
        decimals = max(self.decimals.get(key, 0), figure.decimals)
        if decimals > _SPREAD_MAX:
            decimals = figure.decimals
        figure = replace(figure, is_grouped=key in self.grouped, is_lakh=key in self.lakhs)
        shown = number_format(figure, decimals, is_accounting=self.is_accounting, has_plus=self.has_plus)
        return Value(figure.value, "number", shown)

    def _is_id(self, text: str) -> bool:
        return self.is_of_ids and _FIGURES.fullmatch(text) is not None


def read_columns(texts: list[list[str]], heads: list[str]) -> list[Column]:
    """What is known of each column of a table.

    Args:
        texts: of the cells below the heads, by column; empty ones may be among them.
        heads: the text above each column.
    """
    columns = [[text.strip() for text in column if text.strip()] for column in texts]
    are_ids = [_is_of_ids(column, head) for column, head in zip(columns, heads, strict=True)]
    usual = _usual_marks([column for column, is_of_ids in zip(columns, are_ids, strict=True) if not is_of_ids])
    return [
        _read_column(column, usual, is_of_ids=is_of_ids) for column, is_of_ids in zip(columns, are_ids, strict=True)
    ]


def _is_of_ids(texts: list[str], head: str) -> bool:
    return bool(_IDS.search(head.strip())) or any(_PROTECTED.fullmatch(text) for text in texts)


def _usual_marks(columns: list[list[str]]) -> Marks | None:
    """The decimal mark of a table's other figures; None if none gives one away, or some give each."""
    for read in (evidence, money_evidence):
        seen = {mark for column in columns if (mark := _only(read, column))}
        if seen:
            return seen.pop() if len(seen) == 1 else None
    return None


def _only(read: Callable[[str], Marks | None], column: Iterable[str]) -> Marks | None:
    """The decimal mark that a column gives away; None if it has no such figure, or some with each."""
    seen = {found for found in map(read, column) if found}
    return seen.pop() if len(seen) == 1 else None


def _read_column(texts: list[str], usual: Marks | None, *, is_of_ids: bool) -> Column:
    own = _only(evidence, texts)
    column = Column(own or usual or "point", has_times=bool(texts) and all(map(is_time, texts)))
    column.is_of_ids = is_of_ids
    slashed = [text for text in texts if is_slashed(text)]
    orders = {order for order in map(slashed_order, slashed) if order}
    column.order = orders.pop() if len(orders) == 1 else None
    if slashed and column.order is None:
        column.ambiguous = slashed[:_SAMPLE_MAX]
    for text in texts:
        figure = read_figure(text, own or money_evidence(text) or column.marks)
        if figure is not None:
            column.figures[text] = figure
    figures = [column.figures[text] for text in texts if text in column.figures]
    plain = [figure for figure in figures if not figure.is_accounting]
    # A lone (3) is a note; among figures it is minus three.
    column.is_accounting = any(figure.is_accounting for figure in figures) and len(plain) * 2 >= len(texts) - (
        len(figures) - len(plain)
    )
    column.has_plus = any(figure.has_plus for figure in figures)
    for figure in figures:
        key = figure.before, figure.after
        if not figure.is_scientific:
            column.decimals[key] = max(column.decimals.get(key, 0), figure.decimals)
        if figure.is_grouped or figure.before or figure.after not in {"", "%"}:
            column.grouped.add(key)
        if figure.is_lakh:
            column.lakhs.add(key)
    if not is_of_ids:
        column.guessed = [] if own or usual else _guessed(texts, column)
        others = [text for text in texts if text not in column.figures and any(map(str.isdecimal, text))]
        column.texts_with_digits = others if len(figures) * 2 > len(texts) else []
    return column


def _guessed(texts: list[str], column: Column) -> list[str]:
    """Figures such as 1.234, whose mark may stand before decimals or between thousands.

    Beside whole numbers below a thousand a comma stands between thousands.
    """
    found = [text for text in texts if text in column.figures and is_ambiguous(text)]
    has_small = any(figure.is_plain and abs(figure.value) < _THOUSAND for figure in column.figures.values())
    return [text for text in found if "." in text or not has_small]
