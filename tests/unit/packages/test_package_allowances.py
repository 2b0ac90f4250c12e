"""A key has at most the packages that the operator allows: names, number, bytes and seconds."""

import asyncio

import pytest

from proofbox.contracts.codes import ContractCode
from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tools import Language
from proofbox.service.access.quotas import NO_LIMITS, Allowances, PackageAllowance, Quotas
from proofbox.service.errors import PackageIndexError, PackagesNotAllowedError
from proofbox.service.packages.places import InstallPlaces
from proofbox.service.packages.port import check_packages
from proofbox.service.packages.refusal import PackageRefusedError
from tests.support.package_index import MIB, caller, installer, package_index

SMALL, LARGE = "key small", "key large"


@pytest.fixture
async def index():
    async with package_index() as made:
        yield made


def of_small(**limits):
    allowance = PackageAllowance(**limits)
    return lambda who: allowance if who == SMALL else PackageAllowance()


async def use(packages, *requirements, key="small"):
    async with packages.use(requirements, caller("acme", key)) as found:
        return [package.name for package in found.packages]


async def refused(packages, *requirements):
    with pytest.raises(PackageRefusedError) as error:
        await use(packages, *requirements)
    assert error.value.code is ContractCode.PACKAGES_TOO_LARGE
    return str(error.value)


def request(*packages):
    fields = {"tool_id": "t", "tool_call_id": "c", "conversation_id": "v", "params": {}, "code": "1"}
    return ToolCallRequest(**fields, packages=list(packages))


class NoIndex:
    url = "http://127.0.0.1:1/simple"


def test_a_key_narrows_the_names_of_the_operator_and_never_widens_them(tmp_path):
    quotas = Quotas(NO_LIMITS)
    quotas.meter("key 1", Allowances(packages=("Scikit.Image", "evil")))
    quotas.meter("key 2", Allowances(packages=()))
    quotas.meter("key 3", Allowances())
    packages = installer(NoIndex(), tmp_path, allowed=["scikit-image", "tiny"], of_caller=quotas.packages)

    def check(who, *names):
        check_packages(request(*names), ExecParams(explore=True), Language.PYTHON, packages, who)

    check("key 1", "scikit-image==1.*")
    check("key 3", "tiny", "scikit-image")
    for who, name, text in (
        ("key 1", "tiny", r"packages\[1\]: tiny is not allowed for this API key \(Scikit\.Image, evil\)"),
        ("key 1", "evil", r"packages\[1\]: evil is not allowed by the operator \(scikit-image, tiny\)"),
        ("key 2", "tiny", r"for this API key \(none\); leave the entry out, or ask the operator"),
        ("key 9", "tiny", r"for this API key \(none\)"),
    ):
        with pytest.raises(PackagesNotAllowedError, match=text) as error:
            check(who, "scikit-image", name)
        assert error.value.errors[-1].field == "packages[1]"
    shown = [packages.describe(f"key {number}").names for number in (1, 2, 3)]
    assert shown == [["scikit-image"], [], ["scikit-image", "tiny"]]


def test_without_lists_all_of_the_index_may_be_asked_for(tmp_path):
    packages = installer(NoIndex(), tmp_path)
    assert packages.describe("key 1").names is None
    assert packages.find_mistakes(["anything"], "key 1") == []


async def test_more_packages_than_a_key_may_have_are_refused_also_if_they_are_there(index, tmp_path):
    index.add("top", "1.0", requires=["below"])
    index.add("below", "1.0")
    packages = installer(index, tmp_path, of_caller=of_small(count_max=1))
    text = await refused(packages, "top")
    assert "2 packages would be installed, 1 may (package_count of the API key" in text
    assert [path for path in index.asked if path.endswith(".whl")] == []
    assert await use(packages, "top", key="large") == ["below", "top"]
    assert "2 packages" in await refused(packages, "top")
    assert await use(packages, "below") == ["below"]


async def test_more_bytes_than_a_key_may_have_are_refused_also_if_they_are_there(index, tmp_path):
    index.add("wide", "1.0", {"wide.bin": bytes(2 * MIB)})
    packages = installer(index, tmp_path, of_caller=of_small(bytes_max=MIB))
    assert f"more than {MIB} bytes (package_bytes of the API key" in await refused(packages, "wide")
    assert await use(packages, "wide", key="large") == ["wide"]
    assert f"more than {MIB} bytes" in await refused(packages, "wide")
    await packages.close()
    again = installer(index, tmp_path, of_caller=of_small(bytes_max=MIB))
    assert f"more than {MIB} bytes" in await refused(again, "wide")
    await again.close()


async def test_a_limit_of_a_key_beyond_that_of_the_operator_widens_nothing(index, tmp_path):
    index.add("wide", "1.0", {"wide.bin": bytes(2 * MIB)})
    packages = installer(index, tmp_path, bytes_max=MIB, of_caller=of_small(bytes_max=4 * MIB, count_max=99))
    assert f"more than {MIB} bytes" in await refused(packages, "wide")


async def test_the_seconds_of_a_key_end_its_installation_and_not_that_of_another(index, tmp_path):
    index.add("tiny", "1.0")
    path = "/files/tiny-1.0-py3-none-any.whl"
    whole, reached, opened = index.server.answers[path], asyncio.Event(), asyncio.Event()

    async def wait(writer):
        reached.set()
        await opened.wait()
        writer.write(whole)
        await writer.drain()

    index.server.answers[path] = wait
    packages = installer(index, tmp_path, of_caller=of_small(time_s=2))
    small = asyncio.create_task(use(packages, "tiny"))
    with pytest.raises(PackageIndexError, match=r"more than 2 s \(package_install_s of the API key"):
        await small
    large = asyncio.create_task(use(packages, "tiny", key="large"))
    reached.clear()
    await reached.wait()
    opened.set()
    assert await large == ["tiny"]


async def test_callers_with_other_limits_do_not_wait_for_an_installation_that_may_have_less(index, tmp_path):
    index.add("wide", "1.0", {"wide.bin": bytes(2 * MIB)})
    packages = installer(index, tmp_path, of_caller=of_small(bytes_max=MIB), places=InstallPlaces(3, 40))
    small, large = await asyncio.gather(
        use(packages, "wide"), use(packages, "wide", key="large"), return_exceptions=True
    )
    assert isinstance(small, PackageRefusedError)
    assert large == ["wide"]
