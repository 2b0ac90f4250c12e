"""The check of pinned packages against a copy of an advisory database that the test makes."""

import json
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "sandbox_images"))

from advisories import FAILED, FOUND, AdvisoryError, is_affected, main, pins_of  # noqa: E402

LOCK = """\
# made by hand
--index-url https://example.org/simple
Some.Package==1.5 \\
    --hash=sha256:aa \\
    --hash=sha256:bb
    # via nothing
other[extra]==2.0 ; python_version >= "3.11"  # a comment
third==0.9rc1 --hash=sha256:cc
"""


def advisory(name="some-package", events=(), versions=(), **more):
    ranges = [{"type": "ECOSYSTEM", "events": list(events)}] if events else []
    return {
        "id": "GHSA-1",
        "aliases": ["CVE-1"],
        "summary": "reads\nwhat it may not",
        "modified": "2026-11-01T00:00:00Z",
        "affected": [
            {"package": {"ecosystem": "PyPI", "name": name}, "ranges": ranges, "versions": list(versions)}
        ],
        **more,
    }


UP_TO_2 = [{"introduced": "0"}, {"fixed": "2.0"}]


@pytest.fixture
def lock(tmp_path):
    file = tmp_path / "requirements.lock"
    file.write_text(LOCK)
    return file


@pytest.fixture
def check(tmp_path, lock, capsys):
    """Checks the lock against advisories; the exit status, and what was printed."""

    def run(*advisories, arguments=()):
        database = tmp_path / "pypi.zip"
        with zipfile.ZipFile(database, "w") as archive:
            for number, each in enumerate(advisories):
                archive.writestr(f"A-{number}.json", json.dumps(each))
        status = main(["--database", str(database), *arguments, str(lock)])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def test_the_pins_of_a_file_are_read_with_canonical_names(lock):
    assert [(pin.name, str(pin.version)) for pin in pins_of(lock)] == [
        ("some-package", "1.5"),
        ("other", "2.0"),
        ("third", "0.9rc1"),
    ]


def test_a_package_that_is_affected_is_found_and_named(check, lock):
    status, printed = check(advisory(events=UP_TO_2))
    assert status == FOUND
    assert printed.splitlines() == [
        f"{lock}: some-package 1.5: GHSA-1 CVE-1: reads what it may not; fixed in 2.0",
        "advisories: 3 packages in 1 files, 1 advisories up to 2026-11-01, 1 found",
    ]


@pytest.mark.parametrize(
    "other",
    [
        advisory(events=[{"introduced": "0"}, {"fixed": "1.5"}]),
        advisory(name="unused", events=UP_TO_2),
        advisory(events=UP_TO_2, withdrawn="2026-01-01T00:00:00Z"),
        {"id": "X-2", "affected": [{"package": {"ecosystem": "npm", "name": "other"}, "versions": ["2.0"]}]},
        {"id": "X-1"},
    ],
)  # fmt: skip
def test_what_does_not_affect_a_pin_is_not_found(check, other):
    assert check(other)[0] == 0


def test_an_accepted_advisory_is_not_found_by_its_id_or_alias(check):
    for known in ("GHSA-1", "CVE-1"):
        assert check(advisory(events=UP_TO_2), arguments=["--accept", known])[0] == 0


@pytest.mark.parametrize(
    ("version", "events", "affected"),
    [
        ("1.5", [{"introduced": "0"}], True),
        ("1.5rc1", [{"introduced": "1.5"}], False),
        ("1.5.post1", [{"introduced": "0"}, {"last_affected": "1.5"}], False),
        ("1.5", [{"introduced": "0"}, {"last_affected": "1.5"}], True),
        ("1.5", [{"introduced": "0"}, {"limit": "1.5"}], False),
        ("1.10", [{"introduced": "0"}, {"fixed": "1.9"}], False),
        ("3.1", [{"introduced": "3.0"}, {"fixed": "3.2"}, {"introduced": "0"}, {"fixed": "2.5"}], True),
        ("2.7", [{"introduced": "3.0"}, {"fixed": "3.2"}, {"introduced": "0"}, {"fixed": "2.5"}], False),
        ("2.4", [{"introduced": "3.0"}, {"fixed": "3.2"}, {"introduced": "0"}, {"fixed": "2.5"}], True),
        ("0.0.dev1", [{"introduced": "0"}], True),
        ("1.5", [{"introduced": "no version"}], False),
        ("1.5", [], False),
    ],
)
def test_a_range_is_evaluated_as_the_schema_says(version, events, affected):
    assert is_affected(Version(version), {"ranges": [{"type": "ECOSYSTEM", "events": events}]}) is affected
    assert is_affected(Version(version), {"ranges": [{"type": "GIT", "events": events}]}) is False


@pytest.mark.parametrize(("listed", "affected"), [("1.5", True), ("1.5.0", True), ("1.4", False), ("odd", False)])
def test_a_listed_version_is_affected_however_it_is_written(listed, affected):
    assert is_affected(Version("1.5"), {"versions": [listed]}) is affected


def test_a_missing_copy_is_said_with_what_to_do(lock, tmp_path, capsys):
    missing = tmp_path / "none.zip"
    assert main(["--database", str(missing), str(lock)]) == FAILED
    said = capsys.readouterr().err
    assert f"{missing}: there is no copy of the advisory database" in said
    assert "docs/dependencies.md" in said


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_of_advisories_is_refused(lock, tmp_path, capsys, content):
    database = tmp_path / "pypi.zip"
    database.write_bytes(content)
    assert main(["--database", str(database), str(lock)]) == FAILED
    assert str(database) in capsys.readouterr().err


def test_an_advisory_that_is_no_json_is_refused(lock, tmp_path, capsys):
    database = tmp_path / "pypi.zip"
    with zipfile.ZipFile(database, "w") as archive:
        archive.writestr("A-1.json", "[]")
    assert main(["--database", str(database), str(lock)]) == FAILED
    assert str(database) in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["loose>=1", "bare", "wild==1.*", "two==1,==2", "at @ https://example.org/a.whl", "-r more.txt"]
)
def test_a_package_without_an_exact_version_is_refused(tmp_path, line):
    file = tmp_path / "requirements.txt"
    file.write_text(f"{line}\n")
    with pytest.raises(AdvisoryError, match="not pinned"):
        pins_of(file)


def test_the_files_that_make_checks_are_there_and_pinned():
    [line] = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("PINNED :=")]
    files = line.partition(":=")[2].split()
    assert {"requirements.lock", "sandbox_images/requirements.txt"} < set(files)
    assert all(pins_of(ROOT / file) for file in files)
