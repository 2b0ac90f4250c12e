"""Dates and times as people write them; a date that can be read in two ways is none."""

import re
from datetime import date, datetime, time
from typing import Literal

Order = Literal["day", "month"]
"""Which comes first in a date with slashes."""
Moment = date | datetime | time

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"), 1
    )
    for name in names.split()
}  # fmt: skip
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(\.\d{3})?)?(Z)?)?")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_DAY_FIRST = re.compile(r"(\d{1,2})\.?(?:[ -])([A-Za-z]{3,9})\.?,?(?:[ -])(\d{4})")
_MONTH_FIRST = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2}),? (\d{4})")
_TIME = re.compile(r"(\d\d?):(\d\d)(?::(\d\d))?")
_HAS_YEAR = re.compile(r"(?<!\d)\d{4}(?!\d)")
MOMENT_CHARACTERS_MAX = 30
_SHORT_MONTH = 4
"""Letters of a month that is cut short, such as Sept."""
FIRST = date(1900, 3, 1)
"""Excel takes 1900 for a leap year: days before this one are off by one or have no number."""


def slashed_order(text: str) -> Order | None:
    """Which of the two numbers of a date with slashes is the day, if only one can be; None if both can be."""
    match = _SLASHED.fullmatch(text.strip()) if len(text) <= MOMENT_CHARACTERS_MAX else None
    if match is None or (int(match[1]) > 12) == (int(match[2]) > 12):  # noqa: PLR2004 - months
        return None
    return "day" if int(match[1]) > 12 else "month"  # noqa: PLR2004


def is_slashed(text: str) -> bool:
    """Whether a text is a date with slashes."""
    return len(text) <= MOMENT_CHARACTERS_MAX and _SLASHED.fullmatch(text.strip()) is not None


def is_time(text: str) -> bool:
    """Whether a text can be a time of day."""
    return len(text) <= MOMENT_CHARACTERS_MAX and _TIME.fullmatch(text.strip()) is not None


def read_moment(text: str, order: Order | None = None) -> tuple[Moment, str] | None:
    """A date, or a date with a time, and its number format; None if the text is none.

    Args:
        text: what stands in the cell.
        order: of dates with slashes in its column; None: they are texts.
    """
    text = text.strip()
    if not 8 <= len(text) <= MOMENT_CHARACTERS_MAX or not _HAS_YEAR.search(text):  # noqa: PLR2004 - 1.1.2026
        return None
    try:
        found = _read(text, order)
    except ValueError:
        return None
    return found if found is not None and _day(found[0]) >= FIRST else None


def read_time(text: str) -> tuple[time, str] | None:
    """A time of day, and its number format."""
    match = _TIME.fullmatch(text.strip())
    try:
        moment = time(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None
    except ValueError:
        return None
    return (
        None
        if match is None or moment is None
        else (moment, ("hh" if len(match[1]) > 1 else "h") + (":mm:ss" if match[3] else ":mm"))
    )


def _day(moment: Moment) -> date:
    return moment.date() if isinstance(moment, datetime) else moment if isinstance(moment, date) else FIRST


def _read(text: str, order: Order | None) -> tuple[Moment, str] | None:
    if match := _ISO.fullmatch(text):
        year, month, day, *clock = (int(part) if part else None for part in match.groups()[:6])
        if clock[0] is None:
            return date(year or 0, month or 0, day or 0), "yyyy-mm-dd"
        thousandths = int((match[7] or ".0")[1:])
        moment = datetime(  # noqa: DTZ001 - a cell has no zone; its format shows it
            year or 0, month or 0, day or 0, clock[0], clock[1] or 0, clock[2] or 0, thousandths * 1_000
        )
        shape = "yyyy-mm-dd hh:mm" + (":ss" if match[6] else "") + (".000" if match[7] else "")
        return moment, shape + ('"Z"' if match[8] else "")
    if match := _DOTTED.fullmatch(text):
        return date(int(match[3]), int(match[2]), int(match[1])), "dd.mm.yyyy"
    if match := _SLASHED.fullmatch(text):
        if order is None:
            return None
        first, second = int(match[1]), int(match[2])
        day, month = (first, second) if order == "day" else (second, first)
        return date(int(match[3]), month, day), "dd/mm/yyyy" if order == "day" else "mm/dd/yyyy"
    if match := _DAY_FIRST.fullmatch(text):
        return _named(match[3], match[2], match[1], "d {} yyyy")
    if match := _MONTH_FIRST.fullmatch(text):
        return _named(match[3], match[1], match[2], "{} d, yyyy")
    return None


def _named(year: str, month: str, day: str, form: str) -> tuple[date, str] | None:
    number = _MONTHS.get(month.lower())
    if number is None:
        return None
    is_short = len(month) <= _SHORT_MONTH and month.lower() != "may"
    return date(int(year), number, int(day)), form.format("mmm" if is_short else "mmmm")
