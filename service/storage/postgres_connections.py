"""Connections to a PostgreSQL server: closed when it is silent for too long, and those that batch statements."""

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self

import psycopg
from psycopg.abc import RV, Params, PQGen, Query
from psycopg.generators import fetch_many, send
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection
from sqlalchemy.engine.interfaces import DBAPICursor, ExecutionContext
from sqlalchemy.sql.compiler import SQLCompiler
from typing_extensions import override

from proofbox.service.storage.database import IS_LAST, IS_UNREAD, REQUIRED, Required


class PatientConnection(psycopg.Connection[Any]):
    """A connection that is closed when the server does not answer in time.

    The server ends a statement after its timeout; a stopped or unreachable server does not, and without this the
    client would wait for ever.
    """

    answers_s: float | None = None
    """How long an answer may take; None: for ever."""

    @override
    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """As psycopg's, and no longer than the answer may take."""
        timeout = self.answers_s if timeout is None else timeout
        began = time.monotonic()
        try:
            return super().wait(gen, interval, timeout)
        except psycopg.OperationalError as exc:
            if timeout is None or time.monotonic() - began < timeout:
                raise
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server did not answer within {timeout:g} s") from exc


class _Batches(psycopg.Pipeline):
    """A pipeline that sends all statements with its sync: psycopg's own makes system calls for each of them."""

    @override
    def _communicate_gen(self) -> PQGen[None]:
        while self.command_queue:
            self.command_queue.popleft()()  # libpq has it, and sends what is large
        yield from ()

    @override
    def _sync_gen(self) -> PQGen[None]:
        self._enqueue_sync()
        yield from self._communicate_gen()
        yield from send(self.pgconn)
        failed: psycopg.Error | None = None
        try:
            while self.result_queue and (results := (yield from fetch_many(self.pgconn))):
                try:
                    self._process_results(self.result_queue.popleft(), results)
                except psycopg.Error as exc:
                    failed = failed or exc
        except psycopg.OperationalError as exc:  # the connection was lost: the error before it has the reason
            raise failed or exc from None
        if failed is not None:
            raise failed


class BatchingConnection(PatientConnection):
    """A connection of transactions that sends what nobody reads with the next statement: one round trip for both.

    A batch ends with a statement whose result is read, or with the commit.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._required: list[tuple[psycopg.Cursor[Any], Required]] = []

    def begin_batches(self) -> None:
        """Batch from now on, until the connection is closed."""
        self.autocommit = True  # psycopg itself would wait for the answer of each BEGIN
        self.cursor_factory = BatchingCursor
        # Not by its context manager, which asks the server when it is left, also on a connection that is lost.
        self._pipeline = _Batches(self)
        self._pipeline.__enter__()

    def begin(self) -> None:
        """Begin a transaction with the first batch."""
        psycopg.Cursor(self).execute("BEGIN")

    def require(self, cursor: psycopg.Cursor[Any], required: Required) -> None:
        """Require of a statement, once its answer is there, that it changed some number of rows."""
        self._required.append((cursor, required))

    def end_batch(self) -> None:
        """Send what was not sent, and read all answers.

        Raises:
            psycopg.Error: of the first statement that failed; the others did nothing.
            OurError: a statement did not change the rows that it had to change.
        """
        if self._pipeline is not None:
            self._pipeline.sync()
        required, self._required = self._required, []
        for cursor, (rows, error) in required:
            if cursor.rowcount != rows:
                raise error()

    @override
    def commit(self) -> None:
        if self._required:
            self.end_batch()
        super().commit()

    @override
    def rollback(self) -> None:
        self._required.clear()
        if self.pgconn.transaction_status != TransactionStatus.IDLE:  # the pool calls this after each transaction
            with suppress(psycopg.errors.PipelineAborted):  # statements behind the one that failed
                self.end_batch()
            super().rollback()


class BatchingCursor(psycopg.Cursor[Any]):
    """A cursor of such a connection.

    Attributes:
        is_unread: whether nobody reads its result.
        is_last: whether its statement ends the transaction.
    """

    is_unread = False
    is_last = False

    @override
    def execute(self, query: Any, params: Params | None = None, **options: Any) -> Self:
        super().execute(query, params, **options)
        self._end()
        return self

    @override
    def executemany(self, query: Query, params_seq: Iterable[Params], *, returning: bool = False) -> None:
        super().executemany(query, params_seq, returning=returning)
        self._end()

    def _end(self) -> None:
        connection = self.connection
        assert isinstance(connection, BatchingConnection)
        if self.is_last:
            psycopg.Cursor(connection).execute("COMMIT")
        if not self.is_unread:
            connection.end_batch()


def prepare_cursor(
    connection: Connection,
    cursor: DBAPICursor,
    _statement: str,
    _parameters: Sequence[object] | Mapping[str, object],
    context: ExecutionContext | None,
    _executemany: bool,
) -> None:
    """Find out whether anybody reads the result of a statement; SQLAlchemy calls it before each."""
    assert isinstance(cursor, BatchingCursor)
    options = connection.get_execution_options() if context is None else context.execution_options
    if (required := options.get(REQUIRED)) is not None:
        assert isinstance(cursor.connection, BatchingConnection)
        cursor.connection.require(cursor, required)
    cursor.is_last = IS_LAST in options
    cursor.is_unread = IS_UNREAD in options or required is not None or _is_without_result(context)


def _is_without_result(context: ExecutionContext | None) -> bool:
    """Whether a statement changes rows, returns none of them, and nobody asks how many."""
    compiled = None if context is None else context.compiled
    if context is None or not isinstance(compiled, SQLCompiler):
        return False
    is_change = compiled.isinsert or compiled.isupdate or compiled.isdelete
    is_counted = context.execution_options.get("preserve_rowcount", False)
    return is_change and not compiled.effective_returning and not is_counted
