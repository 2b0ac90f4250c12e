"""What a command prints to a terminal, and to a pipe."""

import json
import os
import pty
import subprocess
import sys

import pytest

PROGRAM = """
import time
from proofbox.cli.shared.terminal import Terminal
terminal = Terminal()
with terminal.progress("working") as progress:
    while progress._is_shown and not progress._is_drawn:
        time.sleep(0.01)
    progress.pause()
    terminal.write_output("a", "stdout")
    terminal.write_output("b\\x1b[31m 10%\\r20%", "stdout")
terminal.note("evil\\x1b[2J name", "green")
terminal.table(("path", "bytes"), [("a b", 1), ("c", None)])
"""


JSON_PROGRAM = """
from proofbox.cli import main
from proofbox.cli.shared.terminal import Terminal
Terminal(is_json=True).print_json({"name": "a\\u009b2J\\u202eb"})
main(["run", "a\\u009b2J\\u202eb.py", "--json"])
"""


def on_a_terminal(program=PROGRAM, **environment):
    """What a program sends to a terminal that is its stdout and stderr."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb") as screen:
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", **environment},
        )
        os.close(theirs)
        shown = b""
        try:
            while piece := screen.read1():
                shown += piece
        except OSError:  # Linux ends a terminal without writers like this
            pass
        assert process.wait() == 0
    return shown.decode().replace("\r\n", "\n")


def test_a_terminal_shows_progress_until_the_program_prints_and_no_foreign_controls():
    shown = on_a_terminal(NO_COLOR="")
    progress, _, rest = shown.partition("\r\x1b[Kab\\x1b[31m 10%\r20%\n")
    assert progress == "\r\x1b[Kworking 0 s"
    assert rest == "\x1b[32mevil\\x1b[2J name\x1b[0m\n\x1b[1mpath  bytes\x1b[0m\na b   1\nc     -\n"


def test_json_on_a_terminal_has_no_foreign_controls():
    value, error = on_a_terminal(JSON_PROGRAM).splitlines()
    assert (value.isascii(), error.isascii()) == (True, True)
    assert json.loads(value) == {"name": "a\u009b2J\u202eb"}
    assert json.loads(error)["error"]["message"] == "a\u009b2J\u202eb.py: no such file"


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_are_left_out_where_they_are_not_wanted(variable):
    assert "evil\\x1b[2J name\npath  bytes\n" in on_a_terminal(**variable)


def test_a_pipe_gets_what_the_program_wrote_and_no_heading():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert done.stdout == b"ab\x1b[31m 10%\r20%a b  1\nc    -\n"
    assert done.stderr == b"evil\x1b[2J name\n"


def test_a_reader_that_ends_early_is_no_error():
    command = f"{sys.executable} -m proofbox.cli completion bash | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (done.stdout.strip() in {"0", "1"}, done.stderr) == (True, "")


def test_a_name_that_the_locale_cannot_show_is_printed_another_way(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "proofbox.cli", "run", "größe-\u4e00.py", "--json"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (2, b"")
    assert json.loads(done.stdout.decode("latin-1"))["error"]["message"] == "größe-\u4e00.py: no such file"
