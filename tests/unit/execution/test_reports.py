"""The report: its exact texts, and that nothing makes it large."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.codes import ContractCode, RuntimeCode, VerdictCode
from proofbox.contracts.paths import PATH_BYTES_MAX, FilePath, Namespace
from proofbox.service.execution.report import (
    LISTED_MAX,
    LOG_CHARS_MAX,
    SUCCESS_LOG_CHARS_MAX,
    UNPROMISED_LISTED_MAX,
    RunReport,
    Unpromised,
    missing_paths,
    refusal_text,
    report_text,
    run_error,
)
from proofbox.service.jobs.failures import RuntimeFailure
from proofbox.service.jobs.verdicts import Verdict
from tests.support.examples import examples

TIMEOUT = RuntimeFailure(RuntimeCode.TIMEOUT, "Timeout after 30s")


def verdict(rel, code=VerdictCode.PRODUCED, message=None):
    return Verdict(FilePath("turn_1", Namespace.FILES, rel), None, code, message, "text/csv", None)


MISSING = verdict("b.csv", VerdictCode.MISSING_FILE, "file not produced")
EMPTY = verdict("c.csv", VerdictCode.EMPTY_FILE, "file is empty")
MADE = verdict("a.csv")


def report(failure=None, verdicts=(), unpromised=(), log="", total=None):
    return RunReport(failure, list(verdicts), list(unpromised), len(unpromised) if total is None else total, log)


def lines(*texts):
    return "\n".join(texts)


@pytest.mark.parametrize(
    ("made", "text", "error"),
    [
        (report(), "Runtime error: none", None),
        (
            report(verdicts=[MADE, verdict("x/y.csv")], log="hello\n"),
            lines(
                "Runtime error: none",
                "Produced files:",
                "- turn_1/files/a.csv",
                "- turn_1/files/x/y.csv",
                "Program log (tail):",
                "hello",
            ),
            None,
        ),
        (
            report(verdicts=[MADE, MISSING, verdict("d.csv", VerdictCode.MISSING_FILE, "file not produced")]),
            lines(
                "Runtime error: execution_failed — Missing output files: turn_1/files/b.csv, turn_1/files/d.csv",
                "File errors:",
                "- turn_1/files/b.csv: file not produced",
                "- turn_1/files/d.csv: file not produced",
                "Succeeded:",
                "- turn_1/files/a.csv",
            ),
            ("execution_failed", "Missing output files: turn_1/files/b.csv, turn_1/files/d.csv", "run"),
        ),
        (
            report(verdicts=[MADE, EMPTY]),
            lines(
                "Runtime error: none",
                "File errors:",
                "- turn_1/files/c.csv: file is empty",
                "Succeeded:",
                "- turn_1/files/a.csv",
            ),
            ("empty_file", "turn_1/files/c.csv: file is empty", "check"),
        ),
        (
            report(verdicts=[EMPTY, MISSING]),
            lines(
                "Runtime error: execution_failed — Missing output files: turn_1/files/b.csv",
                "File errors:",
                "- turn_1/files/c.csv: file is empty",
                "- turn_1/files/b.csv: file not produced",
            ),
            ("execution_failed", "Missing output files: turn_1/files/b.csv", "run"),
        ),
        (
            report(TIMEOUT, [MADE, MISSING], log="step 1\nstep 2\n"),
            lines(
                "Runtime error: timeout — Timeout after 30s",
                "File errors:",
                "- turn_1/files/b.csv: file not produced",
                "Succeeded:",
                "- turn_1/files/a.csv",
                "Program log (tail):",
                "step 1",
                "step 2",
            ),
            ("timeout", "Timeout after 30s", "run"),
        ),
        (
            report(TIMEOUT, log=" \n"),
            lines(
                "Runtime error: timeout — Timeout after 30s",
            ),
            ("timeout", "Timeout after 30s", "run"),
        ),
        (
            report(verdicts=[MADE], unpromised=[Unpromised("turn_1/files/x.log"), Unpromised("a\\n", "not kept")]),
            lines(
                "Runtime error: none",
                "Produced files:",
                "- turn_1/files/a.csv",
                "Not in the contract: turn_1/files/x.log, a\\n (not kept)",
            ),
            None,
        ),
        (
            report(TIMEOUT, [MISSING], [Unpromised("turn_1/files/x.log")], "log", total=72),
            lines(
                "Runtime error: timeout — Timeout after 30s",
                "File errors:",
                "- turn_1/files/b.csv: file not produced",
                "Not in the contract: turn_1/files/x.log and 71 more",
                "Program log (tail):",
                "log",
            ),
            ("timeout", "Timeout after 30s", "run"),
        ),
    ],
)
def test_the_report_and_the_one_error_of_a_run(made, text, error):
    assert report_text(made) == text
    told = run_error(made)
    assert (told and (told.code, told.message, told.where)) == error
    assert told is None or told.managed


def test_a_refusal_says_that_nothing_was_run():
    error = ContractError(ContractCode.MISSING_ARTIFACTS, "params.contract is missing")
    assert refusal_text(error) == (
        "Runtime error: missing_artifacts — params.contract is missing\nNothing was run."
    )


def test_missing_are_the_files_that_were_not_produced_at_all():
    assert missing_paths([MADE, MISSING, EMPTY]) == ["turn_1/files/b.csv"]


def log_of(text, failure=TIMEOUT):
    return report_text(report(failure, log=text)).partition("Program log (tail):\n")[2]


@pytest.mark.parametrize(
    ("text", "log"),
    [
        ("a\r\nb\r\n", "a\nb"),
        ("a\tb\x1b[31mc\x1b[0m\x07", "a\tbc"),
        ("10%\r50%\r100%\ndone\n", "100%\ndone"),
        ("x" * 4_000, "x" * 4_000),
        ("first" + "x" * 3_996 + "last", "x" * 3_996 + "last"),
        ("\N{GRINNING FACE}" * 4_001, "\N{GRINNING FACE}" * 4_000),
        ("end" + "\n" * 5_000, "end"),
    ],
)
def test_the_log_of_a_failure_has_at_most_4000_characters_and_keeps_its_end(text, log):
    assert log_of(text) == log


def test_the_log_of_a_success_has_at_most_2000_characters_and_keeps_its_beginning_and_its_end():
    assert log_of("a\n" * 1_000, None) == "a\n" * 999 + "a"
    text = "\n".join(f"line {n}" for n in range(1_000))
    log = log_of(text, None)
    assert log.startswith("line 0\nline 1\n")
    assert log.endswith("\nline 998\nline 999")
    left_out = int(re.search(r"\n\[… (\d+) characters left out …\]\n", log)[1])
    shown = len(re.sub(r"\n\[… \d+ characters left out …\]\n", "", log))
    assert shown + left_out == len(text)
    assert SUCCESS_LOG_CHARS_MAX - 100 < len(log) <= SUCCESS_LOG_CHARS_MAX


def test_millions_of_characters_before_the_end_are_not_read():
    assert log_of("\x1b[" + "0" * 3_000_000 + "\nend", TIMEOUT).endswith("\nend")
    assert log_of("begin\n" + "\x1b]" * 3_000_000 + "\nend", None).startswith("begin\n")


def test_a_run_without_a_contract_lists_what_it_wrote_and_what_it_printed():
    made = RunReport(None, [], [Unpromised("turn_1/files/a.csv")], 1, "3 rows\n", explored=True)
    assert report_text(made) == lines(
        "Runtime error: none",
        "Files written (internal): turn_1/files/a.csv",
        "Program log (tail):",
        "3 rows",
    )


def test_notes_and_hints_are_lines_of_their_own():
    made = RunReport(TIMEOUT, [], [], 0, "", notes=["a child died"], hints=["the file is at turn_1/files/a.csv"])
    assert report_text(made) == lines(
        "Runtime error: timeout — Timeout after 30s",
        "Note: a child died",
        "Hint: the file is at turn_1/files/a.csv",
    )


def test_long_lists_are_cut_and_counted():
    verdicts = [verdict(f"{n}.csv") for n in range(150)]
    lines = report_text(report(verdicts=verdicts)).splitlines()
    assert (len(lines), lines[-2:]) == (103, ["- turn_1/files/99.csv", "- … and 50 more"])
    missing = [verdict(f"{n}.csv", VerdictCode.MISSING_FILE, "file not produced") for n in range(150)]
    text = report_text(report(verdicts=missing))
    assert "turn_1/files/99.csv and 50 more\nFile errors:" in text
    assert "turn_1/files/100.csv" not in text
    error = run_error(report(verdicts=missing))
    assert (len(error.message), error.message[-1]) == (400, "…")


_PATH_CHARS = PATH_BYTES_MAX
_LINE_CHARS = _PATH_CHARS + 400 + 8
BOUND = (
    # The error line may list missing paths, then two lists of files, the unpromised ones, the log, the headings.
    (_PATH_CHARS + 2) * LISTED_MAX
    + _LINE_CHARS * (LISTED_MAX + 1) * 2
    + (_PATH_CHARS + 40) * UNPROMISED_LISTED_MAX
    + LOG_CHARS_MAX
    + 1_000
)
REL = st.sampled_from(["a", "n" * 200, "/".join(["d" * 200] * 5)])
VERDICTS = st.builds(
    lambda rel, number, code, message: verdict(f"{number}{rel}"[:1000], code, message),
    REL,
    st.integers(0, 9_999),
    st.sampled_from(VerdictCode),
    st.one_of(st.none(), st.text(), st.just("m" * 10_000)),
)
UNPROMISED = st.builds(Unpromised, st.one_of(st.text(max_size=50), st.just("u" * 1_024)), st.none())


@settings(max_examples=examples(60))
@given(
    st.one_of(st.none(), st.just(TIMEOUT)),
    st.lists(VERDICTS, max_size=40),
    st.lists(UNPROMISED, max_size=40),
    st.integers(1, 20),
    st.one_of(st.text(), st.just("😀" * 4_000), st.just("\x1b[\r\b" * 16_000)),
)
def test_no_run_has_a_report_above_the_bound(failure, verdicts, unpromised, times, log):
    made = report(failure, verdicts * times, unpromised * times, log, total=10**9)
    assert len(report_text(made)) <= BOUND
    error = run_error(made)
    assert error is None or len(error.message) <= 400
