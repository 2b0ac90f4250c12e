"""One verdict for each promise, from what was found."""

from dataclasses import replace
from pathlib import Path

import pytest

from proofbox.contracts.artifacts import Checks, Promise
from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.file_content import FileContent
from proofbox.service.jobs.verdicts import extras, failed_with_bytes, judge, mime_to_store
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import Collected, CollectedFile, FileState, Inspection

LIMITS = CallLimits(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, artifact_bytes=1_000_000)
OK = Inspection(ok=True, mime="text/csv")
BROKEN = Inspection(ok=False, mime="", problem="is damaged")


def path_of(rel):
    return FilePath("turn_1", Namespace.FILES, rel)


def promise_of(rel, *, is_glob=False, low=1, high=1, **checks):
    return Promise(path_of(rel), is_glob, "d", "external", low, high, Checks(**checks))


def found_of(rel, state=FileState.FILE, size=5_000, inspection=OK, promise=0):
    source = FileContent(Path("/staged/0")) if state is FileState.FILE and inspection and inspection.ok else None
    return CollectedFile(path_of(rel), promise, state, size, inspection, source, "0" * 64 if source else None)


def only(promise, *found):
    [verdict] = judge((promise,), Collected(found), LIMITS)
    return verdict.code.value, verdict.message


@pytest.mark.parametrize(
    ("found", "code", "message"),
    [
        (found_of("a.csv"), "produced", None),
        (found_of("a.csv", FileState.MISSING, 0, None), "missing_file", "file not produced"),
        (found_of("a.csv", FileState.FILE, 0, None), "empty_file", "file is empty"),
        (
            found_of("a.csv", FileState.STALE, 9, None),
            "stale_file",
            "file was there before the run and did not change",
        ),
        (
            found_of("a.csv", FileState.SYMLINK, 0, None),
            "artifact_symlink_blocked",
            "is a symbolic link; write a regular file",
        ),
        (found_of("a.csv", FileState.NOT_REGULAR, 0, None), "artifact_not_regular_file", "is no regular file"),
        (
            found_of("a.csv", FileState.ESCAPE, 0, None),
            "artifact_path_escape_blocked",
            "lies behind a symbolic link that leaves files/",
        ),
        (
            found_of("a.csv", FileState.TOO_LARGE, 1_000_001, None),
            "artifact_too_large",
            "is 1000001 bytes large, 1000000 are allowed",
        ),
        (
            found_of(
                "a.csv", inspection=Inspection(ok=False, mime="text/csv", problem="has 1 row, 2 were promised")
            ),
            "artifact_invalid",
            "has 1 row, 2 were promised",
        ),
        (
            found_of("a.csv", inspection=Inspection(ok=False, mime="")),
            "artifact_invalid",
            "does not open as what its extension says",
        ),
    ],
)
def test_what_lies_at_a_promised_path_has_its_verdict(found, code, message):
    assert only(promise_of("a.csv"), found) == (code, message)


def test_a_promise_of_which_nothing_was_told_is_a_missing_file():
    assert only(promise_of("a.csv")) == ("missing_file", "file not produced")


@pytest.mark.parametrize(
    ("checks", "code", "message"),
    [
        ({"min_bytes": 5_000, "max_bytes": 5_000}, "produced", None),
        ({"min_bytes": 5_001}, "artifact_invalid", "is 5000 bytes large, the contract asks for at least 5001"),
        ({"max_bytes": 4_999}, "artifact_invalid", "is 5000 bytes large, the contract allows 4999"),
        ({"min_bytes": 0}, "produced", None),
        ({"max_bytes": 0}, "artifact_invalid", "is 5000 bytes large, the contract allows 0"),
    ],
)
def test_the_sizes_of_a_contract_are_judged(checks, code, message):
    assert only(promise_of("a.csv", **checks), found_of("a.csv")) == (code, message)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("a.pdf", 500),
        ("a.docx", 1_000),
        ("a.xlsx", 1_000),
        ("a.pptx", 2_000),
        ("x.y/A.PDF", 500),
        ("a.csv", 1),
        ("pdf", 1),
    ],
)
def test_a_document_below_the_size_of_its_format_is_unusually_small(name, least):
    assert only(promise_of(name), found_of(name, size=least)) == ("produced", None)
    if least > 1:
        assert only(promise_of(name), found_of(name, size=least - 1)) == (
            "file_unusually_small",
            f"is only {least - 1} bytes large, such a file has {least} or more",
        )


def test_what_a_check_says_comes_before_the_size():
    found = found_of("a.pdf", size=10, inspection=Inspection(ok=False, mime="", problem="is no PDF"))
    assert only(promise_of("a.pdf"), found) == ("artifact_invalid", "is no PDF")


@pytest.mark.parametrize(
    ("low", "high", "count", "own"),
    [
        (1, 200, 2, None),
        (0, 200, 0, None),
        (2, 2, 2, None),
        (1, 200, 0, ("missing_file", "file not produced: 0 match, at least 1 were promised")),
        (3, 200, 2, ("missing_file", "file not produced: 2 match, at least 3 were promised")),
        (1, 2, 3, ("artifact_invalid", "more files match than the 2 that were promised at most")),
        (0, 0, 1, ("artifact_invalid", "more files match than the 0 that were promised at most")),
    ],
)
def test_a_pattern_has_a_verdict_for_each_match_and_its_own_where_the_count_is_wrong(low, high, count, own):
    promise = promise_of("*.csv", is_glob=True, low=low, high=high)
    found = [found_of(f"{n}.csv") for n in range(count)] or [found_of("*.csv", FileState.MISSING, 0, None)]
    verdicts = judge((promise,), Collected(tuple(found)), LIMITS)
    shown = [(v.path.rel, v.code.value) for v in verdicts if v.found is not None]
    assert shown == [(f"{n}.csv", "produced") for n in range(min(count, high))]
    assert [(v.code.value, v.message) for v in verdicts if v.found is None] == ([own] if own else [])


def test_matches_beyond_the_bound_of_a_pattern_are_extras_unless_another_entry_promises_them():
    promises = (promise_of("*.csv", is_glob=True, high=2), promise_of("3.csv"))
    found = tuple(found_of(f"{n}.csv") for n in range(5))
    named, other = found_of("3.csv", promise=1), found_of("x.txt", promise=None)
    assert extras(Collected((*found, named, other)), promises) == [found[2], found[4], other]


@pytest.mark.parametrize(
    ("found", "checks"),
    [
        (found_of("a.csv", inspection=BROKEN), {}),
        (found_of("a.csv", size=0, inspection=None), {}),
        (found_of("a.pdf", size=499), {}),
        (found_of("a.csv", size=499), {"min_bytes": 500}),
    ],
)
def test_a_file_that_fails_is_kept_for_the_workspace_if_its_bytes_came(found, checks):
    promise = promise_of(found.path.rel, **checks)
    for source, kept in ((FileContent(b"x"), 1), (None, 0)):
        verdicts = judge((promise,), Collected((replace(found, source=source),)), LIMITS)
        assert len(failed_with_bytes(verdicts)) == kept


@pytest.mark.parametrize("found", [found_of("a.csv"), found_of("a.csv", FileState.SYMLINK, 0, None)])
def test_a_produced_file_and_one_that_is_no_file_are_not_kept_as_failed(found):
    assert failed_with_bytes(judge((promise_of("a.csv"),), Collected((found,)), LIMITS)) == []


@pytest.mark.parametrize(
    ("name", "inspection", "mime"),
    [
        ("a.csv", BROKEN, "text/csv"),
        ("a.xlsx", BROKEN, "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.pdf", BROKEN, "application/octet-stream"),
        ("a.png", BROKEN, "application/octet-stream"),
        ("a.png", None, "application/octet-stream"),
        ("a.pdf", replace(BROKEN, facts={"opened": True}), "application/pdf"),
        ("a.pdf", Inspection(ok=True, mime=""), "application/pdf"),
    ],
)
def test_a_pdf_or_an_image_that_does_not_open_is_stored_as_bytes(name, inspection, mime):
    [verdict] = judge((promise_of(name),), Collected((found_of(name, size=9, inspection=inspection),)), LIMITS)
    assert mime_to_store(verdict) == mime


def test_a_match_that_is_not_right_fails_for_itself():
    promise = promise_of("*.csv", is_glob=True, high=200)
    found = found_of("b.csv", inspection=Inspection(ok=False, mime="", problem="is no CSV"))
    verdicts = judge((promise,), Collected((found_of("a.csv"), found)), LIMITS)
    assert [(v.path.rel, v.code.value) for v in verdicts] == [("a.csv", "produced"), ("b.csv", "artifact_invalid")]


def test_verdicts_stand_in_contract_order_whatever_order_was_found():
    promises = tuple(promise_of(name) for name in ("b.csv", "a.csv", "c.csv"))
    found = (found_of("c.csv", promise=2), found_of("x.csv", promise=None), found_of("a.csv", promise=1))
    verdicts = judge(promises, Collected(found), LIMITS)
    assert [(v.path.rel, v.code) for v in verdicts] == [
        ("b.csv", VerdictCode.MISSING_FILE),
        ("a.csv", VerdictCode.PRODUCED),
        ("c.csv", VerdictCode.PRODUCED),
    ]
    assert extras(Collected(found), promises) == [found[1]]


@pytest.mark.parametrize(
    ("found", "mime"),
    [
        (found_of("a.csv", inspection=Inspection(ok=True, mime="text/plain")), "text/plain"),
        (found_of("a.csv", inspection=Inspection(ok=True, mime="")), "text/csv"),
        (found_of("a.csv", FileState.MISSING, 0, None), "text/csv"),
    ],
)
def test_the_media_type_is_what_was_seen_or_else_what_the_name_promises(found, mime):
    [verdict] = judge((promise_of("a.csv"),), Collected((found,)), LIMITS)
    assert verdict.mime == mime


def test_the_operators_bound_is_named_in_the_verdict():
    [verdict] = judge(
        (promise_of("a.csv"),),
        Collected((found_of("a.csv", FileState.TOO_LARGE, 8, None),)),
        replace(LIMITS, artifact_bytes=7),
    )
    assert verdict.message == "is 8 bytes large, 7 are allowed"
