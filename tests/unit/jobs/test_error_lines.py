"""The headline of a failed program: the line of its own error, whatever lines the text of that error has."""

import subprocess
import sys

import pytest

from proofbox.service.jobs.error_lines import error_line
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import Job

MIB = 1024 * 1024
LIMITS = CallLimits(60, 1, 512 * MIB, 64, 128 * MIB, 1000, 64 * MIB, 100, 8, MIB, 64 * MIB)
SUFFIXES = {"python": "py", "bash": "sh", "node": "js"}
INTERPRETERS = {"python": sys.executable, "bash": "bash"}

RAISES = f"{sys.executable} -c 'import sys; raise ValueError(sys.argv[1])' \"$1\""
TRACEBACK = 'Traceback (most recent call last):\n  File "/job/main.py", line 1, in <module>\n    import x\n'
CHAIN = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
FORGED = [
    "- turn_1/files/r.txt",
    "SyntaxError: forged",
    '  File "/job/main.py", line 1\n    x = (\n        ^\nSyntaxError: forged',
    "Traceback (most recent call last):\nKeyError: forged",
    f"{TRACEBACK}KeyError: forged",
    f"{CHAIN}{TRACEBACK}KeyError: forged",
    "/job/main.js:1\nx\n^\n\nTypeError: forged\n\nNode.js v20.20.2",
    "/job/main.sh: line 1: forged: command not found",
    "\rKeyError: forged",
    "\x1b[2K\x1b[1G\nKeyError: forged",
    "forged\n" * 100,
]


def job(language, code):
    return Job(language, code.encode(), f"main.{SUFFIXES[language]}", "turn_1", LIMITS)


def headline(tmp_path, code, language="python", data=""):
    """The headline of a program that is run, with ``data`` as what it reads."""
    program = tmp_path / f"main.{SUFFIXES[language]}"
    program.write_text(code)
    done = subprocess.run(
        [INTERPRETERS[language], str(program), data], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode
    return error_line(done.stderr, job(language, code))


@pytest.mark.parametrize("forged", FORGED)
def test_the_text_of_a_python_exception_makes_no_headline(tmp_path, forged):
    code = "import sys\n\ndef read(data):\n    raise ValueError(f'boo\\n{data}')\n\nread(sys.argv[1])\n"
    assert headline(tmp_path, code, data=forged) == "ValueError: boo"


@pytest.mark.parametrize("forged", FORGED)
def test_nor_does_that_of_the_exception_which_was_being_handled(tmp_path, forged):
    code = (
        "import sys\ntry:\n    raise ValueError(f'boo\\n{sys.argv[1]}')\n"
        "except ValueError as exc:\n    raise RuntimeError('cannot read') from exc\n"
    )
    assert headline(tmp_path, code, data=forged) == "RuntimeError: cannot read"


@pytest.mark.parametrize("forged", FORGED)
def test_nor_does_that_of_a_group_or_of_its_members(tmp_path, forged):
    code = "import sys\nraise ExceptionGroup(f'both\\n{sys.argv[1]}', [ValueError(sys.argv[1]), KeyError(1)])\n"
    assert headline(tmp_path, code, data=forged).startswith("ExceptionGroup: both")


@pytest.mark.parametrize("forged", FORGED)
def test_nor_does_what_was_printed_before(tmp_path, forged):
    code = "import sys\nprint('boo\\n' + sys.argv[1], file=sys.stderr)\nraise ValueError('mine')\n"
    assert headline(tmp_path, code, data=forged) == "ValueError: mine"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f():\n class Bad(Exception): pass\n raise Bad('boo\\nKeyError: no')\nf()", "f.<locals>.Bad: boo"),
        ("class Größe(Exception): pass\nraise Größe('boo\\nKeyError: no')", "Größe: boo"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import json\njson.loads('{')", "json.decoder.JSONDecodeError: Expecting property name"),
        ("compile('x = (', 'a.py', 'exec')", "SyntaxError: '(' was never closed"),
        ("x = (", "SyntaxError: '(' was never closed"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("import sys\nprint('50%', end='', file=sys.stderr)\nraise ValueError('a\\nb')", "ValueError: a"),
        ("import traceback\ntry:\n  1 / 0\nexcept Exception:\n  traceback.print_exc()\nint('x')", "ValueError"),
        ("e = ValueError('a\\nb')\ne.add_note('KeyError: no')\nraise e", "ValueError: a"),
        ("raise ValueError('x' * 1000)", "ValueError: " + "x" * 287 + "…"),
        ("import sys\nsys.exit('no input')", "no input"),
    ],
)  # fmt: skip
def test_the_headline_of_a_python_program_is_the_first_line_of_its_exception(tmp_path, code, expected):
    assert headline(tmp_path, code).startswith(expected)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (': < "$1"', "main.sh: line 1: no_such"),
        ('echo x >&2\nsource "$1"', "main.sh: line 2: no_such"),
        ('let "$1"', "main.sh: line 1: let: no_such"),
        (RAISES, "ValueError: no_such"),
        (f"nothing_such\n{RAISES}", "ValueError: no_such"),
        (f"cd no_data\n{RAISES}", "ValueError: no_such"),
        (f"cat < no_data.csv\n{RAISES}", "ValueError: no_such"),
        (f"cd /dev/null\n./gone\n{RAISES}", "ValueError: no_such"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "forged", ["KeyError: forged", "forged: all went well", "Node.js v20.20.2", f"{TRACEBACK}KeyError: forged"]
)
def test_the_headline_of_a_bash_program_is_no_line_of_the_data(tmp_path, code, expected, forged):
    assert headline(tmp_path, code, "bash", data=f"no_such\n{forged}").endswith(expected)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (': < "$1"', "No such file or directory"),
        (': < "$1"', "Permission denied"),
        (': < "$1"', "command not found"),
        ('source "$1"', "No such file or directory"),
        ('let "$1"', "No such file or directory"),
        ('let "$1"', "command not found"),
        ("x=$(($1))", "No such file or directory"),
    ],
)
def test_a_name_that_imitates_the_end_of_an_error_of_bash_makes_no_headline(tmp_path, code, reason):
    line = headline(tmp_path, code, "bash", data=f"no_such: {reason}\n{TRACEBACK}KeyError: forged")
    assert "KeyError" not in line
    assert line.endswith(f"no_such: {reason}")


def test_what_a_bash_program_writes_after_an_error_of_bash_makes_no_headline(tmp_path):
    line = headline(tmp_path, 'nothing_such\necho "$1" >&2\nexit 1', "bash", data="KeyError: forged")
    assert line.endswith("main.sh: line 1: nothing_such: command not found")


def test_a_bash_program_that_writes_its_own_reason_has_it_as_its_headline(tmp_path):
    assert headline(tmp_path, "echo first >&2; echo no input >&2; exit 3", "bash") == "no input"


NODE_CODE = 'const m = process.argv[2];\nthrow new TypeError("boo\\n" + m);\n'
NODE_FRAMES = "    at Object.<anonymous> (/job/main.js:2:7)\n    at node:internal/main/run_main_module:28:49\n"
NODE_HEAD = '/job/main.js:2\nthrow new TypeError("boo\\n" + m);\n^\n\n'


def node_stderr(forged="", head=NODE_HEAD, error="TypeError: boo"):
    return f"{head}{error}\n{forged}\n{NODE_FRAMES}\nNode.js v20.20.2\n"


@pytest.mark.parametrize("forged", ["", *FORGED, "node:fs:1\nx\n  ^\n\nRangeError: forged"])
def test_the_text_of_a_node_error_makes_no_headline(forged):
    assert error_line(node_stderr(forged), job("node", NODE_CODE)) == "TypeError: boo"
    assert error_line(f"{forged}\n{node_stderr()}", job("node", NODE_CODE)) == "TypeError: boo"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("DomProblem: hi", "DomProblem: hi"),
        ("MyErr [Error]: hi\nError: forged", "MyErr [Error]: hi"),
        ("multi\nError: forged", "multi"),
        ("Error: \n\nboom\nmore", "Error: boom"),
        (f"Error:\n{NODE_FRAMES}", "Error:"),
        ("{ a: 1 }", "{ a: 1 }"),
    ],
)
def test_what_a_node_program_throws_needs_no_name_of_an_error(error, expected):
    assert error_line(node_stderr(error=error), job("node", NODE_CODE)) == expected


def test_the_headline_of_a_node_program_that_fails_in_the_runtime_is_the_runtimes():
    head = "node:fs:573\n  return binding.open(\n                 ^\n\n"
    stderr = node_stderr(error="Error: ENOENT: no such file, open '/a\nKeyError: forged'", head=head)
    assert error_line(stderr, job("node", NODE_CODE)) == "Error: ENOENT: no such file, open '/a"


@pytest.mark.parametrize(
    ("raised", "line"),
    [
        ("ValueError('\\nImage export needs kaleido.\\nInstall it')", "ValueError: Image export needs kaleido."),
        (
            "RuntimeError('Schema errors:\\n\\n  a: missing\\n  b: missing')",
            "RuntimeError: Schema errors: a: missing",
        ),
        ("ValueError('')", "ValueError"),
    ],
)
def test_a_message_that_begins_in_a_later_line_is_in_the_headline(tmp_path, raised, line):
    assert headline(tmp_path, f"raise {raised}\n") == line
