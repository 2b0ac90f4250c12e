"""Every logical path has an answer of its own at the artifacts' door: blocks, sources and skills too."""

import base64
import hashlib
import json

import pytest

from proofbox.contracts.blocks import Block
from proofbox.contracts.tool_call_request import SourceRow
from proofbox.service.identity import ConversationKey
from tests.http.conftest import PRINCIPAL

BASE = "/v1/conversations/c1/artifacts"
SCOPE = ConversationKey(PRINCIPAL, "c1")
PROMPT = "ar:turn_1.user.prompt"


@pytest.fixture
def append(stores):
    async def appended(path, text=None, **fields):
        values = {
            "type": "react.tool.result",
            "author": "x",
            "turn_id": "turn_1",
            "ts": "t",
            "mime": "text/markdown",
        }
        await stores.timelines.append(SCOPE, [Block(path=path, text=text, **{**values, **fields})])

    return appended


@pytest.mark.parametrize(
    "path",
    [
        PROMPT,
        "ar:turn_1.assistant.completion",
        "ar:turn_1.react.notes.c1",
        "ar:turn_1.react.plan.p1",
        "ar:turn_1.artifacts.notes/a",
        "fi:turn_1.code.c1",
        "tc:turn_1.c1.call",
        "tc:turn_1.c1.notice",
        "tc:turn_1.c1.result",
        "su:turn_1.conv.range.summary",
    ],
)
async def test_the_latest_text_at_a_path_is_served(client, append, path):
    await append(path, "old")
    await append(path, "# ünï")
    answer = await client.get(f"{BASE}/{path}")
    assert (answer.status_code, answer.text) == (200, "# ünï")
    assert answer.headers["content-type"].startswith("text/markdown")


async def test_an_old_spelling_means_the_same(client, append):
    await append("tc:turn_1.c1.result", "{}", mime="application/json")
    answer = await client.get(f"{BASE}/tc:turn_1.tool_calls.c1.out.json")
    assert (answer.text, answer.headers["content-type"]) == ("{}", "application/json")


@pytest.mark.parametrize("path", ["ar:turn_1.artifacts.p", "fi:turn_1.files/only-a-block.png"])
async def test_the_bytes_of_a_binary_block_are_served(client, append, path):
    await append(path, mime="image/png", base64=base64.b64encode(b"\x89PNG").decode())
    answer = await client.get(f"{BASE}/{path}")
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"\x89PNG", "image/png")


async def test_a_file_of_which_a_block_holds_a_part_is_unknown(client, append):
    await append("fi:turn_1.files/a.txt", "part\n...[truncated]")
    answer = await client.get(f"{BASE}/fi:turn_1.files/a.txt")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_artifact")


async def test_sources_are_served_as_rows(client, stores):
    rows = [SourceRow(sid=sid, source_type="web", url=f"https://e.org/{sid}") for sid in (1, 2, 7)]
    await stores.sources.complete(SCOPE, rows)
    answer = await client.get(f"{BASE}/so:sources_pool[7,1]")
    assert [row["sid"] for row in answer.json()["sources"]] == [1, 7]
    assert (await client.get(f"{BASE}/so:sources_pool[3-6]")).status_code == 404


async def test_a_skill_is_served_as_text(client, skills_dir):
    (skills_dir / "pdf.md").write_text("---\nname: PDF\n---\nHow to")
    answer = await client.get(f"{BASE}/sk:pdf")
    assert (answer.text, answer.headers["content-type"]) == ("How to", "text/markdown")
    assert (await client.get(f"{BASE}/sk:../skills/pdf")).status_code == 400


async def test_a_block_is_as_harmless_in_a_browser_as_a_file_and_can_be_kept(client, append):
    await append(PROMPT, "<script>alert(1)</script>", mime="text/html\r\nX-Evil: 1")
    answer = await client.get(f"{BASE}/{PROMPT}")
    tag = f'"{hashlib.sha256(answer.content).hexdigest()}"'
    shown = {name: value for name, value in answer.headers.items() if name != "x-request-id"}
    assert shown == {
        "cache-control": "private, no-cache",
        "content-disposition": "attachment; filename=\"prompt\"; filename*=UTF-8''prompt",
        "content-length": "25",
        "content-security-policy": "sandbox; default-src 'none'",
        "content-type": "application/octet-stream",
        "cross-origin-resource-policy": "same-origin",
        "etag": tag,
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
    again = await client.get(f"{BASE}/{PROMPT}", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    head = await client.head(f"{BASE}/{PROMPT}")
    assert (head.content, head.headers["content-length"]) == (b"", "25")


@pytest.mark.usefixtures("append")
async def test_another_conversation_has_none_of_it(client, append, stores):
    await append(PROMPT, "mine")
    await append("fi:turn_1.files/a.txt", "mine")
    await stores.sources.complete(SCOPE, [SourceRow(sid=1, source_type="web", url="https://e.org")])
    for path in (PROMPT, "fi:turn_1.files/a.txt", "so:sources_pool[1]"):
        answer = await client.get(f"/v1/conversations/c2/artifacts/{path}")
        assert (answer.status_code, json.loads(answer.content)["code"]) == (404, "unknown_artifact")
