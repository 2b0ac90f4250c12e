"""CSV and TSV: quoted as RFC 4180 has it, one header row, in UTF-8 or in the older encodings that Excel wants."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from model import Problem, Subject, counted
from parsing.text_stream import HOW_TO_NAME_ANOTHER, UndecodableError, encoding_of, text_chunks

_DELIMITERS = ",;\t|"
_FIELD_CHARS_MAX = 1_048_576
"""A cell of more than a million characters is a missing quotation mark, not a cell."""

_BYTES_AS_CHARS = "latin-1"
"""Reads any file: delimiters, quotation marks and ends of lines are the same in every encoding of ``_LEGACY``."""
_NOT_OF_TEXT = re.compile("[\x00-\x08\x0b\x0e-\x1f]")
_LEGACY = (
    *("cp1252", "cp932", "gb18030", "big5", "cp949", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256"),
    *("cp1257", "cp1258", "koi8_u", "cp874"),
)
"""The encodings that names of columns are read in, where the contract has no `encoding`."""


@dataclass(slots=True)
class _Table:
    """What was read of a table.

    Attributes:
        names: The names of its columns, as they stand there.
        rows: The records that are not empty, without the header.
        blank: Whether no cell holds anything but white space.
    """

    names: list[str]
    rows: int = 0
    blank: bool = True


def inspect(subject: Subject) -> None:
    """Read every record (``facts.rows``: records that are not empty, without the header; ``facts.columns``).

    The delimiter of a .csv file is the one of ``, ; tab |`` that cuts the header into the most names.
    Records of unequal length are let pass. Blank: not one cell with anything but white space in it.
    """
    csv.field_size_limit(_FIELD_CHARS_MAX)
    is_named = "encoding" in subject.checks
    try:
        chunks = text_chunks(subject, encoding_of(subject), "" if is_named else HOW_TO_NAME_ANOTHER)
        table = _read(subject, chunks)
    except UndecodableError as problem:
        if is_named or not problem.is_legacy:
            raise
        table = _read(subject, _chunks_of_bytes(subject, problem))
        table.names = _in_some_encoding(table.names, subject.checks.get("columns", []))
    subject.facts["rows"] = table.rows
    subject.measured_columns([name.strip() for name in table.names])
    if table.blank and subject.must_not_be_blank():
        raise Problem("is blank: no cell holds anything")


def _read(subject: Subject, chunks: Iterable[str]) -> _Table:
    blocks = _blocks(chunks)
    block, number = "", 0
    for block in blocks:
        if block.strip():
            break
        number += block.count("\n")
    else:
        return _Table([])
    start = len(block) - len(block.lstrip())
    start = block.rfind("\n", 0, start) + 1
    number += block.count("\n", 0, start)
    first = block[start : block.find("\n", start) + 1 or None]
    delimiter = "\t" if subject.extension == "tsv" else _delimiter_of(first)
    return _read_records(subject, itertools.chain([block[start:]], blocks), delimiter, number)


def _read_records(subject: Subject, blocks: Iterator[str], delimiter: str, number: int) -> _Table:
    """Read the records of blocks of lines, the first of them the header; ``number`` lines stand before them.

    Up to the first quotation mark a record is a line, and lines are counted many at a time; from there on the
    reader of Python's library goes through them.
    """
    table: _Table | None = None
    holds_something = re.compile(f"[^\\s{re.escape(delimiter)}]")
    for block in blocks:
        lines = block.split("\n")
        if '"' in block or max(map(len, lines)) > _FIELD_CHARS_MAX:
            rest = _records(subject, itertools.chain([block], blocks), delimiter, number)
            return _with_records(table, rest)
        if table is None:
            table = _Table(lines[0].split(delimiter), blank=not holds_something.search(lines[0]))
            lines[0] = ""
        number += len(lines) - 1
        table.rows += len(lines) - lines.count("")
        if f"\n{delimiter}" in block or block.startswith(delimiter):
            table.rows -= sum(1 for line in lines if line and not line.strip(delimiter))
        table.blank = table.blank and not holds_something.search(block)
    return table or _Table([])


def _with_records(table: _Table | None, records: Iterator[list[str]]) -> _Table:
    """Add the records of Python's reader to what was read before it."""
    if table is None:
        table = _Table(next((record for record in records if record), []))
        table.blank = not any(name.strip() for name in table.names)
    while table.blank:
        record = next(records, None)
        if record is None:
            return table
        table.rows += any(record)
        table.blank = not any(cell.strip() for cell in record)
    table.rows += sum(map(any, records))
    return table


def _records(subject: Subject, blocks: Iterable[str], delimiter: str, number: int) -> Iterator[list[str]]:
    lines = itertools.chain.from_iterable(map(io.StringIO, blocks))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        yield from reader
    except csv.Error as error:
        where = f"near line {number + reader.line_num:,}"
        raise Problem(f"is not {subject.format.name}: {_in_words(error)} ({where})") from error


def _in_words(error: csv.Error) -> str:
    if "field larger" in str(error):
        return f"a field has more than {counted(_FIELD_CHARS_MAX, 'character')}; is a quotation mark missing?"
    return str(error)


def _blocks(chunks: Iterable[str]) -> Iterator[str]:
    """Yield the text in blocks of whole lines, a line feed at the end of each, the byte order mark left out."""
    unfinished: list[str] = []
    held, is_first = "", True
    for chunk in chunks:
        text = held + (chunk.removeprefix("\ufeff") if is_first else chunk)
        is_first = False
        # A carriage return at the end of a chunk may be half of a line's end.
        held = "\r" if text.endswith("\r") else ""
        text = text.removesuffix(held)
        if "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        end = text.rfind("\n") + 1
        if end:
            yield "".join([*unfinished, text[:end]])
            unfinished = []
        if text[end:]:
            unfinished.append(text[end:])
    if unfinished or held:
        yield "".join([*unfinished, "\n" if held else ""])


def _delimiter_of(header: str) -> str:
    """Return the delimiter that cuts the header into the most fields; a comma if none cuts it at all."""
    return max(_DELIMITERS, key=lambda delimiter: _fields_in(header, delimiter))


def _fields_in(header: str, delimiter: str) -> int:
    try:
        return len(next(csv.reader([header], delimiter=delimiter), []))
    except csv.Error:
        return 0


def _chunks_of_bytes(subject: Subject, problem: Problem) -> Iterator[str]:
    """Yield each byte as a character; raises the problem if one is of no text."""
    for chunk in text_chunks(subject, _BYTES_AS_CHARS):
        if _NOT_OF_TEXT.search(chunk):
            raise problem
        yield chunk


def _in_some_encoding(names: list[str], wanted: list[str]) -> list[str]:
    """Return names that were read as bytes: in an encoding in which the wanted ones are there, if there is one."""
    readings = []
    for encoding in _LEGACY:
        try:
            readings.append([name.encode(_BYTES_AS_CHARS).decode(encoding) for name in names])
        except UnicodeDecodeError:
            continue
    stripped = {name.strip() for name in wanted}
    fitting = (reading for reading in readings if stripped <= {name.strip() for name in reading})
    return next(fitting, readings[0] if readings else names)
