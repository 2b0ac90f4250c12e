"""Records in a SQLite file: a writer and a few readers, each connection used by one thread at a time."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.migrations import migrate, require_newest

_BUSY_TIMEOUT_MS = 5_000  # only a backup tool or a shell can hold the file: the service itself has one writer
_WAL_BYTES_MAX = 64 * 1024 * 1024  # after an answer of tens of megabytes the log shrinks again
_WAL_PAGES = 4_000  # 16 MB; a commit checkpoints a longer log itself
_LOG = (
    "journal_mode = WAL",
    f"journal_size_limit = {_WAL_BYTES_MAX}",
    f"wal_autocheckpoint = {_WAL_PAGES}",
)
_DAMAGE_MAX = 20  # are named
_DAMAGE_CHARS_MAX = 500
_CHECK = f"PRAGMA integrity_check({_DAMAGE_MAX})"
_EVERYWHERE = (f"busy_timeout = {_BUSY_TIMEOUT_MS}", "synchronous = FULL", "foreign_keys = ON")


class SqliteFile:
    """The database in one file; `Database` locks it for one process.

    With write-ahead logging, reads run beside the one writer. ``synchronous`` is FULL because a sent answer has to
    survive a power cut, or the same call would run twice; a commit costs one fsync.

    Args:
        file: where it is, or is to be made.
        beside: whether a service may be using it: then the schema is left as it is.
    """

    writers = 1

    def __init__(self, file: Path, *, beside: bool = False) -> None:
        self._file = file
        self._beside = beside
        self._engines: list[Engine] = []
        self._identity = (0, 0)  # device and number of the file
        self._is_checkpoint_owed = False  # the disk was too full for one

    def open(self, readers: int) -> None:
        """Open the file and upgrade its schema.

        Raises:
            StoreFailedError: a newer release of the service made it.
            sqlite3.Error, SQLAlchemyError: it cannot be opened.
        """
        self._writing = self._engine(self.writers, (*_EVERYWHERE, *_LOG))
        event.listen(self._writing, "begin", _begin_immediate)
        with self._writing.connect():
            status = self._file.stat()
        self._identity = (status.st_dev, status.st_ino)
        with self.writing() as connection:
            (require_newest if self._beside else migrate)(connection)
        if not self._beside:
            self.truncate_wal()
        self._reading = self._engine(readers, (*_EVERYWHERE, "query_only = ON"))

    def _engine(self, connections: int, pragmas: Sequence[str]) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self._file)),
            # Otherwise the driver begins a transaction before a write only, and never an immediate one.
            connect_args={"isolation_level": None},
            pool_size=connections,
            max_overflow=0,
            hide_parameters=True,
        )
        self._engines.append(engine)

        @event.listens_for(engine, "connect")
        def prepare(connection: sqlite3.Connection, _record: Any) -> None:
            try:
                for pragma in pragmas:
                    connection.execute(f"PRAGMA {pragma}")
            except sqlite3.Error:
                connection.close()
                raise

        return engine

    def close(self) -> None:
        """Close all connections; the last one checkpoints the log."""
        while self._engines:
            # The writer's last: only a connection that may write can checkpoint the log.
            self._engines.pop().dispose()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Return the writer's connection in an immediate transaction."""
        self._check_file()
        if self._is_checkpoint_owed:
            # Each refused write makes the log longer: it would take all space that is freed, for ever.
            self._checkpoint("PASSIVE")
        with self._writing.begin() as connection:
            yield connection

    def _check_file(self) -> None:
        """Refuse writes to a file that was removed or replaced: they would be lost at the next start."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise StoreFailedError(
                "the database of artifacts, sources and calls was removed or replaced; start the service again"
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Return a read-only connection without a transaction."""
        with self._reading.connect() as connection:
            yield connection

    def find_damage(self) -> list[str]:
        """What SQLite's integrity check finds, and rows that refer to rows that are not there."""
        with self._reading.connect() as connection:
            try:
                texts = [text for (text,) in connection.exec_driver_sql(_CHECK)]
                orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(_DAMAGE_MAX)
            except DatabaseError as exc:
                if getattr(exc.orig, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
                    raise
                return ["SQLite cannot read a page of the database"]
        found = [f"SQLite: {text}"[:_DAMAGE_CHARS_MAX] for text in texts if text != "ok"]
        return found + [f"row {row} of {table} belongs to no row of {parent}" for table, row, parent, _ in orphans]

    def checkpoint_wal(self) -> None:
        """Copy the write-ahead log into the file, without waiting for readers."""
        # On a full disk the next write reports it.
        with suppress(sqlite3.Error, OSError, StoreFailedError):
            self._check_file()
            self._checkpoint("PASSIVE")

    def truncate_wal(self) -> None:
        """Copy the write-ahead log into the file and free its space, or leave a checkpoint to the next write.

        A file that cannot grow for it on a full disk does so before anything else is written.
        """
        if self._is_checkpoint_owed:
            return
        self._is_checkpoint_owed = True
        with suppress(sqlite3.OperationalError):
            self._checkpoint("TRUNCATE")

    def _checkpoint(self, mode: str) -> None:
        with closing(self._writing.raw_connection()) as connection:
            connection.cursor().execute(f"PRAGMA wal_checkpoint({mode})")
        self._is_checkpoint_owed = False  # also if a reader was in the way: the next full disk owes one again


def _begin_immediate(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
