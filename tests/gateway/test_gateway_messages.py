"""Texts of agents and persons over HTTP: whom they reach, what they make, and how agents read them."""

import pytest

from proofbox.contracts.provenance import AuditLine
from tests.support.pipeline import ANN
from tests.support.talking import opened_talk


@pytest.fixture
async def talk(tmp_path):
    async with opened_talk(tmp_path) as opened:
        yield opened


async def test_a_message_of_an_agent_is_a_text_of_its_run(talk):
    helper = await talk.begin_run()
    sent = await helper.call("send_message", {"text": "good morning @ann, @CLERK, @zoe and @Helper"})
    assert (sent["ok"], sent["posted"], sent["warnings"]) == (True, None, [])
    [queued] = await talk.queued("clerk")
    assert sent["ret"] == {
        "message_id": sent["ret"]["message_id"],
        "space_id": talk.space_id,
        "mentioned": [
            {"entity_id": "ann", "handle": "ann", "run_id": None},
            {"entity_id": "agent:clerk", "handle": "Clerk", "run_id": queued["run_id"]},
        ],
        "unknown_mentions": ["zoe"],
    }
    [message] = (await talk.web.get(f"/v1/spaces/{talk.space_id}/messages")).json()["items"]
    assert (message["kind"], message["sender"]["entity_id"], message["run_id"], message["replyable"]) == (
        "text",
        "agent:helper",
        helper.run["run_id"],
        True,
    )
    assert message["mentions"] == ["ann", "agent:clerk"]
    assert queued["active_space_id"] == talk.space_id
    assert {name: value for name, value in queued["trigger"].items() if value is not None} == {
        "type": "message",
        "space_id": talk.space_id,
        "message_id": message["message_id"],
        "sender": "agent:helper",
    }
    assert (queued["chain_depth"], queued["conversation_id"]) == (1, f"run:{queued['run_id']}")


async def test_the_audit_line_names_the_message_and_who_answered(talk):
    helper = await talk.begin_run()
    sent = await helper.call("send_message", {"text": "hello"})
    wait = await helper.wait_for("send_message", text="@ann?")
    await talk.say("ann", "yes", wait["message_id"])
    lines = [
        await talk.pipeline.provenance.line(ANN, call, helper.run["conversation_id"])
        for call in ("call-1", "call-2")
    ]
    first, second = (AuditLine.model_validate_json(line.text).gateway for line in lines)
    assert (first.space_id, first.message_id) == (talk.space_id, sent["ret"]["message_id"])
    assert (second.message_id, second.answered_by) == (wait["message_id"], "ann")


async def test_a_person_mentions_agents_and_gets_their_runs(talk):
    sent = await talk.say("ann", "@helper @clerk @zoe")
    assert [(run["agent_id"], run["why"]) for run in sent["runs"]] == [("helper", "mention"), ("clerk", "mention")]
    assert sent["unknown_mentions"] == ["zoe"]
    [run] = await talk.queued("helper")
    assert (run["run_id"], run["chain_depth"]) == (sent["runs"][0]["run_id"], 0)
    context = (await talk.web.get(f"/v1/runs/{run['run_id']}/context")).json()
    assert context["history"][-1]["message_id"] == context["trigger"]["message_id"]


async def test_code_addresses_and_others_than_members_make_no_run(talk):
    await talk.write_agent(agent_id="outsider", name="Outsider")
    text = "`@helper` ```@clerk``` me@helper @outsider\n\n```\n@clerk\n```"
    sent = await talk.say("ann", text)
    assert (sent["runs"], sent["unknown_mentions"]) == ([], ["outsider"])
    helper = await talk.begin_run()
    own = await helper.call("send_message", {"text": f"{text} @helper"})
    assert (own["ret"]["mentioned"], await talk.queued("helper")) == ([], [])


async def test_a_repeated_post_makes_no_second_run(talk):
    path, body = f"/v1/spaces/{talk.space_id}/messages", {"text": "@helper", "entity_id": "ann"}
    first = await talk.web.post(path, json=body, headers={"Idempotency-Key": "once"})
    again = await talk.web.post(path, json=body, headers={"Idempotency-Key": "once"})
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    assert len(await talk.queued("helper")) == 1


async def test_a_text_needs_an_active_space(talk):
    helper = await talk.begin_run(space_id=None)
    for tool, params in (("send_message", {}), ("send_reply", {"reply_to": "msg_1"}), ("read_messages", None)):
        body = {} if params is None else {"text": "hello", **params}
        refused = await helper.call(tool, body)
        assert (refused["ok"], refused["error"]["code"]) == (False, "no_active_space")
    await helper.call("enter_space", {"space_id": talk.space_id})
    assert (await helper.call("send_message", {"text": "hello"}))["ok"]


async def test_a_message_that_was_sent_elsewhere_names_where_its_run_began(talk):
    await talk.say("ann", "@helper come")
    helper = await talk.claim("helper")
    made = await talk.web.post("/v1/spaces", json={"name": "other", "members": ["agent:helper", "bob"]})
    other = made.json()["space_id"]
    await helper.call("enter_space", {"space_id": other})
    await helper.call("send_message", {"text": "here I am"})
    [message] = (await talk.web.get(f"/v1/spaces/{other}/messages")).json()["items"]
    assert message["origin"] == {"trigger": "message", "space_id": talk.space_id}


async def test_a_reply_needs_a_text_of_the_space(talk):
    show = {"name": "show", "executionType": "gateway", "execution": {"output": "{{input}}"}}
    await talk.write_agent(show, name="Helper")
    helper = await talk.begin_run()
    shown = (await helper.call("show", {"a": 1}))["posted"]["message_id"]
    for reply_to, code in ((shown, "not_replyable"), ("msg_none", "unknown_item")):
        for wait in (False, True):
            refused = await helper.call("send_reply", {"text": "@clerk", "reply_to": reply_to, "wait": wait})
            assert (refused["ok"], refused["error"]["code"]) == (False, code)
    assert await talk.queued("clerk") == []


async def test_a_reply_that_nobody_waits_for_makes_runs_of_those_it_mentions_only(talk):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    asked = await helper.call("send_message", {"text": "what now?"})
    await clerk.call("send_reply", {"text": "nothing", "reply_to": asked["ret"]["message_id"]})
    assert await talk.queued("helper") == []
    await clerk.call("send_reply", {"text": "@helper nothing", "reply_to": asked["ret"]["message_id"]})
    assert [run["trigger"]["type"] for run in await talk.queued("helper")] == ["reply"]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "text"),
        ({"text": ""}, "text"),
        ({"text": "x" * 20_001}, "text"),
        ({"text": "x", "timeout_s": 0}, "timeout_s"),
        ({"text": "x", "space_id": "spc_1"}, "space_id"),
        ({"text": "x", "wait": "yes"}, "wait"),
    ],
)
async def test_parameters_that_do_not_fit_send_nothing(talk, params, field):
    helper = await talk.begin_run()
    refused = await helper.call("send_message", params)
    assert refused["error"]["code"] == "invalid_input"
    assert f"input.{field}" in refused["error"]["message"]
    assert await talk.texts() == []


async def test_the_operator_bounds_how_long_a_reply_is_waited_for(tmp_path):
    async with opened_talk(tmp_path, wait_s_max=1) as talk:
        helper = await talk.begin_run()
        await helper.wait_for("send_message", text="?", timeout_s=30_000_000)
        assert (await helper.ret())["status"] == "timeout"


async def test_messages_are_read_page_by_page(talk):
    for number in range(1, 8):
        await talk.say("ann", f"text {number}")
    helper = await talk.begin_run()

    async def read(**params):
        ret = (await helper.call("read_messages", params))["ret"]
        return [message["text"] for message in ret["messages"]], ret["total"], ret["next_before_seq"]

    assert await read(limit=3) == (["text 5", "text 6", "text 7"], 7, 5)
    assert await read(limit=3, before_seq=5) == (["text 2", "text 3", "text 4"], 7, 2)
    assert await read(limit=3, before_seq=2) == (["text 1"], 7, None)
    assert await read(limit=2, offset=5) == (["text 1", "text 2"], 7, None)
    assert await read(offset=7) == ([], 7, None)
    whole = (await helper.call("read_messages"))["ret"]
    assert (whole["space_id"], len(whole["messages"])) == (talk.space_id, 7)
    assert [message["seen"] for message in whole["messages"]] == [False] * 7


async def test_another_space_is_read_without_entering_it(talk):
    made = await talk.web.post("/v1/spaces", json={"name": "other", "members": ["agent:helper", "bob"]})
    other = made.json()["space_id"]
    await talk.web.post(f"/v1/spaces/{other}/messages", json={"text": "over here", "entity_id": "bob"})
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    read = await helper.call("read_messages", {"space_id": other})
    assert [message["text"] for message in read["ret"]["messages"]] == ["over here"]
    assert (await helper.current())["active_space_id"] == talk.space_id
    await talk.web.delete(f"/v1/spaces/{other}")
    assert (await helper.call("read_messages", {"space_id": other}))["ok"]
    for space_id in (other, "spc_none"):
        refused = await clerk.call("read_messages", {"space_id": space_id})
        assert (refused["ok"], refused["error"]["code"]) == (False, "no_such_space")
