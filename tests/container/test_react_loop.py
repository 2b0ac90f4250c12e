"""examples/react_loop.py with a scripted model behind an OpenAI-compatible endpoint, and a real service."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support.served import REPOSITORY, served

pytestmark = pytest.mark.docker

TASK = "Write the squares of 1 to 3."


def function(name: str, arguments: Any, call_id: str = "call_a") -> dict[str, Any]:
    """A message that calls a function."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


class ScriptedModel(ThreadingHTTPServer):
    """Answers chat completions from a list, and records the requests."""

    def __init__(self, script: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script, self.requests = script, list[dict[str, Any]]()
        self.keys: set[str | None] = set()


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedModel

    def do_POST(self) -> None:
        assert self.path == "/v1/chat/completions"
        self.server.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.keys.add(self.headers["Authorization"])
        message = self.server.script[len(self.server.requests) - 1]
        body = json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": message}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: Any) -> None:
        """Logs nothing."""


@contextmanager
def answering(*script: dict[str, Any]) -> Iterator[ScriptedModel]:
    with ScriptedModel([*script]) as model:
        thread = threading.Thread(target=model.serve_forever)
        thread.start()
        yield model
        model.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def service_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("service")) as url:
        yield url


def run(model: ScriptedModel, service_url: str, folder: Path) -> str:
    """What the program prints."""
    environment = {
        **os.environ,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{model.server_port}/v1",
        "OPENAI_API_KEY": "sk-test",
        "OPENAI_MODEL": "scripted",
        "PROOFBOX_URL": service_url,
        "PYTHONPATH": str(REPOSITORY),
    }
    program = [sys.executable, str(REPOSITORY / "examples/react_loop.py"), TASK]
    ran = subprocess.run(program, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_model_gets_tools_and_reports_and_its_files_are_saved(service_url: str, tmp_path: Path) -> None:
    code = "open('files/squares.csv', 'w').write('n,square\\n1,1\\n2,4\\n3,9\\n')"
    contract = [{"filename": "squares.csv", "description": "the squares", "min_rows": 3}]
    script = [
        function("exec_tools__execute_code_python", {"code": "raise SystemExit(3)", "contract": contract}),
        function("exec_tools__execute_code_python", {"code": code, "contract": contract}, "call_b"),
        {"role": "assistant", "content": "Here they are."},
    ]
    with answering(*script) as model:
        printed = run(model, service_url, tmp_path)
    assert printed.splitlines()[-1] == "Here they are."
    assert (tmp_path / "squares.csv").read_text() == "n,square\n1,1\n2,4\n3,9\n"
    first, second, third = model.requests
    assert "exec_tools__execute_code_python" in [tool["function"]["name"] for tool in first["tools"]]
    assert (first["model"], model.keys) == ("scripted", {"Bearer sk-test"})
    assert first["messages"][-1] == {"role": "user", "content": TASK}
    assert second["messages"][-1]["tool_call_id"] == "call_a"
    assert "nonzero_exit" in second["messages"][-1]["content"]
    assert third["messages"][-1]["tool_call_id"] == "call_b"
    assert "Produced files:\n- turn_1/files/squares.csv" in third["messages"][-1]["content"]


def test_what_the_model_writes_wrong_goes_back_to_it(service_url: str, tmp_path: Path) -> None:
    script = [
        function("no_such_tool", {}),
        function("exec_tools__execute_code_python", "{not json"),
        function("exec_tools__execute_code_python", {"code": "print(1)"}),
        {"role": "assistant", "content": "I give up."},
    ]
    with answering(*script) as model:
        assert run(model, service_url, tmp_path) == "I give up.\n"
    unknown, no_json, no_contract = (request["messages"][-1]["content"] for request in model.requests[1:])
    assert "no_such_tool" in unknown
    assert no_json.startswith("The call was refused: ")
    assert "missing_artifacts" in no_contract


def test_a_model_that_reads_searches_and_repairs_gets_all_that_it_needs_as_text(
    service_url: str, tmp_path: Path
) -> None:
    write = "open('files/sales.csv', 'w').write('region,total\\nNorth,3\\nSouth,SECRET-5\\n')"
    made = [{"filename": "sales.csv", "description": "the sales"}]
    sums = "rows = open('files/sales.csv').read().split()[1:]\nopen('files/sum.txt', 'w').write(str(len(rows)))"
    exec_python = "exec_tools__execute_code_python"
    script = [
        function(exec_python, {"code": write, "contract": made}),
        function("react__search_files", {"content_regex": "SECRET"}),
        function("react__read", {"paths": ["files/sales.csv"]}),
        function("react__read", {"paths": ["files/sales.csv#L3"]}),
        function("react__patch", {"path": "files/sales.csv", "channel": "canvas", "kind": "file", "patch": MISFIT}),
        function(
            "react__patch", {"path": "files/sales.csv", "channel": "canvas", "kind": "file", "patch": FITTING}
        ),
        function("react__read", {"paths": ["files/sales.csv"]}),
        function(exec_python, {"code": sums, "contract": [{"filename": "sum.txt", "min_row": 1}]}),
        function(exec_python, {"code": "1 + 1", "explore": True}),
        function("react__plan", {"steps": ["repair"], "status": {"1": "done"}}),
        function("react__memsearch", {"query": "sales", "targets": ["user"]}),
        function("react__hide", {"path": "fi:turn_1.files/none.csv", "replacement": "gone"}),
        {"role": "assistant", "content": "Repaired."},
    ]
    with answering(*script) as model:
        assert run(model, service_url, tmp_path).splitlines()[-1] == "Repaired."
    texts = [request["messages"][-1]["content"] for request in model.requests[1:]]
    made_text, found, read, line, misfit, patched, again, wrong, silent, planned, searched, hidden = texts
    csv = "region,total\nNorth,3\nSouth,SECRET-5\n"
    assert made_text == "OK\nProduced files:\n- turn_1/files/sales.csv\nThe program printed nothing."
    assert found == "Found: 1 files\nturn_1/files/sales.csv:3: South,SECRET-5"
    assert read == f"Loaded: fi:turn_1.files/sales.csv\n\n{csv}"
    assert line == "Loaded: fi:turn_1.files/sales.csv#L3-3\n\n[lines 3-3 of 3]\nSouth,SECRET-5\n"
    assert misfit.endswith("nothing was changed\nexpected: South,6\nfound: South,SECRET-5")
    assert patched.startswith("Patched: turn_1/files/sales.csv (1 hunks, 1 lines added, 1 removed, ")
    assert again.endswith(csv.replace("SECRET-5", "5"))
    assert wrong.startswith("Runtime error: invalid_artifact_spec — ")
    assert "contract[0].description: Field required" in wrong
    assert "did you mean min_rows?" in wrong
    assert wrong.lower().count("nothing was") == 1
    assert silent == "OK\nLast value: 2"
    assert planned.startswith("Plan recorded:\n")
    assert searched == "Nothing was found that has to do with the query."
    assert hidden.startswith("react.hide failed: hide_failed — ")
    assert not [text for text in texts if "Runtime error: none" in text or "In view already" in text]


MISFIT = "@@ -3 +3 @@\n-South,6\n+South,5\n"
FITTING = "@@ -3 +3 @@\n-South,SECRET-5\n+South,5\n"
