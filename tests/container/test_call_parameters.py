"""What a program is given when it starts, and a run that promises nothing."""

import json
from typing import Any

import pytest

from proofbox.contracts.tools import Language
from tests.container.calling import Caller

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

TELLS = {
    Language.PYTHON: (
        "import json, os, sys\n"
        "print(json.dumps([sys.argv[1:], sys.stdin.read(), os.environ.get('MODE'), os.getcwd()]))"
    ),
    Language.NODE: (
        "const input = require('fs').readFileSync(0, 'utf8');\n"
        "console.log(JSON.stringify([process.argv.slice(2), input, process.env.MODE ?? null, process.cwd()]))"
    ),
    Language.BASH: (
        'jq -cn --arg input "$(cat)" --arg mode "$MODE" --arg cwd "$PWD" '
        "'[$ARGS.positional, $input, $mode, $cwd]' --args -- \"$@\""
    ),
}
GIVEN = {"args": ["-v", "two words", "ü"], "stdin": "first\nsecond", "env": {"MODE": "fast $HOME"}, "cwd": "work"}


@pytest.mark.parametrize("language", TELLS)
async def test_a_program_gets_its_arguments_input_environment_and_folder(call: Caller, language: Language) -> None:
    response = await call(TELLS[language], language=language, **GIVEN)
    assert response.ok, response.report
    assert json.loads(await call.output()) == [
        ["-v", "two words", "ü"],
        "first\nsecond",
        "fast $HOME",
        "/out/turn_1/files/work",
    ]


async def test_without_them_input_is_empty_and_the_folder_is_the_workspace(call: Caller) -> None:
    await call(TELLS[Language.PYTHON])
    assert json.loads(await call.output()) == [[], "", None, "/out/turn_1/files"]


async def test_a_mebibyte_of_input_arrives_whole(call: Caller) -> None:
    code = "import sys\nprint(len(sys.stdin.buffer.read()))"
    await call(code, stdin="0123456789abcdef" * 65_536)
    assert await call.output() == "1048576\n"


async def test_what_the_sandbox_sets_stays_as_it_is(call: Caller) -> None:
    code = "import os\nprint(os.environ['PATH'], os.environ['HOME'], os.environ['OUT_DIR'], os.environ['X'])"
    await call(code, env={"X": "1"})
    assert await call.output() == "/opt/proofbox/venv/bin:/usr/bin:/bin /mnt/data /out 1\n"


async def test_files_of_a_working_folder_are_files_of_the_turn(call: Caller) -> None:
    response = await call("open('made.txt', 'w').write('x')", ["work/made.txt"], cwd="work")
    assert response.ok, response.report
    assert await call.text("work/made.txt") == "x"


async def test_a_link_that_an_earlier_call_left_is_no_working_folder_outside(call: Caller) -> None:
    await call("import os\nos.symlink('/etc', 'files/work')")
    response = await call("import os\nprint(os.getcwd())", cwd="work")
    assert response.error is not None
    assert "cannot be used as the working directory: a link leads out of files/" in response.error.message


async def test_a_file_in_the_way_of_a_working_folder_is_named(call: Caller) -> None:
    await call("open('files/work', 'w').write('x')", ["work"])
    response = await call("print(1)", cwd="work")
    assert response.error is not None
    assert "cwd turn_1/files/work cannot be used as the working directory" in response.error.message


async def explored(call: Caller, code: str, **fields: Any) -> Any:
    return await call(code, explore=True, **fields)


async def test_a_run_that_promises_nothing_is_judged_by_its_exit_and_its_files_are_internal(call: Caller) -> None:
    response = await explored(call, "open('files/a.csv', 'w').write('a\\n1\\n')\nprint('1 row')")
    assert response.report == (
        "Runtime error: none\nFiles written (internal): turn_1/files/a.csv\nProgram log (tail):\n1 row"
    )
    [artifact] = response.artifacts
    assert (artifact.physical_path, artifact.visibility, artifact.hosted_uri) == (
        "turn_1/files/a.csv",
        "internal",
        None,
    )
    after = await explored(call, "print(open('files/a.csv').read())")
    assert (after.ok, await call.output()) == (True, "a\n1\n\n")
    failed = await explored(call, "raise SystemExit(3)")
    assert (failed.ok, failed.error.code) == (False, "nonzero_exit")


async def test_a_call_is_run_again_with_what_it_was_given(call: Caller) -> None:
    code = f"{TELLS[Language.PYTHON]}\nopen('told.txt', 'w').write(repr((sys.argv, dict(os.environ).get('MODE'))))"
    assert (await call(code, ["work/told.txt"], **GIVEN)).ok
    report = await call.service.provenance.rerun(call.service.principal, call.last_id, call.conversation, "again")
    assert (report.identical, [output.path for output in report.outputs]) == (True, ["turn_1/files/work/told.txt"])
