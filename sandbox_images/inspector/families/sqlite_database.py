"""SQLite databases: checked by SQLite itself, opened read-only and unchangeable."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from model import COLUMN_NAME_CHARS, COLUMN_NAMES_SHOWN, Problem, Subject, one_line

_MAGIC = b"SQLite format 3\x00"


def inspect(subject: Subject) -> None:
    """Have SQLite walk through the whole file (``facts.tables``: names); blank if no table has a row."""
    if subject.head(len(_MAGIC)) != _MAGIC:
        raise subject.wrong_format()
    uri = f"file:/proc/self/fd/{subject.file.fileno()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as database:
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA cell_size_check = ON")
            (status,) = database.execute("PRAGMA quick_check(1)").fetchone()
            if status != "ok":
                raise Problem(f"is damaged: {status.splitlines()[-1]}")
            tables = [name for (name,) in database.execute(_TABLES)]
            subject.facts["tables"] = [one_line(name, COLUMN_NAME_CHARS) for name in tables[:COLUMN_NAMES_SHOWN]]
            if subject.must_not_be_blank() and not any(_has_row(database, name) for name in tables):
                raise Problem("is blank: no table has a row")
    except sqlite3.Error as error:
        raise Problem(f"is damaged: {error}") from error


_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
    "AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
)


def _has_row(database: sqlite3.Connection, table: str) -> bool:
    name = table.replace('"', '""')
    return database.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() is not None  # noqa: S608 - quoted
