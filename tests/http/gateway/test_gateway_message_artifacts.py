"""Files of calls through their messages: those that the message lists, of its own call, and external ones."""

import asyncio
import json
from dataclasses import replace

import httpx
import pytest

from proofbox.service.api.app import create_app

PYTHON = {"name": "run_python", "executionType": "gateway", "execution": {"tool": "exec_tools.execute_code_python"}}
SHOW = {"name": "show", "executionType": "gateway", "execution": {"output": "{{input}}"}}
CONTRACT = [
    {"filename": "open.txt", "description": "for all"},
    {"filename": "inner.txt", "description": "for the agent", "visibility": "internal"},
]


@pytest.fixture
async def message(people, kitchen):
    """The record of a program that made an external and an internal file."""

    def program(run):
        run.write("open.txt", b"open text")
        run.write("inner.txt", b"inner text")

    people.loop.pipeline.engine.program = program
    await people.loop.begin(PYTHON, SHOW, space_id=kitchen)
    answer = await people.loop.call("run_python", {"contract": CONTRACT}, code="print(1)")
    assert answer["ok"], answer
    url = f"/v1/spaces/{kitchen}/messages/{answer['posted']['message_id']}"
    return (await people.ann.get(url)).json()


def _url(message, path):
    return f"/v1/spaces/{message['space_id']}/messages/{message['message_id']}/artifacts/{path}"


async def test_a_record_of_a_program_lists_external_files_only(message):
    output = message["tool"]["output"]
    assert sorted(output) == ["artifacts", "error", "ok", "report"]
    [listed] = output["artifacts"]
    assert listed["artifact_path"].endswith("files/open.txt")
    assert (listed["verdict"], listed["size_bytes"]) == ("produced", len(b"open text"))
    assert sorted(listed) == ["artifact_path", "mime", "sha256", "size_bytes", "verdict"]
    assert "inner text" not in json.dumps(message)


async def test_a_listed_file_is_a_link(people, message):
    path = message["tool"]["output"]["artifacts"][0]["artifact_path"]
    answer = await people.ann.get(_url(message, path))
    assert answer.status_code == 303
    assert "/v1/links/" in answer.headers["Location"]
    for client in (people.bob, people.foreigner):
        assert (await client.get(_url(message, path))).json()["code"] == "unknown_space"


async def test_a_message_leads_to_the_version_of_its_own_call(people, kitchen, message):
    people.loop.pipeline.engine.program = lambda run: run.write("open.txt", b"a later text")
    later = await people.loop.call("run_python", {"contract": CONTRACT[:1]}, code="print(2)")
    path = message["tool"]["output"]["artifacts"][0]["artifact_path"]
    for message_id, text in ((message["message_id"], "open text"), (later["posted"]["message_id"], "a later text")):
        own = {"space_id": kitchen, "message_id": message_id}
        answer = await people.ann.get(_url(own, path))
        assert answer.status_code == 303, answer.text
        assert (await people.ann.get(answer.headers["Location"])).text == text


async def test_other_files_of_the_conversation_are_not_handed_out(people, message):
    turn = message["tool"]["output"]["artifacts"][0]["artifact_path"].split(".files/")[0]
    for path in (f"{turn}.files/inner.txt", f"{turn}.files/none.txt", "fi:x", "so:sources_pool[1]", "../a"):
        answer = await people.ann.get(_url(message, path))
        assert answer.json()["code"] in {"unknown_message", "not_found"}, path


async def test_a_result_that_names_files_of_other_calls_opens_none(people, kitchen, message):
    path = message["tool"]["output"]["artifacts"][0]["artifact_path"]
    claimed = [{"artifact_path": path}, {"artifact_path": path.replace("open", "inner")}]
    answer = await people.loop.call("show", {"files": claimed})
    shown = {"space_id": kitchen, "message_id": answer["posted"]["message_id"]}
    for entry in claimed:
        refused = await people.ann.get(_url(shown, entry["artifact_path"]))
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_message")


async def test_a_result_over_256_kib_is_read_by_its_path(people, kitchen, message):
    del message
    answer = await people.loop.call("show", {"text": "x" * 300_000})
    url = f"/v1/spaces/{kitchen}/messages/{answer['posted']['message_id']}"
    tool = (await people.ann.get(url)).json()["tool"]
    assert tool["output"] is None
    cut = tool["truncated"]["output"]
    assert cut["size_bytes"] > 256 * 1024
    link = await people.ann.get(f"{url}/artifacts/{cut['artifact_path']}")
    assert link.status_code == 303


async def test_two_runs_show_their_calls_in_one_space(people, kitchen, message):
    del message
    answers = await asyncio.gather(*(people.loop.call("show", {"x": number}) for number in range(5)))
    items = (await people.ann.get(f"/v1/spaces/{kitchen}/messages")).json()["items"]
    assert {answer["posted"]["message_id"] for answer in answers} < {item["message_id"] for item in items}


class Proxy:
    """What a proxy makes of requests below ``/box``: the service gets them without it."""

    def __init__(self, app):
        self._app = app

    async def __call__(self, scope, receive, send):
        assert scope["raw_path"].startswith(b"/box/"), scope["raw_path"]
        inner = {**scope, "path": scope["path"][4:], "raw_path": scope["raw_path"][4:]}
        await self._app(inner, receive, send)


@pytest.mark.parametrize("prefix", ["", "/box"])
async def test_an_own_link_works_under_another_name_than_the_public_one(people, message, prefix):
    path = message["tool"]["output"]["artifacts"][0]["artifact_path"]
    app = create_app(replace(people.app.state.services, public_url="https://box.example/elsewhere"))
    transport = httpx.ASGITransport(Proxy(app) if prefix else app)
    url = f"http://other.example:8123{prefix}{_url(message, path)}"
    async with httpx.AsyncClient(transport=transport, headers=people.ann.headers, follow_redirects=True) as page:
        answer = await page.get(url, params={"own_link": True})
        link = (await page.get(url, follow_redirects=False)).headers["Location"]
    assert (answer.status_code, answer.content) == (200, b"open text")
    assert str(answer.url).startswith(f"http://other.example:8123{prefix}/v1/links/")
    assert link.startswith("https://box.example/elsewhere/v1/links/")
