"""Which calls may ask for packages, and how a refusal reads for a program and for a model."""

import pytest

from proofbox.contracts.exec_params import ExecParams
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tools import Language
from proofbox.service.calls.invalid_params import InvalidParamsError
from proofbox.service.errors import PackagesNotAllowedError
from proofbox.service.packages.port import InstalledPackages, check_packages
from tests.support.package_index import installer

CALLER = "key 1"


class NoIndex:
    url = "http://127.0.0.1:1/simple"


@pytest.fixture
def packages(tmp_path):
    return installer(NoIndex(), tmp_path / "packages")


def request(*packages):
    return ToolCallRequest(
        tool_id="exec_tools.execute_code_python",
        tool_call_id="c1",
        conversation_id="one",
        turn_id="turn_1",
        params={},
        code="1",
        packages=list(packages),
    )


def test_without_an_index_a_call_is_refused_with_the_setting():
    with pytest.raises(PackagesNotAllowedError, match="PROOFBOX_PACKAGE_INDEX") as refused:
        check_packages(request("tiny"), ExecParams(explore=True), Language.PYTHON, None, CALLER)
    assert refused.value.errors[0].field == "packages"
    with pytest.raises(InvalidParamsError, match="PROOFBOX_PACKAGE_INDEX"):
        check_packages(request(), ExecParams(explore=True, packages=["tiny"]), Language.PYTHON, None, CALLER)
    check_packages(request(), ExecParams(explore=True), Language.PYTHON, None, CALLER)


def test_programs_of_node_have_no_packages(packages):
    with pytest.raises(PackagesNotAllowedError, match="programs in node find no Python packages"):
        check_packages(request("tiny"), ExecParams(explore=True), Language.NODE, packages, CALLER)
    check_packages(request("tiny"), ExecParams(explore=True), Language.BASH, packages, CALLER)


def test_a_model_reads_which_of_its_entries_is_wrong(packages):
    params = ExecParams(explore=True, packages=["other", "tiny>=1"])
    with pytest.raises(InvalidParamsError) as refused:
        check_packages(request("tiny"), params, Language.PYTHON, packages, CALLER)
    [error] = refused.value.errors
    assert (error["field"], "asked for twice" in error["message"]) == ("params.packages[1]", True)


def test_a_note_names_the_first_packages_and_counts_the_others():
    found = InstalledPackages("", (), ("numpy 2.3.1",))
    assert found.note == "Packages: the image has numpy 2.3.1"
