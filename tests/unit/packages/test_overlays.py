"""Installed packages are there as a whole or not at all, go when they are old, and never while they are in use."""

import contextlib
import os
import stat

import pytest

from proofbox.service.packages.overlays import Overlays

KIB = 1024


@pytest.fixture
def overlays(tmp_path):
    made = Overlays(tmp_path / "packages", "mounted", 100 * KIB)
    made.open()
    return made


async def add(overlays, digest, size=30 * KIB):
    with overlays.work_folder() as folder:
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
    unfinished.__enter__()  # and the process is killed
    assert len(names(overlays)) == 3
    again = Overlays(tmp_path / "packages", "mounted", 100 * KIB)
    again.open()
    assert names(again) == before
    assert not left.exists()
    with again.hold("lock") as path:
        assert path == f"/packages/{before[0]}"


async def test_what_sandboxes_see_before_it_is_taken_in_has_a_secret_name_and_goes_back(
    overlays,
):
    with overlays.work_folder() as folder:
        made = folder / "overlay"
        made.mkdir(mode=0o700)
        with contextlib.suppress(OSError), overlays.shown(made) as shown:
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


async def test_one_larger_than_the_room_is_there_for_the_call_that_made_it(overlays):
    await add(overlays, "small")
    await add(overlays, "large", 200 * KIB)
    assert [overlays.has("small"), overlays.has("large")] == [False, True]
