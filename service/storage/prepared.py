"""Statements that are compiled once: those that every call runs.

SQLAlchemy looks a statement up and makes a context and a result for it each time: 0.03 ms in a loop, and ten times
that for the first one after a pause, when nothing of it is in the processor's caches; the driver of SQLite takes a
third of it. So there the driver gets the text that SQLAlchemy has written once, and the values that its types have
made of ours. A server answers later than all that, and what becomes of a connection that was lost is SQLAlchemy's
to know: with PostgreSQL it runs the statement.
"""

import sqlite3
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Delete, Dialect, Insert, Select, Update
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.sql.compiler import SQLCompiler

Values = Mapping[str, Any]
Statement = Select[Any] | Insert | Update | Delete


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A statement of SQLite.

    Attributes:
        text: with ``:name`` for each value.
        fixed: the values that the statement brings itself.
        processors: what makes of a value what is kept, for those names that have such a thing.
        row: makes a row with names of a tuple.
    """

    text: str
    fixed: dict[str, Any]
    processors: tuple[tuple[str, Callable[[Any], Any]], ...]
    row: Callable[[Iterable[Any]], Any]

    def values(self, given: Values) -> dict[str, Any]:
        values = {**self.fixed, **given}
        for name, processor in self.processors:
            values[name] = processor(values[name])
        return values


class Prepared:
    """A statement whose values are texts, numbers, bytes or NULL, and whose rows are made of those.

    Args:
        statement: what is run; its lists of values, if it has any, are of a fixed length.
        columns: of an INSERT: those that are given, each time.
    """

    __slots__ = ("_columns", "_compiled", "_statement")

    def __init__(self, statement: Statement, *columns: str) -> None:
        self._statement = statement
        self._columns = columns or None
        self._compiled: _Compiled | None = None

    def rows(self, connection: Connection, values: Values) -> Sequence[Any]:
        """Runs it; the rows that it selects or returns: tuples whose values have the names of their columns.

        Raises:
            sqlite3.Error, SQLAlchemyError: the database failed.
        """
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, dict(values)).all()
        compiled = self._of_sqlite()
        found = driver_of(connection).execute(compiled.text, compiled.values(values)).fetchall()
        return list(map(compiled.row, found))

    def first(self, connection: Connection, values: Values) -> Any:
        """The first of `rows`, or None."""
        rows = self.rows(connection, values)
        return rows[0] if rows else None

    def run(self, connection: Connection, values: Values) -> None:
        """Runs it, where it gives no rows. Raises as `rows` does."""
        if connection.dialect.name != "sqlite":
            connection.execute(self._statement, dict(values))
            return
        compiled = self._of_sqlite()
        driver_of(connection).execute(compiled.text, compiled.values(values))

    def run_all(self, connection: Connection, values: Sequence[Values]) -> None:
        """The same once for each of ``values``."""
        if connection.dialect.name != "sqlite":
            connection.execute(self._statement, [dict(each) for each in values])
            return
        compiled = self._of_sqlite()
        driver_of(connection).executemany(compiled.text, map(compiled.values, values))

    def _of_sqlite(self) -> _Compiled:
        if self._compiled is None:
            self._compiled = _compile(self._statement, self._columns)
        return self._compiled


def _compile(statement: Statement, columns: Sequence[str] | None) -> _Compiled:
    dialect = sqlite_dialect(paramstyle="named")
    compiled = statement.compile(dialect=dialect, column_keys=None if columns is None else list(columns))
    assert isinstance(compiled, SQLCompiler)
    processors = []
    for name, bind in compiled.binds.items():
        if bind.expanding:
            raise AssertionError(f"{name} is a list of values, and each list makes another statement")
        if (processor := _processor(bind.type, dialect)) is not None:
            processors.append((name, processor))
    given = {name for name, bind in compiled.binds.items() if bind.required}
    fixed = {name: value for name, value in compiled.params.items() if name not in given}
    names = [name or "" for name in statement.exported_columns.keys()]  # noqa: SIM118 - they are no dictionary
    row = namedtuple("row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024 - known here and not before
    return _Compiled(str(compiled), fixed, tuple(processors), row._make)


def _processor(kind: Any, dialect: Dialect) -> Callable[[Any], Any] | None:
    made: Callable[[Any], Any] | None = kind.dialect_impl(dialect).bind_processor(dialect)
    return made


def driver_of(connection: Connection) -> sqlite3.Connection:
    """The connection of SQLite's driver behind one of SQLAlchemy's."""
    driver = connection.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
