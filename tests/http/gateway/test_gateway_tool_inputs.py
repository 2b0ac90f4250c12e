"""Calls of a run in its active space: streamed arguments, enter_space, and what the space sees of them."""

import asyncio
import json

import pytest

from proofbox.contracts.gateway.messages import Message

SHOW = {"name": "show", "executionType": "gateway", "execution": {"output": "{{input}}"}}
QUIET = {**SHOW, "name": "quiet", "visibility": "hidden"}
RESULT = {**SHOW, "name": "result", "visibility": "result-only"}
TEXT = '{"city": "Oslo", "days": 3}'


@pytest.fixture
async def run(people, kitchen):
    """A run of the agent in the kitchen."""
    return await people.loop.begin(SHOW, QUIET, RESULT, space_id=kitchen)


@pytest.fixture
def post(people):
    """Posts a part of the arguments of ``call-1``."""

    async def posted(delta, offset, tool="show", **headers):
        run_id = people.loop.run["run_id"]
        body = {"tool": tool, "offset": offset, "delta": delta}
        headers = {**people.loop.leased(), **headers}
        return await people.loop.web.post(f"/v1/runs/{run_id}/tool-inputs/call-1", json=body, headers=headers)

    return posted


async def _messages(people, space_id):
    items = (await people.ann.get(f"/v1/spaces/{space_id}/messages")).json()["items"]
    return [Message.model_validate(item) for item in items]


async def test_streamed_arguments_become_a_call(people, kitchen, run, post):
    assert (await post(TEXT[:9], 0)).json() == {"length": 9}
    [streaming] = await _messages(people, kitchen)
    assert (streaming.tool.state, streaming.tool.input, streaming.run_id) == ("streaming", None, run["run_id"])
    assert (await post(TEXT[9:], 9)).json() == {"length": len(TEXT)}
    answer = await people.loop.call("show", {"city": "Bergen"})
    assert answer["posted"] == {"space_id": kitchen, "message_id": streaming.message_id}
    [ended] = await _messages(people, kitchen)
    assert (ended.message_id, ended.seq, ended.tool.state) == (streaming.message_id, 1, "done")
    assert ended.tool.input == ended.tool.output == {"city": "Bergen"}


async def test_parts_that_do_not_fit_are_refused(people, run, post):
    await post(TEXT, 0)
    conflict, gap = await post("XXX", 0), await post("x", 99)
    assert (conflict.status_code, conflict.json()["code"]) == (409, "stream_conflict")
    assert (gap.status_code, gap.json()["code"]) == (409, "stream_gap")
    assert f"length {len(TEXT)}" in gap.json()["detail"]
    unknown = await people.loop.web.post(
        "/v1/runs/run_0/tool-inputs/call-1",
        json={"tool": "show", "offset": 0, "delta": "x"},
        headers=people.loop.leased(),
    )
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_run")
    nameless = await post("{", 0, tool="nameless")
    assert nameless.status_code == 200  # the stream has begun: only its first part names the tool
    other = await people.loop.web.post(
        f"/v1/runs/{run['run_id']}/tool-inputs/call-9",
        json={"tool": "nameless", "offset": 0, "delta": "x"},
        headers=people.loop.leased(),
    )
    assert (other.status_code, other.json()["code"]) == (404, "unknown_tool")


async def test_an_older_lease_and_an_ended_run_stream_nothing(people, run, post):
    old = await post("x", 0, **{"Run-Lease": "7"})
    assert (old.status_code, old.json()["code"]) == (409, "lease_lost")
    foreign = await people.foreigner.post(
        f"/v1/runs/{run['run_id']}/tool-inputs/call-1",
        json={"tool": "show", "offset": 0, "delta": "x"},
        headers=people.loop.leased(),
    )
    assert foreign.status_code == 404
    await people.loop.web.delete(f"/v1/runs/{run['run_id']}")
    ended = await post("x", 0)
    assert (ended.status_code, ended.json()["code"]) == (409, "run_ended")


async def test_only_the_holder_of_a_run_adds_to_its_stream(people, run, post):
    await post("{", 0)
    path, body = f"/v1/runs/{run['run_id']}/tool-inputs/call-1", {"tool": "show", "offset": 1, "delta": "x"}
    for stranger in (people.foreigner, people.bob):
        answer = await stranger.post(path, json=body, headers=people.loop.leased())
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_run")
    older = await post("x", 1, **{"Run-Lease": "7"})
    assert (older.status_code, older.json()["code"]) == (409, "lease_lost")
    nobody = await people.loop.web.post(path, json=body)
    assert (nobody.status_code, nobody.json()["code"]) == (422, "invalid_request")
    assert (await post("}", 1)).json() == {"length": 2}


async def test_a_stream_ends_with_its_run(people, kitchen, run, post):
    await post("{", 0)
    await people.loop.web.delete(f"/v1/runs/{run['run_id']}")
    [record] = await _messages(people, kitchen)
    assert (record.tool.state, record.tool.error.code) == ("failed", "abandoned")


@pytest.mark.parametrize("tool", ["quiet", "result"])
async def test_nothing_is_kept_of_tools_that_are_not_visible(people, kitchen, post, tool):
    await people.loop.begin(SHOW, QUIET, RESULT, space_id=kitchen)
    assert (await post(TEXT, 0, tool=tool)).json() == {"length": len(TEXT)}
    assert await _messages(people, kitchen) == []
    answer = await people.loop.call(tool, {"x": 1})
    found = await _messages(people, kitchen)
    assert [message.tool.output for message in found] == ([] if tool == "quiet" else [{"x": 1}])
    assert (answer["posted"] is None) == (tool == "quiet")


async def test_invalid_input_ends_a_stream_and_posts_nothing_else(people, kitchen, post):
    strict = {**SHOW, "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}}}
    await people.loop.begin(strict, space_id=kitchen)
    await post('{"city": 3}', 0)
    answer = await people.loop.call("show", {"city": 3})
    assert answer["error"]["code"] == "invalid_input"
    [record] = await _messages(people, kitchen)
    assert (record.tool.state, record.tool.error.code) == ("failed", "invalid_input")
    again = await people.loop.call("show", {"city": 3})
    assert again["error"]["code"] == "invalid_input"
    assert len(await _messages(people, kitchen)) == 1


async def test_without_an_active_space_the_result_goes_to_the_agent_with_a_warning(people, kitchen):
    await people.loop.begin(SHOW, QUIET)
    answer = await people.loop.call("show", {"x": 1})
    assert (answer["ret"], answer["posted"]) == ({"x": 1}, None)
    assert [warning["code"] for warning in answer["warnings"]] == ["no_active_space"]
    assert "tool_call_warning.no_active_space" in json.dumps(answer["blocks"])
    quiet = await people.loop.call("quiet", {"x": 1})
    assert quiet["warnings"] == []
    assert await _messages(people, kitchen) == []


async def test_enter_space_sets_where_later_calls_are_shown(people, kitchen):
    await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "hello @helper"})
    await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "are you there?"})
    await people.loop.begin(SHOW)
    entered = await people.loop.call("enter_space", {"space_id": kitchen, "limit": 1})
    ret = entered["ret"]
    assert (ret["space_id"], ret["name"], ret["has_more"]) == (kitchen, "Kitchen", True)
    assert [member["entity_id"] for member in ret["members"]] == ["ann", "agent:helper"]
    assert [(message["text"], message["seen"]) for message in ret["history"]] == [("are you there?", False)]
    answer = await people.loop.call("show", {"x": 1})
    assert answer["posted"]["space_id"] == kitchen
    assert (await people.loop.current())["active_space_id"] == kitchen
    assert [message.kind for message in await _messages(people, kitchen)] == ["text", "text", "tool_call"]


async def test_what_a_completed_run_saw_is_seen(people, kitchen):
    await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "one"})
    run = await people.loop.begin(SHOW, space_id=kitchen)
    finished = await people.loop.web.post(
        f"/v1/runs/{run['run_id']}/finish", json={"status": "completed"}, headers=people.loop.leased()
    )
    assert finished.status_code == 200, finished.text
    await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "two"})
    await people.loop.begin(SHOW)
    ret = (await people.loop.call("enter_space", {"space_id": kitchen}))["ret"]
    assert [(message["text"], message["seen"]) for message in ret["history"]] == [("one", True), ("two", False)]


@pytest.mark.parametrize("space", ["spc_0", "another's"])
async def test_enter_space_refuses_spaces_of_others(people, kitchen, space):
    hall = (await people.ann.post("/v1/spaces", json={"name": "Hall"})).json()["space_id"]
    await people.loop.begin(SHOW, space_id=kitchen)
    answer = await people.loop.call("enter_space", {"space_id": hall if space == "another's" else space})
    assert (answer["ok"], answer["error"]["code"]) == (False, "no_such_space")
    assert (await people.loop.current())["active_space_id"] == kitchen


async def test_a_member_that_is_removed_while_a_call_runs_leaves_one_error(people, kitchen):
    slow = {"name": "slow", "executionType": "gateway", "execution": {"tool": "exec_tools.execute_code_bash"}}
    await people.loop.begin(slow, space_id=kitchen)
    started, removed = asyncio.Event(), asyncio.Event()

    async def program(run):
        started.set()
        await removed.wait()
        run.write("a.txt", b"a text")

    people.loop.pipeline.engine.program = program
    params = {"contract": [{"filename": "a.txt", "description": "a"}]}
    call = asyncio.create_task(people.loop.call("slow", params, code="echo secret"))
    await started.wait()
    await people.ann.delete(f"/v1/spaces/{kitchen}/members/agent:helper")
    removed.set()
    answer = await call
    assert [warning["code"] for warning in answer["warnings"]] == ["left_space"]
    [record] = await _messages(people, kitchen)
    assert (record.tool.state, record.tool.error.code, record.tool.output) == ("failed", "left_space", None)
