"""MCP servers that ask for input, and approval of their tools: cards, restarts, answers."""

import asyncio
import json

import pytest

from tests.support.asking import Asking, opened_asking
from tests.support.mcp_servers import begin_with, desk, raw_server, raw_tool, sdk_server, write_with


@pytest.fixture
async def modern():
    async with sdk_server(desk()) as server:
        yield server


async def enter(asking: Asking, *servers):
    """Makes the agent with servers, a space with ann and the agent, and a run that is in it."""
    await write_with(asking, *servers)
    human = {"type": "human", "handle": "ann", "display_name": "Ann", "user": "ann"}
    await asking.web.put("/v1/entities/ann", json=human)
    made = await asking.web.post("/v1/spaces", json={"name": "room", "members": ["ann", "agent:helper"]})
    asking.space_id = made.json()["space_id"]
    begun = await asking.web.post("/v1/runs", json={"agent_id": "helper", "space_id": asking.space_id})
    assert begun.status_code == 201, begun.text
    asking.run = begun.json()


@pytest.mark.parametrize("era", ["modern", "handshake", "sse"])
async def test_a_server_that_may_not_ask_is_told_that_nobody_answers(loop, era):
    async with sdk_server(desk(), era) as server:
        await begin_with(loop, server.entry())
        answer = await loop.call("desk__pay", {"to": "bob"})
    assert answer["ret"] == {"result": "not paid: decline"}


async def test_a_question_becomes_a_card_survives_a_restart_and_its_answer_ends_the_call(tmp_path, modern):
    async with opened_asking(tmp_path) as first:
        await enter(first, modern.entry(elicitation="space"))
        wait = await first.ask("desk__pay", {"to": "bob"})
        assert wait["kind"] == "elicitation"
        card = await first.card(wait)
        assert (card["custom_ui"], card["state"], card["input"]) == ("elicitation", "waiting", {"to": "bob"})
        assert card["result_schema"]["description"] == "How much?"
        assert card["result_schema"]["properties"]["content"]["properties"]["amount"]["type"] == "integer"
        assert (await first.current())["status"] == "waiting_tool"
    async with opened_asking(tmp_path, known=first) as second:
        accepted = {"action": "accept", "content": {"amount": "much"}}
        refused = await second.answer(wait, result=accepted, entity_id="ann")
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_result")
        without = await second.answer(wait, result={"action": "accept"}, entity_id="ann")
        assert without.status_code == 422
        given = await second.answer(wait, result={"action": "accept", "content": {"amount": 7}}, entity_id="ann")
        assert given.status_code == 200, given.text
        answer = await second.post_call("desk__pay", {"to": "bob"}, tool_call_id="call-1")
        assert (answer.status_code, answer.json()["ret"]) == (200, {"result": "paid 7 to bob"})
        card = await second.card(wait)
        assert (card["state"], card["answered_by"], card["output"], card["input"]) == ("done", "ann", None, None)
        line = second.pipeline.audit_lines()[-1].gateway
    assert line.answered_by == "ann"
    assert modern.called == ["pay", "pay"]
    retried = [message for message in modern.messages if message.get("method") == "tools/call"][1]["params"]
    assert retried["requestState"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_decline_and_the_server_learns_it(tmp_path, modern, action):
    async with opened_asking(tmp_path) as asking:
        await enter(asking, modern.entry(elicitation="space"))
        wait = await asking.ask("desk__pay", {"to": "bob"})
        await asking.answer(wait, result={"action": action}, entity_id="ann")
        answer = await asking.post_call("desk__pay", {"to": "bob"}, tool_call_id="call-1")
    assert answer.json()["ret"] == {"result": f"not paid: {action}"}


async def test_a_question_that_is_cancelled_ends_the_call_without_the_server(tmp_path, modern):
    async with opened_asking(tmp_path) as asking:
        await enter(asking, modern.entry(elicitation="space"))
        wait = await asking.ask("desk__pay", {"to": "bob"})
        await asking.answer(wait, cancelled=True, entity_id="ann")
        answer = await asking.post_call("desk__pay", {"to": "bob"}, tool_call_id="call-1")
    assert answer.json()["error"]["code"] == "user_cancelled"
    assert modern.called == ["pay"]


async def test_without_a_space_nobody_is_asked(loop, modern):
    await begin_with(loop, modern.entry(elicitation="space"))
    answer = await loop.call("desk__pay", {"to": "bob"})
    assert answer["error"]["code"] == "no_active_space"


async def test_an_agent_answers_no_question(tmp_path, modern):
    async with opened_asking(tmp_path) as asking:
        await enter(asking, modern.entry(elicitation="space"))
        wait = await asking.ask("desk__pay", {"to": "bob"})
        refused = await asking.answer(wait, result={"action": "decline"}, entity_id="agent:helper")
    assert (refused.status_code, refused.json()["code"]) == (403, "may_not_answer")


def form(message, schema=None):
    properties = {"type": "object", "properties": {"x": {"type": "string"}}}
    params = {"mode": "form", "message": message, "requestedSchema": schema or properties}
    return {"method": "elicitation/create", "params": params}


async def test_several_forms_are_asked_one_after_another_and_answered_together(tmp_path):
    def reply(params):
        if "inputResponses" not in params:
            asked = {
                "a": form("first"),
                "b": form("second"),
                "c": {
                    "method": "elicitation/create",
                    "params": {"mode": "url", "message": "open", "url": "https://evil.example/"},
                },
            }
            return {"resultType": "input_required", "inputRequests": asked, "requestState": "state-1"}
        return {
            "content": [],
            "structuredContent": {"got": params["inputResponses"], "state": params["requestState"]},
        }

    async with raw_server(raw_tool("fill")) as raw, opened_asking(tmp_path) as asking:
        raw.results = {"fill": reply}
        await enter(asking, raw.entry(elicitation="space"))
        wait = await asking.ask("desk__fill")
        await asking.answer(wait, result={"action": "accept", "content": {"x": "1"}}, entity_id="ann")
        again = await asking.post_call("desk__fill", tool_call_id="call-1")
        assert again.status_code == 202, again.text
        following = again.json()["wait"]
        assert following["wait_id"] != wait["wait_id"]
        assert (await asking.card(following))["result_schema"]["description"] == "second"
        await asking.answer(following, result={"action": "decline"}, entity_id="ann")
        answer = await asking.post_call("desk__fill", tool_call_id="call-1")
        assert raw.called == ["fill", "fill"]
    assert answer.json()["ret"] == {
        "got": {
            "a": {"action": "accept", "content": {"x": "1"}},
            "b": {"action": "decline"},
            "c": {"action": "decline"},
        },
        "state": "state-1",
    }


async def test_a_server_that_asks_for_ever_or_too_much_gets_no_answer(tmp_path):
    evil = {"type": "object", "properties": {"x": {"type": "string", "pattern": "(?=a)b"}}}
    async with raw_server(raw_tool("fill")) as raw, opened_asking(tmp_path) as asking:
        await enter(asking, raw.entry(elicitation="space"), raw.entry("mute"))
        sample = {
            "method": "sampling/createMessage",
            "params": {"messages": [], "maxTokens": 1},
        }
        for asked in ({"a": form("?", evil)}, {"a": sample}, {str(number): form("?") for number in range(11)}):
            raw.results = {"fill": {"resultType": "input_required", "inputRequests": asked}}
            answer = await asking.call("desk__fill")
            assert answer["error"]["code"] == "mcp_tool_error"
        raw.results = {"fill": {"resultType": "input_required", "inputRequests": {"a": form("?")}}}
        before = len(raw.called)
        answer = await asking.call("mute__fill")
        assert answer["error"]["code"] == "mcp_tool_error"
        assert len(raw.called) - before == 11


async def test_a_person_approves_before_a_server_is_called(tmp_path, modern):
    async with opened_asking(tmp_path) as asking:
        await enter(asking, modern.entry(requiresApproval=["wipe"]))
        assert (await asking.call("desk__add", {"numbers": [1]}))["ok"]
        wait = await asking.ask("desk__wipe")
        assert (wait["kind"], modern.called) == ("approval", ["add"])
        await asking.answer(wait, result={"approved": False}, entity_id="ann")
        denied = await asking.post_call("desk__wipe", tool_call_id=f"call-{asking.count}")
        assert denied.json()["error"]["code"] == "denied"
        assert modern.called == ["add"]
        wait = await asking.ask("desk__wipe")
        await asking.answer(wait, result={"approved": True}, entity_id="ann")
        answer = await asking.post_call("desk__wipe", tool_call_id=f"call-{asking.count}")
    assert answer.json()["ret"] == {"result": "gone"}
    assert modern.called == ["add", "wipe"]


async def test_a_state_that_repeats_a_secret_is_not_stored(tmp_path, monkeypatch):
    secret = "s3cret-of-the-operator"
    monkeypatch.setenv("MCP_KEY", secret)
    env = {"KEY": {"variable": "MCP_KEY", "hosts": ["127.0.0.1"]}}
    async with raw_server(raw_tool("fill")) as raw, opened_asking(tmp_path, gateway_env=env) as asking:
        asked = {"resultType": "input_required", "inputRequests": {"a": form("?")}, "requestState": f"x{secret}"}
        raw.results = {"fill": asked}
        await enter(asking, raw.entry(elicitation="space", headers={"X-Key": "${env.KEY}"}))
        answer = await asking.call("desk__fill")
        assert answer["error"]["code"] == "mcp_tool_error"
        asked["requestState"] = "fine"
        asked["inputRequests"] = {"a": form(f"tell {secret}")}
        wait = await asking.ask("desk__fill")
        assert secret not in json.dumps(await asking.card(wait))


async def test_a_space_shows_what_the_configuration_says_of_a_server_s_tools(tmp_path, modern):
    async with opened_asking(tmp_path) as asking:
        await enter(asking, modern.entry(visibility={"add": "visible", "say": "result-only"}))
        added = await asking.call("desk__add", {"numbers": [1]})
        said = await asking.call("desk__say", {"text": "hi"})
        hidden = await asking.call("desk__wipe")
        messages = (await asking.web.get(f"/v1/spaces/{asking.space_id}/messages")).json()["items"]
    assert hidden["posted"] is None
    assert [message["message_id"] for message in messages] == [
        added["posted"]["message_id"],
        said["posted"]["message_id"],
    ]
    shown = [(tool["name"], tool["input"], tool["output"]) for tool in (each["tool"] for each in messages)]
    assert shown == [
        ("desk__add", {"numbers": [1]}, {"total": 1, "parts": [1]}),
        ("desk__say", None, "hi\nthat is all"),
    ]


async def test_a_card_runs_again_while_the_server_works_on_the_answer(tmp_path):
    async with raw_server(raw_tool("fill")) as raw, opened_asking(tmp_path) as asking:
        raw.results = {"fill": {"resultType": "input_required", "inputRequests": {"a": form("?")}}}
        await enter(asking, raw.entry(elicitation="space"))
        wait = await asking.ask("desk__fill")
        raw.results, raw.held = {"fill": {"content": []}}, asyncio.Event()
        await asking.answer(wait, result={"action": "decline"}, entity_id="ann")
        await raw.arrived.wait()
        card = await asking.card(wait)
        assert (card["state"], card["answered_by"], card["expires"]) == ("running", "ann", None)
        raw.held.set()
        answer = await asking.post_call("desk__fill", tool_call_id="call-1")
        assert answer.json()["ok"], answer.text
        assert (await asking.card(wait))["state"] == "done"
