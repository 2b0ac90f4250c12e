"""The report: its exact texts, and that nothing makes it large."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.contracts.artifacts import ContractError
from proofbox.contracts.codes import ContractCode, RuntimeCode, VerdictCode
from proofbox.contracts.paths import PATH_BYTES_MAX, FilePath, Namespace
from proofbox.service.execution.printed_log import CHARS_MAX, EXPLORED_CHARS_MAX, printed_log
from proofbox.service.execution.report import (
    LISTED_MAX,
    UNPROMISED_LISTED_MAX,
    RunReport,
    Unpromised,
    answer_text,
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
    ("made", "text"),
    [
        (report(), lines("OK", "The program printed nothing.")),
        (report(log="\n"), lines("OK", "The program printed nothing.")),
        (report(log="2\n"), lines("OK", "Program log (tail):", "2")),
        (
            report(verdicts=[MADE], log="hello\n"),
            lines("OK", "Produced files:", "- turn_1/files/a.csv", "Program log (tail):", "hello"),
        ),
        (
            report(verdicts=[MADE, EMPTY], log="hello\n"),
            lines(
                "File errors:",
                "- turn_1/files/c.csv: file is empty",
                "Succeeded:",
                "- turn_1/files/a.csv",
                "Program log (tail):",
                "hello",
            ),
        ),
        (report(TIMEOUT), lines("Runtime error: Timeout after 30s", "The program printed nothing.")),
        (
            report(RuntimeFailure(RuntimeCode.NONZERO_EXIT, "status 3"), log="x\n"),
            lines("Runtime error: nonzero_exit — status 3", "Program log (tail):", "x"),
        ),
    ],
)
def test_the_text_of_an_answer_begins_with_what_matters_and_says_it_once(made, text):
    assert answer_text(made, has_run=True) == text


def test_a_program_that_did_not_begin_printed_nothing_that_is_told():
    cancelled = RuntimeFailure(RuntimeCode.CANCELLED, "the call was cancelled before it began: nothing was run")
    text = "Runtime error: cancelled — the call was cancelled before it began: nothing was run"
    assert answer_text(report(cancelled), has_run=False) == text


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
        ("total: 42\r 10% |=  | 5it/s\r 99% |== | 2s/it\n", "total: 42\n 99% |== | 2s/it"),
        ("Loading 1\rLoading 2\rLoading 3\n", "Loading 3"),
        ("x" * 4_000, "x" * 4_000),
        ("first" + "x" * 3_996 + "last", "x" * 3_996 + "last"),
        ("\N{GRINNING FACE}" * 4_001, "\N{GRINNING FACE}" * 4_000),
        ("end" + "\n" * 5_000, "end"),
    ],
)
def test_the_log_of_a_failure_has_at_most_4000_characters_and_keeps_its_end(text, log):
    assert log_of(text) == log


def test_the_log_of_a_success_has_at_most_2000_characters_and_keeps_its_beginning_and_its_end():
    assert log_of("a" * 2_000, None) == "a" * 2_000
    text = "\n".join(f"line {n}" for n in range(1_000))
    log = log_of(text, None)
    assert log.startswith("line 0\nline 1\n")
    assert log.endswith("\nline 998\nline 999")
    left_out = int(re.search(r"\n\[… (\d+) characters left out …\]\n", log)[1])
    shown = len(re.sub(r"\n\[… \d+ characters left out …\]\n", "", log))
    assert shown + left_out == len(text)
    assert CHARS_MAX - 100 < len(log) <= CHARS_MAX


FRAME = '  File "/opt/proofbox/venv/lib/python3.13/site-packages/pandas/a.py", line 9, in f\n    return g(x)\n'
OWN = '  File "/job/main.py", line 3, in <module>\n    df.loc[0] = 1\n'
HEAD = "Traceback (most recent call last):\n"
LED_TO = "\n\nDuring handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize(
    ("text", "log"),
    [
        ("a\n" * 3 + "b", "a\na\na\nb"),
        ("a\n" * 413 + "b", "a\n[… 412 more lines like this …]\nb"),
        ("a\n\n\n\n\nb", "a\n\n\n\n\nb"),
        ("findfont: x\nrow 1\n" * 3, "findfont: x\nrow 1\nrow 1\nrow 1"),
        (HEAD + OWN + FRAME * 3 + "KeyError: 'a'", HEAD + OWN + FRAME * 3 + "KeyError: 'a'"),
        (
            f"{HEAD}{OWN}{FRAME * 20}KeyError: 'a'\nnext",
            f"{HEAD}{OWN}  [… 18 calls of libraries …]\n{FRAME * 2}KeyError: 'a'\nnext",
        ),
        (
            f"{HEAD}{OWN}{FRAME * 20}E: a{LED_TO}{HEAD}{FRAME}E: b",
            f"{HEAD}{OWN}  [… 20 calls of libraries …]\nE: a{LED_TO}{HEAD}{FRAME}E: b",
        ),
        (
            f"{HEAD}{FRAME * 5}E: a{LED_TO}{HEAD}{FRAME * 5}E: b\nc{LED_TO}{HEAD}{OWN}{FRAME * 5}E: d\nnext",
            (
                f"{HEAD}  [… 5 calls of libraries …]\nE: a{LED_TO}{HEAD}  [… 5 calls of libraries …]\nE: b\nc"
                f"{LED_TO}{HEAD}{OWN}  [… 3 calls of libraries …]\n{FRAME * 2}E: d\nnext"
            ),
        ),
        (f"{HEAD}{OWN * 9}E: a\n{HEAD}{FRAME * 9}E: b", f"{HEAD}{OWN * 9}E: a\n{HEAD}{FRAME * 9}E: b"),
    ],
)
def test_repetition_and_calls_of_libraries_are_counted(text, log):
    assert printed_log(text, keeps_end=True, explored=False) == log


def test_lines_that_differ_in_numbers_are_folded_only_where_there_is_no_room_and_are_no_rows():
    epochs = "\n".join(f"Epoch {n}: training loss 0.{n}" for n in range(100))
    assert printed_log(epochs, keeps_end=False, explored=True) == epochs
    short = printed_log(epochs, keeps_end=False, explored=False)
    assert "[… 94 more lines of this form …]" in short
    assert short.startswith("Epoch 0: training loss 0.0\n")
    assert short.endswith("Epoch 99: training loss 0.99")
    rows = "\n".join(f"{n} {n * 7} {n / 3}" for n in range(200))
    assert "of this form" not in printed_log(rows, keeps_end=False, explored=False)


def test_what_explores_shows_a_usual_first_look_whole():
    text = "\n".join(f"column {'abcdefghij'[n % 10] * 60} {n}" for n in range(100))
    assert printed_log(text, keeps_end=False, explored=True) == text
    assert "left out" in printed_log(text, keeps_end=False, explored=False)


def test_of_a_long_log_all_characters_that_are_left_out_are_counted():
    text = "".join(f"{n} {'abcdefgh'[n % 8] * (n % 50)} end of row\n" for n in range(9_000)).rstrip()
    for keeps_end in (False, True):
        log = printed_log(text, keeps_end=keeps_end, explored=False, whole="all of it is x")
        found = re.search(r"\n?\[… (\d+) characters left out, all of it is x …\]\n", log)
        assert int(found[1]) + len(log) - len(found[0]) == len(text) > 300_000
    same = "a\n[… 63999 more lines like this …]"
    log = printed_log("a\n" * 200_000, keeps_end=False, explored=False, whole="all of it is x")
    assert log == f"{same}\n\n[… 144000 characters left out, all of it is x …]\n{same}"


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
    + EXPLORED_CHARS_MAX
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
