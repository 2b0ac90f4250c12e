"""JSON lines: each line that is not blank is a JSON document of its own."""

from __future__ import annotations

import io

from model import Problem, Subject
from parsing.json_schema import schema_check
from parsing.strict_json import parse_json
from parsing.text_stream import text_chunks

_NAMES_MAX = 10_000
"""Distinct keys remembered: a hostile file has a new one on each line."""


def inspect(subject: Subject) -> None:
    """Parse every line (``facts.rows``: lines that are not blank; ``facts.columns``: keys, in order of appearance).

    A column is there if one line has it, as a key may be left out where its value is null; what must stand in
    every line is left to ``json_schema``, which is checked for each line.
    """
    check = schema_check(subject.checks["json_schema"]) if "json_schema" in subject.checks else None
    wanted = subject.checks.get("columns")
    names: dict[str, None] = {}
    rows = 0
    for number, line in enumerate(_lines(subject), start=1):
        if not line.strip():
            continue
        where = f"line {number:,}"
        value = parse_json(line, where)
        rows += 1
        subject.facts["rows"] = rows
        if isinstance(value, dict):
            for name in value:
                if len(names) < _NAMES_MAX or (wanted and name in wanted):
                    names[name] = None
        elif wanted:
            raise Problem(f"has no columns: {where} is not an object")
        if check is not None:
            check(value, f"{where}: ")
    subject.facts["rows"] = rows
    subject.measured_columns(list(names))
    if rows == 0 and subject.must_not_be_blank():
        raise Problem("is blank: it has no line")


def _lines(subject: Subject) -> io.StringIO:
    """Return the text as a stream of lines; only a line feed ends one, as JSON strings may hold the rest."""
    return io.StringIO("".join(text_chunks(subject)), newline="\n")
