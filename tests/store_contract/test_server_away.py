"""A real S3 server that is away for a while: what calls store and read waits for it, and else nothing is stored."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from proofbox.service.artifacts.port import NewSave, StoreAwayError
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from tests.support.cutting_relay import CuttingRelay

PART_BYTES = 5 * 1024 * 1024


@pytest.fixture
async def relay(bucket):
    async with CuttingRelay(urlsplit(bucket.endpoint).port) as relay:
        yield relay


@pytest.fixture
def opened(opened_database, bucket, relay, tmp_path):
    """Opens a store that waits so long for its server."""

    @asynccontextmanager
    async def open_store(retry_s):
        async with opened_database(tmp_path) as database:
            through = replace(bucket, endpoint=relay.url, attempts=1)
            store = SqlArtifactStore(
                database, S3BlobStore(through, tmp_path / "staging", PART_BYTES, 900), retry_s=retry_s
            )
            await store.open()
            try:
                yield store
            finally:
                await store.close()

    return open_store


async def until_cut(relay, pattern, work, after=None):
    """What work comes to that meets a server that is away, and back as soon as it was asked, or answers in part."""
    away = asyncio.Event()
    if after is None:
        relay.cut_before(pattern, on_cut=away.set)
    else:
        relay.cut_answer_to(pattern, after=after, on_cut=away.set)
    working = asyncio.create_task(work)
    await away.wait()
    relay.mend()
    return await working


async def test_saves_and_reads_wait_until_the_server_is_back(opened, relay, scope, stage):
    async with opened(60) as store, store.staging() as folder:
        files = [stage(folder, f"turn_1/files/{name}", name.encode()) for name in ("a", "b")]
        saved = await until_cut(relay, rb"^PUT ", store.save(scope, files))
        assert [each.version for each in saved] == [1, 1]
        new = NewSave(scope, [stage(folder, "turn_1/files/c", b"c")])
        prepared = await until_cut(relay, rb"^PUT ", store.prepare(new))
        saved += await prepared.store()
        assert await until_cut(relay, rb"^GET ", store.contents(scope, saved)) == [b"a", b"b", b"c"]
        [local] = await until_cut(relay, rb"^GET ", store.fetch_all(scope, saved[:1], folder))
        assert local.read_bytes() == b"a"
        found = await until_cut(relay, rb"^GET ", store.fetch_uri(scope, saved[1].hosted_uri, folder))
        assert found.read_bytes() == b"b"


@pytest.mark.parametrize("after", [None, 0, 300_000])
async def test_what_is_read_waits_until_the_server_is_back_in_the_middle_too(opened, relay, scope, stage, after):
    data = bytes(range(256)) * 4096

    async def read(start, end):
        return b"".join([piece async for piece in store.read(scope, saved, start, end)])

    async with opened(60) as store, store.staging() as folder:
        [saved] = await store.save(scope, [stage(folder, "turn_1/files/a", data)])
        assert await until_cut(relay, rb"^GET ", read(0, len(data)), after) == data
        assert await until_cut(relay, rb"^GET ", read(7, 500_000), after) == data[7:500_000]
        [local] = await until_cut(relay, rb"^GET ", store.fetch_all(scope, [saved], folder), after)
        assert local.read_bytes() == data


async def test_a_save_is_given_up_when_its_time_is_over(opened, relay, scope, stage):
    async with opened(0) as store, store.staging() as folder:
        relay.cut_before(rb"^PUT ")
        for save in (store.save, lambda scope, files: store.prepare(NewSave(scope, files))):
            with pytest.raises(StoreAwayError, match="object store"):
                await save(scope, [stage(folder, "turn_1/files/a", b"a")])
        assert await store.of_turn(scope, "turn_1") == []


async def test_a_save_that_can_never_succeed_is_not_tried_again(opened, scope, stage):
    async with opened(3600) as store, store.staging() as folder:
        changed = replace(stage(folder, "turn_1/files/a", b"a"), size_bytes=2)
        with pytest.raises(StoreFailedError) as refused:
            await store.save(scope, [changed])
    assert not isinstance(refused.value, StoreAwayError)
