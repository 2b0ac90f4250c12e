"""Habits of models that end as an error: one sentence each, which says what to write."""

import pytest

from proofbox.contracts.tools import Language
from proofbox.service.execution.program_habits import habit_hints

SYNTAX = 'Traceback (most recent call last):\n  File "/job/main.py", line 1\nSyntaxError: invalid syntax\n'
CONTINUATION = "SyntaxError: unexpected character after line continuation character\n"
OF_NODE = "/job/main.js:1\nSyntaxError: Unexpected identifier 'os'\n"
OF_BASH = "/job/main.sh: line 1: import: command not found\n"


def hints(code, text, language=Language.PYTHON, *, has_network=False, timed_out=False):
    return list(habit_hints(code, language, text, has_network=has_network, timed_out=timed_out))


@pytest.mark.parametrize(
    ("language", "code", "text", "part"),
    [
        (Language.PYTHON, r"import os\nprint(os.getcwd())", CONTINUATION, "the two characters \\ and n"),
        (Language.PYTHON, "if a &lt; 3:\n  pass", SYNTAX, "HTML entities"),
        (Language.PYTHON, "print(\u201chello\u201d)", SYNTAX, "typographic quotes"),
        (Language.PYTHON, ">>> print(1)\n1", SYNTAX, "a prompt such as >>>"),
        (Language.PYTHON, "In [1]: x = 1", SYNTAX, "a prompt such as >>>"),
        (Language.PYTHON, "In [1]: x = 1", "NameError: name 'In' is not defined", "a prompt such as >>>"),
        (
            Language.PYTHON,
            "get_ipython().system('ls')",
            "NameError: name 'get_ipython' is not defined",
            "no notebook",
        ),
        (Language.PYTHON, "import math\nmath.sqrt?", SYNTAX, "write help(name)"),
        (
            Language.PYTHON,
            "if x:\n\u00a0\u00a0 y",
            "SyntaxError: invalid non-printable character U+00A0",
            "no-break space",
        ),
        (Language.BASH, "ls\u00a0-la", "main.sh: line 1: ls\u00a0-la: command not found", "no-break space"),
        (
            Language.BASH,
            "cd a\r\nls\n",
            "main.sh: line 1: cd: $'a\\r': No such file or directory",
            "end all with LF",
        ),
        (Language.PYTHON, "Here is the code:\n```python\nprint(1)\n```\n", SYNTAX, "send the program alone"),
        (Language.BASH, "Run this:\n```bash\nls\n```", "main.sh: line 1: Run: command not found", "a code fence"),
        (Language.NODE, "The code:\n```js\n1\n```", OF_NODE, "a code fence"),
        (Language.BASH, "for i in range(3):\n    x(i)", "main.sh: line 1: syntax error near `('", "code_python"),
        (Language.NODE, "for y in x:\n    f(y)", OF_NODE, "exec_tools.execute_code_python"),
        (
            Language.PYTHON,
            "matplotlib.use('TkAgg')",
            "ModuleNotFoundError: No module named 'tkinter'",
            "leave the choice of a backend out",
        ),
        (
            Language.PYTHON,
            "plt.switch_backend('Qt5Agg')",
            "ImportError: Failed to import any of the following Qt binding modules: PyQt5",
            "leave the choice of a backend out",
        ),
        (
            Language.PYTHON,
            "cv2.imshow('a', b)",
            "error: (-2:Unspecified error) The function is not implemented. Rebuild the library with Windows, GTK+",
            "cv2.imwrite",
        ),
        (Language.PYTHON, "getpass.getpass()", "    raise EOFError\nEOFError", "getpass() reads as stdin"),
        (Language.PYTHON, "x = 1\n!ls -la", SYNTAX, "commands of notebooks"),
        (Language.PYTHON, "%%timeit\nsum(range(9))", SYNTAX, "commands of notebooks"),
        (Language.PYTHON, "#!/bin/bash\nls -la | wc -l", SYNTAX, "exec_tools.execute_code_bash"),
        (Language.PYTHON, "cd app && python run.py", SYNTAX, "exec_tools.execute_code_bash"),
        (Language.PYTHON, "const fs = require('fs');", SYNTAX, "exec_tools.execute_code_node"),
        (Language.PYTHON, "[1].map(x => x + 1)", SYNTAX, "exec_tools.execute_code_node"),
        (Language.BASH, "import os\nprint(os.getcwd())", OF_BASH, "exec_tools.execute_code_python"),
        (Language.BASH, "const a = 1;\nconsole.log(a)", "main.sh: line 1: const: command not found", "code_node"),
        (Language.NODE, "import os\nprint(1)", OF_NODE, "exec_tools.execute_code_python"),
        (Language.NODE, "echo hello | wc -c", OF_NODE, "exec_tools.execute_code_bash"),
        (Language.PYTHON, "python\nprint(1)", "NameError: name 'python' is not defined", "the word python"),
        (Language.PYTHON, "x = input()", "EOFError: EOF when reading a line", "stdin of the call"),
        (Language.PYTHON, "import argparse", "main.py: error: the following arguments are required: in", "args of"),
        (Language.PYTHON, "open(sys.argv[1])", "IndexError: list index out of range", "args of the call"),
        (Language.PYTHON, "os.replace(a, b)", "OSError: [Errno 18] Invalid cross-device link: 'a'", "shutil.move"),
        (Language.PYTHON, "locale", "locale.Error: unsupported locale setting", "babel"),
        (Language.PYTHON, "plt", "OSError: 'seaborn-white' is not a valid package style, path", "seaborn-v0_8-"),
        (Language.PYTHON, "x", "OSError: [Errno 28] No space left on device: '/tmp/x.csv'", "to files/"),
        (Language.BASH, "python -m venv v", "apt install python3.13-venv", "environments cannot be made"),
    ],
)
def test_a_habit_gets_its_sentence_once(language, code, text, part):
    [hint] = hints(code, text, language)
    assert part in hint


@pytest.mark.parametrize(
    "text",
    [
        "socket.gaierror: [Errno -3] Temporary failure in name resolution",
        "OSError: [Errno 101] Network is unreachable",
        "Error: getaddrinfo EAI_AGAIN example.com",
        "curl: (6) Could not resolve host: example.com",
    ],
)
def test_a_program_without_a_network_is_told_so_and_one_with_is_not(text):
    [hint] = hints("", text)
    assert "no network" in hint
    assert hints("", text, has_network=True) == []


def test_a_server_that_nobody_asks_is_one_only_when_it_was_ended():
    code = "http.server.HTTPServer(('', 80), H).serve_forever()"
    [hint] = hints(code, "", timed_out=True)
    assert "nobody can reach a server" in hint
    assert hints(code, "") == []


@pytest.mark.parametrize(
    ("language", "code", "text"),
    [
        (Language.PYTHON, "x = = 1", SYNTAX),
        (Language.PYTHON, "print(r'a\\nb')\nx = (", SYNTAX),
        (Language.PYTHON, "import python", "ModuleNotFoundError: No module named 'python'"),
        (Language.PYTHON, "print(python)", "NameError: name 'python' is not defined"),
        (Language.PYTHON, "rows[9]", "IndexError: list index out of range"),
        (Language.BASH, "nosuch -v", "main.sh: line 1: nosuch: command not found"),
        (Language.NODE, "const a = ;", OF_NODE),
        (Language.NODE, "switch (a) {\n  case 1:\n}}", OF_NODE),
        (Language.BASH, "if [ a ]; then :\nfi fi", "main.sh: line 2: syntax error near `fi'"),
        (Language.PYTHON, "x = a ? b : c", SYNTAX),
        (Language.PYTHON, "text = '''\n```\na\n```\n'''\nx = (", SYNTAX),
        (Language.BASH, "cat > a.md <<END\n```\na\n```\nEND\nnosuch", "main.sh: line 6: nosuch: command not found"),
        (Language.BASH, "cd a\r\nls\r\n", "main.sh: line 1: cd: a: No such file or directory"),
        (Language.PYTHON, "import nosuch\nuse('Tk')", "ZeroDivisionError: a"),
        (Language.PYTHON, "print('&lt;')\n1/0", "ZeroDivisionError: division by zero"),
    ],
)
def test_an_ordinary_mistake_has_no_habit(language, code, text):
    assert hints(code, text, language) == []


@pytest.mark.parametrize("code", ["\n" * 20_000, "import " * 3_000, " " * 20_000, ">" * 20_000, "=> " * 7_000])
def test_hostile_programs_are_looked_through_at_once(code):
    for language in Language:
        hints(code, code + "SyntaxError: x\ncommand not found", language)
