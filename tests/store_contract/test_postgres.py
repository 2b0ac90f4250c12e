"""Records on a PostgreSQL server: one service for each schema, lost connections, time limits, secrets."""

import asyncio
import logging
import os
import traceback
from contextlib import asynccontextmanager
from functools import partial

import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import delete, insert, make_url, select, text, update

from proofbox.contracts.blocks import Block
from proofbox.service.app.bootstrap import build
from proofbox.service.app.settings import Settings
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.errors import StoreDefectError, StoreFailedError
from proofbox.service.storage import postgres
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import LAST, Database, count_changed, require_rows
from proofbox.service.storage.schema import principals
from proofbox.service.storage.timelines import SqlTimelineStore
from tests.support.gate import Gate

PASSWORD = "s3cr3t-0f-the-test"
ROLE = "the database of artifacts, sources and calls"
ADVISORY_LOCKS = """SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
                    WHERE locktype = 'advisory' AND datname = current_database()"""


@pytest.fixture
def database_url(postgres_url):
    return postgres_url


def new_call(scope, tool_call_id="call-1"):
    return NewCall(CallKey(scope, tool_call_id), "a" * 64, "request", "boot-1", None)


def block(text):
    return Block(type="note", author="user", turn_id="turn_1", ts="", mime="text/plain", path="", text=text)


@asynccontextmanager
async def opened(folder, url, **options):
    database = Database(folder, url, **options)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def changed(url, **parts):
    return SecretStr(make_url(url.get_secret_value()).set(**parts).render_as_string(hide_password=False))


def end_connections(url):
    """Ends all connections of the service from outside, as a server that is restarted does."""
    with psycopg.connect(url.get_secret_value(), autocommit=True) as administrator:
        ended = administrator.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'proofbox' AND datname = current_database()"
        ).fetchall()
    return len(ended)


def end_this_connection(connection):
    connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")


# ---- one service ----


async def test_a_database_serves_one_process_at_a_time(database, postgres_url, tmp_path):
    with pytest.raises(StoreFailedError, match="the database is in use by another process of the service"):
        await Database(tmp_path / "other", postgres_url).open()
    await database.close()
    async with opened(tmp_path / "other", postgres_url):
        pass


async def test_a_closed_database_is_locked_no_more(postgres_url, tmp_path):
    with psycopg.connect(postgres_url.get_secret_value(), autocommit=True) as other:
        for _ in range(30):
            database = Database(tmp_path / "data", postgres_url)
            await database.open()
            await database.close()
            assert other.execute(ADVISORY_LOCKS).fetchone() == (0,)


async def test_a_connection_is_used_again_without_a_question_to_the_server(database, postgres_url):
    def last_statement(connection):
        return connection.exec_driver_sql("SELECT 4242, pg_backend_pid()").one()[1]

    pid = await database.read(last_statement)
    used = set()
    while pid not in used:  # each connection of the pool in turn
        used.add(await database.read(lambda connection: connection.connection.driver_connection.info.backend_pid))
    with psycopg.connect(postgres_url.get_secret_value()) as administrator:
        query = "SELECT query FROM pg_stat_activity WHERE pid = %s"
        assert administrator.execute(query, (pid,)).fetchone() == ("SELECT 4242, pg_backend_pid()",)


async def test_connections_that_the_server_has_closed_are_replaced_before_they_are_used(database, postgres_url):
    for use in (database.read, database.write):
        await use(lambda connection: connection.exec_driver_sql("SELECT 1").scalar_one())
    assert end_connections(postgres_url) > 0
    for use in (database.read, database.write) * 5:
        assert await use(lambda connection: connection.exec_driver_sql("SELECT 42").scalar_one()) == 42


async def test_two_schemas_of_one_database_are_two_services(database, postgres_url, tmp_path, scope):
    with psycopg.connect(postgres_url.get_secret_value(), autocommit=True) as administrator:
        administrator.execute("DROP SCHEMA IF EXISTS second CASCADE")
        administrator.execute("CREATE SCHEMA second")
    there = changed(postgres_url, query={"options": "-csearch_path=second"})
    async with opened(tmp_path / "second", there) as second:
        stored, _ = await SqlCallStore(second).claim(new_call(scope))
        assert await SqlCallStore(database).find(scope.principal, "call-1") == []
        assert await SqlCallStore(second).find(scope.principal, "call-1") == [stored]


async def test_processes_that_start_together_on_an_empty_schema_all_come_up(postgres_url, tmp_path):
    there = changed(postgres_url, query={"options": "-csearch_path=fresh"})
    for number in range(3):
        with psycopg.connect(postgres_url.get_secret_value(), autocommit=True) as administrator:
            administrator.execute("DROP SCHEMA IF EXISTS fresh CASCADE")
            administrator.execute("CREATE SCHEMA fresh")
        processes = [Database(tmp_path / f"{number}-{each}", there, shared=True) for each in range(4)]
        came_up = await asyncio.gather(*(process.open() for process in processes), return_exceptions=True)
        await asyncio.gather(*(process.close() for process in processes))
        assert came_up == [None] * 4


async def test_a_lock_that_was_lost_is_taken_again_before_anything_is_written(
    database, postgres_url, tmp_path, scope
):
    store = SqlCallStore(database)
    assert end_connections(postgres_url) > 0
    database._backend._lock._checked_at = 0.0
    await store.claim(new_call(scope))
    with pytest.raises(StoreFailedError, match="in use by another process"):
        await Database(tmp_path / "other", postgres_url).open()


async def test_nothing_is_written_while_another_service_has_taken_the_lock(database, postgres_url, tmp_path, scope):
    store = SqlCallStore(database)
    end_connections(postgres_url)
    async with opened(tmp_path / "other", postgres_url):
        database._backend._lock._checked_at = 0.0
        with pytest.raises(StoreFailedError, match="in use by another process"):
            await store.claim(new_call(scope))
    await store.claim(new_call(scope))
    assert len(await store.find(scope.principal, "call-1")) == 1


# ---- lost connections, and time ----


async def test_connections_that_were_lost_meanwhile_are_replaced_unseen(database, postgres_url, scope):
    store = SqlCallStore(database)
    stored, _ = await store.claim(new_call(scope))
    assert end_connections(postgres_url) > 0
    assert await store.find(scope.principal, "call-1") == [stored]
    assert await store.claim(new_call(scope)) == (stored, False)


async def test_a_connection_that_is_lost_fails_its_work_and_no_other(database, scope):
    store = SqlTimelineStore(database)

    def work(connection):
        connection.execute(insert(principals), {"tenant": "a", "project": "b", "user_type": "c", "user": "d"})
        end_this_connection(connection)

    with pytest.raises(StoreFailedError) as caught:
        await database.write(work)
    assert caught.value.message == f"{ROLE} has gone away"
    assert await store.append(scope, [block("1")]) == 1
    with pytest.raises(StoreFailedError, match="has gone away"):
        await database.read(end_this_connection)
    assert await store.last(scope) == 1
    assert await database.read(lambda connection: connection.scalars(select(principals.c.tenant)).all()) == ["acme"]


_IDLE = """
SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'
"""


async def test_a_statement_that_takes_too_long_is_ended(postgres_url, tmp_path, scope):
    async with opened(tmp_path, postgres_url, timeout_s=1) as database:
        for works in (database.write, database.read):
            with pytest.raises(StoreFailedError) as caught:
                await works(lambda connection: connection.exec_driver_sql("SELECT pg_sleep(60)"))
            assert caught.value.message == f"{ROLE} did not answer in time"
        await SqlCallStore(database).claim(new_call(scope))


async def test_a_transaction_whose_process_stands_still_is_ended_with_the_reason(postgres_url, tmp_path, scope):
    def stand_still(connection):
        connection.exec_driver_sql("SELECT 1")
        with psycopg.connect(postgres_url.get_secret_value(), autocommit=True) as other:
            while other.execute(_IDLE).fetchone():  # until the server has ended it
                other.execute("SELECT pg_sleep(0.05)")
        connection.exec_driver_sql("SELECT 1")

    async with opened(tmp_path, postgres_url, timeout_s=0.5) as database:
        with pytest.raises(StoreFailedError) as caught:
            await database.write(stand_still)
        assert caught.value.message == f"{ROLE} ended a transaction in which nothing was asked for too long"
    async with opened(tmp_path, postgres_url) as database:
        await SqlCallStore(database).claim(new_call(scope))


async def test_a_writer_that_waits_too_long_for_another_gives_up(postgres_url, tmp_path, scope):
    async with opened(tmp_path, postgres_url, timeout_s=2) as database:
        store = SqlTimelineStore(database)
        await store.append(scope, [block("1")])
        with psycopg.connect(postgres_url.get_secret_value()) as other:
            other.execute("SELECT 1 FROM conversations FOR UPDATE")
            with pytest.raises(StoreFailedError, match="did not answer in time"):
                await store.append(scope, [block("lost")])
            other.rollback()
        assert await store.append(scope, [block("2")]) == 2


async def test_a_server_that_hangs_is_given_up_and_used_again_when_it_is_back(
    postgres_url, tmp_path, scope, monkeypatch
):
    monkeypatch.setattr(postgres, "_ANSWERS_LATE_S", 0.5)
    monkeypatch.setattr(postgres, "_CONNECT_S", 2)  # the least that the client library takes
    port = make_url(postgres_url.get_secret_value()).port
    with Gate(port) as gate:
        async with opened(
            tmp_path, changed(postgres_url, host="127.0.0.1", port=gate.port), timeout_s=0.5
        ) as database:
            store = SqlTimelineStore(database)
            await store.append(scope, [block("1")])
            gate.stall()
            for asked in (store.append(scope, [block("lost")]), store.after(scope, 0, 10, binaries=False)):
                with pytest.raises(StoreFailedError, match="does not answer"):
                    await asked
            gate.open()
            assert await store.append(scope, [block("2")]) >= 2


async def test_reads_cannot_write(database):
    row = {"tenant": "a", "project": "b", "user_type": "c", "user": "d"}
    with pytest.raises(StoreFailedError) as caught:
        await database.read(lambda connection: connection.execute(insert(principals), row))
    assert caught.value.message == f"{ROLE} is read-only"


async def test_many_conversations_are_written_at_once(database, scope_of):
    store = SqlTimelineStore(database)
    scopes = [scope_of(conversation=f"conv-{number}") for number in range(8)]
    await asyncio.gather(*(store.append(scope, [block("x")] * 3) for scope in scopes for _ in range(10)))
    for scope in scopes:
        placed = await store.after(scope, 0, 100, binaries=False)
        assert [each.position for each in placed] == list(range(1, 31))


# ---- what an operator may get wrong, and what nobody may read ----


@pytest.mark.parametrize(
    ("parts", "logged"),
    [
        ({"port": 1}, "refused"),
        ({"password": PASSWORD}, "password authentication failed"),
        ({"database": "none_such"}, 'database "none_such" does not exist'),
        ({"host": "name.invalid", "password": PASSWORD}, "failed to resolve host"),
    ],
)
async def test_a_database_that_cannot_be_opened_is_told_without_its_password(
    postgres_url, tmp_path, caplog, parts, logged
):
    caplog.set_level(logging.DEBUG)
    url = changed(postgres_url, **parts)
    with pytest.raises(StoreFailedError) as caught:
        await Database(tmp_path, url).open()
    assert caught.value.message == f"{ROLE} does not answer, or refuses the connection"
    assert logged in caplog.text
    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert make_url(url.get_secret_value()).password not in told


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://me:{PASSWORD}@host/name",
        f"postgresql+asyncpg://me:{PASSWORD}@host/name",
        f"postgresql://me:{PASSWORD}@host:port/name",
        PASSWORD,
    ],
)
async def test_what_is_no_url_of_a_database_is_refused_without_its_password(tmp_path, url):
    with pytest.raises(StoreFailedError) as caught:
        await Database(tmp_path, SecretStr(url)).open()
    assert caught.value.message == (
        "database_url: not a URL of the form postgresql://user:password@host:port/database; correct it"
    )
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


async def test_a_database_of_another_encoding_is_refused(postgres_server, tmp_path):
    name = f"run_{os.getpid()}_latin"
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            url = changed(SecretStr(postgres_server), database=name)
            with pytest.raises(StoreFailedError, match="has the encoding LATIN1; create it with ENCODING 'UTF8'"):
                await Database(tmp_path, url).open()
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(("kind", "dialect"), [("postgres", "postgresql"), ("sqlite", "sqlite")])
async def test_the_service_keeps_its_records_where_its_setting_says(postgres_url, tmp_path, kind, dialect):
    url = postgres_url if kind == "postgres" else SecretStr("")
    database = build(Settings(data_dir=tmp_path, database_url=url)).database
    await database.open()
    assert await database.read(lambda connection: connection.dialect.name) == dialect
    await database.close()
    assert (tmp_path / "proofbox.sqlite3").exists() == (kind == "sqlite")


def test_settings_do_not_show_the_password(monkeypatch):
    monkeypatch.setenv("PROOFBOX_DATABASE_URL", f"postgresql://me:{PASSWORD}@host/name")
    settings = Settings()
    assert PASSWORD not in f"{settings!r} {settings} {settings.model_dump()} {settings.model_dump_json()}"
    assert PASSWORD in settings.database_url.get_secret_value()


# ---- statements that travel together ----

NEW = {"tenant": "a", "project": "b", "user_type": "c", "user": "d"}


async def names_of_users(database):
    return await database.read(lambda connection: list(connection.scalars(select(principals.c.user))))


async def test_a_change_that_nobody_reads_fails_its_transaction_at_the_commit(database):
    def work(connection):
        connection.execute(insert(principals).inline(), NEW)
        connection.execute(insert(principals).inline(), NEW)  # sent, and not read

    with pytest.raises(StoreDefectError):
        await database.write(work)
    assert await names_of_users(database) == []


async def test_a_change_that_nobody_reads_fails_a_later_statement_and_the_connection_is_used_again(database):
    pids = set()

    def fail(connection):
        pids.add(connection.scalar(text("SELECT pg_backend_pid()")))
        connection.execute(insert(principals).inline(), [NEW, NEW])
        connection.execute(insert(principals).inline(), {**NEW, "user": "e"})
        connection.scalar(select(principals.c.user))

    def go_on(connection):
        pids.add(connection.scalar(text("SELECT pg_backend_pid()")))
        connection.execute(insert(principals).inline(), NEW)

    for _ in range(database._backend.writers):
        with pytest.raises(StoreDefectError):
            await database.write(fail)
    failed_on = set(pids)
    await database.write(go_on)
    assert await names_of_users(database) == ["d"]
    assert pids == failed_on


async def test_rows_that_a_change_needs_are_required_before_the_commit(database):
    def work(connection, rows):
        connection.execute(insert(principals).inline(), NEW)
        require_rows(
            connection,
            delete(principals).where(principals.c.user == "d"),
            {},
            rows,
            partial(StoreFailedError, "not there"),
        )

    with pytest.raises(StoreFailedError, match="not there"):
        await database.write(lambda connection: work(connection, 2))
    assert await names_of_users(database) == []
    await database.write(lambda connection: work(connection, 1))


async def test_the_last_statement_of_a_transaction_is_committed_with_it(database):
    def work(connection, other):
        assert count_changed(connection, update(principals).values(user="f"), options=LAST) == 1
        return other.execute('SELECT "user" FROM principals').fetchall()

    await database.write(lambda connection: connection.execute(insert(principals), NEW))
    with psycopg.connect(database._url.get_secret_value()) as other:
        assert await database.write(lambda connection: work(connection, other)) == [("f",)]


async def test_changes_larger_than_what_a_socket_takes_are_sent_whole(database, scope):
    texts = [f"{number}{'x' * 8 * 1024 * 1024}" for number in range(3)]
    store = SqlTimelineStore(database)
    await store.append(scope, [block(text) for text in texts])
    assert [placed.block.text for placed in await store.after(scope, 0, 10, binaries=False)] == texts
