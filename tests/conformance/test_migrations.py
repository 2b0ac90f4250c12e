"""The schema of a database: made new, taken over from an older release, refused if a newer one made it."""

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

from contracts.blocks import Block
from contracts.paths import FilePath
from contracts.tool_call_request import SourceRow
from service.artifacts.port import NewPage
from service.calls.port import CallKey, CallState, NewCall, StoredCall
from service.errors import StoreFailedError
from service.identity import ConversationKey, Principal
from service.storage.artifacts import rows as artifact_rows
from service.storage.calls import SqlCallStore
from service.storage.database import Database
from service.storage.migrations import revisions, upgrading
from service.storage.schema import metadata
from service.storage.sources import SqlSourcePool
from service.storage.timelines import SqlTimelineStore
from service.timeline.port import TurnSpan

# What the releases before Alembic have made: copied from them, and never to be changed.
STEP_1 = """
CREATE TABLE principals (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    user_type TEXT NOT NULL,
    user TEXT NOT NULL,
    UNIQUE (tenant, project, user_type, user)
);
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY,
    principal INTEGER NOT NULL REFERENCES principals (id),
    name TEXT NOT NULL,
    UNIQUE (principal, name)
);
CREATE TABLE artifacts (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    turn TEXT NOT NULL,
    namespace TEXT NOT NULL CHECK (namespace IN ('files', 'attachments')),
    rel TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    sha256 TEXT NOT NULL,
    size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
    mime TEXT NOT NULL,
    visibility TEXT NOT NULL CHECK (visibility IN ('external', 'internal')),
    description TEXT NOT NULL,
    tool_call_id TEXT,
    created TEXT NOT NULL,
    hosted_name TEXT,
    UNIQUE (conversation, turn, namespace, rel, version),
    CHECK ((visibility = 'external') = (hosted_name IS NOT NULL))
);
CREATE INDEX artifacts_sha256 ON artifacts (sha256);
CREATE INDEX artifacts_hosted ON artifacts (hosted_name, version) WHERE hosted_name IS NOT NULL;
CREATE TABLE unfinished (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE sources (
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    sid INTEGER NOT NULL,
    file TEXT,
    source TEXT NOT NULL,
    PRIMARY KEY (conversation, sid)
);
CREATE INDEX sources_file ON sources (conversation, file, sid) WHERE file IS NOT NULL;
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    tool_call_id TEXT NOT NULL,
    payload_sha256 TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed', 'cancelled')),
    boot_id TEXT NOT NULL,
    created TEXT NOT NULL,
    request TEXT NOT NULL,
    answer TEXT,
    UNIQUE (conversation, tool_call_id),
    CHECK ((state = 'open') = (answer IS NULL))
);
CREATE INDEX calls_tool_call_id ON calls (tool_call_id);
CREATE INDEX calls_open ON calls (boot_id) WHERE state = 'open';
CREATE TABLE idempotency_keys (
    principal INTEGER NOT NULL REFERENCES principals (id),
    name TEXT NOT NULL,
    call INTEGER NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
    PRIMARY KEY (principal, name)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_call ON idempotency_keys (call);
CREATE VIEW named_calls AS
SELECT calls.*, principal, name AS conversation_name, tenant, project, user_type, user
FROM calls
JOIN conversations ON conversations.id = calls.conversation
JOIN principals ON principals.id = conversations.principal;
PRAGMA user_version = 1;
"""
STEP_2 = """
CREATE TABLE blocks (
    conversation INTEGER NOT NULL REFERENCES conversations (id),
    position INTEGER NOT NULL CHECK (position >= 1),
    call_id TEXT,
    path TEXT NOT NULL,
    block TEXT NOT NULL,
    content BLOB,
    PRIMARY KEY (conversation, position)
);
CREATE INDEX blocks_path ON blocks (conversation, path, position);
PRAGMA user_version = 2;
"""
FILE = "fi:turn_1.files/a.csv"
PAGE = "https://example.com/a"
SCOPE = ConversationKey(Principal("acme", "books", "registered", "ann"), "conv-1")
CALL = CallKey(SCOPE, "call-1")
CREATED = "2026-01-02T03:04:05.678Z"
SOURCES = [
    SourceRow(sid=1, source_type="file", physical_path="turn_1/files/a.csv"),
    SourceRow(sid=7, source_type="web", url=PAGE, text="ü\0"),
]


def block(text, **fields):
    values = {
        "type": "user.prompt",
        "author": "user",
        "turn_id": "turn_1",
        "ts": CREATED,
        "mime": "text/markdown",
        "path": "ar:turn_1.user.prompt",
    }
    return Block(text=text, **{**values, **fields})


BLOCKS = [
    block("hello \0 \U0001f389"),
    block(
        f'{{"artifact_path": "{FILE}"}}',
        type="react.tool.result",
        mime="application/json",
        path="tc:turn_1.call-1.result",
        call_id="call-1",
    ),
    block("no JSON {", mime="application/json", path="tc:turn_1.call-1.result"),
    block("next", turn_id="turn_2", path="ar:turn_2.user.prompt"),
]


def made_by_an_old_release(folder, version):
    """A database with a row in each table, as that version of the schema has been writing it."""
    folder.mkdir()
    with contextlib.closing(sqlite3.connect(folder / "proofbox.sqlite3")) as old, old:
        old.execute("PRAGMA journal_mode = WAL")
        old.executescript(STEP_1)
        old.execute("INSERT INTO principals VALUES (3, 'acme', 'books', 'registered', 'ann')")
        old.execute("INSERT INTO conversations VALUES (5, 3, 'conv-1')")
        old.execute(
            "INSERT INTO artifacts VALUES (1, 5, 'turn_1', 'files', 'a.csv', 2, ?, 9, 'text/csv', 'external', "
            "'a table', 'call-1', ?, 'files/1/cb/a.csv')",
            ("a" * 64, CREATED),
        )
        old.execute("INSERT INTO unfinished VALUES ('blobs/cut short')")
        files = [FILE, None]
        old.executemany(
            "INSERT INTO sources VALUES (5, ?, ?, ?)",
            [
                (row.sid, file, row.model_dump_json(exclude_none=True))
                for row, file in zip(SOURCES, files, strict=True)
            ],
        )
        old.execute(
            "INSERT INTO calls VALUES (4, 5, 'call-1', ?, 'done', 'boot-1', ?, 'request', 'answer')",
            ("b" * 64, CREATED),
        )
        old.execute("INSERT INTO idempotency_keys VALUES (3, 'once', 4)")
        if version >= 2:
            old.executescript(STEP_2)
            old.executemany(
                "INSERT INTO blocks VALUES (5, ?, ?, ?, ?, ?)",
                [
                    (position, each.call_id, each.path, each.model_dump_json(), None)
                    for position, each in enumerate(BLOCKS, 1)
                ],
            )
            old.execute("UPDATE blocks SET content = x'00ff' WHERE position = 4")


def schema_of(folder):
    """Columns of all tables, and the text of all indexes."""
    with contextlib.closing(sqlite3.connect(folder / "proofbox.sqlite3")) as database:
        rows = database.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        columns = {
            # A key is never NULL, whether that is said again or not.
            name: [
                (column, kind, bool(not_null or key), default, key)
                for _, column, kind, not_null, default, key in database.execute(f"PRAGMA table_info({name})")
            ]
            for entry, name, _ in rows
            if entry == "table"
        }
        indexes = {name: " ".join(sql.split()) for kind, name, sql in rows if kind == "index"}
        return columns, indexes, sorted(kind for kind, _, _ in rows)


@pytest.mark.parametrize("version", [1, 2])
async def test_what_an_old_release_has_kept_is_all_there(opened_database, tmp_path, version):
    made_by_an_old_release(tmp_path / "data", version)
    path = FilePath.from_logical(FILE)
    for _ in range(2):
        async with opened_database(tmp_path / "data") as database:
            done = StoredCall(CALL, "b" * 64, CallState.DONE, "boot-1", CREATED, "request", "answer")
            assert await SqlCallStore(database).find(SCOPE.principal, "call-1") == [done]
            again = NewCall(CallKey(SCOPE, "another"), "b" * 64, "request", "boot-2", "once")
            assert await SqlCallStore(database).claim(again) == (done, False)
            assert await SqlSourcePool(database).rows(SCOPE) == SOURCES
            found = await database.read(lambda connection: artifact_rows.latest(connection, SCOPE, path))
            assert found == artifact_rows.ArtifactRow(
                path, 2, "a" * 64, 9, "text/csv", "external", "a table", CREATED, "files/1/cb/a.csv"
            )
            unfinished = await database.read(artifact_rows.unfinished_saves)
            assert unfinished == {"before": ["blobs/cut short"]}
            kept = await SqlTimelineStore(database).after(SCOPE, 0, 10, binaries=True)
            expected = [] if version == 1 else [*BLOCKS[:3], BLOCKS[3].model_copy(update={"base64": "AP8="})]
            assert [placed.block for placed in kept] == expected


async def test_what_an_old_release_has_kept_is_found_by_what_new_releases_ask_for(opened_database, tmp_path):
    made_by_an_old_release(tmp_path / "data", 2)
    async with opened_database(tmp_path / "data") as database:
        timelines = SqlTimelineStore(database)
        assert await timelines.turns(SCOPE) == [TurnSpan("turn_1", 1, 3), TurnSpan("turn_2", 4, 4)]
        described = await timelines.of_path(SCOPE, FILE, 10, binaries=False)
        assert [placed.position for placed in described] == [2]
        in_turn = await timelines.of_turns(SCOPE, ["turn_2"], described=False)
        assert [placed.position for placed in in_turn] == [4]
        (page,) = await SqlSourcePool(database).add_pages(SCOPE, [NewPage(PAGE, "A", None, None, "turn_3")])
        assert (page.sid, page.text) == (7, "ü\0")
        assert await timelines.append(SCOPE, [BLOCKS[0]]) == 5


@pytest.mark.parametrize("version", [1, 2])
async def test_a_database_that_was_taken_over_is_as_a_new_one(opened_database, tmp_path, version):
    made_by_an_old_release(tmp_path / "old", version)
    for name in ("old", "new"):
        async with opened_database(tmp_path / name):
            pass
    assert schema_of(tmp_path / "old") == schema_of(tmp_path / "new")


def made_by_revisions(connection):
    newest = revisions()[-1]
    upgrading.upgrade(connection, stamped=None, counted=None, newest=newest)


def test_the_revisions_are_those_that_alembic_finds():
    scripts = ScriptDirectory(str(Path(upgrading.__file__).parent))
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
            return {name: " ".join((sql or "").split()) for name, sql in rows}, stamped

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
        "from service.storage.database import Database\n"
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


async def test_a_step_that_fails_leaves_the_database_as_it_was(tmp_path):
    made_by_an_old_release(tmp_path / "data", 2)
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "proofbox.sqlite3")) as old, old:
        old.execute("CREATE TABLE turns (in_the_way)")
    before = schema_of(tmp_path / "data")
    with pytest.raises(StoreFailedError):
        await Database(tmp_path / "data").open()
    assert schema_of(tmp_path / "data") == before
    with contextlib.closing(sqlite3.connect(tmp_path / "data" / "proofbox.sqlite3")) as old, old:
        assert old.execute("PRAGMA user_version").fetchone() == (2,)
        old.execute("DROP TABLE turns")
    database = Database(tmp_path / "data")
    await database.open()
    await database.close()


async def test_a_release_from_before_alembic_sees_that_the_database_is_newer(opened_database, tmp_path):
    async with opened_database(tmp_path):
        pass
    with contextlib.closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as old:
        (counted,) = old.execute("PRAGMA user_version").fetchone()
    assert counted > 2


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

    newest = "0009"
    assert await asyncio.to_thread(stamp, newest, "0987") == 1
    try:
        with pytest.raises(StoreFailedError, match=r"schema 987 and this release knows 9; run the newer release"):
            await database.open()
    finally:
        await asyncio.to_thread(stamp, "0987", newest)
    await database.open()
    await database.close()
