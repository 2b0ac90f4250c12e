"""The sandbox for deepagents, with its newest release: what LangChain's own tests leave out."""

import pytest

from proofbox.adapters.deepagents import ProofboxSandbox
from proofbox.client import ProofboxError
from proofbox.contracts.tool_call_response import ProgramOutput
from tests.support.client_answers import accepted, answer, ended, refusal, response, started, stream
from tests.support.scripted_service import ScriptedService


@pytest.fixture
def sandbox(service_url):
    return ProofboxSandbox(service_url)


def test_commands_share_modes_empty_folders_and_links(sandbox):
    made = sandbox.execute("mkdir -p empty bin; echo 'echo ran' >bin/run; chmod 750 bin/run; ln -s bin/run go")
    assert (made.output, made.exit_code) == ("", 0)
    assert sandbox.execute("./go; stat -c %a bin/run; ls -d empty").output == "ran\n750\nempty\n"


def test_an_edit_that_is_too_large_for_a_command_line(sandbox):
    text = "".join(f"line {number}\n" for number in range(9_000))
    sandbox.write("/mnt/data/long.txt", text)
    edited = sandbox.edit("/mnt/data/long.txt", text, text.replace("line 4321\n", "another line\n"))
    assert (edited.error, edited.occurrences) == (None, 1)
    assert sandbox.execute("sed -n 4322p long.txt; ls -A /tmp | grep edit").output == "another line\n"


def test_a_download_leaves_nothing_behind_and_follows_no_name_out_of_the_request(sandbox):
    sandbox.execute("mkdir -p a/b; echo 1 >a/x; echo 2 >a/b/x")
    found = sandbox.download_files(["/mnt/data/a/x", "/mnt/data/a/b/x", "/mnt/data/none"])
    assert [file.content for file in found] == [b"1\n", b"2\n", None]
    assert [file.error for file in found] == [None, None, "file_not_found"]
    assert sandbox.execute("ls -A").output == "a\n"


def test_more_downloads_than_a_contract_takes(sandbox):
    files = [(f"/mnt/data/{number}", b"%d" % number) for number in range(230)]
    assert {answer.error for answer in sandbox.upload_files(files)} == {None}
    found = sandbox.download_files([path for path, _ in files])
    assert [file.content for file in found] == [data for _, data in files]


def test_a_command_that_is_ended_has_the_reason_in_its_output(sandbox):
    ended = sandbox.execute("echo begun; sleep 60", timeout=1)
    assert ended.exit_code == 1
    assert ended.output.startswith("begun\n")
    assert "Timeout after 1s" in ended.output


def test_the_example_lists_what_an_agent_made(run_example):
    assert "report.md" in run_example("deepagents_sandbox.py")


def test_an_upload_to_tmp_waits_for_a_command_that_succeeds():
    with ScriptedService(answer()) as service:
        sandbox = ProofboxSandbox(service.url)
        sandbox.upload_files([("/tmp/a.txt", b"1")])
        service.answers(refusal("storage_quota", 413))
        with pytest.raises(ProofboxError):
            sandbox.execute("cat /tmp/a.txt")
        for _ in range(2):
            service.answers(accepted(), stream(started(), ended(2)))
            sandbox.execute("cat /tmp/a.txt")
        retried, following = [request.json for request in service.requests if request.line.startswith("POST")][-2:]
    assert ("cp " in retried["code"], len(retried["assets"])) == (True, 1)
    assert "cp " not in following["code"]


def test_output_of_which_only_the_result_is_left_is_the_output():
    result = response(output=ProgramOutput(stdout="1\n", combined="1\n"))
    with ScriptedService(accepted(), stream(ended(1, result))) as service:
        assert "1\n" in ProofboxSandbox(service.url).execute("echo 1").output
