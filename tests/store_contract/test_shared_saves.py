"""Files that several processes save into one database and bucket: none undoes what another one is saving."""

import asyncio
import hashlib
from contextlib import asynccontextmanager

import pytest

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.file_content import FileContent
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.database import Database
from tests.support.dispatching import SCOPE

DATA = b"made by a program"
SHA256 = hashlib.sha256(DATA).hexdigest()


def artifact(name="out.txt"):
    return NewArtifact(
        path=FilePath("turn_1", Namespace.FILES, name),
        source=FileContent(DATA),
        size_bytes=len(DATA),
        sha256=SHA256,
        mime="text/plain",
        visibility="internal",
        description="",
        tool_call_id="call-1",
    )


@pytest.fixture
def opened(tmp_path, postgres_url, bucket):
    """Opens the stores of a process."""

    @asynccontextmanager
    async def open_process(owner):
        database = Database(tmp_path / owner, postgres_url, shared=True)
        await database.open()
        try:
            blobs = S3BlobStore(bucket, tmp_path / owner / "staging", 5 * 1024 * 1024, 900)
            store = SqlArtifactStore(database, blobs, owner)
            await store.open()
            try:
                yield store, database
            finally:
                await store.close()
        finally:
            await database.close()

    return open_process


async def unfinished(database):
    return await database.read(rows.unfinished_saves)


async def test_a_process_undoes_only_the_saves_of_processes_that_are_lost(opened):
    names = [f"blobs/{SHA256}"]
    async with opened("one") as (_, database):
        await database.write(lambda connection: rows.begin_save(connection, "one.save", names))
        async with opened("two") as (two, _):
            assert await unfinished(database) == {"one.save": names}
            await two.undo_lost({"one", "two"})
            assert await unfinished(database) == {"one.save": names}
            await two.undo_lost({"two"})
            assert await unfinished(database) == {}


async def test_bytes_that_another_process_is_about_to_save_are_not_removed(opened):
    async with opened("one") as (one, database), opened("two") as (two, _):
        await database.write(lambda connection: rows.begin_save(connection, "lost.save", [f"blobs/{SHA256}"]))
        [saved], _ = await asyncio.gather(one.save(SCOPE, [artifact()]), two.undo_lost({"one", "two"}))
        pieces = [piece async for piece in two.read(SCOPE, saved, 0, saved.size_bytes)]
        assert b"".join(pieces) == DATA
        assert await unfinished(database) == {}
