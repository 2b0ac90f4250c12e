"""The schema of a database: created, upgraded from an older release, refused if a newer one created it."""

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from pydantic import SecretStr
from sqlalchemy import create_engine
from sqlalchemy.exc import SQLAlchemyError

from proofbox.service.errors import StoreFailedError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage import migrations
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.conversations import SqlConversationStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.schema import metadata
from proofbox.service.storage.migrations import revisions, upgrade
from proofbox.service.storage.passages import SqlPassageStore

SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")


def made_by_revisions(connection):
    upgrade(connection, revisions()[-1])


def test_the_revisions_are_those_that_alembic_finds():
    scripts = ScriptDirectory(str(Path(migrations.__file__).parent))
    assert revisions() == [each.revision for each in scripts.walk_revisions()][::-1]


async def test_revisions_make_what_the_tables_say(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path}/proofbox.sqlite3")
    with engine.begin() as connection:
        made_by_revisions(connection)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


async def test_a_new_sqlite_database_is_the_very_one_that_the_revisions_make(opened_database, tmp_path):
    async with opened_database(tmp_path / "new"):
        pass
    engine = create_engine(f"sqlite:///{tmp_path}/proofbox.sqlite3")
    with engine.begin() as connection:
        made_by_revisions(connection)
    engine.dispose()

    def said(folder):
        with contextlib.closing(sqlite3.connect(folder / "proofbox.sqlite3")) as database:
            rows = database.execute("SELECT name, sql FROM sqlite_master").fetchall()
            (stamped,) = database.execute("SELECT version_num FROM alembic_version").fetchall()
            texts = {name: " ".join((sql or "").split()) for name, sql in rows}
            # A column that was added stands behind the constraints of its table.
            for table in ("conversations", "dispatches", "members_of_service"):
                texts[table] = [
                    sorted(repr(row[1:]) for row in database.execute(f"PRAGMA {what}({table})"))
                    for what in ("table_xinfo", "foreign_key_list", "index_list")
                ]
            return texts, stamped

    assert len(said(tmp_path)[0]) > 30
    assert said(tmp_path / "new") == said(tmp_path)


async def test_a_new_postgres_database_is_the_very_one_that_the_revisions_make(
    opened_database, postgres_url, tmp_path
):
    async with opened_database(tmp_path, postgres_url):
        pass
    engine = create_engine(postgres_url.get_secret_value().replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        for statement in (
            "DROP SCHEMA IF EXISTS revisions CASCADE",
            "CREATE SCHEMA revisions",
            "SET search_path = revisions",
        ):
            connection.exec_driver_sql(statement)
        made_by_revisions(connection)
    said = {schema: [] for schema in ("public", "revisions")}
    with engine.begin() as connection:
        for question in (
            "SELECT schemaname, replace(indexdef, schemaname || '.', '') FROM pg_indexes",
            (
                "SELECT table_schema, concat_ws(' ', table_name, column_name, data_type, collation_name, "
                "is_nullable, column_default, is_identity) FROM information_schema.columns"
            ),
            (
                "SELECT nspname, concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(c.oid)) "
                "FROM pg_constraint c JOIN pg_namespace n ON n.oid = connamespace"
            ),
        ):
            for schema in said:
                connection.exec_driver_sql(f"SET LOCAL search_path = {schema}")  # so no name is told with it
                rows = connection.exec_driver_sql(question).all()
                said[schema] += sorted(made for of, made in rows if of == schema)
        connection.exec_driver_sql("DROP SCHEMA revisions CASCADE")
    engine.dispose()
    assert len(said["revisions"]) > 150
    assert said["public"] == said["revisions"]


def test_alembic_is_not_loaded_for_a_new_database_nor_for_one_of_this_release(tmp_path):
    opens = (
        "import asyncio, pathlib, sys\n"
        "from proofbox.service.storage.database import Database\n"
        "async def opened():\n"
        "    database = Database(pathlib.Path(sys.argv[1]))\n"
        "    await database.open()\n"
        "    await database.close()\n"
        "asyncio.run(opened())\n"
        "print('alembic' in sys.modules)\n"
    )
    for _ in ("new", "of this release"):
        ran = subprocess.run(
            [sys.executable, "-c", opens, str(tmp_path / "data")], capture_output=True, text=True, check=True
        )
        assert ran.stdout == "False\n"


async def test_a_stamp_that_says_nothing_is_that_of_a_new_database(opened_database, tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as direct, direct:
        direct.execute("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    for _ in ("made", "found"):
        async with opened_database(tmp_path) as database:
            assert await SqlCallStore(database).find(SCOPE.principal, "call-1") == []


async def test_an_upgrade_that_fails_leaves_the_database_as_it_was(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path}/proofbox.sqlite3", isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE TABLE turns (in_the_way)")
        connection.exec_driver_sql("BEGIN")
        with pytest.raises(SQLAlchemyError, match="already exists"):
            made_by_revisions(connection)
        connection.exec_driver_sql("ROLLBACK")
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars().all()
    engine.dispose()
    assert tables == ["turns"]


async def test_tables_without_a_schema_number_are_refused_and_left_as_they_were(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as direct, direct:
        direct.execute("CREATE TABLE turns (in_the_way)")
    with pytest.raises(StoreFailedError, match="tables and no schema number"):
        await Database(tmp_path).open()
    with contextlib.closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as direct, direct:
        assert direct.execute("SELECT name FROM sqlite_master").fetchall() == [("turns",)]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_revision_that_is_not_known_is_of_a_newer_release(tmp_path, request, kind):
    url = SecretStr("") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    database = Database(tmp_path, url)
    await database.open()
    await database.close()

    def stamp(before, after):
        statement = f"UPDATE alembic_version SET version_num = '{after}' WHERE version_num = '{before}'"
        if kind == "sqlite":
            with contextlib.closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as direct, direct:
                return direct.execute(statement).rowcount
        with psycopg.connect(url.get_secret_value()) as direct:
            return direct.execute(statement).rowcount

    newest = revisions()[-1]
    assert await asyncio.to_thread(stamp, newest, "0987") == 1
    try:
        with pytest.raises(StoreFailedError, match=r"schema 987 and this release knows \d+; run the newer release"):
            await database.open()
    finally:
        await asyncio.to_thread(stamp, "0987", newest)
    await database.open()
    await database.close()


# ---- upgrades ----


def third_release(connection):
    """A database of the third schema, with a call that other rows refer to."""
    first_release_to(connection, "0003")
    connection.exec_driver_sql("INSERT INTO idempotency_keys (principal, name, call) VALUES (1, 'key-1', 1)")
    connection.exec_driver_sql("INSERT INTO chains (id, tenant, project) VALUES (1, 'acme', 'books')")
    connection.exec_driver_sql(
        "INSERT INTO audit (chain, seq, call, ended, sha256, line) VALUES (1, 1, 1, 'now', 'a', '{}')"
    )
    connection.exec_driver_sql(
        "INSERT INTO calls (id, conversation, tool_call_id, payload_sha256, state, boot_id, created, request) "
        "VALUES (3, 1, 'call-3', 'a', 'open', 'boot-0', '2026-03-03T04:05:06.007Z', '{}')"
    )


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_calls_and_what_refers_to_them_outlive_their_new_states(tmp_path, request, kind):
    engine = create_engine(f"sqlite:///{tmp_path}/proofbox.sqlite3")
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url").get_secret_value()
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    with engine.connect() as connection:
        if kind == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        connection.commit()
        third_release(connection)
        made_by_revisions(connection)
        connection.commit()
        rows = connection.exec_driver_sql("SELECT id, state, answer, run FROM calls ORDER BY id").all()
        assert [tuple(row) for row in rows] == [
            (1, "done", "answer", None),
            (2, "done", "answer", None),
            (3, "open", None, None),
        ]
        for table in ("idempotency_keys", "audit"):
            assert connection.exec_driver_sql(f"SELECT call FROM {table}").scalars().all() == [1]
        connection.exec_driver_sql("UPDATE calls SET state = 'waiting' WHERE id = 3")
        connection.commit()
        for wrong in (
            "UPDATE calls SET answer = 'too early' WHERE id = 3",
            "UPDATE calls SET state = 'waiting' WHERE id = 1",
            "UPDATE calls SET state = 'paused' WHERE id = 3",
            "UPDATE calls SET run = 7 WHERE id = 3",
        ):
            with pytest.raises(SQLAlchemyError):
                connection.exec_driver_sql(wrong)
            connection.rollback()
        if kind == "sqlite":
            for check in ("integrity_check", "foreign_key_check"):
                assert connection.exec_driver_sql(f"PRAGMA {check}").scalars().all() in ([], ["ok"])
    engine.dispose()


def fourth_release(connection):
    """A database of the fourth schema, with an agent whose call waits for a person."""
    first_release_to(connection, "0004")
    for statement in (
        "INSERT INTO projects (id, tenant, project) VALUES (1, 'acme', 'books')",
        "INSERT INTO agents (id, project, agent_id, current, created) VALUES (1, 1, 'helper', 1, 'now')",
        (
            "INSERT INTO entities (id, project, entity_id, type, display_name, agent, created) "
            "VALUES (1, 1, 'agent:helper', 'agent', 'helper', 1, 'now')"
        ),
        "INSERT INTO spaces (id, project, space_id, name, created) VALUES (1, 1, 'spc_1', 'Desk', 'now')",
        (
            "INSERT INTO runs (id, project, run_id, agent, version, conversation, status, trigger, created) "
            "VALUES (1, 1, 'run_1', 1, 1, 'conv-1', 'waiting_tool', '{}', 'now')"
        ),
        (
            "INSERT INTO calls (id, conversation, tool_call_id, payload_sha256, state, boot_id, created, request, "
            "run) VALUES (3, 1, 'call-3', 'a', 'waiting', 'boot-0', '2026-03-03T04:05:06.007Z', '{}', 1)"
        ),
        (
            "INSERT INTO messages (id, message_id, space, seq, kind, entity, run, call, body, ts, updated) "
            "VALUES (1, 'msg_1', 1, 1, 'text', 1, 1, 3, '{}', 'now', 'now')"
        ),
        (
            "INSERT INTO waits (id, wait_id, run, call, kind, space, message, state, created, expires, spec) "
            "VALUES (1, 'wait_1', 1, 3, 'reply', 1, 1, 'pending', 'now', 'later', '{}')"
        ),
    ):
        connection.exec_driver_sql(statement)


_PLAN = (
    "INSERT INTO plans (agent, plan_id, name, instruction, run_at, cron, status, next_run, created, updated) "
    "VALUES (1, 'plan_1', 'n', 'i', {run_at}, {cron}, '{status}', {next_run}, 'now', 'now')"
)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_agents_of_the_fourth_schema_get_records_and_their_waits_stay(tmp_path, request, kind):
    engine = create_engine(f"sqlite:///{tmp_path}/proofbox.sqlite3")
    if kind == "postgres":
        url = request.getfixturevalue("postgres_url").get_secret_value()
        engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    with engine.connect() as connection:
        if kind == "sqlite":
            connection.exec_driver_sql("PRAGMA foreign_keys = ON")
        connection.commit()
        fourth_release(connection)
        made_by_revisions(connection)
        connection.commit()
        assert connection.exec_driver_sql("SELECT state, run FROM waits").all() == [("pending", 1)]
        for statement in (
            "INSERT INTO reply_waits (wait, entity, message) VALUES (1, 1, 1), (1, NULL, 1)",
            (
                "INSERT INTO goals (agent, goal_id, description, priority, is_long_term, status, created, updated) "
                "VALUES (1, 'goal_1', 'd', 0, 1, 'active', 'now', 'now')"
            ),
            "INSERT INTO memories (agent, key, value, created, updated) VALUES (1, 'k', 'v', 'now', 'now')",
            _PLAN.format(run_at="'soon'", cron="NULL", status="pending", next_run="'soon'"),
        ):
            connection.exec_driver_sql(statement)
        connection.commit()
        for wrong in (
            "INSERT INTO reply_waits (wait, entity, message) VALUES (1, 1, 1)",
            "UPDATE reply_waits SET reply = 1",
            "UPDATE goals SET status = 'paused'",
            "UPDATE goals SET is_long_term = 2",
            "INSERT INTO memories (agent, key, value, created, updated) VALUES (1, 'k', 'w', 'now', 'now')",
            "UPDATE plans SET next_run = NULL",
            "UPDATE plans SET status = 'completed'",
            "UPDATE plans SET cron = '* * * * *'",
            "UPDATE plans SET agent = 7",
        ):
            with pytest.raises(SQLAlchemyError):
                connection.exec_driver_sql(wrong)
            connection.rollback()
        connection.exec_driver_sql("DELETE FROM waits")
        assert connection.exec_driver_sql("SELECT count(*) FROM reply_waits").scalar_one() == 0
        connection.commit()
    engine.dispose()


def first_release(connection):
    """A database of the first release, with the rows of two conversations."""
    first_release_to(connection, "0001")


def first_release_to(connection, revision):
    """A database of a schema, with the rows of two conversations."""
    upgrade(connection, revision)
    connection.exec_driver_sql(
        'INSERT INTO principals (id, tenant, project, user_type, "user") '
        "VALUES (1, 'acme', 'books', 'registered', 'ann')"
    )
    connection.exec_driver_sql(
        "INSERT INTO conversations (id, principal, name) VALUES (1, 1, 'conv-1'), (2, 1, 'empty')"
    )
    connection.exec_driver_sql(
        "INSERT INTO calls (id, conversation, tool_call_id, payload_sha256, state, boot_id, created, request, "
        "answer) VALUES (1, 1, 'call-1', 'a', 'done', 'boot-0', '2026-02-03T04:05:06.007Z', '{}', 'answer'), "
        "(2, 1, 'call-2', 'a', 'done', 'boot-0', '2026-03-03T04:05:06.007Z', '{}', 'answer')"
    )
    connection.exec_driver_sql(
        "INSERT INTO artifacts (id, conversation, turn, namespace, rel, version, sha256, size_bytes, mime, "
        "visibility, description, created) VALUES (1, 1, 'turn_1', 'files', 'a.txt', 1, "
        f"'{'0' * 64}', 7, 'text/plain', 'internal', '', '2026-01-01T00:00:00.000Z')"
    )


async def test_vectors_of_the_first_release_are_those_of_its_model(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path}/proofbox.sqlite3")
    with engine.begin() as connection:
        first_release_to(connection, "0009")
        connection.exec_driver_sql(
            "INSERT INTO passages (conversation, position, turn, target, ts, path, text, vector) VALUES "
            "(1, 1, 'turn_1', 'user', 'now', 'ar:1', 'embedded', x'0a0b'), "
            "(1, 2, 'turn_1', 'user', 'now', 'ar:2', 'not yet', x'')"
        )
    engine.dispose()
    database = Database(tmp_path)
    await database.open()
    try:
        passages = SqlPassageStore(database)
        assert list((await passages.outdated("e5-small.1", 10)).values()) == ["embedded"]
        found = await passages.candidates(SCOPE, ["user"], "", "e5-small.1")
        assert [(row.text, row.vector, row.is_outdated) for row in found] == [
            ("embedded", b"", True),
            ("not yet", b"", False),
        ]
    finally:
        await database.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_conversations_of_the_first_release_get_the_times_of_what_they_hold(tmp_path, request, kind):
    url = SecretStr("") if kind == "sqlite" else request.getfixturevalue("postgres_url")
    if kind == "sqlite":
        engine = create_engine(f"sqlite:///{tmp_path}/proofbox.sqlite3")
    else:
        engine = create_engine(url.get_secret_value().replace("postgresql:", "postgresql+psycopg:"))
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
    with engine.begin() as connection:
        first_release(connection)
    engine.dispose()
    database = Database(tmp_path, url)
    await database.open()
    try:
        artifacts = SqlArtifactStore(database, LocalBlobStore(tmp_path))
        empty, full = await SqlConversationStore(database, artifacts).page(SCOPE.principal, None, 10)
        assert (full.created, full.last_used) == ("2026-01-01T00:00:00.000Z", "2026-03-03T04:05:06.007Z")
        assert (full.files, full.size_bytes) == (1, 7)
        assert full.last_used < empty.created == empty.last_used
        found = await SqlCallStore(database).find(SCOPE.principal, "call-2")
        assert [call.answer for call in found] == ["answer"]
    finally:
        await database.close()
