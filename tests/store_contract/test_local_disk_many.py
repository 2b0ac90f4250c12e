"""Saves of many files, which the local store seals, places and hosts side by side: all of them or none."""

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from disk_check import assert_disk_says_what_the_rows_say, path_of

import proofbox.service
from proofbox.service.errors import StoreFullError
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(proofbox.service.__file__).parents[2])}
WRITER = Path(__file__).with_name("dying_writer.py")
OPERATIONS = {"open", "os.rename", "os.link", "os.mkdir", "os.chmod"}


class Failing:
    """Fails one file operation below a folder, the first, second, third … of those that come while it is armed."""

    def __init__(self):
        self._below = None
        self._left = 0
        sys.addaudithook(self._heard)

    def _heard(self, event, arguments):
        if self._below is None or event not in OPERATIONS or "sqlite" in str(arguments[0]):
            return
        if not str(arguments[0]).startswith(self._below) and not isinstance(arguments[0], int):
            return
        self._left -= 1
        if self._left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")

    def arm(self, below, number):
        self._below, self._left = str(below), number

    def disarm(self):
        """Whether no operation had to fail."""
        self._below = None
        return self._left > 0


FAILING = Failing()


@pytest.fixture
async def artifact_store(opened_artifacts, tmp_path):
    async with opened_artifacts(tmp_path / "data") as store:
        yield store


def contents(count, turn="turn_1"):
    """Every third file has the bytes of the one before."""
    return {f"{turn}/files/{number:03}.txt": b"%d" % (number - number % 3 // 2) for number in range(count)}


async def test_many_files_are_stored_in_their_order_with_their_bytes(
    artifact_store, scope, save, content, tmp_path
):
    files = contents(50)
    saved = await save(artifact_store, scope, files)
    assert [artifact.path.physical for artifact in saved] == list(files)
    assert [await content(artifact_store, scope, artifact) for artifact in saved] == list(files.values())
    assert [path_of(artifact.hosted_uri, tmp_path / "data").read_bytes() for artifact in saved] == list(
        files.values()
    )
    async with artifact_store.staging() as folder:
        fetched = await artifact_store.fetch_all(scope, saved[::-1], folder)
        assert [file.read_bytes() for file in fetched] == list(files.values())[::-1]
    assert_disk_says_what_the_rows_say(tmp_path / "data")


async def test_saves_at_one_time_of_many_files_with_the_same_bytes_are_whole(artifact_store, scope, save, tmp_path):
    turns = [f"turn_{number}" for number in range(1, 7)]
    await asyncio.gather(*(save(artifact_store, scope, contents(30, turn)) for turn in turns))
    for turn in turns:
        assert len(await artifact_store.of_turn(scope, turn)) == 30
    assert_disk_says_what_the_rows_say(tmp_path / "data")


async def test_a_path_that_is_saved_twice_at_once_gets_two_versions(artifact_store, scope, stage, tmp_path):
    async with artifact_store.staging() as folder:
        files = [stage(folder, "turn_1/files/a", data) for data in (b"one", b"two")]
        saved = await artifact_store.save(scope, files)
    assert [artifact.version for artifact in saved] == [1, 2]
    assert path_of(saved[0].hosted_uri, tmp_path / "data").read_bytes() == b"two"


@pytest.mark.parametrize("in_memory", [False, True])
async def test_a_save_of_many_files_in_which_any_operation_fails_leaves_nothing(
    artifact_store, scope, save, stage, tmp_path
):
    expected = await save(artifact_store, scope, {"turn_1/files/000.txt": b"old"})
    async with artifact_store.staging() as folder:
        refused = 0
        for number in range(1, 1_000, 11):
            (folder / str(number)).mkdir()
            files = [stage(folder / str(number), *file) for file in contents(30).items()]
            FAILING.arm(tmp_path / "data", number)
            try:
                # Where the hosting fails, after the files are stored, the save comes through.
                expected = await artifact_store.save(scope, files)
            except StoreFullError:
                refused += 1
            is_past_all = FAILING.disarm()
            await artifact_store.retry_removals()
            assert await artifact_store.of_turn(scope, "turn_1") == expected
            assert [*folder.parent.iterdir()] == [folder]
            if is_past_all:
                break
        assert (is_past_all, refused > 2) == (True, True)
    assert_disk_says_what_the_rows_say(tmp_path / "data")


@pytest.mark.slow
async def test_a_save_of_many_files_that_dies_at_any_file_operation_is_whole_or_undone(
    opened_artifacts, tmp_path, scope
):
    ran = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, WRITER, "many", tmp_path],
        env=ENVIRONMENT,
        check=True,
        capture_output=True,
        text=True,
    )
    last, states = int(ran.stdout), []
    for number in range(1, last + 16, 15):
        async with opened_artifacts(tmp_path / str(number)) as store:
            states.append(sorted(artifact.version for artifact in await store.of_turn(scope, "turn_1")))
        assert_disk_says_what_the_rows_say(tmp_path / str(number))
    before, after = [1, 1], [1] * 41 + [2, 2]
    assert {tuple(state) for state in states} == {tuple(before), tuple(after)}
    assert states.count(before) > 5


def test_bytes_that_are_not_what_they_are_said_to_be_are_told_by_their_path(tmp_path, stage):
    files = LocalBlobStore(tmp_path)
    files.prepare()
    folder = files.stage()
    good, bad = (stage(folder, f"turn_1/files/{name}", b"12345") for name in ("good", "bad"))
    bad.source.path.write_bytes(b"1234")
    with pytest.raises(Exception, match=r"turn_1\.files/bad are not a file of 5 bytes"):
        files.seal([good, bad])
