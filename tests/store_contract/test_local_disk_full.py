"""The local stores on small disks of their own: full at any point, read-only, another file system."""

import itertools
import os
import shutil
import subprocess
from contextlib import contextmanager, suppress

import pytest
from disk_check import assert_disk_says_what_the_rows_say, path_of
from pydantic import SecretStr

from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.calls.port import CallKey, CallState, NewCall
from proofbox.service.errors import StoreFailedError, StoreFullError
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.readiness import FREE_FILES_MIN, StoreReadiness
from proofbox.service.storage.sources import SqlSourcePool


@pytest.fixture
def database_url():
    """The records lie on the disk too."""
    return SecretStr("")


@pytest.fixture
async def artifact_store(opened_artifacts, tmp_path):
    async with opened_artifacts(tmp_path / "data") as store:
        yield store


def new_call(scope, tool_call_id="call-1"):
    return NewCall(CallKey(scope, tool_call_id), "a" * 64, "request", "boot-1", None)


needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


def mount(*arguments):
    subprocess.run(["mount", *arguments], check=True)


@contextmanager
def small_disk(folder, options):
    folder.mkdir()
    mount("-t", "tmpfs", "-o", options, "tmpfs", folder)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def ballast_of_bytes(folder):
    """Takes all bytes of a disk, then frees one page each time it is asked."""
    ballast = folder / "ballast"
    size = 0
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            size += file.write(bytes(4096))
    while size > 0:
        yield
        size -= 4096
        os.truncate(ballast, size)


def ballast_of_files(folder):
    """Takes all inodes of a disk, then frees one each time it is asked."""
    folder = folder / "ballast"
    folder.mkdir()
    made = []
    with suppress(OSError):
        while True:
            file = folder / str(len(made))
            file.touch()
            made.append(file)
    while made:
        yield
        made.pop().unlink()


def remove_ballast(folder):
    ballast = folder / "ballast"
    if ballast.is_dir():
        shutil.rmtree(ballast)
    else:
        ballast.unlink()


@needs_mount
@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("ballast_of", [ballast_of_bytes, ballast_of_files])
async def test_a_save_that_meets_a_full_disk_at_any_point_leaves_nothing(
    opened_artifacts, tmp_path, scope, save, stage, ballast_of
):
    contents = {"turn_1/files/kept": b"new", "turn_1/files/deep/er/file": b"old", "turn_2/files/more": b"more"}
    with small_disk(tmp_path / "disk", "size=1m,nr_inodes=200") as data_dir:
        async with opened_artifacts(data_dir) as store:
            (old,) = await save(store, scope, {"turn_1/files/kept": b"old"})
            async with store.staging() as folder:
                tries = []
                for number in range(30):
                    (folder / str(number)).mkdir()
                    tries.append([stage(folder / str(number), *file) for file in contents.items()])
                refused = 0
                for files, _ in zip(tries, ballast_of(data_dir), strict=False):
                    try:
                        saved = await store.save(scope, files)
                    except StoreFullError:
                        refused += 1
                        assert await store.latest(scope, old.path) == old
                        assert [each.path for each in await store.of_turn(scope, "turn_1")] == [old.path]
                        assert await store.of_turn(scope, "turn_2") == []
                        assert path_of(old.hosted_uri, data_dir).read_bytes() == b"old"
                        assert [*folder.parent.iterdir()] == [folder]
                        continue
                    break
            assert 0 < refused < 30
            assert [artifact.version for artifact in saved] == [2, 1, 1]
            remove_ballast(data_dir)
            await store.retry_removals()  # there may have been no room to host them
        assert_disk_says_what_the_rows_say(data_dir)


@needs_mount
async def test_a_full_disk_refuses_calls_and_sources_and_takes_them_later(opened_database, tmp_path, scope):
    with small_disk(tmp_path / "disk", "size=1m") as data_dir:
        async with opened_database(data_dir) as database:
            calls, sources = SqlCallStore(database), SqlSourcePool(database)
            stored, _ = await calls.claim(new_call(scope))
            source = SourceRow(sid=1, source_type="manual", text="x" * 9_000)
            with pytest.raises(StoreFullError):
                await calls.finish(stored.key, CallState.DONE, "a" * 1_800_000)
            assert shutil.disk_usage(data_dir).free > 500_000
            next(ballast_of_bytes(data_dir))
            with pytest.raises(StoreFullError):
                await calls.claim(new_call(scope, "call-2" + "x" * 9_000))
            with pytest.raises(StoreFullError):
                await sources.complete(scope, [source])
            assert await calls.find(scope.principal, "call-1") == [stored]
            assert await calls.claim(new_call(scope)) == (stored, False)
            assert await sources.rows(scope) == []
            (data_dir / "ballast").unlink()
            assert (await calls.finish(stored.key, CallState.DONE, "answer")).answer == "answer"
            await sources.complete(scope, [source])
            assert await sources.rows(scope) == [source]


@needs_mount
async def test_what_is_freed_on_a_full_disk_is_not_eaten_by_the_log(opened_database, tmp_path, scope):
    with small_disk(tmp_path / "disk", "size=1m") as data_dir:
        async with opened_database(data_dir) as database:
            calls = SqlCallStore(database)
            stored, _ = await calls.claim(new_call(scope))
            # The file has to grow by this before the log, where it is now, can be begun anew.
            await calls.finish(stored.key, CallState.DONE, "a" * 60_000)
            refused = 0
            for number, _ in enumerate(itertools.islice(ballast_of_bytes(data_dir), 60)):
                try:
                    await calls.claim(new_call(scope, f"call-{number + 2}"))
                except StoreFullError:
                    refused += 1
            assert 0 < refused < 30


@needs_mount
async def test_a_staging_folder_on_a_full_disk_says_that_it_is_full(opened_artifacts, tmp_path):
    with small_disk(tmp_path / "disk", "size=1m,nr_inodes=60") as data_dir:
        async with opened_artifacts(data_dir) as store:
            next(ballast_of_files(data_dir))
            with pytest.raises(StoreFullError, match="the artifact folder has no space left"):
                async with store.staging():
                    pass


@needs_mount
async def test_a_database_that_cannot_be_opened_for_lack_of_space_says_so(opened_database, tmp_path):
    with small_disk(tmp_path / "disk", "size=1m") as data_dir:
        async with opened_database(data_dir):
            pass
        next(ballast_of_bytes(data_dir))
        with pytest.raises(StoreFullError):
            await Database(data_dir).open()


@needs_mount
async def test_where_no_link_can_be_made_a_fetched_file_is_a_read_only_copy(artifact_store, scope, save, tmp_path):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/a": b"bytes"})
    with small_disk(tmp_path / "disk", "size=1m") as other_disk:
        fetched = await artifact_store.fetch(scope, saved, other_disk)
        assert (fetched.parent, fetched.read_bytes()) == (other_disk, b"bytes")
        assert (fetched.stat().st_nlink, fetched.stat().st_mode & 0o777) == (1, 0o444)


@needs_mount
async def test_a_read_only_data_folder_is_named_without_its_path(opened_database, tmp_path):
    with small_disk(tmp_path / "disk", "size=1m") as data_dir:
        async with opened_database(data_dir):
            pass
        mount("-o", "remount,ro", data_dir)
        with pytest.raises(StoreFailedError) as caught:
            await Database(data_dir).open()
        assert caught.value.message == "the data folder is read-only"


async def test_a_disk_with_space_is_ready_and_a_full_or_read_only_one_is_not(tmp_path):
    with small_disk(tmp_path / "disk", "size=20m,nr_inodes=200") as data_dir:
        database = Database(data_dir)
        await database.open()
        check = StoreReadiness(database, data_dir).check
        await check()
        ballast = data_dir / "ballast"
        ballast.write_bytes(bytes(5 * 1024 * 1024))
        with pytest.raises(StoreFullError, match=r"data_dir: \d+ bytes are free"):
            await check()
        ballast.unlink()
        await check()
        ballast.mkdir()
        for number in range(200 - FREE_FILES_MIN):
            with suppress(OSError):
                (ballast / str(number)).touch()
        with pytest.raises(StoreFullError, match="more files can be created"):
            await check()
        shutil.rmtree(ballast)
        await check()
        await database.close()
    with (
        small_disk(tmp_path / "sealed", "size=20m,ro") as data_dir,
        pytest.raises(StoreFailedError, match="read-only"),
    ):
        await StoreReadiness(database, data_dir).check()
