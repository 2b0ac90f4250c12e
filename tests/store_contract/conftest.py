"""The stores under test: a new backend is one more parameter of these fixtures."""

import asyncio
import hashlib
import os
import subprocess
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import nats
import psycopg
import pytest
from pydantic import SecretStr
from sqlalchemy import text

from proofbox.cli import main
from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.passages import SqlPassageStore
from proofbox.service.storage.sources import SqlSourcePool
from proofbox.service.storage.timelines import SqlTimelineStore
from tests.services.s3_server import STATE, emptied, started
from tests.support.dispatching import Place
from tests.support.fresh_database import lay_out

# Where databases differ: transactions, turns, locks and texts. Elsewhere `make tests-slow` has PostgreSQL too.
ON_BOTH_DATABASES = {
    "test_call_registration",
    "test_call_store",
    "test_callback_waits",
    "test_dispatch_claims",
    "test_dispatch_turns",
    "test_gateway_waits",
    "test_lost_waits",
    "test_membership_jobs",
    "test_migrations",
    "test_narrowed_hosts",
    "test_odd_texts",
    "test_postgres",
    "test_postgres_locks",
    "test_postgres_replies",
    "test_process_differences",
    "test_raced_waits",
    "test_run_store",
    "test_store_check",
    "test_workers_in_trouble",
}
SERVICES = Path(__file__).parents[1] / "services"
NO_SERVER = SecretStr("")


def pytest_collection_modifyitems(items):
    """Marks as slow what only repeats on PostgreSQL what SQLite shows."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        stores = [callspec.params.get(name) for name in ("database_url", "artifact_store")] if callspec else []
        if {"postgres", "postgres-local"} & {*stores} and item.path.stem not in ON_BOTH_DATABASES:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgres_server():
    """The URL of an administrator's database on a real server, which is started if it does not run."""
    for argument in ("--start", "--print-url"):
        ran = subprocess.run([SERVICES / "postgres.sh", argument], check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout.strip()


@pytest.fixture(scope="session")
def postgres_of_this_run(postgres_server):
    """The URL of a database that this run has for itself; what runs that were killed left is removed."""
    name = f"run_{os.getpid()}"
    with psycopg.connect(postgres_server, autocommit=True) as server:
        for (left,) in server.execute("SELECT datname FROM pg_database WHERE datname ~ '^run_[0-9]+$'").fetchall():
            if left == name or not Path("/proc", left.removeprefix("run_")).exists():
                server.execute(f"DROP DATABASE IF EXISTS {left} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name}")
        yield postgres_server.rpartition("/")[0] + f"/{name}"
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres_url(postgres_of_this_run):
    """The same, with no rows in it."""
    _empty(postgres_of_this_run)
    return SecretStr(postgres_of_this_run)


_TABLES = """
SELECT string_agg(
    format('SELECT %L WHERE EXISTS (SELECT 1 FROM %I)', quote_ident(tablename), tablename), ' UNION ALL ')
FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'
"""
_SEQUENCES = "SELECT quote_ident(sequencename) FROM pg_sequences WHERE last_value IS NOT NULL"


def _empty(url):
    """Remove all rows, as TRUNCATE would, which takes longer than most tests and waits for readers."""
    with psycopg.connect(url, autocommit=True) as database, database.transaction():
        find_tables = database.execute(_TABLES).fetchone()[0]
        if find_tables is None:
            return
        database.execute("SET LOCAL session_replication_role = replica")  # no order, as no reference is checked
        for (table,) in database.execute(find_tables).fetchall():
            database.execute(f"DELETE FROM {table}")
        for (sequence,) in database.execute(_SEQUENCES).fetchall():
            database.execute(f"ALTER SEQUENCE {sequence} RESTART")


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request):
    """Each database that the records may be in."""
    return NO_SERVER if request.param == "sqlite" else request.getfixturevalue("postgres_url")


@pytest.fixture
def empty_database(database_url):
    """Removes all rows, if the database is on a server: a local one is in a folder of its own."""

    def empty():
        if database_url.get_secret_value():
            _empty(database_url.get_secret_value())

    return empty


@asynccontextmanager
async def _opened_database(data_dir, url=NO_SERVER):
    database = Database(data_dir if url.get_secret_value() else lay_out(data_dir), url)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _opened_artifacts(data_dir, url=NO_SERVER):
    async with _opened_database(data_dir, url) as database:
        store = SqlArtifactStore(database, LocalBlobStore(data_dir))
        await store.open()
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def _opened_on_s3(data_dir, bucket, part_bytes=5 * 1024 * 1024, link_s=900):
    async with _opened_database(data_dir) as database:
        store = SqlArtifactStore(database, S3BlobStore(bucket, data_dir / "staging", part_bytes, link_s))
        await store.open()
        try:
            yield store
        finally:
            await store.close()


@pytest.fixture
def opened_database():
    """Opens the local stores' database below a folder."""
    return _opened_database


@pytest.fixture
def opened_artifacts():
    """Opens a local artifact store below a folder."""
    return _opened_artifacts


@pytest.fixture
def opened_on_s3():
    """Opens an artifact store on a bucket; its database and staging are below a folder."""
    return _opened_on_s3


@pytest.fixture(scope="session")
def s3_server():
    """The bucket of the real server that all tests share."""
    return started(STATE)


@pytest.fixture(scope="session")
def s3_place(s3_server):
    """Where the tests of this process are in that bucket; emptied at the end."""
    place = replace(s3_server, prefix=f"tests/{uuid.uuid4().hex}")
    yield place
    emptied(place)


@pytest.fixture
def bucket(s3_place):
    """A place of its own in that bucket."""
    return replace(s3_place, prefix=f"{s3_place.prefix}/{uuid.uuid4().hex}")


@pytest.fixture(params=["sqlite-local", "postgres-local", "sqlite-s3"])
async def artifact_store(request, tmp_path):
    if request.param == "sqlite-s3":
        opened = _opened_on_s3(tmp_path / "data", request.getfixturevalue("bucket"))
    else:
        url = request.getfixturevalue("postgres_url") if request.param == "postgres-local" else NO_SERVER
        opened = _opened_artifacts(tmp_path / "data", url)
    async with opened as store:
        yield store


@pytest.fixture
async def database(database_url, tmp_path):
    async with _opened_database(tmp_path / "data", database_url) as opened:
        yield opened


@pytest.fixture
def source_pool(database):
    return SqlSourcePool(database)


@pytest.fixture
def call_store(database):
    return SqlCallStore(database)


@pytest.fixture
def timeline_store(database):
    return SqlTimelineStore(database)


@pytest.fixture
def passage_store(database):
    return SqlPassageStore(database)


@pytest.fixture
def calls_and_timelines(database):
    """Stores of calls and of timelines that share one transaction."""
    return SqlCallStore(database), SqlTimelineStore(database)


@pytest.fixture
def timelines_and_passages(database):
    """Stores of timelines and of their passages."""
    return SqlTimelineStore(database), SqlPassageStore(database)


def _scope(tenant="acme", project="books", user_type="registered", user="ann", conversation="conv-1"):
    return ConversationKey(Principal(tenant, project, user_type, user), conversation)


@pytest.fixture
def scope_of():
    """A scope, each part of it with a default."""
    return _scope


@pytest.fixture
def scope():
    return _scope()


@pytest.fixture
def others():
    """Scopes that each differ from ``scope`` in one part."""
    return [
        _scope(tenant="other"),
        _scope(project="other"),
        _scope(user_type="anonymous"),
        _scope(user="bob"),
        _scope(conversation="conv-2"),
    ]


@pytest.fixture
def in_memory():
    """Whether the bytes of new artifacts stay in memory; a test may have it both ways."""
    return False


@pytest.fixture
def stage(in_memory):
    """Describes bytes as an artifact: in a file of a staging folder or, as those of a small file are, in memory."""

    def staged(folder, physical, data, visibility="external", *, in_memory=in_memory, **more):
        source = data
        if not in_memory:
            source = folder / f"in-{len(list(folder.iterdir()))}"
            source.write_bytes(data)
        fields = {"mime": "text/plain", "description": "a test file", "tool_call_id": "call-1"} | more
        return NewArtifact(
            path=FilePath.from_physical(physical),
            source=FileContent(source),
            size_bytes=len(data),
            sha256=hashlib.sha256(data).hexdigest(),
            visibility=visibility,
            **fields,
        )

    return staged


@pytest.fixture
def save(stage):
    """Saves ``{physical path: bytes}`` as one call."""

    async def saved(store, scope, files, **more):
        async with store.staging() as folder:
            return await store.save(scope, [stage(folder, path, data, **more) for path, data in files.items()])

    return saved


@pytest.fixture
def content():
    """All bytes of a stored version."""

    async def read(store, scope, artifact):
        return b"".join([piece async for piece in store.read(scope, artifact, 0, artifact.size_bytes)])

    return read


@pytest.fixture
def command(database, database_url, monkeypatch, capsys):
    """Runs ``proofbox audit`` beside the service that has the database open; status and output."""

    async def run(*arguments):
        monkeypatch.setenv("PROOFBOX_DATA_DIR", str(database.data_dir))
        monkeypatch.setenv("PROOFBOX_DATABASE_URL", database_url.get_secret_value())
        capsys.readouterr()
        status = await asyncio.to_thread(main, ["audit", *map(str, arguments)])
        return status, capsys.readouterr().out.splitlines()

    return run


@pytest.fixture
def change(database):
    """Changes rows behind the service's back."""

    async def changed(statement, **values):
        await database.write(lambda connection: connection.execute(text(statement), values))

    return changed


@pytest.fixture(scope="session")
def nats_servers():
    """The settings of three real servers, which are started if they do not run."""
    for argument in ("--start", "--print-settings"):
        ran = subprocess.run([SERVICES / "nats.sh", argument], check=True, stdout=subprocess.PIPE, text=True)
    lines = (line.partition("=") for line in ran.stdout.splitlines())
    return {name.removeprefix("PROOFBOX_").lower(): value for name, _, value in lines}


@pytest.fixture
def nats_settings(nats_servers):
    """The same with names of streams that no other test has; they are removed at the end."""
    prefix = f"test_{uuid.uuid4().hex[:12]}"
    settings = {**nats_servers, "nats_prefix": prefix}
    yield settings
    asyncio.run(_remove_streams(settings))


async def _remove_streams(settings):
    client = await nats.connect(
        settings["nats_urls"].split(","), user=settings["nats_user"], password=settings["nats_password"]
    )
    try:
        for name in ("calls", "dead"):
            await client.request(f"$JS.API.STREAM.DELETE.{settings['nats_prefix']}_{name}", b"", timeout=10)
    finally:
        await client.close()


@pytest.fixture
def place(tmp_path, postgres_url, nats_settings):
    """What the processes of a test share."""
    return Place(tmp_path, postgres_url, nats_settings)
