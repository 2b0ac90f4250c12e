"""The resolver itself, on an index of the test's: what it finds, and how it says what it does not find."""

import asyncio
from pathlib import Path

import pytest

from proofbox.contracts.codes import ContractCode
from proofbox.service.errors import PackageIndexError
from proofbox.service.packages.refusal import PackageRefusedError
from tests.support.package_index import MIB, TARGET, package_index, resolver
from tests.support.web_server import response


@pytest.fixture
async def index():
    async with package_index() as made:
        yield made


async def resolve(index, folder: Path, *requirements, unchanged=TARGET.libraries, **limits):
    folder = folder / "work"
    folder.mkdir()
    lock = await resolver(index, **limits).resolve(requirements, unchanged, TARGET, folder)
    return [(wheel.name, wheel.version, wheel.filename) for wheel in lock.wheels]


async def refused(index, folder, *requirements, **limits):
    with pytest.raises(PackageRefusedError) as error:
        await resolve(index, folder, *requirements, **limits)
    message = str(error.value)
    assert message.startswith("packages: ")
    assert "nothing was run" not in message
    assert "127.0.0.1" not in message
    return error.value.code, message


async def test_what_a_package_needs_comes_with_it_and_what_the_image_has_does_not(index, tmp_path):
    index.add("top", "1.0", requires=["below>=1", "numpy>=2"])
    index.add("below", "1.5")
    index.add("below", "0.9")
    assert await resolve(index, tmp_path, "top") == [
        ("below", "1.5", "below-1.5-py3-none-any.whl"),
        ("top", "1.0", "top-1.0-py3-none-any.whl"),
    ]


async def test_markers_are_those_of_the_python_of_the_sandbox(index, tmp_path):
    index.add(
        "top",
        "1.0",
        requires=["old; python_version < '3.13'", "new; python_version >= '3.13'", "win; sys_platform=='win32'"],
    )
    for name in ("old", "new", "win"):
        index.add(name, "1.0")
    assert [name for name, _, _ in await resolve(index, tmp_path, "top")] == ["new", "top"]


async def test_the_wheel_that_fits_the_sandbox_best_is_taken(index, tmp_path):
    for tags in (
        "cp311-cp311-manylinux_2_17_x86_64",
        "cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64",
        "cp313-cp313-manylinux_2_17_aarch64",
        "cp313-cp313-musllinux_1_2_x86_64",
        "cp313-cp313-win_amd64",
        "py3-none-any",
    ):
        index.add("fast", "1.0", tags=tags)
    [(_, _, filename)] = await resolve(index, tmp_path, "fast")
    assert filename == "fast-1.0-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"


async def test_an_unknown_package_and_an_unknown_version_are_not_found(index, tmp_path):
    index.add("here", "1.0")
    code, message = await refused(index, tmp_path, "no-such-package")
    assert (code, "no-such-package" in message) == (ContractCode.PACKAGE_NOT_FOUND, True)
    (tmp_path / "work").rename(tmp_path / "first")
    code, message = await refused(index, tmp_path, "here==9.*")
    assert (code, "here" in message) == (ContractCode.PACKAGE_NOT_FOUND, True)


async def test_a_package_that_would_have_to_be_built_is_refused(index, tmp_path):
    index.server.answers["/files/source-1.0.tar.gz"] = response(b"setup.py", "application/gzip")
    index.link("source", "source-1.0.tar.gz")
    code, message = await refused(index, tmp_path, "source")
    assert code is ContractCode.PACKAGE_WITHOUT_WHEEL, message
    assert "/files/source-1.0.tar.gz" not in index.asked


@pytest.mark.parametrize("tags", ["cp313-cp313-win_amd64", "cp39-cp39-manylinux_2_17_x86_64"])
async def test_a_package_without_a_wheel_for_the_sandbox_is_refused(index, tmp_path, tags):
    index.add("foreign", "1.0", tags=tags)
    code, message = await refused(index, tmp_path, "foreign")
    assert code is ContractCode.PACKAGE_WITHOUT_WHEEL, message


async def test_a_yanked_version_is_taken_only_if_it_is_named(index, tmp_path):
    index.add("shaky", "1.0")
    index.add("shaky", "2.0")
    index.pages["shaky"][-1] = index.pages["shaky"][-1].replace("<a ", "<a data-yanked='broken' ")
    index.link("shaky", "shaky-0.1.tar.gz")
    assert [version for _, version, _ in await resolve(index, tmp_path, "shaky")] == ["1.0"]


async def test_a_conflict_with_a_library_of_the_image_names_it(index, tmp_path):
    index.add("old-style", "1.0", requires=["numpy<2"])
    index.add("numpy", "1.26.4")
    code, message = await refused(index, tmp_path, "old-style")
    assert (code, "numpy" in message) == (ContractCode.PACKAGE_CONFLICT, True)
    (tmp_path / "work").rename(tmp_path / "first")
    unchanged = {"pandas": TARGET.libraries["pandas"]}
    found = await resolve(index, tmp_path, "old-style", "numpy<2", unchanged=unchanged)
    assert [(name, version) for name, version, _ in found] == [("numpy", "1.26.4"), ("old-style", "1.0")]


@pytest.mark.parametrize("where", ["https://evil.test/x.whl", "file:///etc/passwd", "git+https://evil.test/x"])
async def test_a_package_that_needs_an_address_is_refused_and_nobody_asks_there(index, tmp_path, where):
    index.add("sly", "1.0", requires=[f"x @ {where}"])
    code, message = await refused(index, tmp_path, "sly")
    assert (code, "sly==1.0" in message) == (ContractCode.PACKAGE_REFUSED, True)


async def test_an_index_that_is_away_or_fails_may_answer_later(index, tmp_path):
    index.server.answers["/simple/broken/"] = response(b"oops", status="500 Internal Server Error")
    with pytest.raises(PackageIndexError, match="does not answer"):
        await resolve(index, tmp_path, "broken")
    index.server.port = 1
    (tmp_path / "work").rename(tmp_path / "first")
    with pytest.raises(PackageIndexError, match="does not answer"):
        await resolve(index, tmp_path, "anything")


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_an_index_that_refuses_the_login_is_the_operators_matter(index, tmp_path, status):
    index.server.answers["/simple/closed/"] = response(b"", status=status)
    with pytest.raises(PackageIndexError, match="refuses the login"):
        await resolve(index, tmp_path, "closed")


async def test_an_index_that_hangs_is_left_in_time(index, tmp_path):
    hanging = asyncio.Event()

    async def hang(_writer):
        await hanging.wait()

    index.server.answers["/simple/slow/"] = hang
    try:
        with pytest.raises(PackageIndexError):
            await resolve(index, tmp_path, "slow", time_s=1)
    finally:
        hanging.set()


async def test_metadata_without_end_is_left_at_the_limit(index, tmp_path):
    async def endless(writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n")
        while True:
            writer.write(bytes(65_536))
            await writer.drain()

    index.link("fat", "fat-1.0-py3-none-any.whl")
    index.server.answers["/files/fat-1.0-py3-none-any.whl"] = endless
    with pytest.raises((PackageRefusedError, PackageIndexError)):
        await resolve(index, tmp_path, "fat", bytes_max=8 * MIB)
    size = sum(found.stat().st_size for found in (tmp_path / "work").rglob("*") if found.is_file())
    assert size < 64 * MIB


async def test_more_packages_than_may_be_are_refused(index, tmp_path):
    index.add("top", "1.0", requires=[f"part{number}" for number in range(4)])
    for number in range(4):
        index.add(f"part{number}", "1.0")
    code, message = await refused(index, tmp_path, "top", most=4)
    assert (code, "5 packages" in message) == (ContractCode.PACKAGES_TOO_LARGE, True)


async def test_the_user_and_the_machine_change_nothing(index, tmp_path, monkeypatch):
    index.add("plain", "1.0")
    home = tmp_path / "home"
    (home / ".config" / "uv").mkdir(parents=True)
    (home / ".config" / "uv" / "uv.toml").write_text('index-url = "http://127.0.0.1:1/simple"\n')
    for name, value in (("HOME", str(home)), ("XDG_CONFIG_HOME", str(home / ".config"))):
        monkeypatch.setenv(name, value)
    for name in ("UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/simple")
    (tmp_path / "uv.toml").write_text('index-url = "http://127.0.0.1:1/simple"\n')
    assert [name for name, _, _ in await resolve(index, tmp_path, "plain")] == ["plain"]


async def test_a_resolver_without_memory_asks_for_fewer_packages(index, tmp_path):
    index.add("plain", "1.0")
    code, message = await refused(index, tmp_path, "plain", memory_bytes=32 * MIB)
    assert (code, "more memory or disk" in message) == (ContractCode.PACKAGES_TOO_LARGE, True)


async def test_the_resolver_gives_way_to_calls_and_is_killed_before_the_service(index, tmp_path):
    index.add("plain", "1.0")
    answer, seen = index.server.answers["/simple/plain/"], []

    async def look(writer):
        for process in Path("/proc").glob("[0-9]*"):  # noqa: ASYNC240 - a file system in memory
            try:
                if str(tmp_path).encode() not in (process / "cmdline").read_bytes():
                    continue
                nice = {task.read_text().rpartition(")")[2].split()[16] for task in process.glob("task/*/stat")}
                limits = (process / "limits").read_text()
                space = next(line.split()[3] for line in limits.splitlines() if line.startswith("Max address"))
                seen.append((nice, (process / "oom_score_adj").read_text().strip(), int(space)))
            except OSError:
                continue
        writer.write(answer)
        await writer.drain()

    index.server.answers["/simple/plain/"] = look
    await resolve(index, tmp_path, "plain")
    assert seen == [({"10"}, "1000", 2048 * MIB)]


async def test_no_proxy_of_the_machine_is_between_resolver_and_index(index, tmp_path, monkeypatch):
    index.add("plain", "1.0")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert [name for name, _, _ in await resolve(index, tmp_path, "plain")] == ["plain"]
