"""Figures as people write them, and the number formats that show them as they were written."""

import math
import re
from dataclasses import dataclass
from typing import Literal

Marks = Literal["point", "comma"]
"""Which of the two stands before decimals."""

_SYMBOL = r"[$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd\u20ba\u20aa\u0e3f]|R\$|A\$|C\$|US\$"
_CODE = r"USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR|SGD|HKD|KRW|TRY|ILS|AED|SAR"
_FIGURE = re.compile(
    rf"(?P<open>\()?(?P<sign>[-+\u2212\u2013])?\s*(?P<before>{_SYMBOL}|(?:{_CODE})(?=[\s\d\u00a0]))?[\s\u00a0]*"
    r"(?P<within>\()?(?P<inner>[-+\u2212\u2013])?(?P<core>[\d.,'\u2019\u00a0\u202f\u2009 ]*\d)(?P<power>[eE][-+]?\d{1,3})?"
    rf"[\s\u00a0\u202f]*(?P<after>{_SYMBOL}|{_CODE}|%)?(?P<close>\))?"
)
_LAKH = re.compile(r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?")
"""Digits in twos before the last three, as in India."""
_POINT = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d{1,2}(?:,\d{2})+,\d{3}|\d+)?(?:\.\d+)?")
_COMMA = re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
_BLANKS = re.compile(r"\d{1,3}(?:[\u00a0\u202f\u2009'\u2019 ]\d{3})+(?=[.,]|\Z)")
_COMMA_EVIDENCE = re.compile(
    r"\d{1,3}(?:\.\d{3})+,\d+|(?:\d{1,3}(?:\.\d{3}){2,})|\d+,(?:\d{1,2}|\d{4,})|0,\d+|\d{4,},\d+"
)
_POINT_EVIDENCE = re.compile(
    r"\d{1,3}(?:,\d{3})+\.\d+|(?:\d{1,3}(?:,\d{3}){2,})|"
    r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?|\d*\.(?:\d{1,2}|\d{4,})|0\.\d+"
)
_IN_TWOS = (("[>=10000000]", r"##\,##\,##\,##0"), ("[>=100000]", r"##\,##\,##0"))
FIGURE_CHARACTERS_MAX = 40
DIGITS_MAX = 15
"""Digits of a figure that a cell holds; of a longer whole number the last ones would become zeros."""
_DECIMALS_MAX = 10
_ONE_MARK = re.compile(r"[1-9]\d{0,2}([.,])\d{3}")
"""A figure whose mark may stand before three decimals or between thousands."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and how it was written.

    Attributes:
        value: what it is worth; of ``12 %`` it is 0.12.
        decimals: digits behind the decimal mark.
        is_grouped: thousands are apart.
        before: a currency before it.
        after: a currency behind it, or ``%``.
        is_accounting: brackets stand for minus.
        is_scientific: it has a power of ten.
        has_plus: a plus stands before it.
        is_lakh: its thousands are in twos.
    """

    value: float | int
    decimals: int = 0
    is_grouped: bool = False
    before: str = ""
    after: str = ""
    is_accounting: bool = False
    is_scientific: bool = False
    has_plus: bool = False
    is_lakh: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is made of digits alone, as ids are."""
        return not (self.decimals or self.is_grouped or self.before or self.after or self.is_scientific)


def evidence(text: str) -> Marks | None:
    """Which decimal mark a figure must have been written with; None if it could be either, or is no figure."""
    if "," not in text and "." not in text:
        return None
    match = _match(text)
    if match is None:
        return None
    core = _BLANKS.sub(lambda found: re.sub(r"\D", "", found[0]), match["core"])
    if _COMMA_EVIDENCE.fullmatch(core):
        return "comma"
    return "point" if _POINT_EVIDENCE.fullmatch(core) else None


def money_evidence(text: str) -> Marks | None:
    """Which decimal mark money such as ``1.234 \u20ac`` has: of three digits behind its only mark none are decimals."""
    match = _match(text)
    is_money = match is not None and bool(match["before"] or match["after"] not in {None, "%"})
    mark = _ONE_MARK.fullmatch(match["core"]) if match is not None and is_money else None
    return None if mark is None else "comma" if mark[1] == "." else "point"


def is_ambiguous(text: str) -> bool:
    """Whether nothing in a figure shows what its only mark is."""
    match = _match(text)
    return match is not None and _ONE_MARK.fullmatch(match["core"]) is not None and money_evidence(text) is None


def _match(text: str) -> re.Match[str] | None:
    return _FIGURE.fullmatch(text.strip()) if len(text) <= FIGURE_CHARACTERS_MAX else None


def read_figure(text: str, marks: Marks = "point") -> Figure | None:
    """A figure, or None: leading zeros, long ids, phone numbers, versions and the like are texts.

    Args:
        text: what stands in the cell.
        marks: the decimal mark of its column.
    """
    if len(text) > FIGURE_CHARACTERS_MAX or text[:1].islower():  # no currency begins so
        return None
    match = _FIGURE.fullmatch(text.strip())
    if match is None or (match["sign"] and match["inner"]):
        return None
    opened = bool(match["open"]) + bool(match["within"])
    if opened != bool(match["close"]) or (match["within"] and not match["before"]):
        return None
    before, after = match["before"] or "", match["after"] or ""
    if before and after:
        return None
    core, is_apart = _ungrouped(match["core"], is_money=bool(before or after))
    if core is None or not (_POINT if marks == "point" else _COMMA).fullmatch(core):
        return None
    group, mark = (",", ".") if marks == "point" else (".", ",")
    is_grouped = is_apart or group in core
    whole, _, decimals = core.replace(group, "").partition(mark)
    if (is_apart and group in core) or not _is_number(whole, decimals, match):
        return None
    value = _value(whole, decimals, match, after)
    if not math.isfinite(value) or (
        not value and (whole + decimals).strip("0")
    ):  # past the largest or smallest one
        return None
    return Figure(
        value,
        len(decimals),
        is_grouped,
        before,
        after,
        bool(opened),
        bool(match["power"]),
        "+" in {match["sign"], match["inner"]},
        is_lakh=marks == "point" and _LAKH.fullmatch(core) is not None,
    )


def _ungrouped(core: str, *, is_money: bool) -> tuple[str | None, bool]:
    """The digits with their marks once blanks between thousands are gone, and whether there were any; None: no figure.

    A plain blank stands between thousands only of money and percentages: elsewhere it may be a phone number.
    """
    if not re.search(r"[^\d.,]", core):
        return core, False
    joined = _BLANKS.sub(lambda found: re.sub(r"\D", "", found[0]), core, count=1)
    if re.search(r"[^\d.,]", joined) or (" " in core and not is_money):
        return None, False
    return joined, True


def _is_number(whole: str, decimals: str, match: re.Match[str]) -> bool:
    digits = len((whole + decimals).lstrip("0"))
    if len(whole) > 1 and whole[0] == "0":
        return False
    if not decimals and digits > DIGITS_MAX:
        return False
    if digits > DIGITS_MAX + 2:
        return False
    if "+" in {match["sign"], match["inner"]} and len(whole) >= 7 and not decimals and "," not in match["core"]:  # noqa: PLR2004 - a phone number
        return False
    power = match["power"] or ""
    # 12E5 is the number of an article more often than a figure.
    return not power or ((bool(decimals) or power[1] in "+-") and not (match["before"] or match["after"]))


def _value(whole: str, decimals: str, match: re.Match[str], after: str) -> float | int:
    is_minus = bool(match["close"]) or bool({match["sign"], match["inner"]} & {"-", "\u2212", "\u2013"})
    text = f"{'-' if is_minus else ''}{whole or '0'}"
    if after == "%":
        return float(f"{text}.{decimals or '0'}e{int((match['power'] or 'e0')[1:]) - 2}")
    if match["power"] or decimals:
        return float(f"{text}.{decimals or '0'}{match['power'] or ''}")
    return int(text)


def number_format(figure: Figure, decimals: int, *, is_accounting: bool = False, has_plus: bool = False) -> str:
    """The format that shows a figure as it was written.

    Args:
        figure: one of the column's.
        decimals: digits behind the decimal mark that figures of its kind have in the column.
        is_accounting: the column has negative figures in brackets.
        has_plus: the column has figures with a plus.
    """
    places = "." + "0" * min(decimals, _DECIMALS_MAX) if decimals else ""
    if figure.is_scientific:
        return f"0{places or '.0'}E+00"
    whole = "#,##0" if figure.is_grouped else "0"
    if figure.is_lakh and not is_accounting and not has_plus:
        crores, lakhs = (f"{condition}{_dressed(figure, digits + places)}" for condition, digits in _IN_TWOS)
        return f"{crores};{lakhs};{_dressed(figure, whole + places)}"
    digits = _dressed(figure, whole + places)
    if is_accounting:
        return f"{digits}_);({digits})"
    return f"+{digits};-{digits};{digits}" if has_plus else digits


def _dressed(figure: Figure, digits: str) -> str:
    """Digits of a format with the currency or percent of a figure."""
    if figure.after == "%":
        return f"{digits}%"
    if figure.after:
        return f'{digits} "{figure.after}"'
    gap = " " if figure.before.isalpha() and len(figure.before) > 1 else ""
    return f'"{figure.before}{gap}"{digits}' if figure.before else digits
