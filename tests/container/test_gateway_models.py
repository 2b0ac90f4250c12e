"""Tools that ask a model, over real sandboxes: pictures are opened there, and sub-agents run programs there."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from PIL import Image, PngImagePlugin

from proofbox.service.app.bootstrap import build, running
from proofbox.service.app.serving import application
from proofbox.service.app.settings import Settings
from tests.support.llm_server import KEY, LlmServer, asks, llm_server, paints, points, says
from tests.support.recording_server import recording_server
from tests.support.web_server import response

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]
PAINT = {
    "name": "paint",
    "description": "Paints.",
    "executionType": "gateway",
    "execution": {"provider": "default", "size": "64x32"},
}
PYTHON = {
    "name": "python",
    "description": "Runs a program.",
    "executionType": "gateway",
    "execution": {"tool": "exec_tools.execute_code_python"},
}
COMPUTE = {
    "name": "double",
    "description": "Doubles a number.",
    "executionType": "internal",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
    "execution": {"operation": "evaluate", "expression": "{{input.n}} * 2"},
}
RESEARCH = {
    "name": "research",
    "description": "Finds out.",
    "executionType": "gateway",
    "execution": {"agentConfig": {"tools": [PYTHON, COMPUTE]}, "timeout": 120_000},
}


def picture(kind: str = "PNG", size: tuple[int, int] = (64, 32), **options: Any) -> bytes:
    written = io.BytesIO()
    drawn = Image.new("RGB", size, (255, 255, 255))
    drawn.paste((255, 0, 0), (0, 0, size[0] // 2, size[1]))
    drawn.save(written, kind, **options)
    return written.getvalue()


class Loop:
    """A run of an agent with the tools of this module."""

    def __init__(self, web: httpx.AsyncClient, run: dict[str, Any]) -> None:
        self.web = web
        self.run = run
        self.count = 0

    async def call(self, tool: str, params: dict[str, Any]) -> dict[str, Any]:
        self.count += 1
        body = {
            "tool_id": tool,
            "tool_call_id": f"call-{self.count}",
            "conversation_id": self.run["conversation_id"],
            "run_id": self.run["run_id"],
            "params": params,
        }
        answer = await self.web.post("/v1/tool-calls", json=body, headers={"Run-Lease": "1"})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def content(self, path: str) -> bytes:
        answer = await self.web.get(f"/v1/conversations/{self.run['conversation_id']}/artifacts/{path}")
        return answer.content


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def llm() -> AsyncIterator[LlmServer]:
    async with llm_server() as server:
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def web(llm: LlmServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """The routes of a service with an endpoint; its tools may ask servers of this machine."""
    data: Path = tmp_path_factory.mktemp("models")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LLM_KEY", KEY)
        settings = Settings(
            data_dir=data,
            pool_size=0,
            llm_endpoints=llm.settings(),
            gateway_networks=("127.0.0.0/8",),
            gateway_ports=tuple(range(1, 65_536)),
        )
        service = build(settings)
    async with running(service):
        transport = httpx.ASGITransport(application(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=180) as client:
            yield client


@pytest_asyncio.fixture(loop_scope="session")
async def loop(web: httpx.AsyncClient, llm: LlmServer) -> Loop:
    llm.requests.clear()
    document = {"version": "2", "agent": {"name": "Helper"}, "tools": [PAINT, RESEARCH]}
    written = await web.put("/v1/agents/helper", json=document)
    assert written.is_success, written.text
    return Loop(web, (await web.post("/v1/runs", json={"agent_id": "helper"})).json())


@pytest.mark.parametrize(
    ("kind", "extension", "mime"),
    [("PNG", "png", "image/png"), ("JPEG", "jpg", "image/jpeg"), ("WEBP", "webp", "image/webp")],
)
async def test_a_picture_is_decoded_in_the_sandbox_and_stored_as_it_came(
    loop: Loop, llm: LlmServer, kind: str, extension: str, mime: str
) -> None:
    content = picture(kind)
    llm.answers = [paints(content)]
    answer = await loop.call("paint", {"prompt": "x"})
    (made,) = answer["ret"]["images"]
    assert (made["mime"], made["width"], made["height"]) == (mime, 64, 32)
    assert made["artifact_path"].endswith(f".{extension}")
    assert await loop.content(made["artifact_path"]) == content


async def test_a_picture_elsewhere_is_decoded_too(loop: Loop, llm: LlmServer) -> None:
    async with recording_server() as elsewhere:
        elsewhere.answers = [response(picture(), "application/octet-stream")]
        llm.answers = [points(elsewhere.url("/a"))]
        answer = await loop.call("paint", {"prompt": "x"})
    assert answer["ret"]["images"][0]["width"] == 64


@pytest.mark.parametrize(
    "content",
    [
        picture(size=(640, 320))[:-40],
        picture()[:33],
        picture("JPEG")[:200],
        b"\x89PNG\r\n\x1a\n<html>no picture</html>",
        picture("BMP"),
    ],
    ids=["cut at its end", "its head only", "half a JPEG", "a page with the head of a PNG", "another format"],
)
async def test_a_damaged_picture_fails_and_is_not_stored(loop: Loop, llm: LlmServer, content: bytes) -> None:
    llm.answers = [paints(content)]
    answer = await loop.call("paint", {"prompt": "x"})
    assert (answer["error"]["code"], answer["artifacts"]) == ("image_failed", [])


async def test_a_picture_that_would_fill_the_memory_is_not_decoded(loop: Loop, llm: LlmServer) -> None:
    written = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(written, "PNG")  # of one bit a pixel, which is written in a moment
    llm.answers = [paints(written.getvalue())]
    answer = await loop.call("paint", {"prompt": "x"})
    assert answer["error"]["code"] == "image_failed"
    assert "pixels" in answer["error"]["message"]


async def test_a_key_within_a_picture_is_not_stored(loop: Loop, llm: LlmServer) -> None:
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", KEY)
    llm.answers = [paints(picture(pnginfo=info))]
    answer = await loop.call("paint", {"prompt": "x"})
    assert (answer["error"]["code"], answer["artifacts"]) == ("image_failed", [])


async def test_a_sub_agent_runs_a_program_and_its_file_is_the_user_s(loop: Loop, llm: LlmServer) -> None:
    code = "open('files/a.txt', 'w').write('7')"
    params = {"contract": [{"filename": "a.txt", "description": "The sum"}], "code": code}
    llm.answers = [asks(("python", params), ("double", {"n": 21})), says("It is in the file.")]
    answer = await loop.call("research", {"prompt": "Add"})
    results = [message["content"] for message in llm.bodies()[-1]["messages"] if message["role"] == "tool"]
    assert [step["ok"] for step in answer["ret"]["steps"]] == [True, True], results
    assert json.loads(results[1]) == {"result": 42}
    (artifact,) = answer["artifacts"]
    assert await loop.content(artifact["logical_path"]) == b"7"
