"""LibreChat's API: the bounds of programs with tools, and what becomes of their state."""

import hashlib
from dataclasses import replace
from typing import Any

import httpx
import pytest

from proofbox.contracts.codes import VerdictCode
from proofbox.contracts.paths import FilePath, Namespace
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service.access.authenticator import Authenticator
from proofbox.service.api.app import create_app
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.calls.service import Answer
from proofbox.service.errors import QueueFullError
from proofbox.service.facades.librechat.access import Access
from proofbox.service.facades.librechat.routes import LibreChat
from proofbox.service.file_content import FileContent
from proofbox.service.identity import ConversationKey
from tests.http.conftest import PRINCIPAL
from tests.support.calls import MemoryCalls, MemoryTicket

URL = "/librechat/v1"
CALLS = FilePath("turn_1", Namespace.FILES, ".proofbox-tool-calls.json")
WEATHER = b'[{"name": "weather", "input": {"city": "Rome"}}]'


class Programs(MemoryCalls):
    """Calls whose programs leave one file; or that are refused."""

    def __init__(self, artifacts: Any) -> None:
        super().__init__()
        self._artifacts = artifacts
        self.left: bytes | None = WEATHER
        self.refusal: Exception | None = None

    async def submit(self, principal: Any, request: Any, **options: Any) -> MemoryTicket:
        if self.refusal is not None:
            raise self.refusal
        found = [] if self.left is None else [self.left]
        for content in found:
            digest = hashlib.sha256(content).hexdigest()
            scope = ConversationKey(principal, request.conversation_id)
            file = NewArtifact(
                CALLS, FileContent(content), len(content), digest, "application/json", "external", "", None
            )
            await self._artifacts.save(scope, [file])
        listed = [
            ArtifactResult(
                logical_path=CALLS.logical,
                physical_path=CALLS.physical,
                mime="application/json",
                visibility="external",
                verdict=VerdictCode.PRODUCED,
                sha256=hashlib.sha256(content).hexdigest(),
            )
            for content in found
        ]
        response = ToolCallResponse(ok=True, report="", blocks=[], artifacts=listed)
        self.answers[request.tool_call_id] = Answer(200, response.model_dump_json(), is_problem=False)
        return await super().submit(principal, request, **options)


@pytest.fixture
def programs(stores) -> Programs:
    return Programs(stores.artifacts)


@pytest.fixture
async def client(services, programs):
    changed = replace(services, calls=programs, body_bytes_max=100_000_000)
    facade = LibreChat(changed, Access(Authenticator(PRINCIPAL), None))
    transport = httpx.ASGITransport(create_app(changed, facades=[facade]), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=f"http://proofbox{URL}") as client:
        yield client


async def start(client: httpx.AsyncClient, parameters: Any = None, code: str = "print(1)") -> httpx.Response:
    tool = {"name": "weather"} if parameters is None else {"name": "weather", "parameters": parameters}
    return await client.post("/exec/programmatic", json={"code": code, "tools": [tool]})


async def conversations(services) -> list[str]:
    page = await services.conversations.page(PRINCIPAL, None, 100)
    return [listed.conversation_id for listed in page.conversations]


async def test_a_program_waits_for_its_calls(client):
    answer = (await start(client)).json()
    assert answer["status"] == "tool_call_required"
    assert answer["tool_calls"] == [{"id": "call_001", "name": "weather", "input": {"city": "Rome"}}]


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"properties": {f"p{n}": {} for n in range(1_001)}}, "properties"),
        ({"properties": {"a": {}}, "required": [f"p{n}" for n in range(1_001)]}, "required"),
    ],
)
async def test_a_tool_of_too_many_parameters_is_refused_by_its_name(client, parameters, field):
    response = await start(client, parameters)
    assert response.status_code == 400
    assert response.json()["error"].startswith(f"tools: 'weather' has 1001 names in {field} (limit 1000)")


@pytest.mark.parametrize(
    "content",
    [
        b'[{"name": "weather", "input": {"a": NaN}}]',
        b'[{"name": "weather", "input": {"a": 1e999}}]',
        b'[{"name": "weather", "input": {"a": "\\ud800"}}]',
        b'[{"name": "\\ud800", "input": {}}]',
        b'[{"name": "weather", "input": {"a": ' + b"[" * 100 + b"]" * 100 + b"}}]",
        b'[{"name": "weather", "input": {"a": ' + b"9" * 5_000 + b"}}]",
        b"[" * 5_000,
        b"[]",
        b"{",
        b"[1]",
        b"\xff",
        b'[{"name": 1}]',
        b'[{"name": "weather", "input": []}]',
        b'[{"name": "other", "input": {}}]',
        b'[{"name": "' + b"x" * 100_000 + b'", "input": {}}]',
    ],
)
async def test_wrong_calls_of_a_program_end_it_with_an_error(client, programs, services, content):
    programs.left = content
    response = await start(client)
    assert response.status_code == 200, response.text
    answer = response.json()
    assert answer["status"] == "error"
    assert answer["error"].startswith("Sandbox ")
    assert len(answer["error"]) < 2_000
    assert len(await conversations(services)) == 1  # that of the run; the state has ended


async def test_calls_of_too_many_bytes_are_refused_before_they_are_read(client, programs):
    programs.left = b'[{"name": "weather", "input": {"city": "' + b"x" * 5_000_000 + b'"}}]'
    answer = (await start(client)).json()
    assert answer["status"] == "error"
    assert answer["error"].startswith("Tool calls too large: 5000044 bytes (limit 5000000)")
    programs.left = b'[{"name": "weather", "input": {"city": "' + b"x" * 4_900_000 + b'"}}]'
    assert (await start(client)).json()["status"] == "tool_call_required"


@pytest.mark.parametrize(("refusal", "status"), [(QueueFullError("full"), 429), (RuntimeError("x"), 500)])
async def test_a_start_that_fails_leaves_no_state(client, programs, services, refusal, status):
    programs.refusal = refusal
    assert (await start(client)).status_code == status
    assert await conversations(services) == []


async def test_the_state_of_a_program_that_waits_stays_and_goes_when_it_ends(client, programs, services):
    answer = (await start(client)).json()
    execution = answer["continuation_token"].partition(".")[0]
    assert f"librechat-state:{execution}" in await conversations(services)
    programs.left = None
    results = [{"call_id": "call_001", "result": 1}]
    body = {"continuation_token": answer["continuation_token"], "tool_results": results}
    programs.refusal = QueueFullError("full")
    assert (await client.post("/exec/programmatic", json=body)).status_code == 429
    programs.refusal = None
    assert (await client.post("/exec/programmatic", json=body)).json()["status"] == "completed"
    assert f"librechat-state:{execution}" not in await conversations(services)


@pytest.mark.parametrize(
    ("path", "bytes_max"),
    [("/exec", 50_000_000), ("/exec/programmatic", 50_000_000), ("/exec/programmatic/cancel", 65_536)],
)
async def test_a_body_of_too_many_bytes_is_refused(client, path, bytes_max):
    body = b'{"lang": "bash", "code": "1", "tools": [{"name": "weather"}], "request_id": "rrrrrrrrrrrrrrrr"}'
    headers = {"Content-Type": "application/json"}
    good = await client.post(path, content=body + b" " * (bytes_max - len(body)), headers=headers)
    assert good.status_code in {200, 202}, good.text
    refused = await client.post(path, content=body + b" " * (bytes_max - len(body) + 1), headers=headers)
    assert (refused.status_code, refused.json()["error"]) == (413, "body_too_large")
    assert refused.headers["Connection"] == "close"
