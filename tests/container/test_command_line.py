"""The command line against a service that runs in a process of its own, as its user types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofbox.cli.shared.profiles import Profile, Profiles, save_profiles
from tests.support.engines import quickest_engine

pytestmark = pytest.mark.docker

PATIENCE_S = 120.0  # ends a test that would hang; no claim about speed
PROOFBOX = [sys.executable, "-m", "proofbox.cli"]
LISTENS = re.compile(r"running on (http://\S+)")
TABLE = """\
import csv, sys
rows = list(csv.DictReader(open("my data.csv")))
extra = open("more rows.csv").read().split()
print("rows", len(rows) + len(extra))
print("a warning", file=sys.stderr)
with open("turn_1/files/my result.csv", "w") as file:
    file.write("name,price\\n" + "".join(f"{row['name']},{row['price']}\\n" for row in rows))
open("turn_1/files/note.txt", "w").write("done")
"""


class Shell:
    """A user with a folder, a private configuration, and a service."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PROOFBOX_", "XDG_"))}
        private = {"XDG_CONFIG_HOME": str(folder / ".config"), "XDG_DATA_HOME": str(folder / ".data")}
        self.environment = {**clean, **private, **environment}

    @property
    def first_line(self) -> str:
        """The note about the service in use."""
        return f"proofbox: service {self.environment['PROOFBOX_URL']} (PROOFBOX_URL)\n"

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command; its streams are pipes."""
        return subprocess.Popen(
            [*PROOFBOX, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, stdin: str = "") -> tuple[int, str, str]:
        """Run a command to its end; its exit code and what it printed."""
        process = self.start(*arguments)
        out, err = process.communicate(stdin, timeout=PATIENCE_S)
        assert "proofbox/cli" not in err  # no traceback of ours
        return process.returncode, out, err

    def json(self, *arguments: str) -> tuple[int, dict]:
        """Run a command with ``--json``; its exit code and the one value that it printed."""
        status, out, _ = self(*arguments, "--json")
        return status, json.loads(out)


def eventually(look):
    """Look until it is true; what was seen."""
    deadline = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return seen


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[str, str]]:
    """A service that requires keys; its URL and a key."""
    folder = tmp_path_factory.mktemp("served")
    settings = {"PROOFBOX_DATA_DIR": str(folder / "data"), "PROOFBOX_AUTH": "required", "PROOFBOX_POOL_SIZE": "1"}
    settings |= {"PROOFBOX_IMPORT_ONCE": "off", "PROOFBOX_ENGINE": quickest_engine()}
    shell = Shell(folder, **settings, PROOFBOX_PORT="0")
    status, out, err = shell("keys", "create", "--name", "tests", "--json")
    assert status == 0, err
    log = folder / "log"
    with log.open("w") as file:
        process = subprocess.Popen(
            [*PROOFBOX, "serve"],
            cwd=folder,
            env=shell.environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
        )
    try:
        deadline = time.monotonic() + PATIENCE_S * 3  # the first start on a machine unpacks the image
        while not (found := LISTENS.search(log.read_text())):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield found[1], json.loads(out)["secret"]
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def shell(served, tmp_path) -> Shell:
    url, key = served
    return Shell(tmp_path, PROOFBOX_URL=url, PROOFBOX_API_KEY=key)


@pytest.fixture
def program(tmp_path):
    """Write a program; its name."""

    def write(text: str, name: str = "program.py") -> str:
        (tmp_path / name).write_text(text)
        return name

    return write


def test_inputs_and_promises_have_names_with_spaces(shell, program):
    (shell.folder / "my data.csv").write_text("name,price\nnut,3\nbolt,5\n")
    (shell.folder / "b.csv").write_text("x y z")
    status, out, err = shell(
        *("run", program(TABLE), "--in", "my data.csv", "--in", "more rows.csv=b.csv", "--out", "my results"),
        *("--promise", "my result.csv: min_rows=2, columns=name,price", "--promise", "*.txt"),
    )
    assert (status, out) == (0, "rows 5\n"), err
    assert (shell.folder / "my results" / "my result.csv").read_text() == "name,price\nnut,3\nbolt,5\n"
    assert (shell.folder / "my results" / "note.txt").read_text() == "done"
    assert err.startswith(shell.first_line)
    assert "a warning\n" in err
    assert "saved my results/my result.csv (24 bytes)" in err


def test_json_has_the_whole_outcome_and_nothing_else_on_stdout(shell, program):
    status, answer = shell.json(
        "run", program("print(6 * 7)\nopen('turn_1/files/a.txt','w').write('x')"), "-p", "a.txt"
    )
    assert (status, answer["ok"], answer["stdout"], answer["exit_code"]) == (0, True, "42\n", 0)
    [file] = answer["files"]
    assert (file["path"], file["verdict"], file["saved_as"]) == ("fi:turn_1.files/a.txt", "produced", "out/a.txt")
    assert "error" not in answer


def test_a_program_that_only_prints_needs_no_promise_and_may_come_from_stdin(shell):
    assert shell("run", "-", "--quiet", stdin="print(6 * 7)") == (0, "42\n", "")
    assert shell("exec", "-", "--language", "bash", "--quiet", stdin="echo $((6 * 7))") == (0, "42\n", "")


def test_data_arguments_and_variables_reach_the_program(shell, program):
    code = program(
        "import os, sys\nprint(sys.stdin.read(), sys.argv[1:], os.environ['MODE'], open('d.txt').read())"
    )
    (shell.folder / "given.txt").write_text("given")
    options = ("--arg", "a b", "--arg=--c", "--env", "MODE=x=y", "--stdin", "given.txt", "--in", "d.txt=-")
    assert shell("run", code, *options, "--quiet", stdin="piped") == (0, "given ['a b', '--c'] x=y piped\n", "")


@pytest.mark.parametrize(
    ("code", "options", "exit_code", "error"),
    [
        ("raise ValueError('broken')", (), 4, "nonzero_exit"),
        ("print(1)", ("--promise", "a.csv"), 3, "execution_failed"),
        ("open('turn_1/files/a.json','w').write('{')", ("--promise", "a.json"), 3, "artifact_invalid"),
        ("import time\ntime.sleep(60)", ("--timeout", "0.5"), 124, "timeout"),
        ("open('turn_7/files/gone.csv')", ("--promise", "a.csv"), 5, "pre_exec_missing_paths"),
    ],
)
def test_each_kind_of_failure_has_an_exit_code_and_the_one_form_of_errors(
    shell, program, code, options, exit_code, error
):
    status, answer = shell.json("run", program(code), *options)
    assert (status, answer["error"]["code"], answer["ok"]) == (exit_code, error, False), answer["report"]
    assert set(answer["error"]) <= {"code", "message", "field", "retryable", "hint"}
    assert not (shell.folder / "out").exists()
    status, _, err = shell("run", program(code), *options)
    assert (status, "failed in" in err) == (exit_code, True)
    status, _, err = shell("run", program(code), *options, "--quiet")
    assert (status, err.splitlines()[-1].startswith("proofbox: ")) == (exit_code, True)


@pytest.mark.slow
def test_an_unreachable_service_is_named(shell, program):
    code = program("print(1)")
    status, answer = shell.json("run", code, "--url", "http://127.0.0.1:9")
    assert (status, answer["error"]["code"], answer["error"]["retryable"]) == (6, "unreachable", True)
    assert "http://127.0.0.1:9" in answer["error"]["message"]
    status, out, err = shell("run", code, "--url", "http://127.0.0.1:9", "--quiet")
    assert (status, out, err.count("\n"), err.startswith("proofbox: ")) == (6, "", 1, True)


def test_a_wrong_key_is_refused_with_the_way_out(shell):
    shell.environment["PROOFBOX_API_KEY"] = "pbx_wrong"
    status, answer = shell.json("tools")
    assert (status, answer["error"]["code"]) == (5, "unauthorized")
    assert "proofbox login" in answer["error"]["hint"]
    assert "pbx_wrong" not in json.dumps(answer)


def test_an_interrupt_cancels_the_call(shell, program):
    process = shell.start("run", program("import time\nprint('begun', flush=True)\ntime.sleep(100)"), "-c", "stop")
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, ""), err
    [call] = re.findall(r"the call (\S+) was cancelled", err)
    assert shell("status", call, "-c", "stop", "--quiet")[1].startswith("cancelled\n")


def test_a_command_that_ignores_the_end_of_its_terminal_goes_on(shell, program):
    code = program("import time\nprint('begun', flush=True)\ntime.sleep(1)\nprint('ended')")
    process = subprocess.Popen(
        ["nohup", *PROOFBOX, "run", code, "--quiet"],
        cwd=shell.folder,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGHUP)
    assert process.communicate(timeout=PATIENCE_S)[0] == "ended\n"
    assert process.returncode == 0


def test_a_second_process_watches_a_call_and_saves_its_files(shell, program):
    code = "import time\nfor i in range(3):\n    print(i, flush=True)\n    time.sleep(0.3)\n"
    code += "open('turn_1/files/a.txt','w').write('x')"
    status, ids = shell.json("run", program(code), "--promise", "a.txt", "--detach", "--in", "program.py")
    assert status == 0
    watched = shell("watch", ids["call_id"], "-c", ids["conversation"], "--out", "seen")
    assert watched[:2] == (0, "0\n1\n2\n"), watched
    assert (shell.folder / "seen" / "a.txt").read_text() == "x"
    status, out, _ = shell("watch", ids["call_id"], "-c", ids["conversation"], "--json")
    events = [json.loads(line)["event"] for line in out.splitlines()]
    assert (status, events[-1], "started" in events) == (0, "result", True)


def test_a_call_is_cancelled_from_a_second_process(shell, program):
    ids = shell.json("run", program("import time\ntime.sleep(100)"), "--detach")[1]
    names = (ids["call_id"], "-c", ids["conversation"])
    assert shell("status", *names)[1].strip() in {"queued", "running"}
    assert shell("cancel", *names)[0] == 0
    status, out, err = shell("watch", *names)
    assert (status, out) == (130, ""), err
    assert shell.json("status", *names)[1]["status"] == "cancelled"


def test_files_go_in_and_come_out(shell):
    (shell.folder / "my data.bin").write_bytes(bytes(range(256)) * 999)
    assert shell("files", "put", "files", "my data.bin", "two.txt=-", "--quiet", stdin="2") == (
        0,
        "turn_1/attachments/my data.bin\nturn_1/attachments/two.txt\n",
        "",
    )
    listed = shell.json("files", "ls", "files")[1]["files"]
    assert {file["name"]: file["size_bytes"] for file in listed} == {"my data.bin": 255_744, "two.txt": 1}
    assert shell("files", "get", "files", "my data.bin", "turn_1/attachments/two.txt", "-o", "copies")[0] == 0
    assert (shell.folder / "copies" / "my data.bin").read_bytes() == bytes(range(256)) * 999
    assert shell("files", "get", "files", "two.txt", "-o", "-", "--quiet") == (0, "2", "")
    assert shell("files", "rm", "files", "two.txt")[0] == 0
    assert [file["name"] for file in shell.json("files", "ls", "files")[1]["files"]] == ["my data.bin"]
    status, answer = shell.json("files", "get", "files", "two.txt")
    assert (status, answer["error"]["message"]) == (2, "no file is called 'two.txt'")
    assert (
        shell.json("files", "rm", "files", "turn_1/attachments/two.txt")[1]["error"]["code"] == "unknown_artifact"
    )
    assert shell.json("files", "get", "files", "turn_1/files/gone")[0] == 5


def test_a_conversation_goes_on_and_is_shown(shell, program):
    first = program("open('turn_1/files/a.txt','w').write('one')")
    assert shell("run", first, "-p", "a.txt", "-c", "goes-on")[0] == 0
    second = program("print(open('turn_1/files/a.txt').read())")
    assert shell("run", second, "-c", "goes-on", "--turn", "turn_2", "--quiet") == (0, "one\n", "")
    assert "fi:turn_1.files/a.txt" in shell("timeline", "goes-on")[1]
    blocks = shell.json("timeline", "goes-on")[1]["blocks"]
    assert {block["turn_id"] for block in blocks} == {"turn_1", "turn_2"}


def test_conversations_are_listed_and_deleted(shell):
    for name in ("stays", "removed"):
        assert shell("files", "put", name, "a.txt=-", stdin="1")[0] == 0
    listed = {
        each["conversation_id"]: each["files"] for each in shell.json("conversations", "ls")[1]["conversations"]
    }
    assert (listed["stays"], listed["removed"]) == (1, 1)
    assert shell("conversations", "rm", "removed") == (0, "", shell.first_line + "deleted removed\n")
    assert "stays" in (left := shell("conversations", "ls")[1])
    assert "removed" not in left
    status, answer = shell.json("conversations", "rm", "removed")
    assert (status, answer["error"]["code"]) == (5, "unknown_conversation")


def test_tools_are_listed_called_and_described_for_a_model(shell):
    assert "react.read" in shell("tools")[1]
    assert shell.json("tools", "rendering_tools.write_pdf")[1]["tools"][0]["takes_code"] is False
    functions = json.loads(shell("tools", "--format", "openai")[1])
    assert all(set(function) >= {"type"} for function in functions)
    shell("files", "put", "read", "a.txt=-", stdin="hello")
    status, answer = shell.json("call", "react.read", '{"paths": ["turn_1/attachments/a.txt"]}', "-c", "read")
    assert (status, answer["ok"]) == (0, True), answer
    assert "hello" in [block.get("text") for block in answer["blocks"]]
    status, answer = shell.json("call", "no.tool", "{}")
    assert (status, answer["error"]["code"]) == (5, "unknown_tool")


def test_a_document_is_rendered_with_the_picture_beside_it(shell):
    (shell.folder / "img").mkdir()
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
    (shell.folder / "img" / "my logo.svg").write_text(picture)
    (shell.folder / "doc.md").write_text("# Title\n\n![logo](img/my%20logo.svg)\n")
    status, _, err = shell("render", "doc.md", "new/doc.pdf", "--params", '{"strict": true}')
    assert status == 0, err
    assert (shell.folder / "new" / "doc.pdf").read_bytes().startswith(b"%PDF")
    assert "saved new/doc.pdf" in err


def test_a_rendering_that_fails_writes_nothing(shell):
    (shell.folder / "doc.md").write_text("# Title\n")
    status, answer = shell.json("render", "doc.md", "gone/doc.pdf", "--theme", "no-such-theme")
    assert (status, answer["ok"]) == (1, False)
    assert "no-such-theme" in answer["error"]["message"]
    assert not (shell.folder / "gone").exists()


def read_until_saved(process: subprocess.Popen[str], times: int) -> None:
    """Read the standard error of a command until it has said so many times that it saved the picture."""
    assert process.stderr is not None
    while times:
        line = process.stderr.readline()
        assert line, "the command has ended"
        times -= "saved doc.png" in line


@pytest.mark.slow
def test_a_document_is_rendered_again_when_it_changes(shell):
    document, picture = shell.folder / "doc.md", shell.folder / "doc.png"
    document.write_text("# One\n")
    process = shell.start("render", "doc.md", "doc.png", "--watch")
    first = eventually(lambda: picture.exists() and picture.read_bytes())
    document.rename(shell.folder / "moved.md")  # as an editor replaces a file
    (shell.folder / "moved.md").write_text("# Another title\n")
    (shell.folder / "moved.md").rename(document)
    assert eventually(lambda: picture.read_bytes() not in (b"", first))
    read_until_saved(process, 2)  # the file is there before the line that says so
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err.count("saved doc.png")) == (130, 0), err


def test_a_saved_login_is_used_until_it_is_removed(shell, served):
    url, key = served
    del shell.environment["PROOFBOX_URL"], shell.environment["PROOFBOX_API_KEY"]
    assert shell("login", url, stdin="pbx_wrong\n")[0] == 5
    assert not (shell.folder / ".config").exists()
    status, _, err = shell("login", url, stdin=f"{key}\n")
    assert status == 0, err
    assert key not in err
    status, out, err = shell("run", "-", stdin="print(1)")
    assert (status, out, f"service {url} (proofbox login)" in err) == (0, "1\n", True)
    assert shell("logout")[0] == 0


def test_a_key_is_not_sent_to_another_url(shell, served, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", shell.environment["XDG_CONFIG_HOME"])
    save_profiles(Profiles("other", {"other": Profile("http://127.0.0.1:9", served[1])}))
    del shell.environment["PROOFBOX_API_KEY"]
    assert shell.json("tools")[1]["error"]["code"] == "unauthorized"


def test_without_a_url_the_sandbox_of_this_machine_is_used_and_nothing_stays(shell, program):
    del shell.environment["PROOFBOX_URL"], shell.environment["PROOFBOX_API_KEY"]
    status, out, err = shell("run", program("print(6 * 7)\nopen('a.txt','w').write('x')"), "--promise", "a.txt")
    assert (status, out) == (0, "42\n"), err
    assert "local sandbox, a temporary store (no URL is known)" in err
    assert (shell.folder / "out" / "a.txt").read_text() == "x"
    assert not (shell.folder / ".data").exists()


@pytest.mark.slow
def test_a_local_conversation_is_stored_for_later_commands(shell, program):
    code = program("open('turn_1/files/a.txt','w').write('one')")
    assert shell("run", "--local", code, "-p", "a.txt", "-c", "mine")[0] == 0
    assert shell("files", "get", "mine", "a.txt", "-o", "-", "--local", "--quiet") == (0, "one", "")
    assert (shell.folder / ".data" / "proofbox" / "local").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "command", ["run", pytest.param("render", marks=pytest.mark.slow), pytest.param("mcp", marks=pytest.mark.slow)]
)
def test_local_commands_work_beside_the_settings_of_a_service_of_many_processes(shell, program, command):
    shell.environment |= {
        "PROOFBOX_DISPATCH": "nats",
        "PROOFBOX_NATS_URLS": "nats://127.0.0.1:9",
        "PROOFBOX_DATABASE_URL": "postgresql://127.0.0.1:9/proofbox",
        "PROOFBOX_S3_SECRET_KEY_FILE": f"{shell.folder}/no-secret",
    }
    (shell.folder / "text.md").write_text("# A title")
    arguments = {"run": [program("print(6 * 7)")], "render": ["text.md", "text.pdf"], "mcp": []}[command]
    status, out, err = shell(command, *arguments, "--local")
    assert status == 0, err
    assert command != "run" or out == "42\n"
    assert command != "render" or (shell.folder / "text.pdf").is_file()


@pytest.mark.slow
def test_an_interrupt_ends_a_local_program(shell, program):
    process = shell.start("run", "--local", program("import time\nprint('begun', flush=True)\ntime.sleep(100)"))
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (130, ""), err
    assert "was cancelled" in err


@pytest.mark.slow
def test_an_engine_that_is_missing_is_one_sentence(shell, program):
    shell.environment |= {"PROOFBOX_ENGINE": "docker", "DOCKER_HOST": f"unix://{shell.folder}/no.sock"}
    status, out, err = shell("run", "--local", program("print(1)"), "--quiet")
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert "no.sock" in err
