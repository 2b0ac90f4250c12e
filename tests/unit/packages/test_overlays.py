"""Installed packages are there as a whole or not at all, go when they are old, and never while they are in use."""

import asyncio
import contextlib
import os
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import StoreFullError
from proofbox.service.packages.overlays import Overlays, PackageFolderInUseError
from proofbox.service.packages.refusal import PackageRefusedError

KIB = 1024


@pytest.fixture
def overlays(tmp_path):
    made = Overlays(tmp_path / "packages", "mounted", 130 * KIB)
    made.open()
    yield made
    made.close()


async def add(overlays, digest, size=30 * KIB):
    async with overlays.work_folder() as folder:
        made = folder / "overlay"
        (made / "pkg").mkdir(parents=True)
        (made / "pkg" / "data").write_bytes(os.urandom(size))
        await overlays.add(digest, made)


def names(overlays):
    return sorted(found.name for found in overlays.mounted.iterdir())


async def test_an_overlay_is_found_by_its_lock_and_has_a_name_that_nobody_can_guess(overlays, tmp_path):
    await add(overlays, "lock")
    with overlays.hold("lock") as path:
        assert path == f"/packages/{names(overlays)[0]}"
    with overlays.hold("other") as path:
        assert path is None
    other = Overlays(tmp_path / "other", "mounted", 100 * KIB)
    other.open()
    await add(other, "lock")
    assert names(other) != names(overlays)
    other.close()


async def test_who_is_in_a_sandbox_can_read_an_overlay_and_list_none(overlays):
    old = os.umask(0o077)
    try:
        await add(overlays, "lock")
    finally:
        os.umask(old)
    [name] = names(overlays)
    assert stat.S_IMODE(overlays.mounted.stat().st_mode) == 0o711
    assert stat.S_IMODE((overlays.mounted / name).stat().st_mode) == 0o755
    assert stat.S_IMODE((overlays.mounted / name / "pkg").stat().st_mode) == 0o755
    assert stat.S_IMODE((overlays.mounted.parent / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE((overlays.mounted.parent / "resolutions").stat().st_mode) == 0o700


async def test_the_next_process_finds_what_is_whole_and_removes_what_is_not(overlays, tmp_path):
    await add(overlays, "lock")
    before = names(overlays)
    left = overlays.mounted.parent / "work" / "abcd"
    left.mkdir()
    (left / "half").write_text("half")
    (overlays.mounted / "odd").mkdir()
    half = overlays.mounted.parent / "work" / "overlay"
    half.mkdir()
    unfinished = overlays.shown(half)
    await unfinished.__aenter__()  # and the process is killed
    assert len(names(overlays)) == 3
    overlays.close()
    again = Overlays(tmp_path / "packages", "mounted", 100 * KIB)
    again.open()
    assert names(again) == before
    assert not left.exists()
    with again.hold("lock") as path:
        assert path == f"/packages/{before[0]}"
    again.close()


async def test_what_sandboxes_see_before_it_is_taken_in_has_a_secret_name_and_goes_back(overlays):
    async with overlays.work_folder() as folder:
        made = folder / "overlay"
        made.mkdir(mode=0o700)
        with contextlib.suppress(OSError):
            async with overlays.shown(made) as shown:
                assert shown.parent == overlays.mounted
                assert len(shown.name) >= 40
                assert stat.S_IMODE(shown.stat().st_mode) == 0o755
                (shown / "added").touch()
                raise OSError
        assert names(overlays) == []
        assert (made / "added").exists()


async def test_those_not_used_for_longest_go_when_there_is_no_room(overlays):
    for digest in ("first", "second", "third"):
        await add(overlays, digest)
    with overlays.hold("first"):
        pass
    await add(overlays, "fourth")
    assert [overlays.has(digest) for digest in ("first", "second", "third", "fourth")] == [True, False, True, True]
    assert len(names(overlays)) == 3
    assert list((overlays.mounted.parent / "work").iterdir()) == []


async def test_what_is_in_use_stays_also_without_room(overlays):
    await add(overlays, "used")
    with overlays.hold("used"), overlays.hold("used"):
        for digest in ("a", "b", "c", "d"):
            await add(overlays, digest)
        assert overlays.has("used")
    for digest in ("e", "f", "g"):
        await add(overlays, digest)
    assert not overlays.has("used")


async def test_one_larger_than_the_room_is_refused_and_leaves_the_others(overlays):
    await add(overlays, "small")
    with pytest.raises(PackageRefusedError) as refused:
        await add(overlays, "large", 200 * KIB)
    assert refused.value.code is ContractCode.PACKAGES_TOO_LARGE
    assert [overlays.has("small"), overlays.has("large")] == [True, False]


async def test_one_that_does_not_fit_beside_those_in_use_is_refused_until_they_are_not(overlays):
    for digest in ("a", "b", "c"):
        await add(overlays, digest)
    with overlays.hold("a"), overlays.hold("b"), overlays.hold("c"):
        with pytest.raises(StoreFullError, match="PROOFBOX_PACKAGE_CACHE_BYTES_MAX: 133120") as refused:
            await add(overlays, "d")
        assert refused.value.retryable
        assert len(names(overlays)) == 3
        overlays.require_room()
    await add(overlays, "d")
    assert overlays.has("d")


async def test_nothing_is_begun_while_those_in_use_take_all_bytes(tmp_path):
    overlays = Overlays(tmp_path / "packages", "mounted", 40 * KIB)
    overlays.open()
    await add(overlays, "used", 32 * KIB)
    with overlays.hold("used"), pytest.raises(StoreFullError, match="call again later"):
        overlays.require_room()
    overlays.require_room()
    overlays.close()


async def test_installations_that_end_together_remove_the_same_old_ones_once(overlays):
    # One thread: both are measured before the first removal ends.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    for digest in ("a", "b", "c"):
        await add(overlays, digest)
    await asyncio.gather(*(add(overlays, digest, 54 * KIB) for digest in ("d", "e")))
    assert [overlays.has(digest) for digest in "abcde"] == [False, False, False, True, True]
    assert len(names(overlays)) == 2
    assert list((overlays.mounted.parent / "work").iterdir()) == []


async def test_those_that_cannot_be_moved_away_still_count(overlays, tmp_path):
    for digest in ("a", "b", "c"):
        await add(overlays, digest)
    work = overlays.mounted.parent / "work"
    work.rmdir()
    work.touch()
    made = tmp_path / "made"
    made.mkdir()
    (made / "data").write_bytes(bytes(30 * KIB))
    await overlays.add("d", made)
    assert [overlays.has(digest) for digest in "abcd"] == [True] * 4
    work.unlink()
    work.mkdir()
    await add(overlays, "e")
    assert [overlays.has(digest) for digest in "abcde"] == [False, False, True, True, True]


async def test_empty_files_and_folders_take_room(overlays):
    async with overlays.work_folder() as folder:
        made = folder / "overlay"
        made.mkdir()
        for number in range(30):
            (made / f"{number}.py").touch()
            (made / f"folder{number}").mkdir()
        with pytest.raises(PackageRefusedError):
            await overlays.add("many", made)


async def test_a_folder_has_one_process_and_the_mode_that_the_operator_gave_it(overlays, tmp_path):
    second = Overlays(tmp_path / "packages", "mounted", 130 * KIB)
    async with overlays.work_folder() as folder:
        with pytest.raises(PackageFolderInUseError, match="PROOFBOX_PACKAGE_DIR"):
            second.open()
        assert folder.exists()
    overlays.mounted.parent.chmod(0o750)
    overlays.close()
    second.open()
    assert stat.S_IMODE(overlays.mounted.parent.stat().st_mode) == 0o750
    second.close()
