"""Writes of many callers, each a transaction of its own to its caller, that share a commit where they meet.

A commit waits for the disk, and whoever comes meanwhile waits for the commit. With one writer, as SQLite has, those
that wait are run together next, each in a savepoint: what one of them raises undoes that one alone, and one commit
keeps the others. Nobody is told that his write is kept before that commit is durable. If the database itself fails,
in one of them or in the commit, nothing of the group is kept, and each is run again in a transaction of its own: so
a write that is too large for what is left of the disk fails alone.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from service.errors import StoreFailedError, StoreFullError

T = TypeVar("T")
Work = Callable[[Connection], T]


class Writers(Protocol):
    """Where transactions are begun; all methods block, and raise errors of the core for what the database says."""

    def transaction(self) -> AbstractContextManager[Connection]:
        """A connection that no other thread uses, in a transaction that is committed unless the block raises."""

    def savepoint(self, connection: Connection) -> AbstractContextManager[Any]:
        """A part of a transaction that is undone alone if the block raises."""

    def give_space_back(self) -> None:
        """Called after a write for which there was no space."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    work: Work[Any]
    outcome: Future[Any] = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Kept:
    """What a work returned or raised, to be told after the commit."""

    outcome: Future[Any]
    result: Any
    error: Exception | None

    def tell(self) -> None:
        if self.error is None:
            self.outcome.set_result(self.result)
        else:
            self.outcome.set_exception(self.error)


class GroupCommit:
    """Runs writes in the order in which they came.

    Args:
        writers: where transactions are begun.
        threads: how many of them at one time.
        group_max: how many writes share a commit at the most; 1 for a database whose transactions run side by side
            and wait for each other's locks, as they would in one group as well.
    """

    def __init__(self, writers: Writers, threads: int, group_max: int) -> None:
        self._writers = writers
        self._group_max = group_max
        self._threads = ThreadPoolExecutor(threads, "database-writer")
        self._waiting: deque[_Waiting] = deque()

    def submit(self, work: Work[T]) -> Future[T]:
        """Runs ``work`` as one transaction; its result or its exception once that is certain.

        ``work`` may be run twice, of which the first time is undone: it changes the database and nothing else.
        """
        waiting = _Waiting(work)
        self._waiting.append(waiting)
        # One for each: those that find nothing left to do end at once.
        self._threads.submit(self._write_some)
        return waiting.outcome

    def run(self, blocking: Callable[[], T]) -> Future[T]:
        """Runs something else in a writer's thread."""
        return self._threads.submit(blocking)

    def close(self) -> None:
        """Waits for all that was submitted; blocking."""
        self._threads.shutdown()

    def _write_some(self) -> None:
        group: list[_Waiting] = []
        while len(group) < self._group_max:
            try:
                group.append(self._waiting.popleft())
            except IndexError:
                break
        if len(group) > 1 and self._wrote_together(group):
            return
        for waiting in group:
            self._write_alone(waiting)

    def _wrote_together(self, group: list[_Waiting]) -> bool:
        """Whether the commit of all was made; if not, nothing is kept and nobody was told anything."""
        try:
            with self._writers.transaction() as connection:
                kept = [self._in_savepoint(connection, waiting) for waiting in group]
        except (StoreFailedError, StoreFullError):
            return False
        for one in kept:
            one.tell()
        return True

    def _in_savepoint(self, connection: Connection, waiting: _Waiting) -> _Kept:
        try:
            with self._writers.savepoint(connection):
                return _Kept(waiting.outcome, waiting.work(connection), None)
        except (StoreFailedError, StoreFullError):
            raise  # perhaps the whole transaction is gone
        except Exception as exc:  # noqa: BLE001 - the caller's own
            return _Kept(waiting.outcome, None, exc)

    def _write_alone(self, waiting: _Waiting) -> None:
        try:
            with self._writers.transaction() as connection:
                result = waiting.work(connection)
        except BaseException as exc:  # noqa: BLE001 - its caller's
            if isinstance(exc, StoreFullError):
                self._writers.give_space_back()
            waiting.outcome.set_exception(exc)
        else:
            waiting.outcome.set_result(result)
