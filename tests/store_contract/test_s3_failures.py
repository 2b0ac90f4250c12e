"""Artifacts on a real S3 server that goes away, or whose client does: what is left, and that a retry works."""

import asyncio
import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from dying_writer import SCOPE
from s3_check import assert_bucket_says_what_the_rows_say, unfinished_of
from test_local_disk_full import needs_mount, small_disk

from proofbox.contracts.paths import FilePath
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.storage.artifacts import save_journal
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.s3_client import Bucket
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from tests.services.s3_server import REPOSITORY, killed, objects_of, started, stopped
from tests.support.cutting_relay import CuttingRelay

MIB = 1024 * 1024
LARGE = bytes(range(256)) * (12 * 4096)  # 12 MiB: three parts of 5 MiB
PATH = FilePath.from_physical("turn_1/files/a")
HOSTED = "cb/tenants/acme/projects/books/attachments/registered/ann/conv-1/turn_1/a"

# ---- the way there breaks ----

POINTS = {
    "before anything": ("before", rb"^(PUT|POST|HEAD) "),
    "in the first part": ("after", 3 * MIB),
    "before the second part": ("before", rb"partNumber=2"),
    "in the second part": ("after", 7 * MIB),
    "after the last part": ("answer", rb"partNumber=3"),
    "before the parts are joined": ("before", rb"POST [^ ]*uploadId="),
    "after the parts are joined": ("answer", rb"POST [^ ]*uploadId="),
    "before the copy": ("before", rb"(?i)x-amz-copy-source"),
    "after the copy": ("answer", rb"(?i)x-amz-copy-source"),
}
BEFORE_ROWS, AFTER_ROWS = [*POINTS][:-2], [*POINTS][-2:]


@dataclass
class Way:
    """A place in the bucket, and the way there through a relay that can be cut."""

    bucket: Bucket
    relay: CuttingRelay

    @property
    def through(self):
        return replace(self.bucket, endpoint=self.relay.url, attempts=1)


@pytest.fixture
async def way(bucket):
    async with CuttingRelay(urlsplit(bucket.endpoint).port) as relay:
        yield Way(bucket, relay)


async def fetched(store, scope, artifact):
    async with store.staging() as folder:
        return (await store.fetch(scope, artifact, folder)).read_bytes()


def arm(relay, point, on_cut=None):
    how, where = POINTS[point]
    {"before": relay.cut_before, "after": relay.cut_after, "answer": relay.cut_answer_to}[how](where, on_cut=on_cut)


@pytest.mark.parametrize("point", BEFORE_ROWS)
async def test_a_save_whose_way_breaks_at_any_point_is_undone_and_can_be_tried_again(
    opened_on_s3, way, scope, save, tmp_path, point
):
    async with opened_on_s3(tmp_path, way.through) as store:
        old, _ = await save(store, scope, {"turn_1/files/a": b"old", "turn_1/files/kept": b"kept"})
        arm(way.relay, point)
        with pytest.raises(StoreFailedError, match="object store"):
            await save(store, scope, {"turn_1/files/a": LARGE, "turn_1/files/new": b"new"})
        assert way.relay.cuts == 1
        assert await store.latest(scope, old.path) == old
        assert [found.path.rel for found in await store.of_turn(scope, "turn_1")] == ["a", "kept"]
        way.relay.mend()
        async with store.staging() as folder:
            assert (await store.fetch_uri(scope, old.hosted_uri, folder)).read_bytes() == b"old"
        again = await save(store, scope, {"turn_1/files/a": LARGE, "turn_1/files/new": b"new"})
        assert [found.version for found in again] == [2, 1]
    assert_bucket_says_what_the_rows_say(way.bucket, tmp_path)


@pytest.mark.parametrize("point", AFTER_ROWS)
async def test_files_that_cannot_be_hosted_are_stored_and_hosted_later(
    opened_on_s3, way, scope, save, tmp_path, point
):
    async with opened_on_s3(tmp_path, way.through) as store:
        await save(store, scope, {"turn_1/files/a": b"old"})
        arm(way.relay, point)
        (saved,) = await save(store, scope, {"turn_1/files/a": b"new"})
        assert (saved.version, unfinished_of(tmp_path) != []) == (2, True)
        way.relay.mend()
        assert await fetched(store, scope, saved) == b"new"
        await store.retry_removals()
        assert (objects_of(way.bucket)[HOSTED], unfinished_of(tmp_path)) == (b"new", [])


async def test_files_that_could_not_be_hosted_are_hosted_without_another_save(
    opened_on_s3, way, scope, save, tmp_path, monkeypatch
):
    monkeypatch.setattr(save_journal, "_RETRY_S", 0.1)
    async with opened_on_s3(tmp_path, way.through) as store:
        arm(way.relay, "before the copy")
        await save(store, scope, {"turn_1/files/a": b"new"})
        await asyncio.sleep(0.3)  # tried again meanwhile, in vain
        assert unfinished_of(tmp_path) != []
        way.relay.mend()
        async with asyncio.timeout(20):
            while unfinished_of(tmp_path):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.05)
        assert objects_of(way.bucket)[HOSTED] == b"new"


@pytest.mark.parametrize("point", BEFORE_ROWS)
async def test_what_a_broken_save_left_is_gone_after_the_next_start(
    opened_on_s3, way, scope, save, tmp_path, point
):
    async with opened_on_s3(tmp_path, way.through) as store:
        await save(store, scope, {"turn_1/files/a": b"old"})
        arm(way.relay, point)
        with pytest.raises(StoreFailedError):
            await save(store, scope, {"turn_1/files/a": LARGE})
        assert unfinished_of(tmp_path) != []
    async with opened_on_s3(tmp_path, way.bucket) as store:
        assert [found.version for found in await store.of_turn(scope, "turn_1")] == [1]
    assert_bucket_says_what_the_rows_say(way.bucket, tmp_path)
    assert objects_of(way.bucket)[HOSTED] == b"old"


async def test_a_connection_that_breaks_once_is_not_noticed(opened_on_s3, way, scope, save, content, tmp_path):
    async with opened_on_s3(tmp_path, replace(way.through, attempts=3)) as store:
        way.relay.cut_before(rb"partNumber=2", once=True)
        (saved,) = await save(store, scope, {"turn_1/files/a": LARGE})
        assert way.relay.cuts == 1
        assert await content(store, scope, saved) == LARGE
    assert_bucket_says_what_the_rows_say(way.bucket, tmp_path)


async def test_a_save_that_waits_for_the_server_holds_up_nobody_else(opened_database, way, scope, save, tmp_path):
    async with opened_database(tmp_path) as database:
        files = S3BlobStore(replace(way.through, attempts=3), tmp_path / "staging", 5 * MIB, 900)
        store = SqlArtifactStore(database, files)
        await store.open()
        way.relay.open_way.clear()
        saving = asyncio.ensure_future(save(store, scope, {"turn_1/files/a": b"slow"}))
        await way.relay.waiting.wait()
        _, is_new = await SqlCallStore(database).claim(NewCall(CallKey(scope, "c"), "a" * 64, "{}", "boot", None))
        assert (is_new, saving.done()) == (True, False)
        assert await store.latest(scope, PATH) is None
        way.relay.open_way.set()
        assert [each.version for each in await saving] == [1]
        await store.close()


# ---- saves beside each other ----

COPY = rb"(?i)x-amz-copy-source"


async def test_while_one_save_replaces_a_hosted_object_another_save_of_that_path_waits(
    opened_on_s3, way, scope, save, tmp_path
):
    async with opened_on_s3(tmp_path, way.through) as store:
        way.relay.hold_answer_to(COPY)
        first = asyncio.ensure_future(save(store, scope, {"turn_1/files/a": b"first"}))
        await way.relay.waiting.wait()
        second = asyncio.ensure_future(save(store, scope, {"turn_1/files/a": b"second"}))
        await asyncio.wait([second], timeout=1)  # long enough for one that does not wait
        waits = not second.done()
        way.relay.release()
        assert [(await each)[0].version for each in (first, second)] == [1, 2]
    assert waits
    assert_bucket_says_what_the_rows_say(way.bucket, tmp_path)
    assert objects_of(way.bucket)[HOSTED] == b"second"


async def test_a_save_that_fails_leaves_the_bytes_that_another_is_about_to_have(
    opened_on_s3, way, scope, save, stage, tmp_path
):
    async with opened_on_s3(tmp_path, way.through) as store:
        way.relay.hold_answer_to(COPY)
        saving = asyncio.ensure_future(save(store, scope, {"turn_1/files/a": b"shared"}))
        await way.relay.waiting.wait()
        async with store.staging() as folder:
            shared = stage(folder, "turn_2/files/b", b"shared", visibility="internal")
            wrong = replace(stage(folder, "turn_2/files/c", b"x"), sha256="0" * 64, visibility="internal")
            with pytest.raises(StoreFailedError, match="have changed on their way"):
                await store.save(scope, [shared, wrong])
        way.relay.release()
        (saved,) = await saving
        assert await fetched(store, scope, saved) == b"shared"
    assert_bucket_says_what_the_rows_say(way.bucket, tmp_path)


# ---- a killed service, a killed server ----


@pytest.mark.parametrize("point", [*POINTS][3:])
async def test_a_service_killed_at_any_point_of_a_save_leaves_it_whole_or_undone(
    opened_on_s3, way, save, tmp_path, point
):
    async with opened_on_s3(tmp_path, way.bucket) as store:
        await save(store, SCOPE, {"turn_1/files/a": b"old"})
    (tmp_path / "large").write_bytes(LARGE)
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        Path(__file__).with_name("dying_writer.py"),
        "s3",
        tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "BUCKET": json.dumps(asdict(way.through))},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert await child.stdout.readline() == b"open\n"
    arm(way.relay, point, on_cut=child.kill)
    child.stdin.write(b"go\n")
    assert ((await child.communicate())[0], child.returncode, way.relay.cuts) == (b"", -9, 1)
    async with opened_on_s3(tmp_path, way.bucket) as store:
        expected = [1] if point in BEFORE_ROWS else [2]
        assert [found.version for found in await store.of_turn(SCOPE, "turn_1")] == expected
    assert_bucket_says_what_the_rows_say(way.bucket, tmp_path)
    assert objects_of(way.bucket)[HOSTED] == (b"old" if point in BEFORE_ROWS else LARGE)


@pytest.fixture(scope="module")
def mortal(tmp_path_factory):
    """The state folder of a server that tests may kill."""
    services = tmp_path_factory.mktemp("services")
    yield services
    stopped(services)


@pytest.mark.parametrize(
    "point",
    [
        "in the second part",
        pytest.param("after the parts are joined", marks=pytest.mark.slow),
        pytest.param("before the copy", marks=pytest.mark.slow),
    ],
)
async def test_a_server_killed_in_the_middle_of_a_save_and_started_again_has_whole_saves_only(
    opened_on_s3, mortal, scope, save, tmp_path, point
):
    bucket = replace(await asyncio.to_thread(started, mortal), prefix=tmp_path.name)
    async with CuttingRelay(urlsplit(bucket.endpoint).port) as relay:
        async with opened_on_s3(tmp_path, replace(bucket, endpoint=relay.url, attempts=1)) as store:
            (old,) = await save(store, scope, {"turn_1/files/a": b"old"})
            arm(relay, point, on_cut=lambda: killed(mortal))
            with pytest.raises(StoreFailedError, match="object store"):
                await save(store, scope, {"turn_1/files/a": LARGE})
            relay.mend()
            with pytest.raises(StoreFailedError, match="object store"):
                await fetched(store, scope, old)
            with pytest.raises(StoreFailedError, match="object store"):
                await save(store, scope, {"turn_1/files/a": b"while it is down"})
            assert await store.latest(scope, old.path) == old
            bucket = replace(await asyncio.to_thread(started, mortal), prefix=tmp_path.name)
            relay.port = urlsplit(bucket.endpoint).port
            assert await fetched(store, scope, old) == b"old"
            (new,) = await save(store, scope, {"turn_1/files/a": LARGE})
            assert (new.version, await fetched(store, scope, new)) == (2, LARGE)
        assert_bucket_says_what_the_rows_say(bucket, tmp_path)


# ---- a full disk ----


@needs_mount
async def test_a_local_disk_that_is_full_fails_a_fetch_and_not_the_next(
    opened_database, bucket, scope, save, tmp_path
):
    async with opened_database(tmp_path) as database:
        with small_disk(tmp_path / "disk", "size=1m") as disk:
            store = SqlArtifactStore(database, S3BlobStore(bucket, disk / "staging", 5 * MIB, 900))
            await store.open()
            (small,) = await save(store, scope, {"turn_1/files/small": b"small"})
            other = SqlArtifactStore(database, S3BlobStore(bucket, tmp_path / "staging", 5 * MIB, 900))
            await other.open()
            (large,) = await save(other, scope, {"turn_1/files/large": LARGE})
            await other.close()
            async with store.staging() as folder:
                with pytest.raises(StoreFullError, match="the artifact folder has no space left"):
                    await store.fetch(scope, large, folder)
            async with store.staging() as folder:
                assert (await store.fetch(scope, small, folder)).read_bytes() == b"small"
            await store.close()
