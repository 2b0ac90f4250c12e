"""Wheels that somebody wrote to get out of the folder that they are unpacked into, or to fill the disk."""

import io
import os
import stat
import struct
import zipfile

import pytest

from proofbox.contracts.codes import ContractCode
from proofbox.service.packages.lock import LockedWheel
from proofbox.service.packages.refusal import PackageRefusedError
from proofbox.service.packages.wheel_files import Room, unpack
from tests.support.package_index import metadata, wheel_bytes

WHEEL = LockedWheel("evil", "1.0", "evil-1.0-py3-none-any.whl", "")
MIB = 1024 * 1024


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "outer" / "overlay"
    folder.mkdir(parents=True)
    return folder


def unpacked(content, folder, *, bytes_left=MIB, files_left=50):
    path = folder.parent / "wheel.whl"
    path.write_bytes(content)
    unpack(path, WHEEL, folder, Room(bytes_left, files_left))
    path.unlink()
    return sorted(str(found.relative_to(folder)) for found in folder.rglob("*") if found.is_file())


def refused(content, folder, code=ContractCode.PACKAGE_REFUSED, **room):
    with pytest.raises(PackageRefusedError) as error:
        unpacked(content, folder, **room)
    assert error.value.code is code
    assert list(folder.rglob("*")) == []
    assert {found.name for found in folder.parent.iterdir()} == {"overlay", "wheel.whl"}
    return str(error.value)


def member(name, kind=stat.S_IFREG | 0o644, **fields):
    info = zipfile.ZipInfo("placeholder")
    info.filename = info.orig_filename = name
    info.external_attr = kind << 16
    for field, value in fields.items():
        setattr(info, field, value)
    return info


def with_member(name, content=b"x", **fields):
    return wheel_bytes("evil", "1.0", members=[(member(name, **fields), content)])


@pytest.mark.parametrize(
    "name",
    [
        "../x.py",
        "a/../../x.py",
        "/etc/x.py",
        "a//x.py",
        "./x.py",
        "a/./x.py",
        "..",
        "a\\..\\..\\x.py",
        "C:\\x.py",
        "a\nb.py",
        "a\x7f.py",
        "x" * 256,
        "/".join(["d"] * 33),
        "/".join(["d" * 200] * 6),
        "evil-1.0.data/purelib/../../x.py",
    ],
)
def test_a_member_with_an_unsafe_name_is_refused(folder, name):
    assert "unsafe name" in refused(with_member(name), folder)


def test_a_name_that_is_cut_at_a_nul_is_refused(folder):
    content = with_member("saveXpy").replace(b"saveXpy", b"save\0py")
    assert "unsafe name" in refused(content, folder)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFBLK, stat.S_IFIFO, stat.S_IFSOCK])
def test_a_link_or_special_file_is_refused(folder, kind):
    assert "link or special file" in refused(with_member("x.py", b"/etc/passwd", kind=kind | 0o777), folder)


def test_a_folder_that_calls_itself_a_file_is_refused(folder):
    assert "link or special file" in refused(with_member("x", kind=stat.S_IFDIR | 0o755), folder)


def test_a_member_that_is_there_twice_is_refused(folder):
    content = wheel_bytes("evil", "1.0", {"x.py": "1", "y.py": "2"}).replace(b"y.py", b"x.py")
    assert "twice" in refused(content, folder)


def test_a_file_that_is_a_folder_too_is_refused(folder):
    assert "as a file and as a folder" in refused(wheel_bytes("evil", "1.0", {"x": "1", "x/y.py": "2"}), folder)


def test_a_bomb_is_refused_before_a_byte_of_it_is_unpacked(folder):
    content = wheel_bytes("evil", "1.0", {f"{number}.py": bytes(MIB) for number in range(8)})
    assert len(content) < 20_000
    refused(content, folder, ContractCode.PACKAGES_TOO_LARGE, bytes_left=7 * MIB)


def test_a_member_that_states_less_than_it_holds_is_cut_there_and_refused(folder):
    content = wheel_bytes("evil", "1.0", {"big.py": bytes(MIB)})
    sizes = struct.pack("<L", MIB)
    assert content.count(sizes) == 2
    with pytest.raises(PackageRefusedError):
        unpacked(content.replace(sizes, struct.pack("<L", 10)), folder)
    assert sum(found.stat().st_size for found in folder.rglob("*")) <= 10


@pytest.mark.parametrize("names", [[f"{number}.py" for number in range(60)], [f"a/b/c/{n}/x" for n in range(40)]])
def test_more_files_and_folders_than_may_be_are_refused(folder, names):
    refused(
        wheel_bytes("evil", "1.0", dict.fromkeys(names, "")), folder, ContractCode.PACKAGES_TOO_LARGE, files_left=55
    )


def test_a_huge_table_of_members_is_refused_before_it_is_read(folder):
    content = wheel_bytes("evil", "1.0")
    end = content[-22:]
    huge = end[:12] + struct.pack("<L", 64 * MIB) + end[16:]
    assert "table of members" in refused(content[:-22] + huge, folder)


def test_members_beyond_the_count_are_refused_before_the_table_is_read(folder, monkeypatch):
    content = wheel_bytes("evil", "1.0", {f"{number}.py": "" for number in range(60)})
    few = wheel_bytes("evil", "1.0")
    counts = struct.pack("<2H", 63, 63)
    assert content[-14:-10] == counts
    read = []
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: read.append(1))
    for stated in (counts, struct.pack("<2H", 1, 1)):
        refused(content[:-14] + stated + content[-10:], folder, ContractCode.PACKAGES_TOO_LARGE, files_left=55)
    refused(few[:-14] + counts + few[-10:], folder, ContractCode.PACKAGES_TOO_LARGE, files_left=55)
    assert read == []


def test_a_second_table_of_the_64_bit_form_is_refused(folder):
    content = wheel_bytes("evil", "1.0")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    assert "64-bit" in refused(content[:-22] + locator + content[-22:], folder)


@pytest.mark.parametrize("content", [b"", b"no archive at all", wheel_bytes("evil", "1.0") + b"more", bytes(5_000)])
def test_what_is_no_archive_is_refused(folder, content):
    refused(content, folder)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_forms_of_compression_are_refused(folder, method):
    assert "form that no wheel needs" in refused(with_member("x.py", compress_type=method), folder)


def test_an_encrypted_member_is_refused(folder):
    content = bytearray(with_member("secret.py"))
    at = content.rindex(b"PK\x01\x02", 0, content.rindex(b"secret.py"))
    content[at + 8] |= 1
    assert "form that no wheel needs" in refused(bytes(content), folder)


@pytest.mark.parametrize(("name", "version"), [("other", "1.0"), ("evil", "2.0"), ("evil", "no version")])
def test_a_wheel_that_is_another_package_inside_is_refused(folder, name, version):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("evil-1.0.dist-info/METADATA", metadata(name, version))
        archive.writestr("evil-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    assert "another package inside" in refused(target.getvalue(), folder)


@pytest.mark.parametrize(
    "names", [[], ["a-1.dist-info/METADATA"], ["a-1.dist-info/METADATA", "b-1.dist-info/METADATA"]]
)
def test_a_wheel_without_its_one_folder_of_facts_is_refused(folder, names):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("x.py", "")
        for name in names:
            archive.writestr(name, metadata("evil", "1.0"))
    assert "dist-info" in refused(target.getvalue(), folder)


def test_huge_metadata_is_refused(folder):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("evil-1.0.dist-info/METADATA", metadata("evil", "1.0") + "x" * 3 * MIB)
        archive.writestr("evil-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    assert "METADATA of" in refused(target.getvalue(), folder, bytes_left=10 * MIB)


def test_a_damaged_member_is_refused(folder):
    content = bytearray(wheel_bytes("evil", "1.0", {"x.py": b"y" * 100}))
    at = content.index(b"x.py") + 6
    content[at] ^= 0xFF
    with pytest.raises(PackageRefusedError):
        unpacked(bytes(content), folder)


def test_a_sound_wheel_has_its_files_and_no_right_beyond_reading_and_running(folder):
    old = os.umask(0o077)
    try:
        files = {"a/b.py": "1", "evil-1.0.data/purelib/c.py": "2", "evil-1.0.data/scripts/run": "#!python"}
        content = wheel_bytes(
            "evil", "1.0", files, members=[(member("tool", stat.S_IFREG | 0o6777), b"#!/bin/sh\n")]
        )
        found = unpacked(content, folder)
    finally:
        os.umask(old)
    assert found == [
        "a/b.py",
        "c.py",
        *(f"evil-1.0.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL")),
        "tool",
    ]
    assert stat.S_IMODE((folder / "tool").stat().st_mode) == 0o755
    assert stat.S_IMODE((folder / "c.py").stat().st_mode) == 0o644


def test_a_file_of_another_wheel_stays_and_a_folder_in_its_place_is_refused(folder):
    (folder / "shared.py").write_text("first")
    unpacked(wheel_bytes("evil", "1.0", {"shared.py": "second"}), folder)
    assert (folder / "shared.py").read_text() == "first"
    with pytest.raises(PackageRefusedError, match="where another package has a file"):
        unpacked(wheel_bytes("evil", "1.0", {"shared.py/x": "second"}), folder)
