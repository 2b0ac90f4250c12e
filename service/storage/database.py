"""The database that all stores of records share: its threads and transactions, and the lock of the data folder."""

import asyncio
import fcntl
import logging
import os
import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from pydantic import SecretStr
from sqlalchemy import Connection, Executable
from sqlalchemy.exc import DBAPIError

from proofbox.service.concurrency import Changes, run_in_thread
from proofbox.service.errors import OurError, StoreFailedError, StoreFullError
from proofbox.service.storage.error_translation import InUseError, is_deadlock, translate_errors
from proofbox.service.storage.timing import StoreObserver, ignore, timed

T = TypeVar("T")
_TOPICS = "changed topics"
Work = Callable[[Connection], T]

_ROLE = "the database of artifacts, sources and calls"
_READERS = 3  # reads are short; more threads than cores gain nothing
_NO_URL = SecretStr("")
_ATTEMPTS_MAX = 5  # of a transaction that meets a deadlock each time
_PAUSE_MAX_S = 0.1  # before a transaction is run again
_IDLE_S = 5.0  # the first commit after a checkpoint waits for the disk twice, so calls in a row share one

IS_UNREAD = "is_unread"
IS_LAST = "is_last"
REQUIRED = "required"
Required = tuple[int, Callable[[], OurError]]
"""How many rows a statement has to change, and what is raised before the commit if it does not."""

UNREAD = {IS_UNREAD: True}
"""Options of a query whose result nobody reads, a lock for example: a server gets it with the next statement."""
LAST = {IS_LAST: True}
"""Options of the last statement of a transaction, which is committed with it.

Nothing may fail afterwards, and no rows may be required."""

_log = logging.getLogger("proofbox.storage")


class Backend(Protocol):
    """One kind of database. Its methods block, and raise what its driver raises.

    Attributes:
        writers: how many threads may write at once.
    """

    writers: int

    def open(self, readers: int) -> None:
        """Connect, upgrade the schema, and lock the database against other processes of the service."""

    def close(self) -> None:
        """Disconnect; also after an `open` that failed."""

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection that no other thread uses, in a transaction that is committed unless the block raises."""

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection that no other thread uses, on which nothing can be written."""

    def find_damage(self) -> list[str]:
        """What the database's own check finds: a sentence each, without values of rows; it reads all of it."""

    def truncate_wal(self) -> None:
        """Free the space of the write-ahead log after a write for which there was none; in a writer's thread."""

    def checkpoint_wal(self) -> None:
        """Copy the write-ahead log into the file after a pause of the writes; in a writer's thread."""


class Database:
    """The records of one data folder, for one process: SQLite in the folder, or a PostgreSQL server.

    Work is written as blocking functions that take a connection, and runs in threads.

    Args:
        data_dir: the folder of all local stores; created if it is missing, for its owner only.
        url: ``postgresql://user:password@host/database``; empty: ``proofbox.sqlite3`` in the folder.
        timeout_s: how long one statement to a server may take.
        shared: whether other processes may use the server's database at the same time that share it, too.
    """

    def __init__(
        self, data_dir: Path, url: SecretStr = _NO_URL, timeout_s: float = 30, *, shared: bool = False
    ) -> None:
        self.data_dir = data_dir
        self.observer: StoreObserver = ignore
        self.changes = Changes()
        self._url = url
        self._timeout_s = timeout_s
        self._shared = shared
        self._lock: int | None = None
        self._backend: Backend | None = None
        self._writers: ThreadPoolExecutor | None = None
        self._readers: ThreadPoolExecutor | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        """Open the database, upgrade its schema and lock it until `close`.

        Raises:
            StoreFailedError: the folder or database cannot be used, another process uses it, or it is too new.
            StoreFullError: no space is left.
        """
        await self._start(self._backend_of(), beside=False)

    async def open_beside(self) -> bool:
        """Open the database also while a service uses it: for commands that read or change a few rows.

        Returns:
            Whether no service uses it; then none can begin to before `close`.

        Raises:
            StoreFailedError: the folder or database cannot be used, or the service is of another release.
            StoreFullError: no space is left.
        """
        try:
            await self.open()
        except InUseError:
            await self._start(self._backend_of(beside=True), beside=True)
            return False
        return True

    async def _start(self, backend: Backend, *, beside: bool) -> None:
        self._writers = ThreadPoolExecutor(backend.writers, "database-writer")
        self._readers = ThreadPoolExecutor(_READERS, "database-reader")
        try:
            # In the thread of the writer, which alone uses its connection.
            await run_in_thread(self._writers, partial(self._open, backend, beside=beside))
        except BaseException:
            await self.close()
            raise

    def _open(self, backend: Backend, *, beside: bool) -> None:
        if not beside:
            self._lock_folder()
        with translate_errors(_ROLE, self.data_dir):
            self._backend = backend
            backend.open(_READERS)

    def _lock_folder(self) -> None:
        with translate_errors("the data folder", self.data_dir):
            self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.data_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise InUseError("the data folder is in use by another process of the service") from exc

    def _backend_of(self, *, beside: bool = False) -> Backend:
        # Only the chosen one is imported: a service on SQLite needs no client of PostgreSQL in memory.
        if url := self._url.get_secret_value():
            from proofbox.service.storage.postgres import PostgresServer  # noqa: PLC0415

            return PostgresServer(url, self._timeout_s, beside=beside, shared=self._shared)
        from proofbox.service.storage.sqlite import SqliteFile  # noqa: PLC0415

        return SqliteFile(self.data_dir / "proofbox.sqlite3", beside=beside)

    async def close(self) -> None:
        """Wait for running work and close the database; a second call does nothing.

        Raises:
            StoreFailedError: it cannot be closed cleanly; SQLite replays its log at the next start.
        """
        writers, readers = self._writers, self._readers
        self._writers = self._readers = None
        if self._idle is not None:
            self._idle.cancel()
        self._idle = None
        if writers is not None and readers is not None:
            with ThreadPoolExecutor(1, "database-closer") as closer:
                await run_in_thread(closer, partial(self._close, writers, readers))

    def _close(self, writers: ThreadPoolExecutor, readers: ThreadPoolExecutor) -> None:
        writers.shutdown()
        readers.shutdown()
        try:
            if self._backend is not None:
                with translate_errors(_ROLE, self.data_dir):
                    self._backend.close()
        finally:
            self._backend = None
            if self._lock is not None:
                os.close(self._lock)
            self._lock = None

    @timed("database_write")
    async def write(self, work: Work[T]) -> T:
        """Run ``work`` as one durable transaction; then wake those who listen to the topics that it announced.

        A server ends one of the transactions that wait for each other (a deadlock), and undoes it: ``work`` is then
        run again, so it changes nothing but rows.

        Raises:
            StoreFailedError: the database failed or is closed.
            StoreFullError: no space is left.
            Exception: an exception of ``work``; the transaction is rolled back.
        """
        backend = self._backend
        if self._writers is None or backend is None:
            raise StoreFailedError(f"{_ROLE} is closed")

        topics: set[str] = set()  # of a committed transaction only

        def transaction() -> T:
            try:
                with translate_errors(_ROLE, self.data_dir):
                    result, announced = _transact(backend, work)
            except StoreFullError:
                backend.truncate_wal()
                raise
            topics.update(announced)
            return result

        try:
            return await run_in_thread(self._writers, transaction)
        finally:
            self.changes.announce(topics)
            if self._idle is not None:
                self._idle.cancel()
            if self._writers is not None:
                checkpoint = partial(self._writers.submit, backend.checkpoint_wal)
                self._idle = asyncio.get_running_loop().call_later(_IDLE_S, checkpoint)

    @timed("database_read")
    async def read(self, work: Work[T]) -> T:
        """Run ``work``, which only reads, concurrently with writers.

        Raises:
            StoreFailedError: the database failed or is closed.
            Exception: an exception of ``work``.
        """
        backend = self._backend
        if self._readers is None or backend is None:
            raise StoreFailedError(f"{_ROLE} is closed")

        def translating() -> T:
            with translate_errors(_ROLE, self.data_dir), backend.reading() as connection:
                return work(connection)

        return await run_in_thread(self._readers, translating)

    async def find_damage(self) -> list[str]:
        """What the database's own check finds: a sentence each; for large databases it takes minutes.

        Raises:
            StoreFailedError: the database failed or is closed.
        """
        backend = self._backend
        if self._readers is None or backend is None:
            raise StoreFailedError(f"{_ROLE} is closed")

        def translating() -> list[str]:
            with translate_errors(_ROLE, self.data_dir):
                return backend.find_damage()

        return await run_in_thread(self._readers, translating)


def _transact(backend: Backend, work: Work[T]) -> tuple[T, set[str]]:
    """The result of ``work`` in a committed transaction, and what it announced."""
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        try:
            with backend.writing() as connection:
                connection.info[_TOPICS] = set()
                result = work(connection)
                announced: set[str] = connection.info.pop(_TOPICS)
        except DBAPIError as exc:
            if not is_deadlock(exc) or attempt == _ATTEMPTS_MAX:
                raise
            _log.warning("a transaction met a deadlock and is run again (attempt %d)", attempt + 1)
            time.sleep(random.uniform(0, _PAUSE_MAX_S))  # noqa: S311 - two that met do not meet again
        else:
            return result, announced
    raise AssertionError("the last attempt returns or raises")


def announce(connection: Connection, topic: str) -> None:
    """Wake those who listen to a topic of `Database.changes` once the transaction of a write is committed."""
    connection.info.setdefault(_TOPICS, set()).add(topic)


def count_changed(
    connection: Connection,
    change: Executable,
    values: Mapping[str, object] | None = None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> int:
    """Change rows; how many there were. A server answers any other change without ``RETURNING`` later."""
    changed = connection.execute(change, values, execution_options={**options, "preserve_rowcount": True})
    return changed.rowcount


def require_rows(
    connection: Connection,
    change: Executable,
    values: Mapping[str, object],
    rows: int,
    error: Callable[[], OurError],
) -> None:
    """Change rows of which there have to be some number.

    Raises:
        OurError: the one given, here or at the latest before the transaction is committed.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(change, values, execution_options={REQUIRED: (rows, error)})
    elif count_changed(connection, change, values) != rows:
        raise error()
