"""Commands that make a call, against a service that answers from a script."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofbox.cli import main
from proofbox.cli.shared.live_calls import call_names
from tests.support.client_answers import accepted, ended, printed, started, stream, with_files
from tests.support.scripted_service import Scripted, ScriptedService


@pytest.fixture(autouse=True)
def _private_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    for name in ("PROOFBOX_URL", "PROOFBOX_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("print(1)")


@pytest.fixture
def service():
    with ScriptedService(Scripted()) as service:
        yield service


def run_with(service, *arguments):
    return main([*arguments, "--url", service.url, "--quiet"])


def posted(service):
    return [request.json for request in service.requests if request.line.startswith("POST")]


def test_a_call_id_names_its_conversation():
    one, again, other = call_names(None, None, "c1"), call_names(None, None, "c1"), call_names(None, None, "c2")
    assert one == again
    assert one.conversation != other.conversation
    assert call_names("mine", None, "c1").conversation == "mine"
    assert call_names(None).conversation != call_names(None).conversation


def test_the_same_call_id_sends_the_same_request(service):
    service.answers(*(accepted(), stream(started(), ended(2))) * 2)
    for _ in range(2):
        assert run_with(service, "run", "a.py", "--call-id", "once") == 0
    first, second = posted(service)
    assert (first, first["tool_call_id"]) == (second, "once")


@pytest.mark.parametrize("is_error_shared", [False, True])
def test_a_reader_that_ends_early_cancels_the_call(service, is_error_shared):
    service.answers(accepted(), stream(started(), printed(2, "1\n"), is_silent=True), accepted("cancelled"))
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [sys.executable, "-m", "proofbox.cli", "run", "a.py", "--url", service.url, "--quiet", "--call-id", "c1"],
        stdout=writer,
        stderr=writer if is_error_shared else subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (process.returncode, process.stderr or b"") == (1, b"")
    conversation = call_names(None, None, "c1").conversation
    assert service.lines[-1] == f"DELETE /v1/tool-calls/c1?conversation_id={conversation}"


def test_an_error_of_a_call_that_may_run_names_it(service, capsys):
    service.answers(accepted(), Scripted(request_cut_at=0))
    line = ("run", "a.py", "-c", "c1", "--call-id", "x1")
    assert run_with(service, *line, "--json") == 6
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["hint"] == "if the call began, 'proofbox watch x1 --conversation c1' shows it"
    service.answers(accepted(), Scripted(request_cut_at=0))
    assert run_with(service, *line) == 6
    assert "; if the call began, 'proofbox watch x1 --conversation c1' shows it\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "a.py", "-p", "x.csv", "--out", "a.py"),
        ("call", "react.read", "{}", "--out", "a.py/b"),
        ("watch", "x1", "--out", "a.py"),
        ("render", "a.py", "a.py/b.pdf"),
    ],
)
def test_a_folder_that_cannot_be_written_costs_no_call(service, capsys, arguments):
    assert run_with(service, *arguments) == 2
    assert "a.py: a part of the path is not a folder\n" in capsys.readouterr().err.replace("a.py/b:", "a.py:")
    assert service.requests == []


def test_a_call_without_files_leaves_no_folder(service):
    service.answers(accepted(), stream(started(), ended(2)))
    assert run_with(service, "run", "a.py", "-p", "x.csv", "--out", "new/out") == 0
    assert not Path("new").exists()


@pytest.mark.parametrize("arguments", [("call", "t", "{}", "-o", "out"), ("watch", "x1", "-o", "out")])
def test_the_version_of_the_answer_is_saved(service, arguments):
    old, new = b"old", b"new"
    answer = with_files("a.txt", sha256=hashlib.sha256(old).hexdigest())
    is_watch = arguments[0] == "watch"
    latest = Scripted(body=new, headers={"ETag": f'"{hashlib.sha256(new).hexdigest()}"', "Artifact-Version": "2"})
    tag = {"ETag": f'"{hashlib.sha256(old).hexdigest()}"', "Artifact-Version": "1"}
    first = () if is_watch else (accepted(),)
    service.answers(
        *first, stream(started(), ended(2, answer)), latest, Scripted(headers=tag), Scripted(200, old, tag)
    )
    assert run_with(service, *arguments, "-c", "c1") == 0
    assert (Path("out") / "a.txt").read_bytes() == old
