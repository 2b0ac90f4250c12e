"""Records on a PostgreSQL server: connection pools, and the lock against other processes of the service."""

import logging
import select
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.error_translation import InUseError
from proofbox.service.storage.migrations import is_newest, migrate, require_newest
from proofbox.service.storage.postgres_connections import BatchingConnection, PatientConnection, prepare_cursor

_SCHEMES = frozenset({"postgresql", "postgres"})
_CONNECT_S = 10
_LOCK_CHECKED_EVERY_S = 5.0  # for so long another service could take a database whose lock was lost
_MIGRATION_S = 3600  # one statement of a revision may read every row
_ANSWERS_LATE_S = 5.0  # beyond the time limit of the server itself
_OUR_LOCK = 0x50_42_4F_58  # "PBOX": the lock is ours among all advisory locks of a database
_TRY_LOCK = text("SELECT pg_try_advisory_lock(:ours, hashtext(current_schema()))")
_TRY_SHARED = text("SELECT pg_try_advisory_lock_shared(:ours, hashtext(current_schema()))")
_UNLOCK = text("SELECT pg_advisory_unlock(:ours, hashtext(current_schema()))")
_UNLOCK_ALL = text("SELECT pg_advisory_unlock_all()")
_RELATIONS = text(
    "SELECT quote_ident(relname) AS name, relkind = 'i' AS is_index FROM pg_class "
    "LEFT JOIN pg_am ON pg_am.oid = relam WHERE relnamespace = current_schema()::regnamespace "
    "AND (relkind = 'r' OR (relkind = 'i' AND amname = 'btree')) ORDER BY relkind DESC, relname"
)
_CHECK_INDEX = text("SELECT bt_index_check(CAST(:name AS regclass), true)")
_CHECK_TABLE = text("SELECT blkno, msg FROM verify_heapam(CAST(:name AS regclass)) LIMIT 1")
_NO_AMCHECK = frozenset({"42883", "42501"})  # the extension is not there, or not for this user
_MIGRATIONS = 0x50_42_4F_4D  # "PBOM": processes that start together upgrade one after the other
_MIGRATION_TURN = text("SELECT pg_advisory_xact_lock(:migrations, hashtext(current_schema()))")

_log = logging.getLogger(__name__)


class PostgresServer:
    """One schema of a database on a server, which one process of the service uses, or several that share it.

    A connection that was lost fails the work that meets it and is replaced for the next. That a commit waits for
    the disk is the server's own setting (``synchronous_commit``, on by default).

    Args:
        url: ``postgresql://user:password@host:port/database``; its ``?options`` go to the server.
        timeout_s: how long one statement may take, waiting for another transaction included.
        beside: whether a service may be using it: then nothing is locked and the schema is left as it is.
        shared: whether other processes of the same kind may use it at the same time.
    """

    writers = 4  # more than one: a commit waits for the server's disk, and others can go on meanwhile

    def __init__(self, url: str, timeout_s: float, *, beside: bool = False, shared: bool = False) -> None:
        self._beside = beside
        self._url = parsed_url(url)
        self._timeout_s = timeout_s
        self._engines: list[Engine] = []
        lock_engine = self._engine(poolclass=NullPool, isolation_level="AUTOCOMMIT")
        self._lock = _SchemaLock(lock_engine, shared=shared)

    def open(self, readers: int) -> None:
        """Connect, lock the schema and upgrade it.

        Raises:
            StoreFailedError: it is in use, newer than this release, or does not hold Unicode.
            SQLAlchemyError: the server cannot be reached, or refuses.
        """
        pool: dict[str, Any] = {"max_overflow": 0}
        self._writing = self._engine(kind=BatchingConnection, pool_size=self.writers, **pool)
        _batch(self._writing)
        # No transaction around a reading query, and so no more round trips: each sees what is committed by then.
        self._reading = self._engine(read_only=True, pool_size=readers, isolation_level="AUTOCOMMIT", **pool)
        with _connect(self._engine(poolclass=NullPool)) as connection:
            _check(connection)
            _let_last(connection)
            connection.commit()
            with connection.begin():
                if self._beside:
                    require_newest(connection)
                else:
                    # In turn: a process that waits for an upgrade shares nothing yet, which would prevent it.
                    connection.execute(_MIGRATION_TURN, {"migrations": _MIGRATIONS})
                    self._lock.take()
                    self._lock.require_alone_for(not is_newest(connection))
                    migrate(connection)
                    self._lock.end_alone()  # before the next process has its turn, which shares the schema

    def _engine(
        self, *, kind: type[PatientConnection] = PatientConnection, read_only: bool = False, **options: Any
    ) -> Engine:
        engine = create_engine(
            self._url,
            connect_args={
                "connect_timeout": _CONNECT_S,
                "application_name": "proofbox",
                "client_encoding": "utf8",
                # A server that vanished without a word is noticed within a minute, not after hours.
                "keepalives_idle": 30,
                "keepalives_interval": 10,
                "keepalives_count": 3,
                "tcp_user_timeout": 60_000,
            },
            hide_parameters=True,
            **options,
        )
        self._engines.append(engine)

        @event.listens_for(engine, "do_connect")
        def connect(_dialect: Any, _record: Any, given: Any, named: Any) -> psycopg.Connection[Any]:
            connection = kind.connect(*given, **named)
            connection.answers_s = self._timeout_s + _ANSWERS_LATE_S
            return connection

        @event.listens_for(engine, "checkout")
        def require_open(connection: psycopg.Connection[Any], _record: Any, _proxy: Any) -> None:
            if _is_lost(connection):
                raise DisconnectionError("the server has closed the connection")

        @event.listens_for(engine, "connect")
        def prepare(connection: psycopg.Connection[Any], _record: Any) -> None:
            milliseconds = int(self._timeout_s * 1000)
            before, connection.autocommit = connection.autocommit, True
            connection.execute(f"SET statement_timeout = {milliseconds}")
            connection.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
            connection.execute(f"SET default_transaction_read_only = {'on' if read_only else 'off'}")
            connection.autocommit = before

        return engine

    def close(self) -> None:
        """Disconnect, which releases the lock."""
        self._lock.release()
        while self._engines:
            self._engines.pop().dispose()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Return a connection of the writers' pool, in a transaction."""
        if not self._beside:
            self._lock.check()
        with self._lock.suspected_on_failure(), self._writing.begin() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Return a connection of the readers' pool."""
        with self._lock.suspected_on_failure(), self._reading.connect() as connection:
            yield connection

    def find_damage(self) -> list[str]:
        """What amcheck finds in tables and indexes; where it cannot be used, which tables cannot be read."""
        engine = self._engine(read_only=True, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            _let_last(connection)
            found: list[str] = []
            for name, is_index in connection.execute(_RELATIONS).all():
                damage = (_index_damage if is_index else _table_damage)(connection, name)
                found += [] if damage is None else [f"PostgreSQL: {name}: {damage}"]
            return found

    def truncate_wal(self) -> None:
        """Do nothing: the server manages its log itself."""

    def checkpoint_wal(self) -> None:
        """Do nothing, for the same reason."""


def _batch(engine: Engine) -> None:
    """Have the transactions of an engine make few round trips."""

    @event.listens_for(engine, "connect")
    def begin_batches(connection: BatchingConnection, _record: Any) -> None:
        connection.begin_batches()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        driver = connection.connection.driver_connection
        assert isinstance(driver, BatchingConnection)
        driver.begin()

    event.listen(engine, "before_cursor_execute", prepare_cursor)


def _let_last(connection: Connection) -> None:
    """Let statements of a connection take as long as those of an upgrade."""
    connection.exec_driver_sql(f"SET statement_timeout = '{_MIGRATION_S}s'")
    driver = connection.connection.driver_connection
    assert isinstance(driver, PatientConnection)
    driver.answers_s = _MIGRATION_S + _ANSWERS_LATE_S


def _index_damage(connection: Connection, name: str) -> str | None:
    """What amcheck finds in an index; None also where it cannot be used."""
    try:
        connection.execute(_CHECK_INDEX, {"name": name})
    except DBAPIError as exc:
        return None if _is_without_amcheck(exc) else _damage_in(exc)
    return None


def _table_damage(connection: Connection, name: str) -> str | None:
    """What amcheck finds in a table, or why a row of it cannot be read."""
    try:
        found = connection.execute(_CHECK_TABLE, {"name": name}).first()
    except DBAPIError as exc:
        if not _is_without_amcheck(exc):
            return _damage_in(exc)
    else:
        if found is not None:
            return f"block {found.blkno}: {found.msg}"
    try:  # also what is stored beside its row, which amcheck does not open
        connection.exec_driver_sql(f"SELECT sum(octet_length(each::text)) FROM {name} AS each")  # noqa: S608 - quoted by the server
    except DBAPIError as exc:
        return _damage_in(exc)
    return None


def _is_without_amcheck(exc: DBAPIError) -> bool:
    return getattr(exc.orig, "sqlstate", None) in _NO_AMCHECK


def _damage_in(exc: DBAPIError) -> str:
    """The server's text for damage.

    Raises:
        DBAPIError: the error is another one.
    """
    if not str(getattr(exc.orig, "sqlstate", "")).startswith("XX"):
        raise exc
    return str(exc.orig).partition("\n")[0]


def _connect(engine: Engine) -> Connection:
    try:
        return engine.connect()
    except DBAPIError as exc:
        # For the operator: clients get a text of ours, which names neither host nor user.
        _log.error("no connection to the database: %s", exc.orig)
        raise


class _SchemaLock:
    """An advisory lock on a schema, held by a connection of its own until the service stops.

    A connection may be lost, and the lock with it: it is taken again before anything more is written.

    Args:
        engine: makes its connection.
        shared: whether others may have it at the same time that share it, too.
    """

    def __init__(self, engine: Engine, *, shared: bool) -> None:
        self._engine = engine
        self._shared = shared
        self._is_alone = False
        self._holder: Connection | None = None
        self._checked_at = 0.0
        self._turn = threading.Lock()

    def take(self) -> None:
        """Take the lock.

        Raises:
            StoreFailedError: another process of the service has it.
        """
        holder = _connect(self._engine)
        try:
            wanted = _TRY_SHARED if self._shared else _TRY_LOCK
            is_ours = holder.execute(wanted, {"ours": _OUR_LOCK}).scalar_one()
        except BaseException:
            holder.close()
            raise
        if not is_ours:
            holder.close()
            if self._shared:
                raise InUseError(
                    "a process with PROOFBOX_DISPATCH=local or a command uses the database; stop it first"
                )
            raise InUseError("the database is in use by another process of the service")
        self._holder = holder
        self._checked_at = time.monotonic()

    def require_alone_for(self, is_upgrade: bool) -> None:
        """Require that no other process uses the schema, if it is to be upgraded.

        Raises:
            StoreFailedError: another process does.
        """
        if not (is_upgrade and self._shared) or self._holder is None:
            return
        if not self._holder.execute(_TRY_LOCK, {"ours": _OUR_LOCK}).scalar_one():
            raise InUseError(
                "the schema of the database is of an older release, whose processes run; stop them first"
            )
        self._is_alone = True

    def end_alone(self) -> None:
        """Share the schema again after its upgrade."""
        if self._is_alone and self._holder is not None:
            self._holder.execute(_UNLOCK, {"ours": _OUR_LOCK})
        self._is_alone = False

    def check(self) -> None:
        """Require that the lock is still held; checked every few seconds.

        Raises:
            StoreFailedError: another process of the service has it.
            SQLAlchemyError: the server does not answer.
        """
        if time.monotonic() - self._checked_at < _LOCK_CHECKED_EVERY_S:
            return
        with self._turn:
            if time.monotonic() - self._checked_at < _LOCK_CHECKED_EVERY_S:
                return
            try:
                if self._holder is not None:
                    self._holder.exec_driver_sql("SELECT 1")
                    self._checked_at = time.monotonic()
                    return
            except DBAPIError:
                _log.warning("the connection that holds the lock of the database was lost; taking it again")
                self.release()
            self.take()

    @contextmanager
    def suspected_on_failure(self) -> Iterator[None]:
        """Check the lock before the next write if the block loses its connection."""
        try:
            yield
        except DBAPIError as exc:
            if exc.connection_invalidated:
                self._checked_at = 0.0
            raise

    def release(self) -> None:
        """Release the lock: whoever opens the database next may take it as soon as this returns."""
        holder, self._holder = self._holder, None
        if holder is None:
            return
        try:
            if not holder.invalidated:
                # A closed connection releases it as well, but only when the server notices.
                holder.execute(_UNLOCK_ALL)
        except DBAPIError as exc:
            _log.info("the connection that held the lock of the database is lost: %s", exc.orig)
        finally:
            holder.close()


def _is_lost(connection: psycopg.Connection[Any]) -> bool:
    """Whether a connection that nobody uses was closed, found out without a message to the server.

    A server sends nothing on such a connection before it closes it. A machine that vanished without a word is
    noticed by the kernel's keepalives, or by the time limit of a statement.
    """
    if connection.closed:
        return True
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def parsed_url(url: str) -> URL:
    """Parse the setting for the driver.

    Raises:
        StoreFailedError: it is not a URL of a PostgreSQL database.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        # The value may contain a password: it is not in the message.
        parsed = None
    if parsed is None or parsed.drivername not in _SCHEMES:
        raise StoreFailedError(
            "database_url: not a URL of the form postgresql://user:password@host:port/database; correct it"
        )
    return parsed.set(drivername="postgresql+psycopg")


def _check(connection: Connection) -> None:
    encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
    if encoding != "UTF8":
        raise StoreFailedError(f"the database has the encoding {encoding}; create it with ENCODING 'UTF8'")
    if connection.exec_driver_sql("SELECT current_schema()").scalar_one() is None:
        raise StoreFailedError("the search path of the database's user names no schema; create one or set the path")
