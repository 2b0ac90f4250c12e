"""Every hostile case has a test that is there, and every test of them is in the index."""

import os
import subprocess
import sys

import pytest

from tests.security.case_index import COLLECTED, IN_IMAGE, INDEX, ROOT, cases

HOW = f"mend {INDEX.relative_to(ROOT)}"


@pytest.fixture(scope="module")
def collected(pytestconfig):
    """The ids of all tests that are marked, by the index or by themselves."""
    named = {case.test.partition("::")[0] for case in cases()}
    marked = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if "mark.security" in path.read_text(encoding="utf-8") and "in_image" not in path.parts
    } - {"tests/security/test_case_index.py"}
    there = sorted(path for path in named | marked if (ROOT / path).is_file())
    files, hostile = pytestconfig.stash[COLLECTED]
    if any("::" in argument for argument in pytestconfig.args):  # of some files, some tests
        files, hostile = frozenset(), ()
    there = [path for path in there if path not in files]
    if not there:
        return hostile
    options = ("--collect-only", "-q", "-m", "security", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *there],
        cwd=ROOT,
        env=os.environ | {"PYTEST_ADDOPTS": ""},  # of a caller, which may print counts in place of names
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-3_000:]
    return [*hostile, *(line for line in done.stdout.splitlines() if "::" in line)]


def test_every_case_names_a_test_that_is_collected(collected):
    gone = [case for case in cases() if not any(case.is_proven_by(test) for test in collected)]
    told = "\n".join(f"[{case.family}] '{case.tried}' names {case.test}, which no module has" for case in gone)
    assert gone == [], f"{told}\n{HOW}: name the test that proves the case now"


def test_every_marked_test_is_in_the_index(collected):
    functions = {case.function for case in cases()}
    unknown = sorted({test.partition("[")[0] for test in collected} - functions)
    assert unknown == [], f"{HOW}: give a line to each of these tests, or take the marker from them"


def test_every_document_of_the_image_is_in_the_index_and_there():
    named = {case.named for case in cases() if case.named.startswith(IN_IMAGE)}
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / IN_IMAGE).glob("*.py")}
    gone = [name for name in named if f'"{name.partition("::")[2]}"' not in sources[ROOT / name.partition("::")[0]]]
    assert gone == [], f"{HOW}: these documents are there no more"


def test_no_case_is_said_twice():
    said = [(case.family, case.tried.lower()) for case in cases()]
    assert sorted({pair for pair in said if said.count(pair) > 1}) == []
    assert len(said) >= 400
