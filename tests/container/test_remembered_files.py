"""Runs and renderings in a real sandbox get what only the timeline has, and what react.read brought in."""

import base64
import json
from typing import Any

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from tests.container.calling import Caller
from tests.container.rehosted import LIST, ledger, write

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
READ = """
import os
for path in ("turn_1/files/a.txt", "turn_1/attachments/b.png"):
    print(open(path, "rb").read() == open("files/own.bin", "rb").read(), os.access(path, os.W_OK))
print(open("turn_1/files/a.txt").read())
open("files/own.bin", "ab").write(b"more")
"""


def handed(path: str, **fields: Any) -> dict[str, Any]:
    """A block of a loop that keeps its own timeline."""
    turn_id = path.removeprefix("fi:").split(".")[0]
    known = {"type": "react.tool.result", "author": "x", "turn_id": turn_id, "ts": "2026-02-09T02:14:32Z"}
    return {**known, "mime": "text/plain", "path": path, "meta": {"tool_call_id": "c1"}, **fields}


async def tool(call: Caller, tool_id: str, call_id: str, turn_id: str, **params: Any) -> ToolCallResponse:
    """Calls a tool that runs no code of the user's."""
    fields = {name: params.pop(name) for name in ("timeline",) if name in params}
    request = ToolCallRequest.model_validate(
        {
            "tool_id": tool_id,
            "tool_call_id": call_id,
            "conversation_id": call.conversation,
            "turn_id": turn_id,
            "params": params,
            **fields,
        }
    )
    ticket = await call.service.calls.submit(
        call.service.principal, request, idempotency_key=None, request_id="test", detached=False
    )
    return ToolCallResponse.model_validate_json((await ticket.answer()).body)


async def test_a_run_finds_the_files_of_a_handed_in_timeline(call: Caller) -> None:
    timeline = [
        handed("fi:turn_1.files/a.txt", text="some words"),
        handed("fi:turn_1.user.attachments/b.png", mime="image/png", base64=base64.b64encode(PNG).decode()),
        handed("fi:turn_2.files/own.bin", mime="image/x-own", base64=base64.b64encode(PNG).decode()),
    ]
    response = await call(READ, ["own.bin"], turn_id="turn_2", timeline=timeline)
    assert response.ok, response.report
    assert await call.output() == "False False\nTrue False\nsome words\n"
    assert sorted(ledger(response)) == [
        ("turn_1/attachments/b.png", "timeline", "turn_1/attachments/b.png"),
        ("turn_1/files/a.txt", "timeline", "turn_1/files/a.txt"),
        ("workspace", "timeline", "turn_2/files/own.bin"),
    ]
    digest = next(json.loads(b.text) for b in response.blocks if b.text and '"artifact_path"' in b.text)
    assert (digest["edited"], digest["size_bytes"]) == (True, len(PNG) + 4)


async def test_a_run_after_a_read_finds_the_files_as_before_and_cannot_change_those_of_the_turn(
    call: Caller,
) -> None:
    await write(call, "a.txt", "b.txt")
    before = await call(LIST, turn_id="turn_2")
    assert {line.asked for line in before.rehosted} == {"workspace"}
    read = await tool(call, "react.read", "read-1", "turn_2", paths=["fi:turn_1.files/a.txt"])
    # What the run of turn 1 showed is still in view, so nothing has to be shown, or put anywhere.
    assert read.ret["exists_in_visible_context"] == ["fi:turn_1.files/a.txt"]
    lines = await tool(call, "react.read", "read-2", "turn_2", paths=["fi:turn_1.files/a.txt#L1-1"])
    assert lines.blocks[-1].text == "[lines 1-1 of 1]\na.txt"
    after = await call(f"{LIST}\nopen('turn_' + '1/files/a.txt', 'a')", turn_id="turn_2")
    assert ledger(after) == ledger(before)
    assert "PermissionError" in after.report
    other = await call(LIST, turn_id="turn_3")
    assert {line.asked for line in other.rehosted} == {"workspace"}


async def test_a_document_shows_a_picture_that_only_the_timeline_has(call: Caller) -> None:
    picture = handed("fi:turn_1.files/p.png", mime="image/png", base64=base64.b64encode(PNG).decode())
    document = {"path": "r.pdf", "content": "# R\n\n![p](turn_1/files/p.png)\n", "timeline": [picture]}
    response = await tool(call, "rendering_tools.write_pdf", "render-1", "turn_2", **document)
    assert response.ok, response.report
    assert ledger(response) == [("turn_1/files/p.png", "timeline", "turn_1/files/p.png")]
    assert [block.type for block in response.blocks] == [
        "react.tool.call",
        "react.tool.result",
        "react.tool.result",
    ]


async def test_the_digest_of_a_text_says_its_tokens_and_the_sources_that_it_cites(call: Caller) -> None:
    rows = [{"sid": sid, "source_type": "web", "url": f"https://e.org/{sid}"} for sid in (1, 2, 3)]
    code = "open('files/a.md', 'w').write('As [' + '[S:1,3]] says.')"
    response = await call(code, ["a.md"], sources_pool=rows)
    digest = next(json.loads(b.text) for b in response.blocks if b.text and '"artifact_path"' in b.text)
    assert digest["sources_used"] == [1, 3]
    assert 5 < digest["tokens"] < 20
