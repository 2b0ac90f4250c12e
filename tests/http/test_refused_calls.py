"""An id is used up only by a call that ran: a refused one may come again, corrected or not."""

import asyncio
import json

import pytest

from tests.http.test_invalid_params import calls

__all__ = ["calls"]

WRITE = {"path": "a.md", "channel": "canvas", "content": "text", "kind": "file"}
TIMELINE = "/v1/conversations/c1/timeline"


def body(**fields):
    given = {
        "tool_id": "react.write",
        "tool_call_id": "t1",
        "conversation_id": "c1",
        "turn_id": "turn_1",
        "params": WRITE,
        **fields,
    }
    return {name: value for name, value in given.items() if value is not None}


async def send(client, headers=None, **fields):
    return await client.post("/v1/tool-calls", json=body(**fields), headers=headers)


async def on_timeline(client):
    """Type and path of the blocks, with their positions."""
    page = (await client.get(TIMELINE)).json()
    return [(block["type"], block["path"]) for block in page["blocks"]], page["last"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"params": {**WRITE, "kind": "chart"}}, "invalid_params"),
        ({"turn_id": None}, "missing_turn_id"),
        ({"params": {**WRITE, "path": "../../etc/passwd"}}, "unsafe_path"),
        ({"params": {**WRITE, "content": ""}}, "empty_file"),
        ({"params": {**WRITE, "content": "fi:turn_1.files/no.md"}}, "param_ref_not_visible"),
        ({"tool_id": "exec_tools.execute_code_python", "params": {}, "code": "1"}, "missing_artifacts"),
        ({"tool_id": "rendering_tools.write_pdf", "params": {"path": "a.md", "content": "x"}}, "invalid_filename"),
        ({"tool_id": "react.patch", "params": {**WRITE, "patch": "x"} | {"content": None}}, "invalid_params"),
    ],
)
async def test_a_refused_call_comes_again_corrected_under_its_id(client, wrong, code):
    refused = await send(client, **wrong)
    assert (refused.status_code, refused.json()["error"]["code"]) == (200, code)
    status = (await client.get("/v1/tool-calls/t1")).json()
    assert (status["status"], status["response"]["error"]["code"]) == ("done", code)

    corrected = await send(client)
    assert (corrected.status_code, corrected.json()["ok"]) == (200, True), corrected.text
    assert "idempotent-replayed" not in corrected.headers
    assert (await client.get("/v1/tool-calls/t1")).json()["response"]["ok"] is True

    replayed = await send(client)
    assert (replayed.json(), replayed.headers["idempotent-replayed"]) == (corrected.json(), "true")
    other = await send(client, params={**WRITE, "content": "other"})
    assert (other.status_code, other.json()["code"]) == (409, "id_reused")


async def test_a_wrong_envelope_uses_up_nothing(client):
    assert (await send(client, turn="turn_1")).status_code == 422
    assert (await send(client)).json()["ok"] is True


async def test_the_same_refused_call_is_checked_again_and_runs_once_it_is_right(client):
    given = {"params": {**WRITE, "content": "fi:turn_1.files/b.md"}}
    assert (await send(client, **given)).json()["error"]["code"] == "param_ref_not_visible"
    written = await send(client, tool_call_id="t0", params={**WRITE, "path": "b.md"})
    assert written.json()["ok"] is True
    again = await send(client, **given)
    assert (again.json()["ok"], "idempotent-replayed" in again.headers) == (True, False)


async def test_of_the_blocks_of_a_refused_call_the_notice_stays_and_no_position_is_given_twice(client):
    await send(client, params={**WRITE, "kind": "chart"}, notes="I write")
    kinds, last = await on_timeline(client)
    assert [kind for kind, _ in kinds] == ["react.notes", "react.notice", "react.tool.call", "react.tool.result"]

    await send(client, notes="I write it again")
    blocks, _ = await on_timeline(client)
    assert blocks == [
        ("react.notice", "tc:turn_1.t1.notice"),
        ("react.notes", "ar:turn_1.react.notes.t1"),
        ("react.tool.call", "tc:turn_1.t1.call"),
        ("react.tool.result", "tc:turn_1.t1.result"),
        ("react.tool.result", "fi:turn_1.files/a.md"),
    ]
    # Who has read up to the refused call misses nothing of the next one.
    page = (await client.get(TIMELINE, params={"after": last})).json()
    assert [block["type"] for block in page["blocks"]] == [kind for kind, _ in blocks[1:]]


async def test_the_rendered_view_tells_that_its_earlier_text_has_changed(client):
    await send(client, params={**WRITE, "kind": "chart"})
    view = {"view": "rendered"}
    first = await client.get(TIMELINE, params=view)
    await send(client)
    second = await client.get(TIMELINE, params=view)
    assert first.headers["timeline-revision"] == "0"
    assert second.headers["timeline-revision"] == first.headers["timeline-last"]
    assert "params.kind" in second.text
    assert "chart" not in second.text.partition("[react.tool.call]")[2]
    assert second.text.count("[react.tool.call]") == 1
    after = await client.get(TIMELINE, params={**view, "after": first.headers["timeline-last"]})
    assert second.text.endswith(after.text)
    read = await send(client, tool_call_id="t2", tool_id="react.read", params={"paths": ["tc:turn_1.t1.notice"]})
    assert "params.kind" in read.json()["text"]


async def test_a_call_that_failed_as_it_ran_has_used_its_id(client):
    ran = {"tool_id": "react.search_files", "params": {"name_regex": "a"}}
    assert (await send(client, **ran)).json()["ok"] is True
    assert (await send(client)).status_code == 409


async def test_an_idempotency_key_of_a_refused_call_is_free_too(client):
    key = {"Idempotency-Key": "k1"}
    assert (await send(client, key, turn_id=None)).json()["ok"] is False
    assert (await send(client, key, turn_id=None, params={})).json()["ok"] is False
    ran = await send(client, key, tool_call_id="t2")
    assert ran.json()["ok"] is True
    again = await send(client, key, tool_call_id="t2")
    assert (again.json(), again.headers["idempotent-replayed"]) == (ran.json(), "true")


async def test_each_attempt_has_its_audit_line_and_the_id_that_of_the_last(client):
    seen = []
    for fields in ({"turn_id": None}, {}):
        await send(client, **fields)
        answer = await client.get("/v1/tool-calls/t1/provenance")
        assert answer.status_code == 200, answer.text
        seen.append(answer.json())
    assert [line["seq"] for line in seen] == [1, 2]
    assert [line["outcome"]["code"] for line in seen] == ["missing_turn_id", "ok"]
    assert seen[1]["previous"] is not None


async def test_an_answer_of_respond_async_that_was_refused_can_be_asked_for(client):
    accepted = await send(client, {"Prefer": "respond-async"}, turn_id=None)
    assert accepted.status_code == 202

    async with client.stream("GET", "/v1/tool-calls/t1/events") as events:
        assert "event: result" in [line async for line in events.aiter_lines()]
    status = (await client.get("/v1/tool-calls/t1")).json()
    assert status["response"]["error"]["code"] == "missing_turn_id"
    assert (await send(client)).json()["ok"] is True


async def test_of_corrections_at_once_one_runs_and_the_others_get_its_answer_or_a_conflict(client):
    await send(client, turn_id=None)
    texts = ["one", "two"] * 5
    answers = await asyncio.gather(*(send(client, params={**WRITE, "content": text}) for text in texts))
    codes = sorted({answer.status_code for answer in answers})
    assert codes == [200, 409]
    ran = {json.dumps(answer.json(), sort_keys=True) for answer in answers if answer.status_code == 200}
    assert len(ran) == 1
