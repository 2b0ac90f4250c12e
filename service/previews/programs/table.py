"""Runs in a sandbox: the first rows of a CSV, TSV, Parquet file or a sheet of a workbook, as one JSON file."""

import csv
import datetime as dt
import json
from collections.abc import Iterable
from typing import Any

from proofbox.service.previews.programs.pages import CannotShowError, run_program
from proofbox.service.text_encoding import find_file_encoding

CELL_CHARS_MAX = 300
_FIELD_CHARS_MAX = 1_000_000
_SNIFFED_CHARS = 16_384


def show_table(request: dict[str, Any]) -> dict[str, Any]:
    """Answer a request, ``{"input", "target", "kind", "first", "rows_max", "columns_max"}``."""
    kind = request["kind"]
    read = {"xlsx": _read_workbook, "parquet": _read_parquet}.get(kind, _read_delimited)
    table = read(request)
    with open(request["target"], "w", encoding="utf-8") as target:
        json.dump(table, target)
    return {"ok": True}


def _read_delimited(request: dict[str, Any]) -> dict[str, Any]:
    csv.field_size_limit(_FIELD_CHARS_MAX)
    encoding = find_file_encoding(request["input"])
    with open(request["input"], encoding=encoding, errors="replace", newline="") as file:
        delimiter = "\t" if request["kind"] == "tsv" else _find_delimiter(file.read(_SNIFFED_CHARS))
        file.seek(0)
        # A zero byte is an error for the parser of some releases.
        lines = (line.replace("\0", "\N{REPLACEMENT CHARACTER}") for line in file)
        return _take_rows(csv.reader(lines, delimiter=delimiter), [], request)


def _find_delimiter(text: str) -> str:
    head = text.partition("\n")[0]
    return max(",;\t|", key=head.count)


def _read_workbook(request: dict[str, Any]) -> dict[str, Any]:
    import openpyxl  # noqa: PLC0415

    values = openpyxl.load_workbook(request["input"], read_only=True, data_only=True)
    names = [_cut(sheet.title) for sheet in values.worksheets]
    if request["first"] > len(names):
        raise CannotShowError(f"page: {request['first']} does not exist (the workbook has {len(names)} sheets)")
    sheet = values.worksheets[request["first"] - 1]
    formulas = openpyxl.load_workbook(request["input"], read_only=True).worksheets[request["first"] - 1]
    # A sheet may declare more or fewer cells than it has.
    sheet.reset_dimensions()
    formulas.reset_dimensions()
    pairs = zip(sheet.iter_rows(values_only=True), formulas.iter_rows(values_only=True), strict=False)
    rows = ([_either(value, formula) for value, formula in zip(*pair, strict=False)] for pair in pairs)
    return _take_rows(rows, names, request)


def _either(value: Any, formula: Any) -> Any:
    """The stored value of a cell; its formula if a program wrote it without one."""
    return getattr(formula, "text", formula) if value is None else value


def _read_parquet(request: dict[str, Any]) -> dict[str, Any]:
    import pyarrow.parquet  # noqa: PLC0415

    file = pyarrow.parquet.ParquetFile(request["input"])
    names = file.schema_arrow.names
    rows: list[list[Any]] = [names]
    for batch in file.iter_batches(batch_size=request["rows_max"], columns=names[: request["columns_max"]]):
        rows += [list(row.values()) for row in batch.to_pylist()]
        break
    shown = _take_rows(rows, [], request)
    return {**shown, "rows_total": file.metadata.num_rows + 1, "columns_total": len(names)}


def _take_rows(rows: Iterable[Iterable[Any]], sheets: list[str], request: dict[str, Any]) -> dict[str, Any]:
    """The first rows as text, without empty ones at the end, and how many rows and columns there are."""
    taken: list[list[str]] = []
    rows_total = columns_total = 0
    for number, row in enumerate(rows, start=1):
        cells = list(row)
        while cells and (cells[-1] is None or cells[-1] == ""):
            cells.pop()
        if not cells:
            continue
        rows_total, columns_total = number, max(columns_total, len(cells))
        if number <= request["rows_max"]:
            taken += [[] for _ in range(number - 1 - len(taken))]
            taken.append([_text(cell) for cell in cells[: request["columns_max"]]])
    return {"sheets": sheets, "rows": taken, "rows_total": rows_total, "columns_total": columns_total}


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, dt.datetime) and cell.time() == dt.time():
        return cell.date().isoformat()
    if isinstance(cell, bytes):
        return f"({len(cell)} bytes)"
    return _cut(str(cell))


def _cut(text: str) -> str:
    return text if len(text) <= CELL_CHARS_MAX else text[: CELL_CHARS_MAX - 1] + "…"


if __name__ == "__main__":
    run_program(show_table)
