"""Tables name each row that fails, and a second try hides no test that fails twice."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEW_PLUGINS = "-p no:schemathesis -p no:hypothesispytest -p no:xdist"
CONFTEST = """
from tests.support import second_try, tables

def pytest_addoption(parser):
    parser.addoption("--second-try", action="store_true")
    parser.addoption("--rows", action="store_true")

def pytest_configure(config):
    config.pluginmanager.register(second_try)
    config.pluginmanager.register(tables)
"""
TABLES = """
import pytest

@pytest.fixture
def fresh():
    return []

@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_even(number):
    assert number % 2 == 0

@pytest.mark.parametrize("number", [1, 2, 3])
async def test_awaited(number):
    assert number < 3

@pytest.mark.parametrize("number", [1, 2, 3])
def test_that_ends(number):
    if number == 2:
        raise SystemExit(2)
    assert number == 1

@pytest.mark.xfail(strict=True)
@pytest.mark.parametrize("number", [1, 2])
def test_expected_to_fail(number):
    assert number == 1

@pytest.mark.parametrize("number", [1, 2])
def test_with_a_fixture_of_its_own(fresh, number):
    fresh.append(number)
    assert fresh == [number]

@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.skip(reason="two"))])
def test_with_a_mark(number):
    assert number == 1
"""
FAILS_ONCE = """
from pathlib import Path
import pytest

@pytest.mark.parametrize("name", {names})
def test_fails_once(tmp_path, name):
    tried = Path(__file__).with_name(name)
    assert tried.exists() or tried.write_text("tried") == 0

def test_fails():
    assert {fails} is False
"""


@pytest.fixture
def run(tmp_path):
    """Runs pytest on one module; its exit status and what it printed."""

    def run_pytest(module, *options):
        (tmp_path / "conftest.py").write_text(CONFTEST)
        (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = {FEW_PLUGINS}\nasyncio_mode = auto\n")
        (tmp_path / "test_module.py").write_text(module)
        ran = subprocess.run(
            [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *options, "test_module.py"],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout

    return run_pytest


def test_a_table_is_one_test_that_names_each_row_that_fails(run):
    status, said = run(TABLES)
    assert status == 1
    assert "2 of 4 rows: 1, 3" in said
    assert "test_awaited - AssertionError: 1 of 3 rows: 3" in said
    assert "2 of 3 rows: 2, 3" in said
    # Rows with a fixture or a mark of their own stay apart, and those that are expected to fail.
    assert "4 failed, 3 passed, 1 skipped, 1 xfailed" in said


def test_a_table_whose_row_hangs_ends_with_the_time_limit(run):
    hangs = (
        "@pytest.mark.parametrize('number', [1, 2, 3])\ndef test_hangs(number):\n    threading.Event().wait(60)\n"
    )
    status, said = run(f"import threading, pytest\n{hangs}", "--timeout", "0.2")
    assert (status, "row 1: Timeout" in said, "1 failed" in said) == (1, True, True)


def test_rows_can_be_run_apart(run):
    assert "6 failed, 8 passed, 1 skipped, 1 xfailed" in run(TABLES, "--rows")[1]


def test_a_test_that_passes_alone_is_named_as_flaky_and_passes_the_run(run, tmp_path):
    status, said = run(FAILS_ONCE.format(names=["a", "b"], fails=False), "--second-try")
    names = [f"test_module.py::test_fails_once[{name}]" for name in "ab"]
    assert (status, [name for name in names if f"flaky: {name}" not in said]) == (0, [])
    assert (tmp_path / "flaky.txt").read_text().split() == names
    assert "1 passed, 2 flaky" in said


def test_four_flaky_tests_fail_the_run(run):
    status, said = run(FAILS_ONCE.format(names=["a", "b", "c", "d"], fails=False), "--second-try")
    assert (status, "4 flaky tests" in said, "4 failed, 1 passed" in said) == (1, True, True)


def test_a_test_that_fails_twice_fails_the_run(run, tmp_path):
    status, said = run(FAILS_ONCE.format(names=["a"], fails=True), "--second-try")
    assert (status, "1 failed, 1 flaky" in said) == (1, True)
    assert (tmp_path / "flaky.txt").read_text().split() == ["test_module.py::test_fails_once[a]"]


LEFT_BY_ANOTHER = """
import pytest

left = []

@pytest.fixture(autouse=True, scope="module")
def nothing_is_left():
    yield
    assert left == []

def test_leaves_something():
    left.append(1)

def test_is_blamed():
    pass
"""
SKIPPED_ALONE = """
from pathlib import Path
import pytest

def test_fails_then_skips():
    tried = Path(__file__).with_name("tried")
    if tried.exists():
        pytest.skip("not now")
    tried.touch()
    raise ValueError("a fault")
"""
FIXTURE_FAILS_ONCE = """
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def server():
    tried = Path(__file__).with_name("tried")
    assert tried.exists() or tried.touch()

@pytest.mark.parametrize("number", [1, 2, 3, pytest.param(4, marks=pytest.mark.filterwarnings("ignore"))])
def test_with_a_server(server, number):
    pass
"""


@pytest.mark.parametrize(
    ("module", "options"),
    [(LEFT_BY_ANOTHER, ()), (SKIPPED_ALONE, ()), (FAILS_ONCE.format(names=["a"], fails=True), ("-x",))],
    ids=["another test left it", "skipped alone", "the run was cut short"],
)
def test_what_a_second_try_cannot_show_fails_the_run(run, module, options):
    status, said = run(module, "--second-try", *options)
    assert (status, " flaky" in said) == (1, False), said


def test_a_failure_of_the_fixture_of_a_module_is_one_cause(run):
    status, said = run(FIXTURE_FAILS_ONCE, "--second-try")
    assert (status, "4 flaky" in said) == (0, True), said
