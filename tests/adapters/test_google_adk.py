"""The code executor for Google ADK."""

import base64
from types import SimpleNamespace

import pytest
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, File

from proofbox.adapters.google_adk import ProofboxCodeExecutor
from tests.support.client_answers import answer, attachment
from tests.support.scripted_service import ScriptedService


@pytest.fixture
def execute(service_url):
    def run(code, *files, execution_id=None, **settings):
        executor = ProofboxCodeExecutor(url=service_url, **settings)
        return executor.execute_code(None, CodeExecutionInput(code, list(files), execution_id))

    return run


def test_output_and_exit_status_come_back(execute):
    result = execute("import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.exit(3)")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 3)
    assert execute("print(1)").exit_code == 0


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", "a,b\n1,2\n", base64.b64encode(b"a,b\n1,2\n").decode()])
def test_input_files_are_read_by_their_names(execute, content):
    result = execute("print(open('data.csv').read(), end='')", File("data.csv", content, "text/csv"))
    assert result.stdout == "a,b\n1,2\n"


def test_written_files_come_back_with_their_types(execute):
    result = execute(
        "import os\nos.mkdir('files/d')\n"
        "open('files/d/t.csv', 'w').write('a,b\\n')\nopen('x.bin', 'wb').write(b'\\0')"
    )
    assert sorted((file.name, file.content, file.mime_type) for file in result.output_files) == [
        ("d/t.csv", b"a,b\n", "text/csv"),
        ("x.bin", b"\0", "application/octet-stream"),
    ]


def test_an_unchanged_input_is_no_output(execute):
    assert execute("print(1)", File("data.csv", b"a,b\n")).output_files == []


def test_a_timeout_is_an_error_for_the_framework(execute):
    result = execute("while True: pass", timeout_seconds=1)
    assert (result.exit_code, result.stderr) == (None, "timeout: Timeout after 1s")


def test_programs_of_one_execution_share_their_folder_if_the_executor_is_stateful(execute):
    first = {"execution_id": "adk-session-1", "stateful": True}
    execute("open('kept.txt','w').write('x'); import os; os.mkdir('empty')", **first)
    assert execute("import os; print(sorted(os.listdir('.')))", **first).stdout == "['empty', 'kept.txt']\n"
    other = execute("import os; print(os.path.exists('kept.txt'))", execution_id="adk-session-2", stateful=True)
    assert other.stdout == "False\n"


def test_sessions_of_several_users_and_apps_share_no_folder():
    owners = [("app", "ann"), ("app", "ben"), ("other", "ann"), ("app", "ann")]
    with ScriptedService(answer()) as service:
        executor = ProofboxCodeExecutor(url=service.url, stateful=True)
        for app, user in owners:
            context = SimpleNamespace(app_name=app, user_id=user)
            executor.execute_code(context, CodeExecutionInput("print(1)", execution_id="s1"))
        first, second, third, again = [request.json["conversation_id"] for request in service.requests]
    assert len({first, second, third}) == 3
    assert again == first


def test_bytes_that_look_like_base64_are_sent_as_they_are():
    with ScriptedService(attachment(), answer()) as service:
        executor = ProofboxCodeExecutor(url=service.url)
        executor.execute_code(None, CodeExecutionInput("print(1)", [File("a.txt", b"data")]))
        assert b"data" in service.requests[0].body


def test_the_key_is_neither_printed_nor_dumped():
    executor = ProofboxCodeExecutor(api_key="pbx_secret")
    assert "pbx_secret" not in repr(executor) + str(executor.model_dump()) + executor.model_dump_json()


def test_the_example_runs_an_agent_that_executes_the_code_of_its_model(run_example):
    assert "332833500" in run_example("google_adk_agent.py")
