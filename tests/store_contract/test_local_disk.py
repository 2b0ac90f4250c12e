"""The local stores on the disk: what lies where, lives of the process, a killed process, damaged files."""

import asyncio
import contextlib
import hashlib
import os
import random
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from disk_check import assert_disk_says_what_the_rows_say, path_of
from pydantic import SecretStr

import proofbox.service
from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import DamagedBytesError
from proofbox.service.calls.port import CallKey, CallState, NewCall
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.sources import SqlSourcePool
from tests.support.waiting import until

REPOSITORY = Path(proofbox.service.__file__).parents[2]
WRITER = Path(__file__).with_name("dying_writer.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


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


def blob_of(tmp_path, artifact):
    return tmp_path / "data" / "blobs" / artifact.sha256[:2] / artifact.sha256


# ---- what lies where ----


async def test_a_hosted_uri_is_a_file_with_the_bytes_named_by_its_key(artifact_store, scope, save, tmp_path):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/a b/ü.txt": b"bytes"})
    assert path_of(saved.hosted_uri, tmp_path / "data").read_bytes() == b"bytes"
    assert path_of(saved.hosted_uri, tmp_path / "data") == tmp_path / "data" / "hosted" / "files" / "2" / saved.key


async def test_a_new_version_replaces_the_hosted_file_and_keeps_the_old_blob(artifact_store, scope, save, tmp_path):
    (old,) = await save(artifact_store, scope, {"turn_1/files/a": b"old"})
    with path_of(old.hosted_uri, tmp_path / "data").open("rb") as reader:
        await save(artifact_store, scope, {"turn_1/files/a": b"new"})
        assert reader.read() == b"old"
    assert path_of(old.hosted_uri, tmp_path / "data").read_bytes() == b"new"
    assert_disk_says_what_the_rows_say(tmp_path / "data")


@pytest.mark.parametrize("in_memory", [False, True])
async def test_bytes_that_are_there_already_are_not_written_again(artifact_store, scope, save, tmp_path):
    files = {"turn_1/files/a": b"same", "turn_1/files/b": b"same"}
    (saved, _) = await save(artifact_store, scope, files)
    before = blob_of(tmp_path, saved).stat()
    for _ in range(2):
        await save(artifact_store, scope, files)
    after = blob_of(tmp_path, saved).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert_disk_says_what_the_rows_say(tmp_path / "data")


@pytest.fixture(params=[0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.usefixtures("umask")
async def test_stored_bytes_are_read_only_files_whatever_the_umask(artifact_store, scope, save, tmp_path):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/a": b"x"})
    async with artifact_store.staging() as folder:
        fetched = await artifact_store.fetch(scope, saved, folder)
        assert [
            file.stat().st_mode & 0o777 for file in (fetched, path_of(saved.hosted_uri, tmp_path / "data"))
        ] == [0o444] * 2


async def test_a_symbolic_link_in_the_hosted_folder_leads_nowhere(artifact_store, scope, save, tmp_path):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/a": b"x"})
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    path_of(saved.hosted_uri, tmp_path / "data").with_name("link").symlink_to(outside)
    path_of(saved.hosted_uri, tmp_path / "data").parent.with_name("turn_2").symlink_to(tmp_path)
    async with artifact_store.staging() as folder:
        for uri in (
            saved.hosted_uri.replace("turn_1/a", "turn_1/link"),
            saved.hosted_uri.replace("turn_1/a", "turn_2/outside"),
        ):
            assert path_of(uri, tmp_path / "data").read_bytes() == b"secret"
            assert await artifact_store.fetch_uri(scope, uri, folder) is None
        path_of(saved.hosted_uri, tmp_path / "data").unlink()
        path_of(saved.hosted_uri, tmp_path / "data").symlink_to(outside)
        assert (await artifact_store.fetch_uri(scope, saved.hosted_uri, folder)).read_bytes() == b"x"


async def test_a_uri_may_be_percent_encoded_in_another_way(artifact_store, scope, save):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/é.txt": b"bytes"})
    async with artifact_store.staging() as folder:
        for same in (
            saved.hosted_uri.replace("%C3%A9", "é"),
            saved.hosted_uri.replace("%C3%A9", "e%cc%81"),
            saved.hosted_uri.replace("turn_1", "%74urn_1"),
        ):
            assert same != saved.hosted_uri
            assert (await artifact_store.fetch_uri(scope, same, folder)).read_bytes() == b"bytes"


async def test_uris_of_the_stores_own_other_files_open_nothing(artifact_store, scope, save, tmp_path):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/a": b"x"})
    data = tmp_path / "data"
    async with artifact_store.staging() as folder:
        for file in (blob_of(tmp_path, saved), data / "proofbox.sqlite3", data / "lock"):
            assert file.is_file()
            assert await artifact_store.fetch_uri(scope, file.as_uri(), folder) is None


async def test_a_store_that_was_moved_serves_its_files_from_the_new_place(opened_artifacts, scope, save, tmp_path):
    async with opened_artifacts(tmp_path / "old") as store:
        await save(store, scope, {"turn_1/files/a": b"x"})
    (tmp_path / "old").rename(tmp_path / "new")
    async with opened_artifacts(tmp_path / "new") as store:
        found = await store.latest(scope, FilePath.from_physical("turn_1/files/a"))
        assert (
            path_of(found.hosted_uri, tmp_path / "new") == tmp_path / "new" / "hosted" / "files" / "1" / found.key
        )
        assert path_of(found.hosted_uri, tmp_path / "new").read_bytes() == b"x"


# ---- lives of the process ----


async def test_everything_is_there_after_a_restart(opened_database, scope, save, content, tmp_path):
    rows = []
    for _ in range(2):
        async with opened_database(tmp_path) as database:
            artifacts = SqlArtifactStore(database, LocalBlobStore(tmp_path))
            await artifacts.open()
            calls, sources = SqlCallStore(database), SqlSourcePool(database)
            if not rows:
                (saved,) = await save(artifacts, scope, {"turn_1/files/a": b"x"})
                stored, _ = await calls.claim(new_call(scope))
                await calls.finish(stored.key, CallState.DONE, "answer")
                rows = [await sources.add_file(scope, saved)]
            assert await content(artifacts, scope, await artifacts.latest(scope, saved.path)) == b"x"
            assert await sources.rows(scope) == rows
            assert [call.answer for call in await calls.find(scope.principal, "call-1")] == ["answer"]
            await artifacts.close()


async def test_a_data_folder_serves_one_process_at_a_time(opened_database, tmp_path):
    async with opened_database(tmp_path):
        with pytest.raises(StoreFailedError, match="in use by another process"):
            await Database(tmp_path).open()
    async with opened_database(tmp_path):
        pass


async def test_a_closed_store_says_that_it_is_closed(opened_database, opened_artifacts, scope, save, tmp_path):
    async with opened_artifacts(tmp_path) as store:
        (saved,) = await save(store, scope, {"turn_1/files/a": b"x"})
    with pytest.raises(StoreFailedError, match="is closed"):
        await store.latest(scope, saved.path)
    with pytest.raises(StoreFailedError, match="is closed"):
        await save(store, scope, {"turn_1/files/a": b"x"})
    async with opened_database(tmp_path) as database:
        calls = SqlCallStore(database)
    with pytest.raises(StoreFailedError, match="is closed"):
        await calls.claim(new_call(scope))


async def test_closing_waits_for_what_is_under_way(opened_database, scope, tmp_path):
    async with opened_database(tmp_path) as database:
        claims = [
            asyncio.ensure_future(SqlCallStore(database).claim(new_call(scope, f"call-{number}")))
            for number in range(20)
        ]
        await asyncio.sleep(0)
    assert [is_new for _, is_new in await asyncio.gather(*claims)] == [True] * 20


async def test_leftovers_of_staging_are_gone_after_a_start(opened_artifacts, tmp_path):
    (tmp_path / "staging" / "old" / "deep").mkdir(parents=True)
    (tmp_path / "staging" / "old" / "deep" / "file").write_bytes(b"x")
    async with opened_artifacts(tmp_path):
        assert list((tmp_path / "staging").iterdir()) == []


# ---- killed ----


@pytest.mark.slow
async def test_a_save_that_dies_at_any_file_operation_is_whole_or_undone(opened_artifacts, tmp_path, scope):
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, WRITER, "points", tmp_path],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    died = int(ran.stdout)
    states = []
    for number in range(1, died + 2):
        data_dir = tmp_path / str(number)
        async with opened_artifacts(data_dir) as store:
            found = await store.of_turn(scope, "turn_1")
            async with store.staging() as folder:
                contents = [(await store.fetch(scope, artifact, folder)).read_bytes() for artifact in found]
        assert_disk_says_what_the_rows_say(data_dir)
        states.append(contents)
    before, after = [b"first", b"first, internal"], [b"second", b"first", b"second, internal"]
    # Three files: sealed, placed, two of them hosted and folders synced, so at least so many points lie before.
    assert states.count(before) > 15
    assert states[: states.count(before)] == [before] * states.count(before)
    assert states[states.count(before) :] == [after] * (died + 1 - states.count(before))


async def test_a_process_killed_while_it_saves_leaves_whole_saves_only(opened_artifacts, tmp_path, scope):
    chance = random.Random(7)
    for _ in range(5):
        told = await asyncio.to_thread(_saves_until_killed, tmp_path, chance.randint(1, 12), chance.random() / 100)
        async with opened_artifacts(tmp_path) as store:
            found = await store.of_turn(scope, "turn_1")
            assert len(found) == 3
            assert len({artifact.version for artifact in found}) == 1
            assert found[0].version in {told, told + 1}
        assert_disk_says_what_the_rows_say(tmp_path)


def _saves_until_killed(data_dir, saves, more_s):
    """Kills the writer a while after some saves; the number of the last one that it told of."""
    with subprocess.Popen(
        [sys.executable, WRITER, "loop", data_dir], env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as child:
        told = [child.stdout.readline() for _ in range(saves)]
        time.sleep(more_s)
        child.kill()
        told += child.stdout.readlines()
    return int([line for line in told if line.endswith("\n")][-1])


# ---- damaged ----


async def test_a_file_where_a_folder_of_the_store_belongs_stops_the_start(opened_artifacts, tmp_path):
    (tmp_path / "blobs").write_bytes(b"")
    with pytest.raises(StoreFailedError, match="the artifact folder failed: File exists"):
        async with opened_artifacts(tmp_path):
            pass
    (tmp_path / "blobs").unlink()
    async with opened_artifacts(tmp_path):
        pass


@pytest.mark.parametrize("in_memory", [False, True])
async def test_a_file_where_the_folder_of_a_blob_belongs_fails_the_whole_save_and_nothing_is_left(
    artifact_store, scope, save, tmp_path
):
    files = {f"turn_1/files/{number}": b"%d" % number for number in range(10)}
    in_the_way = tmp_path / "data" / "blobs" / hashlib.sha256(b"7").hexdigest()[:2]
    in_the_way.write_bytes(b"")
    with pytest.raises(StoreFailedError, match="the artifact folder failed: File exists"):
        await save(artifact_store, scope, files)
    in_the_way.unlink()
    assert_disk_says_what_the_rows_say(tmp_path / "data")
    await save(artifact_store, scope, files)
    assert len(await artifact_store.of_turn(scope, "turn_1")) == 10
    assert_disk_says_what_the_rows_say(tmp_path / "data")


@pytest.mark.parametrize("in_memory", [False, True])
async def test_bytes_of_another_size_than_they_are_said_to_have_leave_nothing(
    artifact_store, scope, stage, tmp_path
):
    async with artifact_store.staging() as folder:
        good, bad = (stage(folder, f"turn_1/files/{name}", name.encode()) for name in ("good", "bad"))
        with pytest.raises(StoreFailedError):
            await artifact_store.save(scope, [good, replace(bad, size_bytes=4)])
    assert_disk_says_what_the_rows_say(tmp_path / "data")


async def test_a_database_that_is_none_is_named_without_its_path(tmp_path):
    (tmp_path / "proofbox.sqlite3").write_bytes(b"this was a database once " * 1000)
    with pytest.raises(StoreFailedError) as caught:
        await Database(tmp_path).open()
    assert caught.value.message == "the database of artifacts, sources and calls is damaged or not a database"


async def test_a_damaged_page_is_told_as_damage(opened_database, tmp_path, scope):
    async with opened_database(tmp_path) as database:
        await SqlCallStore(database).claim(new_call(scope))
    with contextlib.closing(sqlite3.connect(tmp_path / "proofbox.sqlite3")) as connection:
        # Every table and index, but not the schema and its revision, without which the file is not even opened.
        roots = [
            row[0]
            for row in connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE rootpage > 0 AND tbl_name <> 'alembic_version'"
            )
        ]
    with (tmp_path / "proofbox.sqlite3").open("r+b") as file:
        for root in roots:
            file.seek((root - 1) * 4096)
            file.write(b"\xff" * 4096)
    async with opened_database(tmp_path) as database:
        calls = SqlCallStore(database)
        for work in (calls.find(scope.principal, "call-1"), calls.claim(new_call(scope)), calls.left_open("x")):
            with pytest.raises(StoreFailedError, match="the database of artifacts, sources and calls is damaged"):
                await work


async def test_in_a_pause_the_log_of_the_database_is_brought_into_its_file(opened_database, scope, tmp_path):
    answer = "a" * 2_000_000  # less than makes SQLite do it by itself, in the middle of a write
    async with opened_database(tmp_path) as database:
        calls = SqlCallStore(database)
        stored, _ = await calls.claim(new_call(scope))
        await calls.finish(stored.key, CallState.DONE, answer)
        file = tmp_path / "proofbox.sqlite3"
        assert file.stat().st_size < len(answer)
        await until(lambda: file.stat().st_size >= len(answer))
        [found] = await calls.find(scope.principal, stored.key.tool_call_id)
        assert found.answer == answer


async def test_small_files_of_a_slow_disk_are_read_side_by_side(artifact_store, scope, save, monkeypatch):
    contents = {f"turn_1/files/{number}": b"%d" % number for number in range(40)}
    saved = await save(artifact_store, scope, contents)
    reading, peak, read = set(), 0, LocalBlobStore.piece

    def slow(files, sha256, *stretch):
        nonlocal peak
        reading.add(sha256)
        peak = max(peak, len(reading))
        time.sleep(0.005)
        reading.discard(sha256)
        return read(files, sha256, *stretch)

    monkeypatch.setattr(LocalBlobStore, "piece", slow)
    assert await artifact_store.contents(scope, saved) == [contents[each.path.physical] for each in saved]
    assert 1 < peak <= LocalBlobStore.threads


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
async def test_damaged_bytes_are_never_given_out_as_whole_and_a_save_heals_them(
    artifact_store, scope, save, content, tmp_path, damage
):
    (saved,) = await save(artifact_store, scope, {"turn_1/files/a": b"12345"})
    blob = blob_of(tmp_path, saved)
    blob.unlink()
    if damage != "gone":
        blob.write_bytes({"changed": b"1234X", "cut": b"123"}[damage])
    async with artifact_store.staging() as folder:
        for fetched in (
            artifact_store.fetch(scope, saved, folder),
            artifact_store.fetch_uri(scope, saved.hosted_uri, folder),
            artifact_store.contents(scope, [saved]),
        ):
            with pytest.raises(
                StoreFailedError, match=r"stored bytes of an artifact are (damaged|missing|cut off)"
            ):
                await fetched
    with pytest.raises(DamagedBytesError):
        await content(artifact_store, scope, saved)
    with pytest.raises(DamagedBytesError):
        _ = [piece async for piece in artifact_store.read(scope, saved, 0, 2)]
    (again,) = await save(artifact_store, scope, {"turn_1/files/a": b"12345"})
    assert await content(artifact_store, scope, again) == b"12345"
    assert await content(artifact_store, scope, saved) == b"12345"
    assert [piece async for piece in artifact_store.read(scope, saved, 0, 2)] == [b"12"]
