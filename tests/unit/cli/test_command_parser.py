"""The commands, their options, and what `--help` may import."""

import json
import subprocess
import sys

import pytest

from proofbox.cli import main
from proofbox.cli.commands import COMMANDS, build_parser
from proofbox.cli.keys import LIMIT_NAMES
from proofbox.cli.shared.exit_codes import MEANINGS, ExitCode
from proofbox.service.access.quotas import ALLOWANCE_NAMES

# What no command needs in order to list its options; each takes longer to import than all of the parser.
HEAVY = {
    *("asyncio", "ssl", "pydantic", "pydantic_core", "httpx", "httpx2", "fastapi", "starlette", "uvicorn", "rich"),
    *("shtab", "mcp", "numpy", "sqlalchemy", "docker", "botocore", "logging", "shutil", "proofbox.client"),
    *("proofbox.service.app.settings", "proofbox.service.app.bootstrap"),
}


def imported_by(*arguments):
    program = (
        "import sys\nfrom proofbox.cli.program import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stderr.split()), done.stdout


@pytest.mark.parametrize(
    "arguments", [("--help",), ("run", "--help"), ("files", "ls", "--help"), ("keys", "--help"), ("mcp", "--help")]
)
def test_help_imports_nothing_heavy(arguments):
    modules, printed = imported_by(*arguments)
    assert printed.startswith("usage: proofbox")
    assert "proofbox.cli.commands" in modules
    assert modules & HEAVY == set()


def test_a_command_loads_no_other_command():
    modules, _ = imported_by("tools", "--help")
    assert "proofbox.cli.tools" in modules
    assert {"proofbox.cli.run", "proofbox.cli.keys", "proofbox.cli.audit"} & modules == set()


def test_every_command_of_the_table_has_a_parser_and_a_function():
    choices = build_parser()._subparsers._group_actions[0].choices
    for command in COMMANDS:
        module = command.load()
        if module is not None:
            assert set(command.names) <= set(choices), command
    assert {
        "run",
        "exec",
        "render",
        "call",
        "status",
        "watch",
        "cancel",
        "files",
        "timeline",
        "conversations",
    } <= set(choices)
    for line in (["run", "a.py"], ["exec", "a.py"], ["files", "ls", "c"], ["keys", "list"], ["audit", "verify"]):
        assert callable(build_parser(line).parse_args(line).run)


def test_the_parser_of_one_command_reads_what_the_whole_parser_reads():
    line = ["run", "a.py", "--promise", "a b.csv", "--promise", "c.png", "--in", "my data.csv", "--in", "x=-"]
    one, whole = build_parser(line).parse_args(line), build_parser().parse_args(line)
    assert (one.promises, one.inputs) == (["a b.csv", "c.png"], ["my data.csv", "x=-"])
    assert vars(one) == vars(whole)


def test_help_lists_every_exit_code(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    printed = capsys.readouterr().out
    assert ended.value.code == 0
    for code in ExitCode:
        assert f"{code.value:>3}  {MEANINGS[code]}" in printed


def test_long_lines_of_a_description_are_wrapped(capsys):
    for command in ("login", "doctor", "image", "render"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert max(map(len, capsys.readouterr().out.splitlines())) <= 100, command


def test_the_version_is_that_of_the_package(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("proofbox 0.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "invalid choice: 'nope'"),
        (["run"], "the following arguments are required: CODE"),
        (["run", "a.py", "--timeout", "0"], "'0' is not a number of seconds above 0"),
        (["run", "a.py", "--timeout", "nan"], "'nan' is not a number of seconds above 0"),
        (["run", "a.py", "--env", "A"], "'A' is not NAME=VALUE"),
        (["run", "a.py", "--prom", "a"], "unrecognized arguments: --prom a"),
        (["render", "a.md", "b.pdf", "--params", "[1]"], "not a JSON object"),
        (["serve", "--port", "99999"], "'99999' is not a port (0 to 65535)"),
        (["files"], "the following arguments are required: ACTION"),
    ],
)
def test_wrong_options_are_one_sentence_and_exit_code_2(capsys, arguments, message):
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("proofbox: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert "--help' lists the options" in printed.err


def test_wrong_options_with_json_have_the_form_of_every_error(capsys):
    assert main(["run", "--json"]) == 2
    printed = capsys.readouterr()
    error = json.loads(printed.out)["error"]
    assert (error["code"], error["retryable"], printed.err) == ("usage", False, "")
    assert "CODE" in error["message"]
    assert "proofbox run --help" in error["hint"]


def test_without_a_command_the_help_is_shown_as_an_error(capsys):
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: proofbox")


def test_the_limits_of_a_key_are_those_of_the_service():
    assert LIMIT_NAMES == ALLOWANCE_NAMES


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_each_shell_knows_commands_and_options(capsys, shell):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("conversations", "promise", "--json" if shell != "fish" else "json"):
        assert word in script


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (("conv",), ["conversations"]),
        (("run", "--prom"), ["--promise"]),
        (("run", "my"), ["my_program.py"]),
        (("run", "my_program.py", "--in", "da"), ["data.csv"]),
        (("run", "--language", "p"), ["python"]),
    ],
)
def test_bash_completes_commands_options_and_files(tmp_path, words, completed):
    script = subprocess.run(
        [sys.executable, "-m", "proofbox.cli", "completion", "bash"], capture_output=True, text=True, check=True
    ).stdout
    for name in ("script", "my_program.py", "data.csv"):
        (tmp_path / name).write_text(script)
    program = (
        f"source ./script; COMP_WORDS=(proofbox {' '.join(words)}); COMP_CWORD={len(words)}; _shtab_proofbox; "
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == completed
