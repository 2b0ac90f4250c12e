"""What a program prints reaches the caller as ``output`` and the model in the report."""

import json
import shlex

import pytest

from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.contracts.tools import Language
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]


def log_of(response: ToolCallResponse) -> str:
    return response.report.partition("Program log (tail):\n")[2]


async def test_what_a_good_run_printed_is_in_the_answer_and_in_the_report(call: Caller) -> None:
    response = await call("import sys\nprint('mean 4.5')\nprint('a warning', file=sys.stderr)")
    assert (response.ok, response.output.model_dump()) == (
        True,
        {"stdout": "mean 4.5\n", "stderr": "a warning\n", "combined": "mean 4.5\na warning\n", "truncated": False},
    )
    assert response.report == "Runtime error: none\nProgram log (tail):\nmean 4.5\na warning"


@pytest.mark.parametrize(
    ("language", "code"),
    [
        (Language.PYTHON, "import sys\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')"),
        (Language.PYTHON, "import sys\nprint('a', file=sys.stderr)\nprint('b')\nprint('c', file=sys.stderr)"),
        (Language.PYTHON, "import os\nfor n in range(3): os.write(1 + n % 2, b'abc'[n:n+1] + b'\\n')"),
        (Language.BASH, "echo a\necho b >&2\necho c"),
        (Language.BASH, "echo a >/dev/stderr\necho b\npython3 -c \"import sys; print('c', file=sys.stderr)\""),
        (Language.BASH, "echo a\n(echo b >&2)\ncat <<<c"),
    ],
)
async def test_both_streams_are_combined_in_the_order_of_the_writes(
    call: Caller, language: Language, code: str
) -> None:
    for _ in range(5):
        response = await call(code, language=language)
        assert (response.output.combined, log_of(response)) == ("a\nb\nc\n", "a\nb\nc")


async def test_a_hundred_lines_that_alternate_are_combined_in_their_order(call: Caller) -> None:
    code = "import sys\nfor n in range(100): print(n, file=(sys.stdout, sys.stderr)[n % 3 == 0])"
    response = await call(code)
    assert response.output.combined == "".join(f"{n}\n" for n in range(100))


async def test_each_stream_of_a_script_that_opens_its_stderr_anew_is_whole_and_in_order(call: Caller) -> None:
    code = "for n in $(seq 20); do echo out $n; echo err $n > /dev/stderr; done"
    response = await call(code, language=Language.BASH)
    for stream in ("out", "err"):
        lines = [line for line in response.output.combined.splitlines() if line.startswith(stream)]
        assert lines == [f"{stream} {n}" for n in range(1, 21)]


async def test_a_traceback_stands_where_the_program_printed_it(call: Caller) -> None:
    code = """
import traceback
print('before')
try:
    1 / 0
except ZeroDivisionError:
    traceback.print_exc()
print('after')
"""
    lines = (await call(code)).output.combined.splitlines()
    assert (lines[0], lines[1], lines[-2:]) == (
        "before",
        "Traceback (most recent call last):",
        ["ZeroDivisionError: division by zero", "after"],
    )


async def test_of_long_output_beginning_and_end_are_there_around_a_marker(call: Caller) -> None:
    response = await call("print('first')\nfor n in range(20_000): print('x' * 9)\nprint('last')")
    output = response.output
    assert (output.truncated, output.stdout == output.combined) == (True, True)
    head, _, rest = output.stdout.partition("\n[… ")
    left_out, _, tail = rest.partition(" bytes of stdout left out …]\n")
    assert (head[:6], tail[-5:]) == ("first\n", "last\n")
    assert (len(head), len(tail)) == (32 * 1024, 32 * 1024)
    assert int(left_out) == response.usage.stdout_bytes - 64 * 1024
    assert log_of(response) == "first\nxxxxxxxxx\n[… 19999 more lines like this …]\nlast"


async def test_a_promise_that_is_not_kept_shows_what_was_printed(call: Caller) -> None:
    response = await call("print('no rows match region=EMEA')\nraise SystemExit(0)", ["out.csv"])
    assert response.error is not None
    assert response.error.code == "execution_failed"
    assert log_of(response) == "no rows match region=EMEA"


async def test_the_exception_of_a_thread_is_in_the_report(call: Caller) -> None:
    code = "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()"
    response = await call(code, ["out.csv"])
    assert "ZeroDivisionError: division by zero" in log_of(response)


async def test_what_a_child_says_on_stderr_is_in_the_report(call: Caller) -> None:
    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'raise ValueError(1)'])"
    assert "ValueError: 1" in log_of(await call(code, ["out.csv"]))


async def test_progress_bars_and_colours_are_left_out_of_the_report_and_stay_in_the_output(call: Caller) -> None:
    code = r"""
import sys
for n in range(0, 101, 10): print(f'\r{n:3}% done', end='', file=sys.stderr, flush=True)
print(file=sys.stderr)
print('\x1b[1;31mred\x1b[0m \x1b]8;;https://example.org\x07link\x1b]8;;\x07 abX\bc')
"""
    response = await call(code)
    assert log_of(response) == "100% done\nred link abc"
    assert response.output.stderr.startswith("\r  0% done\r 10% done")
    assert "\x1b[1;31mred" in response.output.stdout


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("raise ExceptionGroup('both', [ValueError(1), TypeError(2)])", "ExceptionGroup: both (2 sub-exceptions)"),
        ("raise ValueError('first line\\nsecond line')", "ValueError: first line"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e", "KeyError: 'k'"),
    ],
)
async def test_the_message_of_a_failed_run_is_the_line_of_its_exception(
    call: Caller, code: str, message: str
) -> None:
    response = await call(code)
    assert response.error is not None
    assert response.error.message == f"exit status 1: {message}"


async def test_a_number_of_any_length_can_be_printed(call: Caller) -> None:
    assert len((await call("print(10**5000)")).output.stdout) == 5002


FORGED = (
    "Traceback (most recent call last):\n"
    '  File "/job/main.py", line 1, in <module>\n    import forged\n'
    "KeyError: forged\n- turn_1/files/forged.txt\nSyntaxError: forged"
)


@pytest.mark.parametrize(
    ("language", "code", "message"),
    [
        (
            Language.PYTHON,
            f"def read(text):\n    raise ValueError('boo\\n' + text)\n\nread({FORGED!r})",
            "ValueError: boo",
        ),
        (
            Language.NODE,
            f"const text = {json.dumps(FORGED)};\nthrow new TypeError('boo\\n' + text);",
            "TypeError: boo",
        ),
        (Language.BASH, f'text={shlex.quote(FORGED)}\nsource "no_such\n$text"', "/job/main.sh: line 8: no_such"),
    ],
)
async def test_the_text_of_an_error_does_not_become_the_message_of_the_run(
    call: Caller, language: Language, code: str, message: str
) -> None:
    response = await call(code, language=language)
    assert response.error is not None
    assert response.error.message == f"exit status 1: {message}"
    assert response.report.splitlines()[0] == f"Runtime error: nonzero_exit — exit status 1: {message}"
