"""Records in a SQLite file: a writer and a few readers, each connection used by one thread at a time."""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from service.errors import StoreFailedError
from service.storage.migrations import migrate, require_newest

_BUSY_TIMEOUT_MS = 5_000  # only a backup tool or a shell can hold the file: the service itself has one writer
_WAL_BYTES_KEPT = 64 * 1024 * 1024  # an answer of tens of megabytes must not leave the log that large for ever
_WAL_PAGES = 4_000  # 16 MB: beyond them a commit folds the log itself, if `fold_log` did not get that far
_LOG = (
    "journal_mode = WAL",
    f"journal_size_limit = {_WAL_BYTES_KEPT}",
    f"wal_autocheckpoint = {_WAL_PAGES}",
)
_FOLD = "PRAGMA wal_checkpoint(PASSIVE)"  # waits for nobody
_EVERYWHERE = (f"busy_timeout = {_BUSY_TIMEOUT_MS}", "synchronous = FULL", "foreign_keys = ON")


class SqliteFile:
    """The database in one file, which `Database` keeps for one process.

    Write-ahead logging lets reads go on beside the one writer. ``synchronous`` is FULL because an answer that
    was sent has to be found again after a power cut, or the same call would run twice; a commit costs one fsync.

    Args:
        file: where it is, or is to be made.
        beside: whether a service may be using it: then the schema is left as it is.
    """

    writers = 1

    def __init__(self, file: Path, *, beside: bool = False) -> None:
        self._file = file
        self._beside = beside
        self._engines: list[Engine] = []
        self._writer: Connection | None = None
        self._folder: sqlite3.Connection | None = None
        self._readers: list[Connection] = []
        self._of_thread = threading.local()
        self._identity = (0, 0)  # device and number of the file
        self._is_log_owed = False  # the disk was too full to bring the log into the file

    def open(self, readers: int) -> None:
        """Opens the file and brings its schema up to date.

        Raises:
            StoreFailedError: a newer release of the service made it.
            sqlite3.Error, SQLAlchemyError: it cannot be opened.
        """
        writing = self._engine(1, (*_EVERYWHERE, *_LOG))
        # The one connection of the one writer: nothing to gain from handing it out anew each time.
        self._writer = writing.connect()
        status = self._file.stat()
        self._identity = (status.st_dev, status.st_ino)
        with self.writing() as connection:
            (require_newest if self._beside else migrate)(connection)
        if not self._beside:
            self.give_space_back()
        self._reading = self._engine(readers, (*_EVERYWHERE, "query_only = ON"))
        # Of any thread, one at a time; and it waits for nobody.
        self._folder = sqlite3.connect(self._file, timeout=0, isolation_level=None, check_same_thread=False)
        self._folder.execute("PRAGMA synchronous = FULL")
        with suppress(sqlite3.Error):  # a full disk
            self._folder.execute(_FOLD)  # which opens the log: later another file may lie there by its name

    def _engine(self, connections: int, pragmas: Sequence[str]) -> Engine:
        engine = create_engine(
            URL.create("sqlite", database=str(self._file)),
            # Left to itself the driver begins a transaction before a write only, and never an immediate one.
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
        """Closes all connections; the last one brings the log into the file."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None
        while self._readers:
            self._readers.pop().close()
        if self._folder is not None:
            self._folder.close()
        self._folder = None
        self._of_thread = threading.local()
        while self._engines:
            # The writer's last: only a connection that may write can fold the log.
            self._engines.pop().dispose()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The writer's connection, in a transaction that keeps others from writing from its beginning on."""
        writer = self._writer
        assert writer is not None
        self._check_file()
        # Said to the driver: with a listener to its events, SQLAlchemy does half as much again for each statement.
        driver = _driver_of(writer)
        if driver.in_transaction:
            driver.rollback()  # a commit that fails may leave its transaction open
        if self._is_log_owed:
            # The log grows with each write that is refused later: it would take all that is freed, for ever.
            self._fold_log("PASSIVE")  # which waits for nobody
        driver.execute("BEGIN IMMEDIATE")
        try:
            yield writer
            # SQLAlchemy knows of no transaction where nothing was executed.
            (writer if writer.in_transaction() else driver).commit()
        except BaseException:
            with suppress(sqlite3.Error, SQLAlchemyError):  # the next write tries it again
                writer.rollback()
                driver.rollback()
            raise

    def _check_file(self) -> None:
        """What is written to a file that has no name any more would be accepted, and lost at the next start."""
        try:
            found = self._file.stat()
        except FileNotFoundError:
            found = None
        if found is None or (found.st_dev, found.st_ino) != self._identity:
            raise StoreFailedError(
                "the database of artifacts, sources and calls is not the file it was: it was removed or replaced; "
                "start the service again"
            )

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that only reads, and has no transaction."""
        reader: Connection | None = getattr(self._of_thread, "reader", None)
        if reader is None:
            reader = self._of_thread.reader = self._reading.connect()
            self._readers.append(reader)
        try:
            yield reader
        finally:
            if reader.in_transaction():
                reader.rollback()  # nothing: it only ends what SQLAlchemy takes for a transaction

    def fold_log(self) -> None:
        """Brings the write-ahead log into the file beside readers and the writer."""
        assert self._folder is not None
        # A full disk: the next write that meets it says so.
        with suppress(sqlite3.Error, OSError, StoreFailedError):
            self._check_file()
            self._folder.execute(_FOLD)

    def give_space_back(self) -> None:
        """Brings the write-ahead log into the file and gives its space back, or leaves that to a later write.

        A file that cannot grow for it on a full disk does so before anything else is written.
        """
        if self._is_log_owed:
            return  # the next write tries it first
        self._is_log_owed = True
        with suppress(sqlite3.OperationalError):
            self._fold_log("TRUNCATE")

    def _fold_log(self, how: str) -> None:
        assert self._writer is not None
        _driver_of(self._writer).execute(f"PRAGMA wal_checkpoint({how})")
        self._is_log_owed = False  # also if a reader was in the way: the next write without space owes it again


def _driver_of(connection: Connection) -> sqlite3.Connection:
    """The connection of SQLite's driver behind one of SQLAlchemy's."""
    driver = connection.connection.dbapi_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver
