"""The text of an XLSX: sheet by sheet, its rows as tab-separated values."""

import datetime as dt
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import openpyxl


def lines(path: Path) -> Iterator[str]:
    """The lines of a workbook: ``## Sheet Sales`` and its rows; a formula without a stored value as it is."""
    with path.open("rb") as file, path.open("rb") as again:  # by name, openpyxl would go by the extension
        values = openpyxl.load_workbook(file, read_only=True, data_only=True)
        formulas = openpyxl.load_workbook(again, read_only=True)
        yield from _sheets(values, formulas)


def _sheets(values: openpyxl.Workbook, formulas: openpyxl.Workbook) -> Iterator[str]:
    for name in values.sheetnames:
        yield from ("", f"## Sheet {name}", "")
        sheet, written = values[name], formulas[name]
        if not hasattr(sheet, "iter_rows"):
            yield "(a chart)"
            continue
        for part in (sheet, written):
            part.reset_dimensions()  # the size that a file gives may be wrong
        blank = 0
        rows = zip_longest(sheet.iter_rows(values_only=True), written.iter_rows(values_only=True), fillvalue=())
        for row, as_written in rows:
            line = "\t".join(_cells(row, as_written)).rstrip("\t")
            if not line:
                blank += 1
                continue
            if blank:  # a sheet may have a million blank rows
                yield ""
            blank = 0
            yield line


def _cells(row: tuple[Any, ...], as_written: tuple[Any, ...]) -> Iterator[str]:
    for value, written in zip_longest(row, as_written):
        yield _text(written if value is None and isinstance(written, str) else value)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime):
        is_day = value.time() == dt.time()
        return str(value.date()) if is_day else value.isoformat(sep=" ", timespec="seconds")
    return " ".join(str(value).split())
