"""An image becomes a folder: whole, as its digests say, and nothing of it lands outside."""

import asyncio
import gzip
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from archives import archive, entry, layer

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.oci.image import ArchiveFile, ImageCache

pytestmark = pytest.mark.oci

FOLDER = {"type": tarfile.DIRTYPE}


def unpack(path: Path, into: Path) -> tuple[int, str]:
    """The exit status of the unpacking process, and its last words."""
    into.mkdir()
    command = [sys.executable, "-m", "proofbox.service.sandbox.oci.unpack_image", str(path), str(into)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


def names_below(folder: Path) -> set[str]:
    added = {"etc", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab"}
    added |= {"proc", "sys", "dev", "out", "tmp", "job"}
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} - added


def test_layers_lie_over_one_another_and_what_one_takes_away_is_gone(tmp_path):
    first = layer(
        *(entry(name, **FOLDER) for name in ("a", "b", "etc")),
        *(entry(name, b"1") for name in ("a/kept", "a/gone", "b/old")),
    )
    second = layer(entry("a/.wh.gone"), entry("b/.wh..wh..opq"), entry("b/new", b"2"), entry("a/kept", b"22"))
    assert unpack(archive(tmp_path / "a.tar", first, second), tmp_path / "root") == (0, "")
    assert names_below(tmp_path / "root") == {"a", "a/kept", "b", "b/new"}
    assert (tmp_path / "root/a/kept").read_bytes() == b"22"


def test_owners_modes_times_and_links_are_kept_and_setuid_bits_and_devices_are_not(tmp_path):
    one = layer(
        entry("etc", **FOLDER),
        entry("bin", **FOLDER, mtime=1000),
        entry("bin/su", b"x", mode=0o6755, uid=7, gid=8, mtime=2000),
        entry("bin/same", type=tarfile.LNKTYPE, linkname="bin/su"),
        entry("bin/soft", type=tarfile.SYMTYPE, linkname="su"),
        entry("bin/disk", type=tarfile.BLKTYPE, devmajor=254, devminor=0),
        entry("bin/pipe", type=tarfile.FIFOTYPE),
    )
    assert unpack(archive(tmp_path / "a.tar", one), tmp_path / "root") == (0, "")
    status = (tmp_path / "root/bin/su").stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o755, 7, 8)
    assert (status.st_mtime, (tmp_path / "root/bin").stat().st_mtime, status.st_nlink) == (2000, 1000, 2)
    assert str((tmp_path / "root/bin/soft").readlink()) == "su"
    assert names_below(tmp_path / "root") == {"bin", "bin/su", "bin/same", "bin/soft"}


def test_names_and_links_that_lead_out_stay_inside(tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    one = layer(
        entry("etc", **FOLDER),
        entry("../../escaped", b"x"),
        entry("/absolute", b"x"),
        entry("out_link", type=tarfile.SYMTYPE, linkname=str(tmp_path / "victim")),
    )
    second = layer(entry("out_link/file", b"x"), entry("hard", type=tarfile.LNKTYPE, linkname="../../etc/passwd"))
    status, said = unpack(archive(tmp_path / "a.tar", one, second), tmp_path / "root")
    assert (status, "No such file" in said or "File exists" in said) == (1, True)
    assert list(victim.iterdir()) == []
    assert names_below(tmp_path / "root") >= {"escaped", "absolute"}
    assert not (tmp_path / "escaped").exists()


def test_a_compressed_layer_is_read_and_checked_by_what_is_in_it(tmp_path):
    plain = layer(entry("etc", **FOLDER), entry("a", b"1"))
    path = archive(tmp_path / "a.tar", gzip.compress(plain), told=[plain])
    assert unpack(path, tmp_path / "root") == (0, "")
    assert names_below(tmp_path / "root") == {"a"}


@pytest.mark.parametrize("case", ["layer", "config", "no image"])
def test_what_is_not_as_its_digests_say_is_refused_and_nothing_is_written(tmp_path, case):
    good, other = layer(entry("a", b"1")), layer(entry("a", b"2"))
    path = tmp_path / "a.tar"
    if case == "layer":
        archive(path, other, told=[good])
    elif case == "config":
        archive(path, good, config_name=f"{'0' * 64}.json")
    else:
        path.write_bytes(good)
    said = {
        "layer": "its layer 1 is damaged",
        "config": "its configuration is damaged",
        "no image": "it is no archive of an image as 'docker save' writes it",
    }
    assert unpack(path, tmp_path / "root") == (1, said[case])
    assert list((tmp_path / "root").iterdir()) == []


async def test_services_that_start_at_one_time_share_one_image_and_a_newer_one_replaces_it_when_it_is_free(
    tmp_path,
):
    path, cache = tmp_path / "a.tar", tmp_path / "cache"
    archive(path, layer(entry("etc", **FOLDER), entry("a", b"1")))
    first, second = ImageCache(cache), ImageCache(cache)
    images = await asyncio.gather(*(one.image(ArchiveFile(path)) for one in (first, second)))
    assert images[0] == images[1]
    assert (images[0].rootfs / "a").read_bytes() == b"1"
    archive(path, layer(entry("etc", **FOLDER), entry("a", b"22")))
    newer, newest = ImageCache(cache), ImageCache(cache)
    assert ((await newer.image(ArchiveFile(path))).rootfs / "a").read_bytes() == b"22"
    assert images[0].rootfs.is_dir() is True  # in use
    first.release()
    second.release()
    archive(path, layer(entry("etc", **FOLDER), entry("a", b"333")))
    await newest.image(ArchiveFile(path))
    assert images[0].rootfs.is_dir() is False
    for one in (newer, newest):
        one.release()


DIES_WHILE_IT_REMOVES = """
import asyncio, os, signal, sys
from pathlib import Path
from proofbox.service.sandbox.oci.image import ArchiveFile, ImageCache

removed = []
def die(event, arguments):
    # The second file of an image that is removed.
    if event == "os.remove":
        removed.append(arguments)
        if len(removed) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(die)
asyncio.run(ImageCache(Path(sys.argv[2])).image(ArchiveFile(Path(sys.argv[1]))))
"""


async def test_an_image_whose_removal_was_cut_short_is_not_taken_for_whole(tmp_path):
    first, second, cache = tmp_path / "a.tar", tmp_path / "b.tar", tmp_path / "cache"
    files = [entry(name, b"x") for name in "abcdef"]
    archive(first, layer(entry("etc", **FOLDER), *files))
    archive(second, layer(entry("etc", **FOLDER), entry("other", b"y")))
    earlier = ImageCache(cache)
    await earlier.image(ArchiveFile(first))
    earlier.release()
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES_WHILE_IT_REMOVES, second, cache)
    assert await killed.wait() == -9
    later = ImageCache(cache)
    image = await later.image(ArchiveFile(first))
    assert {name for name in "abcdef" if (image.rootfs / name).exists()} == set("abcdef")
    later.release()
    other = ImageCache(cache)
    await other.image(ArchiveFile(second))
    other.release()
    assert list(cache.glob(".*")) == []


async def test_an_archive_that_is_damaged_or_missing_is_told_and_leaves_nothing(tmp_path):
    path, cache = tmp_path / "a.tar", tmp_path / "cache"
    with pytest.raises(EngineUnavailableError, match="cannot be read: No such file or directory; make it with"):
        await ImageCache(cache).image(ArchiveFile(path))
    archive(path, layer(entry("a", b"1")), told=[b""])
    with pytest.raises(EngineUnavailableError, match="cannot be unpacked: its layer 1 is damaged"):
        await ImageCache(cache).image(ArchiveFile(path))
    assert [found for found in cache.iterdir() if found.is_dir()] == []
