"""The code executor for Google ADK."""

import base64

import pytest
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, File

from proofbox.adapters.google_adk import ProofboxCodeExecutor


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


def test_the_example_runs_an_agent_that_executes_the_code_of_its_model(run_example):
    assert "332833500" in run_example("google_adk_agent.py")
