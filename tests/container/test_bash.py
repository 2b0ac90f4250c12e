"""The bash tool: the same contract, the same blocks, a shell as if started by hand."""

import pytest

from proofbox.contracts.tools import Language
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("echo $((6 * 7)); [[ abc == a* ]] && echo ${BASH_VERSION%%.*}", "42\n5\n"),
        ("cat <<'END'\n$kept  as\tit is\nEND\ncat <<END\n$TURN_ID\nEND", "$kept  as\tit is\nturn_1\n"),
        ("printf '3\\n1\\n2\\n' | sort | head -n 2 | tr '\\n' ' '", "1 2 "),
        ("yes | head -n 1; echo ${PIPESTATUS[@]}", "y\n141 0\n"),
        ("echo $PWD $OUT_DIR $OUTPUT_DIR $0 $# $-", "/out/turn_1/files /out /out /job/main.sh 0 hB\n"),
        ("read line || echo no input", "no input\n"),
        ("f() { local a=1; echo $a; }; f; (exit 3); echo $?", "1\n3\n"),
        ("diff <(echo a) <(echo a) && echo same", "same\n"),
        ("trap 'echo at exit' EXIT; echo first", "first\nat exit\n"),
        ("python3 -c 'import numpy; print(numpy.arange(3).sum())'", "3\n"),
    ],
)
async def test_script_means_what_it_means_to_bash(call: Caller, code: str, printed: str) -> None:
    response = await call(code, language=Language.BASH)
    assert (await call.output(), await call.output("stderr")) == (printed, "")
    assert response.ok, response.report


async def test_a_script_whose_lines_end_with_crlf_runs_as_one_with_lf(call: Caller) -> None:
    code = "mkdir data\ncd data\ncat > x.csv <<'END'\na,b\nEND\nwc -c < x.csv\n".replace("\n", "\r\n")
    response = await call(code, ["data/x.csv"], language=Language.BASH)
    assert (response.ok, await call.output()) == (True, "4\n"), response.report
    assert "Note: the lines of the code end with CRLF; it was run with LF" in response.report
    assert next(block.text for block in response.blocks if block.path.startswith("fi:")) == code
    response = await call("printf 'a\r\n' | wc -c\necho done", language=Language.BASH)
    assert (await call.output(), "CRLF" in response.report) == ("3\ndone\n", False)


@pytest.mark.parametrize(
    ("code", "code_of_error", "message"),
    [
        ("exit 3", "nonzero_exit", "exit status 3"),
        ("echo a | grep b", "nonzero_exit", "exit status 1"),
        ("set -e\nfalse\necho not reached", "nonzero_exit", "exit status 1"),
        ("set -o pipefail\nfalse | true", "nonzero_exit", "exit status 1"),
        ("set -u\necho $nothing", "nonzero_exit", "exit status 1: /job/main.sh: line 2: nothing: unbound variable"),
        (
            "no_such_program --help",
            "nonzero_exit",
            "exit status 127: /job/main.sh: line 1: no_such_program: command not found",
        ),
        (
            "if true; then",
            "nonzero_exit",
            "exit status 2: /job/main.sh: line 2: syntax error: unexpected end of file",
        ),
        ("kill -SEGV $$", "killed", "the program was ended by SIGSEGV (signal 11)"),
    ],
)
async def test_failure_of_a_script_is_its_exit_status(
    call: Caller, code: str, code_of_error: str, message: str
) -> None:
    response = await call(code, language=Language.BASH)
    assert response.error is not None
    assert (response.error.code, response.error.message) == (code_of_error, message)


async def test_files_of_a_script_are_judged_as_those_of_any_program(call: Caller) -> None:
    code = "mkdir -p files/sub && printf 'a,b\\n1,2\\n' > files/sub/t.csv && echo x > bare.txt; sleep 1000 & disown"
    response = await call(code, ["sub/t.csv", "bare.txt", "not.txt"], language=Language.BASH, timeout_s=60)
    *found, note, hint = response.report.split("\n")
    assert found == [
        "Runtime error: execution_failed — Missing output files: turn_1/files/not.txt",
        "File errors:",
        "- turn_1/files/not.txt: file not produced",
        "Succeeded:",
        "- turn_1/files/sub/t.csv",
        "- turn_1/files/bare.txt",
    ]
    assert note.startswith("Note: processes that still ran were ended with the call")
    assert hint == "Hint: not.txt was not written; write it to files/not.txt"


async def test_code_block_of_a_script_is_a_shell_script(call: Caller) -> None:
    response = await call("true", language=Language.BASH)
    [block] = [block for block in response.blocks if block.type == "react.tool.code"]
    assert (block.mime, block.text, block.path) == ("text/x-shellscript", "true", f"fi:turn_1.code.{call.last_id}")
