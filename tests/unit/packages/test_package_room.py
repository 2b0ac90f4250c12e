"""Room on the disk is reserved before anything is downloaded or unpacked, and packages in use stay."""

import pytest

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import StoreFullError
from proofbox.service.packages.refusal import PackageRefusedError
from tests.support.package_index import MIB, caller, installer, package_index, wheel_bytes
from tests.support.web_server import response

FILE = "/files/{}-1.0-py3-none-any.whl"


@pytest.fixture
async def index():
    async with package_index() as made:
        yield made


def using(packages, *requirements):
    return packages.use(requirements, caller("acme"))


async def install(packages, *requirements):
    async with using(packages, *requirements):
        pass


def add(index, name, size, *, announced=True):
    index.add(name, "1.0", {f"{name}.bin": bytes(size)})
    if announced:
        index.announce(name, "1.0")


async def test_without_room_for_what_the_index_announces_nothing_is_downloaded(index, tmp_path):
    add(index, "held", 3 * MIB)
    index.add_wheel("wanted", "1.0", b"x" * 2 * MIB)
    index.announce("wanted", "1.0")
    packages = installer(index, tmp_path, cache_bytes=4 * MIB)
    async with using(packages, "held"):
        with pytest.raises(StoreFullError, match=rf"and these {2 * MIB} \(PROOFBOX_PACKAGE_CACHE_BYTES_MAX"):
            await install(packages, "wanted")
    assert FILE.format("wanted") not in index.asked


async def test_the_limit_is_reserved_where_the_index_announces_no_size(index, tmp_path):
    add(index, "held", 3 * MIB)
    add(index, "plain", 10, announced=False)
    packages = installer(index, tmp_path, cache_bytes=6 * MIB, bytes_max=4 * MIB)
    async with using(packages, "held"):
        with pytest.raises(StoreFullError, match=f"and these {4 * MIB} "):
            await install(packages, "plain")
        assert FILE.format("plain") not in index.asked
        index.announce("plain", "1.0")
        await install(packages, "plain")


async def test_what_the_wheels_will_take_is_reserved_before_they_are_unpacked(index, tmp_path):
    add(index, "held", 2 * MIB)
    damaged = bytearray(wheel_bytes("packed", "1.0", {"packed.bin": bytes(3 * MIB)}))
    damaged[60] ^= 0xFF  # so that unpacking would fail in another way
    index.add_wheel("packed", "1.0", bytes(damaged))
    index.announce("packed", "1.0")
    packages = installer(index, tmp_path, cache_bytes=4 * MIB)
    async with using(packages, "held"):
        with pytest.raises(StoreFullError):
            await install(packages, "packed")
    assert FILE.format("packed") in index.asked
    assert list((tmp_path / "work").iterdir()) == []
    with pytest.raises(PackageRefusedError, match="cannot be unpacked"):
        await install(packages, "packed")


async def test_old_packages_make_room_before_the_download_and_those_in_use_stay(index, tmp_path):
    for name in ("used", "old"):
        add(index, name, MIB)
    packages = installer(index, tmp_path, cache_bytes=3 * MIB)
    mounted, seen = tmp_path / "mounted", []
    await install(packages, "old")
    async with using(packages, "used") as used:
        index.add_wheel("next", "1.0", b"x" * (MIB + MIB // 2))
        index.announce("next", "1.0")
        whole = index.server.answers[FILE.format("next")]

        async def look(writer):
            seen.extend(path.name for path in mounted.iterdir())
            writer.write(whole)
            await writer.drain()

        index.server.answers[FILE.format("next")] = look
        with pytest.raises(PackageRefusedError):
            await install(packages, "next")
        assert [f"/packages/{name}" for name in seen] == [used.folder]


async def test_what_is_being_installed_counts_for_the_next_one(tmp_path, index):
    packages = installer(index, tmp_path, cache_bytes=4 * MIB)
    overlays = packages.parts.overlays
    async with overlays.reserve(3 * MIB) as reserved:
        with pytest.raises(StoreFullError, match=f"are being installed {3 * MIB}, and these {2 * MIB}"):
            async with overlays.reserve(2 * MIB):
                pass
        with pytest.raises(StoreFullError):
            await overlays.resize(reserved, 5 * MIB)
        assert reserved.size_bytes == 3 * MIB
        await overlays.resize(reserved, 2 * MIB)
        async with overlays.reserve(2 * MIB):
            pass
    async with overlays.reserve(4 * MIB):
        pass


async def test_a_disk_without_the_bytes_is_full_and_no_package_goes_in_vain(index, tmp_path):
    add(index, "tiny", 10)
    packages = installer(index, tmp_path, cache_bytes=10**19)
    await install(packages, "tiny")
    with pytest.raises(StoreFullError, match="the disk of PROOFBOX_PACKAGE_DIR lacks"):
        async with packages.parts.overlays.reserve(10**18):
            pass
    asked = len(index.asked)
    await install(packages, "tiny")
    assert len(index.asked) == asked


async def test_a_wheel_that_is_longer_than_announced_is_left_there(index, tmp_path):
    add(index, "liar", 10)
    index.announce("liar", "1.0", 100)
    packages = installer(index, tmp_path)
    with pytest.raises(PackageRefusedError, match="longer than the 100 bytes that were announced") as refused:
        await install(packages, "liar")
    assert refused.value.code is ContractCode.PACKAGE_REFUSED


async def test_announced_sizes_beyond_the_limit_are_refused_before_the_download(index, tmp_path):
    index.add_wheel("huge", "1.0", b"x")
    index.announce("huge", "1.0", 5 * MIB)
    index.server.answers[FILE.format("huge")] = response(b"x")
    with pytest.raises(PackageRefusedError, match=f"more than {4 * MIB} bytes"):
        await install(installer(index, tmp_path, bytes_max=4 * MIB), "huge")
    assert FILE.format("huge") not in index.asked
