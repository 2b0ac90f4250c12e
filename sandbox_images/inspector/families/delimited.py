"""CSV and TSV: UTF-8 (with or without a byte order mark), quoted as RFC 4180 has it, one header row."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterator

from verdict import Problem, Subject, counted

from families.text_stream import text_chunks

_DELIMITERS = ",;\t|"
_FIELD_CHARS_MAX = 1_048_576
"""A cell of more than a million characters is a missing quotation mark, not a cell."""


def inspect(subject: Subject) -> None:
    """Read every record (``facts.rows``: records that are not empty, without the header; ``facts.columns``).

    The delimiter of a .csv file is the one of ``, ; tab |`` that cuts the header into the most names.
    Records of unequal length are let pass. Blank: not one cell with anything but white space in it.
    """
    csv.field_size_limit(_FIELD_CHARS_MAX)
    lines = _lines(subject)
    first = next((line for line in lines if line.strip()), "")
    delimiter = "\t" if subject.extension == "tsv" else _delimiter_of(first)
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    rows, blank = 0, True
    try:
        for record in reader:
            if header is None and record:
                header = record
            elif any(record):
                rows += 1
            blank = blank and not any(cell.strip() for cell in record)
    except csv.Error as error:
        raise Problem(
            f"is not {subject.format.name}: {_in_words(error)} (near line {reader.line_num:,})"
        ) from error
    subject.facts["rows"] = rows
    subject.measured_columns([name.strip() for name in header or []])
    if blank and subject.must_not_be_blank():
        raise Problem("is blank: no cell holds anything")


def _in_words(error: csv.Error) -> str:
    if "field larger" in str(error):
        return f"a field has more than {counted(_FIELD_CHARS_MAX, 'character')}; is a quotation mark missing?"
    return str(error)


def _lines(subject: Subject) -> Iterator[str]:
    """Yield the lines with their ends, whichever they are, the byte order mark left out."""
    unfinished: list[str] = []
    held, at_start = "", True
    for chunk in text_chunks(subject):
        text = held + (chunk.removeprefix("\ufeff") if at_start else chunk)
        at_start = False
        # A carriage return at the end of a chunk may be half of a line's end.
        held = "\r" if text.endswith("\r") else ""
        for piece in io.StringIO(text.removesuffix(held), newline=""):
            unfinished.append(piece)
            if piece.endswith(("\n", "\r")):
                yield "".join(unfinished)
                unfinished.clear()
    if unfinished or held:
        yield "".join(unfinished) + held


def _delimiter_of(header: str) -> str:
    """Return the delimiter that cuts the header into the most fields; a comma if none cuts it at all."""
    return max(_DELIMITERS, key=lambda delimiter: _fields_in(header, delimiter))


def _fields_in(header: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([header], delimiter=delimiter), []))
    except csv.Error:
        return 0
