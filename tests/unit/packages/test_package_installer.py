"""Packages are installed once, found again without the index, and the same ones for a rerun."""

import asyncio
from dataclasses import replace

import pytest

from proofbox.contracts.codes import ContractCode
from proofbox.service.access.quotas import Share
from proofbox.service.errors import PackageIndexError, QueueFullError, StoreFailedError, StoreFullError
from proofbox.service.packages.lock import LockedWheel
from proofbox.service.packages.places import InstallPlaces
from proofbox.service.packages.refusal import PackageRefusedError
from tests.support.package_index import MIB, TARGET, caller, installer, package_index, wheel_bytes
from tests.support.web_server import redirect, response, web_server


@pytest.fixture
async def index():
    async with package_index() as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "packages"


async def use(packages, *requirements, pinned=None, owner="owner", key=None):
    async with packages.use(requirements, caller(owner, key), pinned) as found:
        return found


class Gate:
    """Lets a wheel of the index be downloaded when it is opened."""

    def __init__(self, index, path):
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self._whole = index.server.answers[path]
        index.server.answers[path] = self._answer

    async def _answer(self, writer):
        self.reached.set()
        await self.opened.wait()
        writer.write(self._whole)
        await writer.drain()


TINY = "/files/tiny-1.0-py3-none-any.whl"


def placed(folder, found):
    root = folder / "mounted" / found.folder.removeprefix("/packages/")
    return sorted(str(each.relative_to(root)) for each in root.rglob("*.py"))


async def test_the_second_call_does_not_ask_the_index(index, folder):
    sha256 = index.add("tiny", "1.0", {"tiny/__init__.py": ""})
    packages = installer(index, folder)
    first = await use(packages, "tiny==1.*")
    asked = len(index.asked)
    assert await use(packages, "tiny==1.*") == first
    assert len(index.asked) == asked
    assert placed(folder, first) == ["tiny/__init__.py"]
    [package] = first.packages
    assert (package.name, package.version, package.sha256) == ("tiny", "1.0", sha256)
    assert first.note == "Packages: installed tiny 1.0"
    await packages.close()


async def test_the_next_process_does_not_ask_the_index_either(index, folder):
    index.add("tiny", "1.0")
    packages = installer(index, folder)
    first = await use(packages, "tiny")
    await packages.close()
    asked = len(index.asked)
    assert await use(installer(index, folder), "tiny") == first
    assert len(index.asked) == asked


async def test_versions_are_looked_for_again_after_their_time(index, folder):
    index.add("tiny", "1.0")
    packages = installer(index, folder, resolution_s=0)
    await use(packages, "tiny")
    index.add("tiny", "1.1")
    assert [package.version for package in (await use(packages, "tiny")).packages] == ["1.1"]


async def test_calls_for_the_same_packages_at_the_same_time_install_once(index, folder):
    index.add("tiny", "1.0")
    packages = installer(index, folder)
    found = await asyncio.gather(*(use(packages, "tiny") for _ in range(8)))
    assert len(set(map(repr, found))) == 1
    assert index.asked.count("/files/tiny-1.0-py3-none-any.whl") == 1


async def test_the_observer_gets_what_was_found_installed_and_could_not_be(index, folder):
    class Counted:
        def __init__(self):
            self.seen = []

        def packages_found(self):
            self.seen.append("found")

        def packages_installed(self, *, ok, seconds):
            self.seen.append((ok, seconds >= 0))

    index.add("tiny", "1.0")
    packages = installer(index, folder)
    packages.observer = counted = Counted()
    found = await use(packages, "tiny")
    await use(packages, "tiny")
    await use(packages, "tiny", pinned=found.packages)
    with pytest.raises(PackageRefusedError):
        await use(packages, "no-such-package")
    assert counted.seen == [(True, True), "found", "found", (False, True)]


async def test_a_caller_that_leaves_ends_no_installation_of_others(index, folder):
    index.add("tiny", "1.0")
    packages = installer(index, folder)
    leaving, staying = (asyncio.create_task(use(packages, "tiny")) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    assert (await staying).packages[0].name == "tiny"


async def test_callers_of_the_same_packages_wait_in_their_own_lines_and_install_once(index, folder):
    index.add("tiny", "1.0")
    gate = Gate(index, TINY)
    places = InstallPlaces(2, 10, lambda _: Share(0, 1))
    packages = installer(index, folder, places=places)
    first = [asyncio.create_task(use(packages, "tiny", owner="a")) for _ in range(2)]
    await gate.reached.wait()
    with pytest.raises(QueueFullError, match="1 calls of yours wait"):
        await use(packages, "tiny", owner="a")
    other = asyncio.create_task(use(packages, "tiny", owner="b"))
    while places.running_of("b") == 0:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)
    assert (places.running_of("a"), places.queued_of("a"), places.queued_of("b")) == (1, 1, 0)
    assert packages.preparing == 3
    gate.opened.set()
    found = await asyncio.gather(*first, other)
    assert len(set(map(repr, found))) == 1
    assert index.asked.count(TINY) == 1
    assert (places.running, places.queued, packages.preparing) == (0, 0, 0)


async def test_an_installation_has_its_place_until_its_end_although_its_caller_left(index, folder):
    index.add("tiny", "1.0")
    gate = Gate(index, TINY)
    places = InstallPlaces(1, 0)
    packages = installer(index, folder, places=places)
    leaving = asyncio.create_task(use(packages, "tiny"))
    await gate.reached.wait()
    leaving.cancel()
    await asyncio.wait([leaving])
    assert places.running == 1
    with pytest.raises(QueueFullError):
        await use(packages, "other")
    gate.opened.set()
    while places.running:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0)
    assert (await use(packages, "tiny")).packages[0].name == "tiny"


async def test_who_joins_late_has_time_of_its_own(index, folder):
    index.add("tiny", "1.0")
    gate = Gate(index, TINY)
    packages = installer(index, folder, time_s=4)
    starting = asyncio.create_task(use(packages, "tiny", owner="a"))
    await gate.reached.wait()
    joining = asyncio.create_task(use(packages, "tiny", owner="b"))
    with pytest.raises(PackageIndexError, match=r"took more than 4 s"):
        await starting
    gate.opened.set()
    assert (await joining).packages[0].name == "tiny"


async def test_closing_waits_for_the_thread_that_unpacks_and_leaves_no_file(index, folder):
    index.add("tiny", "1.0", {f"tiny/{number}.py": "1" for number in range(80)})
    packages = installer(index, folder)
    using = asyncio.create_task(use(packages, "tiny"))
    while not list(folder.glob("work/*/overlay/tiny/*")):  # noqa: ASYNC110 - a thread writes them
        await asyncio.sleep(0)
    await packages.close()
    assert list((folder / "work").iterdir()) == []
    await asyncio.wait([using])
    again = installer(index, folder)
    assert (await use(again, "tiny")).packages[0].name == "tiny"
    await again.close()


async def test_a_folder_of_another_process_is_refused_with_the_setting(index, folder):
    packages = installer(index, folder)
    with pytest.raises(StoreFailedError, match="PROOFBOX_PACKAGE_DIR"):
        installer(index, folder)
    await packages.close()


async def test_what_the_image_has_needs_no_overlay(index, folder):
    found = await use(installer(index, folder), "numpy>=2")
    assert (found.folder, found.packages) == ("", ())
    assert found.note == "Packages: the image has numpy 2.3.1"


async def test_another_version_of_a_library_of_the_image_replaces_it(index, folder):
    index.add("numpy", "1.26.4")
    found = await use(installer(index, folder), "numpy<2")
    assert found.replaces
    assert [package.version for package in found.packages] == ["1.26.4"]


async def test_a_rerun_gets_the_wheels_of_the_first_time_although_there_are_newer_ones(index, folder, tmp_path):
    index.add("top", "1.0", requires=["below"])
    index.add("below", "1.0")
    first = await use(installer(index, folder), "top")
    index.add("top", "1.1")
    index.add("below", "1.1")
    again = await use(installer(index, tmp_path / "elsewhere"), "top", pinned=first.packages)
    assert again.packages == first.packages
    assert placed(tmp_path / "elsewhere", again) == placed(folder, first)


async def test_a_rerun_refuses_a_wheel_that_does_not_fit_the_python_of_now(index, folder, tmp_path):
    index.add("fast", "1.0", tags="cp313-cp313-manylinux_2_17_x86_64")
    first = await use(installer(index, folder), "fast")
    later = installer(index, tmp_path / "later", target=replace(TARGET, image_digest="sha256:2", python="3.14.1"))
    with pytest.raises(PackageRefusedError, match=r"does not fit Python 3\.14\.1") as refused:
        await use(later, "fast", pinned=first.packages)
    assert refused.value.code is ContractCode.PACKAGE_WITHOUT_WHEEL


async def test_a_rerun_refuses_a_wheel_with_other_bytes(index, folder, tmp_path):
    index.add("tiny", "1.0")
    first = await use(installer(index, folder), "tiny")
    index.pages.clear()
    index.add("tiny", "1.0", {"tiny.py": "evil = True"})
    with pytest.raises(PackageRefusedError, match="no longer has"):
        await use(installer(index, tmp_path / "elsewhere"), "tiny", pinned=first.packages)


async def test_a_wheel_with_another_hash_than_announced_is_refused_and_leaves_nothing(index, folder):
    index.add("tiny", "1.0")
    index.server.answers["/files/tiny-1.0-py3-none-any.whl"] = response(
        wheel_bytes("tiny", "1.0", {"x.py": "evil"})
    )
    with pytest.raises(PackageRefusedError) as error:
        await use(installer(index, folder), "tiny")
    assert error.value.code is ContractCode.PACKAGE_REFUSED
    assert list((folder / "mounted").iterdir()) == []
    assert list((folder / "work").iterdir()) == []


async def test_the_hash_of_an_index_without_hashes_is_recorded(index, folder):
    sha256 = index.add("tiny", "1.0")
    index.pages["tiny"] = [index.pages["tiny"][0].replace(f"#sha256={sha256}", "")]
    index.link("tiny", "tiny-0.1.tar.gz")
    found = await use(installer(index, folder), "tiny")
    assert found.packages[0].sha256 == sha256


async def test_downloads_and_files_beyond_the_limits_are_refused(index, folder):
    index.add("bomb", "1.0", {"bomb.bin": bytes(8 * MIB)})
    index.add_wheel("fat", "1.0", wheel_bytes("fat", "1.0") + bytes(5 * MIB))
    packages = installer(index, folder, bytes_max=4 * MIB)
    for name in ("bomb", "fat"):
        with pytest.raises(PackageRefusedError) as error:
            await use(packages, name)
        assert error.value.code is ContractCode.PACKAGES_TOO_LARGE
    assert list((folder / "mounted").iterdir()) == []


async def test_an_index_that_fails_in_a_download_may_answer_later(index, folder):
    index.add("tiny", "1.0")
    whole = index.server.answers["/files/tiny-1.0-py3-none-any.whl"]
    packages = installer(index, folder)
    for broken in (response(b"", status="503 Busy"), whole[:-20], redirect("/files/tiny-1.0-py3-none-any.whl")):
        index.server.answers["/files/tiny-1.0-py3-none-any.whl"] = broken
        with pytest.raises(PackageIndexError, match="call again later"):
            await use(packages, "tiny")
    index.server.answers["/files/tiny-1.0-py3-none-any.whl"] = whole
    assert (await use(packages, "tiny")).packages[0].version == "1.0"


@pytest.mark.parametrize("address", ["http://127.0.0.2:{port}/files/x", "http://localhost:1/x", "http://[::1]:1/x"])
async def test_a_redirect_or_link_from_the_index_to_a_private_address_is_refused(index, folder, address):
    index.add("tiny", "1.0")
    index.server.answers["/files/tiny-1.0-py3-none-any.whl"] = redirect(address.format(port=index.server.port))
    asked = len(index.asked)
    with pytest.raises(PackageRefusedError, match="not on the public internet"):
        await use(installer(index, folder), "tiny")
    assert "/files/x" not in index.asked[asked:]


async def test_another_port_of_the_host_of_the_index_is_not_the_index(index, folder):
    index.add("tiny", "1.0")
    async with web_server() as other:
        other.answers["/x"] = index.server.answers[TINY]
        index.server.answers[TINY] = redirect(other.url("/x"))
        with pytest.raises(PackageRefusedError, match="not on the public internet"):
            await use(installer(index, folder), "tiny")
        assert other.requests == []


async def test_a_full_disk_is_not_a_failure_of_the_index(index, folder, tmp_path):
    sha256 = index.add("tiny", "1.0")
    wheel = LockedWheel("tiny", "1.0", TINY.rpartition("/")[2], index.server.url(TINY), sha256)
    (tmp_path / "0.whl").symlink_to("/dev/full")
    packages = installer(index, folder)
    with pytest.raises(StoreFullError, match="the disk has no room"):
        await packages.parts.downloads.fetch([wheel], tmp_path, packages.limits)


async def test_a_redirect_within_the_index_is_followed(index, folder):
    index.add("tiny", "1.0")
    path = "/files/tiny-1.0-py3-none-any.whl"
    index.server.answers["/elsewhere"] = index.server.answers[path]
    index.server.answers[path] = redirect("/elsewhere")
    assert (await use(installer(index, folder), "tiny")).packages[0].version == "1.0"


async def test_another_image_has_an_overlay_of_its_own(index, folder):
    index.add("tiny", "1.0")
    packages = installer(index, folder)
    first = await use(packages, "tiny")
    await packages.close()
    other = await use(installer(index, folder, target=replace(TARGET, image_digest="sha256:2")), "tiny")
    assert first.folder != other.folder


def test_names_that_are_not_allowed_or_double_are_mistakes(folder):
    class NoIndex:
        url = "http://127.0.0.1:1/simple"

    packages = installer(NoIndex(), folder, allowed=["Scikit.Image", "tiny"])
    found = packages.find_mistakes(["scikit-image==1.*", "evil", "tiny", "tiny>1", "scikit-image==1.*.2"], "key 1")
    assert [number for number, _ in found] == [1, 3, 4]
    assert "not allowed by the operator (Scikit.Image, tiny)" in found[0][1]
