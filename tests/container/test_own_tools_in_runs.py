"""Tools of this service in runs: a shown call has the blocks and verdicts of the same call without a run."""

import json
import re

import httpx
import pytest

from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings
from tests.container.normalising import normalised
from tests.support.web_server import response, web_server

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

PYTHON, BASH = "exec_tools.execute_code_python", "exec_tools.execute_code_bash"
PROGRAM = """\
import os
os.makedirs("files", exist_ok=True)
open("files/sales.csv", "w").write("month,sales\\nMay,12\\n")
open("files/secret-notes.txt", "w").write("internal")
open("files/scratch.txt", "w").write("not promised")
print("done")
"""
CONTRACT = [
    {"filename": "sales.csv", "description": "the sales"},
    {"filename": "secret-notes.txt", "description": "the notes", "visibility": "internal"},
]
MISSING = [{"filename": "secret-plan.txt", "description": "the plan", "visibility": "internal"}]
PAGE = "<html><head><title>Tides</title></head><body><article><h1>Tides</h1><p>The moon moves the sea.</p>"
TURN = "turn_1"
FILES = f"{TURN}/files"
WEB_PAGE = "http://127.0.0.1:{port}/tides"
DOCUMENT = {"channel": "canvas", "kind": "file"}
# One after another: later calls see what earlier ones stored.
CALLS = [
    (PYTHON, {"contract": CONTRACT}, PROGRAM),
    (PYTHON, {"contract": MISSING}, "print('nothing')"),
    (PYTHON, {"contract": CONTRACT}, "raise ValueError('the numbers do not add up')"),
    (PYTHON, {"contract": [{"filename": "../x", "description": "d"}]}, "print(1)"),
    (PYTHON, {"explore": True}, PROGRAM),
    (BASH, {"contract": [{"filename": "a.txt", "description": "d"}]}, "echo hi > files/a.txt; echo err >&2"),
    (PYTHON, {"contract": [{"filename": "b.txt", "description": "d"}]}, f"open('{FILES}/nothing.csv')"),
    ("react.write", {**DOCUMENT, "path": f"{FILES}/report.md", "content": "# Report\n\nMay: 12\n"}, None),
    ("react.write", {**DOCUMENT, "path": f"{FILES}/secret-memo.md", "channel": "internal", "content": "a"}, None),
    ("react.write", {**DOCUMENT, "path": "../x", "content": "a"}, None),
    ("react.file", {"path": f"{FILES}/plain.txt", "content": "text"}, None),
    ("react.patch", {**DOCUMENT, "path": f"{FILES}/report.md", "patch": "@@ -3 +3 @@\n-May: 12\n+May: 13\n"}, None),
    ("react.read", {"paths": [f"fi:{TURN}.files/secret-notes.txt", f"fi:{TURN}.files/sales.csv"]}, None),
    ("react.read", {"paths": [f"fi:{TURN}.files/nothing.txt"]}, None),
    ("react.search_files", {"name_regex": "secret|sales"}, None),
    ("react.plan", {"steps": ["look", "write"], "status": {"1": "done"}}, None),
    ("react.hide", {"path": f"fi:{TURN}.files/sales.csv", "replacement": "sales"}, None),
    ("react.memsearch", {"query": "sales", "targets": ["user"]}, None),
    ("rendering_tools.write_pdf", {"path": "report.pdf", "content": "# Report\n\nMay: 12\n"}, None),
    ("rendering_tools.write_docx", {"path": "report.docx", "content": "# Report\n\nMay: 12\n"}, None),
    ("rendering_tools.write_pptx", {"path": "report.pptx", "content": "# Report\n\nMay: 12\n"}, None),
    ("rendering_tools.write_png", {"path": "report.png", "content": "# Report\n\nMay: 12\n"}, None),
    ("rendering_tools.write_xlsx", {"path": "report.xlsx", "content": "month,sales\nMay,12\n"}, None),
    ("rendering_tools.write_pdf", {"path": "report.txt", "content": "a"}, None),
    ("web_tools.web_fetch", {"urls": [WEB_PAGE, "http://10.1.1.1/"]}, None),
    ("web_tools.web_search", {"queries": ["tides"]}, None),
    ("react.stream", {**DOCUMENT, "path": f"{FILES}/stream.md", "content": "text"}, None),
    (PYTHON, {"no_such": 1}, "print(1)"),
]


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    return tmp_path_factory.mktemp("own")


class Office:
    """A service, an agent that shows tools of the service, and a space."""

    def __init__(self, web, port):
        self.web = web
        self.port = port
        self.count = 0
        self.space = ""

    async def post(self, path, body, **headers):
        answer = await self.web.post(path, json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    async def begin(self, tools):
        """Writes the agent, and makes its space and a run that posts there."""
        document = {"version": "2", "agent": {"name": "Shower"}, "tools": tools}
        assert (await self.web.put("/v1/agents/shower", json=document)).status_code in (200, 201)
        body = {"name": "Room", "members": ["agent:shower"]}
        self.space = (await self.post("/v1/spaces", body))["space_id"]
        return await self.post("/v1/runs", self.run("shown", space_id=self.space))

    @staticmethod
    def run(conversation, **fields):
        """A run with a conversation of its own, whose name stands in hosted paths."""
        return {"agent_id": "shower", "conversation_id": conversation, **fields}

    async def call(self, tool, params, code, number, run=None):
        """The response of a call; without a run it is in a conversation of its own."""
        text = json.dumps(params).replace("{port}", str(self.port))
        body = {
            "tool_id": tool,
            "tool_call_id": f"call_{number}",
            "conversation_id": "direct" if run is None else run["conversation_id"],
            "turn_id": TURN,
            "params": json.loads(text),
            **({} if code is None else {"code": code}),
            **({} if run is None else {"run_id": run["run_id"]}),
        }
        headers = {} if run is None else {"Run-Lease": "1"}
        return await self.post("/v1/tool-calls", body, **headers)

    async def messages(self):
        answer = await self.web.get(f"/v1/spaces/{self.space}/messages", params={"limit": 100})
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]


async def with_office(data_dir, use):
    async with web_server() as server:
        server.answers["/tides"] = response(PAGE.encode())
        settings = Settings(
            data_dir=data_dir,
            pool_size=1,
            web_allowed_networks=("127.0.0.0/8",),
            web_ports=(server.port,),
        )
        service = build(settings)
        async with running(service):
            transport = httpx.ASGITransport(application(service), raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as web:
                await use(Office(web, server.port))


def shown(tool, name, **more):
    return {"name": name, "executionType": "gateway", "execution": {"tool": tool, **more}}


def comparable(body, run):
    """What has to be equal: all but times, what the sandbox used, and where the call is shown."""
    whole = ToolCallResponse.model_validate(body)
    made = normalised(whole)
    # Writers of documents put times into them.
    documents = (".pdf", ".docx", ".pptx", ".png", ".xlsx")
    made["rehosted"] = [
        line.model_dump(mode="json")
        | {"ms": 0}
        | ({"sha256": "", "size_bytes": 0} if line.physical_path.endswith(documents) else {})
        for line in whole.rehosted
    ]
    made["output"] = whole.output.model_dump(mode="json")
    text = json.dumps(made, ensure_ascii=False, sort_keys=True)
    conversation = "direct" if run is None else run["conversation_id"]
    text = re.sub(rf"(?<=[/:]){conversation}(?=[/:])", "<conversation>", text)
    # The time in a document changes how well it is compressed.
    return re.sub(r'(elapsed_ms|ms|duration_ms|bytes)(\\*)": [0-9.]+', r'\1\2": 0', text)


@pytest.mark.slow
async def test_blocks_and_verdicts_of_a_shown_call_are_those_of_a_call_without_run(data_dir):
    async def use(office):
        names = {tool: f"shown_{tool.replace('.', '_')}" for tool, _, _ in CALLS}
        run = await office.begin([shown(tool, name) for tool, name in names.items()])
        hidden = await office.post("/v1/runs", office.run("hidden"))
        for number, (tool, params, code) in enumerate(CALLS):
            direct = await office.call(tool, params, code, number)
            inside = await office.call(tool.replace(".", "__"), params, code, number, hidden)
            visible = await office.call(names[tool], params, code, number, run)
            expected = comparable(direct, None)
            for made in (comparable(inside, hidden), comparable(visible, run)):
                at = next((n for n, (a, b) in enumerate(zip(made, expected, strict=False)) if a != b), 0)
                assert made == expected, (
                    tool,
                    made[max(0, at - 80) : at + 80],
                    expected[max(0, at - 80) : at + 80],
                )
            assert (inside["posted"], visible["posted"]["space_id"]) == (None, office.space)
        messages = await office.messages()
        assert [message["tool"]["name"] for message in messages] == [names[tool] for tool, _, _ in CALLS]
        for message, (_, _, code) in zip(messages, CALLS, strict=True):
            output = json.dumps([message["tool"]["output"], message["tool"]["error"]])
            assert "secret" not in output, output
            assert "scratch" not in output, output
            assert "nothing.csv" not in output or code is None, output
        first = messages[0]["tool"]["output"]
        assert [artifact["artifact_path"] for artifact in first["artifacts"]] == [f"fi:{TURN}.files/sales.csv"]
        assert f"- {FILES}/sales.csv" in first["report"]

    await with_office(data_dir, use)


async def test_fixed_parameters_and_code_make_the_call_that_they_describe(data_dir):
    code = "open('files/{{input.name}}', 'w').write('x')"
    contract = [{"filename": "{{input.name}}", "description": "made"}]

    async def use(office):
        run = await office.begin([shown(PYTHON, "make_file", params={"contract": contract}, code=code)])
        made = await office.call("make_file", {"name": "a.txt"}, None, "fixed", run)
        filled = json.loads(json.dumps(contract).replace("{{input.name}}", "a.txt"))
        direct = await office.call(PYTHON, {"contract": filled}, code.replace("{{input.name}}", "a.txt"), "fixed")
        assert comparable(made, run) == comparable(direct, None)
        assert made["artifacts"][0]["verdict"] == "produced"

    await with_office(data_dir, use)
