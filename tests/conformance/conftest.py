"""The stores under test: a new backend is one more parameter of these fixtures."""

import hashlib
import uuid
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from contracts.paths import FilePath
from service.core.scopes import Principal, Scope
from service.core.store_ports import NewArtifact
from service.stores.artifacts import SqlArtifactStore
from service.stores.calls import SqliteCallStore
from service.stores.local_files import LocalFiles
from service.stores.s3_files import S3Files
from service.stores.sources import SqliteSourcePool
from service.stores.sqlite import Database
from service.stores.timelines import SqliteTimelineStore
from tests.services.s3_server import SERVICES, emptied, started


@asynccontextmanager
async def _opened_database(data_dir):
    database = Database(data_dir)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def _opened_sources(data_dir):
    async with _opened_database(data_dir) as database:
        yield SqliteSourcePool(database)


@asynccontextmanager
async def _opened_calls(data_dir):
    async with _opened_database(data_dir) as database:
        yield SqliteCallStore(database)


@asynccontextmanager
async def _opened_artifacts(data_dir):
    async with _opened_database(data_dir) as database:
        store = SqlArtifactStore(database, LocalFiles(data_dir))
        await store.open()
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def _opened_on_s3(data_dir, bucket, part_bytes=5 * 1024 * 1024, link_s=900):
    async with _opened_database(data_dir) as database:
        store = SqlArtifactStore(database, S3Files(bucket, data_dir / "staging", part_bytes, link_s))
        await store.open()
        try:
            yield store
        finally:
            await store.close()


@asynccontextmanager
async def _opened_timelines(data_dir):
    async with _opened_database(data_dir) as database:
        yield SqliteTimelineStore(database)


@asynccontextmanager
async def _opened_memory(data_dir):
    async with _opened_database(data_dir) as database:
        yield SqliteCallStore(database), SqliteTimelineStore(database)


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
    """The bucket of the real server that all tests share; emptied at the end."""
    bucket = started(SERVICES)
    yield bucket
    emptied(bucket)


@pytest.fixture
def bucket(s3_server):
    """A place of its own in that bucket."""
    return replace(s3_server, prefix=f"tests/{uuid.uuid4().hex}")


@pytest.fixture(params=["local", "s3"])
async def artifact_store(request, tmp_path):
    if request.param == "local":
        opened = _opened_artifacts(tmp_path / "data")
    else:
        opened = _opened_on_s3(tmp_path / "data", request.getfixturevalue("bucket"))
    async with opened as store:
        yield store


@pytest.fixture(params=[pytest.param(_opened_sources, id="sqlite")])
async def source_pool(request, tmp_path):
    async with request.param(tmp_path / "data") as store:
        yield store


@pytest.fixture(params=[pytest.param(_opened_calls, id="sqlite")])
async def call_store(request, tmp_path):
    async with request.param(tmp_path / "data") as store:
        yield store


@pytest.fixture(params=[pytest.param(_opened_timelines, id="sqlite")])
async def timeline_store(request, tmp_path):
    async with request.param(tmp_path / "data") as store:
        yield store


@pytest.fixture(params=[pytest.param(_opened_memory, id="sqlite")])
async def calls_and_timelines(request, tmp_path):
    """Stores of calls and of timelines that share one transaction."""
    async with request.param(tmp_path / "data") as stores:
        yield stores


def _scope(tenant="acme", project="books", user_type="registered", user="ann", conversation="conv-1"):
    return Scope(Principal(tenant, project, user_type, user), conversation)


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
def stage():
    """Writes bytes into a staging folder and describes them as an artifact."""

    def staged(folder, physical, data, visibility="external", **more):
        count = len(list(folder.iterdir()))
        source = folder / f"in-{count}"
        source.write_bytes(data)
        fields = {"mime": "text/plain", "description": "a test file", "tool_call_id": "call-1"} | more
        return NewArtifact(
            path=FilePath.from_physical(physical),
            source=source,
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
