"""Produced files on a real S3 server that is away for a while: saved again, or nothing of them is stored."""

import asyncio
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from proofbox.service.artifacts.port import StoreAwayError
from proofbox.service.errors import StoreFailedError
from proofbox.service.jobs.output_retry import RetriedOutputs
from tests.support.cutting_relay import CuttingRelay


@pytest.fixture
async def relay(bucket):
    async with CuttingRelay(urlsplit(bucket.endpoint).port) as relay:
        yield relay


@pytest.fixture
async def store(opened_on_s3, bucket, relay, tmp_path):
    async with opened_on_s3(tmp_path, replace(bucket, endpoint=relay.url, attempts=1)) as opened:
        yield opened


async def test_a_save_is_tried_again_until_the_server_is_back(store, relay, scope, stage, content):
    away = asyncio.Event()
    relay.cut_before(rb"^PUT ", on_cut=away.set)
    async with store.staging() as folder:
        files = [stage(folder, f"turn_1/files/{name}", name.encode()) for name in ("a", "b")]
        saving = asyncio.create_task(RetriedOutputs(store, 60).save(scope, files))
        await away.wait()
        relay.mend()
        stored = await saving
    assert [version.version for version in stored] == [1, 1]
    assert [await content(store, scope, version) for version in stored] == [b"a", b"b"]


async def test_a_save_is_given_up_when_its_time_is_over(store, relay, scope, stage):
    relay.cut_before(rb"^PUT ")
    async with store.staging() as folder:
        with pytest.raises(StoreAwayError, match="object store"):
            await RetriedOutputs(store, 0).save(scope, [stage(folder, "turn_1/files/a", b"a")])
    assert await store.of_turn(scope, "turn_1") == []


async def test_a_save_that_can_never_succeed_is_not_tried_again(store, scope, stage):
    async with store.staging() as folder:
        changed = replace(stage(folder, "turn_1/files/a", b"a"), size_bytes=2)
        with pytest.raises(StoreFailedError) as refused:
            await RetriedOutputs(store, 3600).save(scope, [changed])
    assert not isinstance(refused.value, StoreAwayError)
