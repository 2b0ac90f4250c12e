"""The one SQLite file that the local stores share: its connections, threads and transactions."""

import fcntl
import os
import queue
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from service.core.errors import StoreFailedError, StoreFullError
from service.core.scopes import Principal, Scope
from service.stores.failures import translated
from service.stores.migrations import migrate
from service.stores.threads import in_thread

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_ROLE = "the database of artifacts, sources and calls"
_READERS = 3  # reads are short; more threads than cores gain nothing
_BUSY_TIMEOUT_MS = 5_000  # only a backup tool or a shell can hold the file: the service itself has one writer
_WAL_BYTES_KEPT = 64 * 1024 * 1024  # an answer of tens of megabytes must not leave the log that large for ever


class Database:
    """``proofbox.sqlite3`` of one data folder, for one process: a writer and a few readers, each in its thread.

    Write-ahead logging lets reads go on beside the one writer. ``synchronous`` is FULL because an answer that
    was sent has to be found again after a power cut, or the same call would run twice; a commit costs one fsync.

    Args:
        data_dir: the folder of all local stores; made if it is missing, readable for its owner only.
    """

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self._file = data_dir / "proofbox.sqlite3"
        self._lock: int | None = None
        self._write_thread: ThreadPoolExecutor | None = None
        self._read_threads: ThreadPoolExecutor | None = None
        self._writer: sqlite3.Connection | None = None
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()

    async def open(self) -> None:
        """Opens the file, brings its schema up to date and keeps other processes out until `close`.

        Raises:
            StoreFailedError: the folder or file cannot be used, another process uses it, or it is too new.
            StoreFullError: no space is left.
        """
        self._write_thread = ThreadPoolExecutor(1, "database-writer")
        self._read_threads = ThreadPoolExecutor(_READERS, "database-reader")
        try:
            await in_thread(self._write_thread, self._open)
        except BaseException:
            await self.close()
            raise

    def _open(self) -> None:
        with translated("the data folder", self.data_dir):
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise StoreFailedError("the data folder is in use by another process of the service") from exc
        with translated(_ROLE, self.data_dir):
            self._writer = self._connect()
            self._writer.execute("PRAGMA journal_mode = WAL")
            self._writer.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES_KEPT}")
            migrate(self._writer)
            _fold_log(self._writer)
            for _ in range(_READERS):
                reader = self._connect()
                self._readers.put(reader)
                reader.execute("PRAGMA query_only = ON")

    def _connect(self) -> sqlite3.Connection:
        # Threads come and go with the executor; that no two use a connection at once is the queue's work.
        connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False)
        try:
            connection.row_factory = sqlite3.Row
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    async def close(self) -> None:
        """Ends what is under way and closes the file; a second call does nothing.

        Raises:
            StoreFailedError: the file cannot be closed cleanly; its log is played back at the next start.
        """
        write_thread, read_threads = self._write_thread, self._read_threads
        if write_thread is None or read_threads is None:
            return
        self._write_thread = self._read_threads = None
        try:
            await in_thread(write_thread, partial(self._close, read_threads))
        finally:
            write_thread.shutdown(wait=False)

    def _close(self, read_threads: ThreadPoolExecutor) -> None:
        read_threads.shutdown()
        try:
            with translated(_ROLE, self.data_dir):
                while not self._readers.empty():
                    self._readers.get().close()
                if self._writer is not None:
                    self._writer.close()
        finally:
            self._writer = None
            if self._lock is not None:
                os.close(self._lock)
            self._lock = None

    async def write(self, work: Work[T]) -> T:
        """Runs ``work`` as one transaction, after all earlier ones: all of it is kept, or nothing.

        Raises:
            StoreFailedError: the database failed or is closed.
            StoreFullError: no space is left.
            Exception: whatever ``work`` raises; nothing is kept then.
        """

        def in_transaction(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                return work(connection)

        return await self.write_alone(in_transaction)

    async def write_alone(self, work: Work[T]) -> T:
        """Runs ``work``, which makes its own transactions, while nothing else is written.

        Raises:
            StoreFailedError: the database failed or is closed.
            StoreFullError: no space is left.
            Exception: whatever ``work`` raises.
        """
        writer = self._writer
        if self._write_thread is None or writer is None:
            raise StoreFailedError(f"{_ROLE} is closed")

        def translating() -> T:
            try:
                with translated(_ROLE, self.data_dir):
                    return work(writer)
            except StoreFullError:
                # The log keeps the size to which the refused write has blown it up; others need that space.
                _fold_log(writer)
                raise

        return await in_thread(self._write_thread, translating)

    async def read(self, work: Work[T]) -> T:
        """Runs ``work``, which only reads, beside the writer.

        Raises:
            StoreFailedError: the database failed or is closed.
            Exception: whatever ``work`` raises.
        """
        if self._read_threads is None:
            raise StoreFailedError(f"{_ROLE} is closed")

        def borrowing() -> T:
            reader = self._readers.get()
            try:
                with translated(_ROLE, self.data_dir):
                    return work(reader)
            finally:
                self._readers.put(reader)

        return await in_thread(self._read_threads, borrowing)


def _fold_log(connection: sqlite3.Connection) -> None:
    """Brings the write-ahead log into the file and gives its space back, or leaves that to a later write."""
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One write transaction around the block, rolled back if the block or the commit fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        # SQLite has rolled back by itself after some errors; a second ROLLBACK would hide the first reason.
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def find_principal(connection: sqlite3.Connection, principal: Principal) -> int | None:
    """The row of a principal, if it is known."""
    row = connection.execute(
        "SELECT id FROM principals WHERE tenant = ? AND project = ? AND user_type = ? AND user = ?",
        (principal.tenant, principal.project, principal.user_type, principal.user),
    ).fetchone()
    return None if row is None else int(row["id"])


def find_conversation(connection: sqlite3.Connection, scope: Scope) -> int | None:
    """The row of a conversation, if it is known."""
    row = connection.execute(
        "SELECT id FROM conversations WHERE principal = ? AND name = ?",
        (find_principal(connection, scope.principal), scope.conversation_id),
    ).fetchone()
    return None if row is None else int(row["id"])


def ensure_conversation(connection: sqlite3.Connection, scope: Scope) -> tuple[int, int]:
    """The rows of a conversation and of its principal, made if they are new."""
    principal = scope.principal
    connection.execute(
        "INSERT INTO principals (tenant, project, user_type, user) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (principal.tenant, principal.project, principal.user_type, principal.user),
    )
    owner = find_principal(connection, principal)
    connection.execute(
        "INSERT INTO conversations (principal, name) VALUES (?, ?) ON CONFLICT DO NOTHING",
        (owner, scope.conversation_id),
    )
    found = find_conversation(connection, scope)
    assert owner is not None
    assert found is not None
    return found, owner


def utc_now() -> str:
    """The time as the stores write it: UTC, RFC 3339, milliseconds, ``Z``."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
