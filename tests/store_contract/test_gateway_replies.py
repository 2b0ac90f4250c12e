"""Calls that wait for replies, on every database: the right run goes on, once, whatever happens meanwhile."""

import asyncio

import pytest
from sqlalchemy import insert, select, update

from proofbox.contracts.gateway.messages import NewMessage
from proofbox.service.gateway.runs_port import RUN_QUEUED_MAX
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.waits.answers import expiry
from proofbox.service.storage.gateway.messages import SqlMessageStore
from proofbox.service.storage.gateway.reply_waits import SPACE_WAITS_MAX
from proofbox.service.storage.gateway.schema import runs, waits
from tests.support.pipeline import ANN
from tests.support.talking import Speaker, opened_talk


@pytest.fixture
async def talk(database_url, tmp_path):
    async with opened_talk(tmp_path, database_url) as opened:
        yield opened


async def expire(talk, wait):
    """The time of a wait passes."""
    query = update(waits).where(waits.c.wait_id == wait["wait_id"]).values(expires=expiry(-1))
    await talk.pipeline.database.write(lambda connection: connection.execute(query))
    await talk.pipeline.gateway.waits.services.answers.expire_overdue()


def ids(members):
    return [(member["entity_id"], member["run_id"]) for member in members]


async def test_a_call_waits_for_a_reply_and_answers_it(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann which colour?")
    assert (wait["kind"], wait["space_id"]) == ("reply", talk.space_id)
    assert wait["waiting_for"] == [{"entity_id": "ann", "handle": "ann", "responded": False}]
    assert (await helper.current())["status"] == "waiting_reply"
    sent = await talk.say("ann", "blue", wait["message_id"])
    assert sent["runs"] == [{"run_id": helper.run["run_id"], "agent_id": "helper", "why": "resumed"}]
    assert (await helper.current())["status"] == "running"
    ret = (await helper.status())["response"]["ret"]
    reply = {name: sent["message"][name] for name in ("text", "message_id", "ts")}
    assert ret.pop("wait_ms") >= 0
    assert ret == {
        "message_id": wait["message_id"],
        "space_id": talk.space_id,
        "mentioned": [{"entity_id": "ann", "handle": "ann", "run_id": None}],
        "unknown_mentions": [],
        "status": "resolved",
        "replies": [{"entity_id": "ann", "handle": "ann", "type": "human", **reply}],
        "waiting_for": [{"entity_id": "ann", "handle": "ann", "responded": True}],
    }


async def test_a_reply_resumes_the_right_one_of_two_waits_and_a_message_none(talk):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    await helper.wait_for("send_message", text="@clerk one?")
    second = await helper.wait_for("send_message", text="@clerk two?")
    before = len(await talk.queued("helper"))
    message = await clerk.call("send_message", {"text": "@helper no idea yet"})
    [member] = message["ret"]["mentioned"]
    assert [run["run_id"] for run in await talk.queued("helper")] == [member["run_id"]]
    assert before == 0
    assert [(await helper.status(call))["status"] for call in ("call-1", "call-2")] == ["waiting", "waiting"]
    reply = await clerk.call("send_reply", {"text": "@helper two it is", "reply_to": second["message_id"]})
    assert ids(reply["ret"]["mentioned"]) == [("agent:helper", helper.run["run_id"])]
    assert [given["text"] for given in (await helper.ret("call-2"))["replies"]] == ["@helper two it is"]
    assert (await helper.status("call-1"))["status"] == "waiting"
    assert len(await talk.queued("helper")) == 1
    assert (await helper.current())["status"] == "waiting_reply"


async def test_a_reply_of_somebody_else_answers_nothing_and_its_mention_makes_a_run(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann yours?")
    sent = await talk.say("bob", "@helper mine", wait["message_id"])
    [made] = sent["runs"]
    assert (made["agent_id"], made["why"]) == ("helper", "mention")
    [run] = await talk.queued("helper")
    assert (run["run_id"], run["trigger"]["type"], run["chain_depth"]) == (made["run_id"], "reply", 0)
    assert (await helper.status())["status"] == "waiting"


async def test_without_a_mention_the_first_message_of_anyone_answers(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="anybody?")
    assert wait["waiting_for"] == []
    sent = await talk.say("bob", "@helper me")
    assert [run["why"] for run in sent["runs"]] == ["resumed"]
    await talk.say("ann", "and me")
    ret = (await helper.status())["response"]["ret"]
    assert (ret["status"], [reply["entity_id"] for reply in ret["replies"]], ret["waiting_for"]) == (
        "resolved",
        ["bob"],
        [],
    )
    assert await talk.queued("helper") == []


async def test_a_person_answers_all_waits_of_the_space_for_them_or_anyone(talk):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    await helper.wait_for("send_message", text="@ann a?")
    await helper.wait_for("send_message", text="@bob b?")
    await clerk.wait_for("send_message", text="c?")
    sent = await talk.say("ann", "yes")
    assert [(run["agent_id"], run["why"]) for run in sent["runs"]] == [("helper", "resumed"), ("clerk", "resumed")]
    assert [(await helper.status(call))["status"] for call in ("call-1", "call-2")] == ["done", "waiting"]
    assert (await clerk.status())["status"] == "done"


async def test_a_person_who_replies_answers_the_wait_on_that_message_only(talk):
    helper = await talk.begin_run()
    first = await helper.wait_for("send_message", text="@ann a?")
    await helper.wait_for("send_message", text="b?")
    await talk.say("ann", "to a", first["message_id"])
    assert [(await helper.status(call))["status"] for call in ("call-1", "call-2")] == ["done", "waiting"]


async def test_a_call_waits_for_all_whom_it_mentions(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann @bob?")
    assert (await talk.say("bob", "one"))["runs"] == []
    assert [who["responded"] for who in (await helper.current())["waiting_for"][0]["waiting_for"]] == [False, True]
    assert (await talk.say("bob", "@helper again"))["runs"][0]["why"] == "mention"
    await expire(talk, wait)
    ret = await helper.ret()
    assert (ret["status"], [reply["text"] for reply in ret["replies"]]) == ("partial_timeout", ["one"])
    assert [who["responded"] for who in ret["waiting_for"]] == [False, True]
    assert (await helper.current())["status"] == "running"
    assert [run["why"] for run in (await talk.say("ann", "@helper too late"))["runs"]] == ["mention"]


async def test_nobody_replies_in_time(talk):
    helper = await talk.begin_run()
    await helper.wait_for("send_message", text="@ann?", timeout_s=0.2)
    ret = await helper.ret()
    assert (ret["status"], ret["replies"]) == ("timeout", [])
    assert 0 <= ret["wait_ms"] <= 201  # from the message to the end of its time
    status = await helper.status()
    assert (status["response"]["ok"], status["response"]["error"]) == (True, None)


async def test_an_agent_waits_for_the_run_that_its_mention_made(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@clerk count them")
    clerk = await talk.claim("clerk")
    trigger = clerk.run["trigger"]
    assert (trigger["type"], trigger["message_id"], trigger["sender"], clerk.run["chain_depth"]) == (
        "message",
        wait["message_id"],
        "agent:helper",
        1,
    )
    asked = await clerk.wait_for("send_reply", text="which?", reply_to=wait["message_id"])
    assert (await helper.ret())["replies"][0]["text"] == "which?"
    await helper.call("send_reply", {"text": "all", "reply_to": asked["message_id"]})
    assert (await clerk.ret())["replies"][0]["text"] == "all"
    assert (await talk.queued("helper"), await talk.queued("clerk")) == ([], [])


async def test_a_wait_for_replies_outlives_the_service(database_url, tmp_path):
    async with opened_talk(tmp_path, database_url) as before:
        first = await before.begin_run()
        wait = await first.wait_for("send_message", text="@ann @bob?")
        await before.say("bob", "one")
    async with opened_talk(tmp_path, database_url, before) as talk:
        helper = Speaker(talk.web, talk.pipeline, first.run)
        assert (await helper.status())["wait"]["wait_id"] == wait["wait_id"]
        assert [run["why"] for run in (await talk.say("ann", "two"))["runs"]] == ["resumed"]
        ret = (await helper.status())["response"]["ret"]
        assert (ret["status"], [reply["text"] for reply in ret["replies"]]) == ("resolved", ["one", "two"])
        again = await helper.post_call("send_message", {"wait": True, "text": "@ann @bob?"})
        assert (again.headers["idempotent-replayed"], again.json()["ret"]) == ("true", ret)
        assert len(await talk.texts()) == 3


async def test_what_passed_while_the_service_was_down_ends_at_its_start(database_url, tmp_path):
    async with opened_talk(tmp_path, database_url) as before:
        first = await before.begin_run()
        wait = await first.wait_for("send_message", text="@ann @bob?")
        await before.say("bob", "one")
        await before.pipeline.gateway.waits.timer.stop()
        query = update(waits).where(waits.c.wait_id == wait["wait_id"]).values(expires=expiry(-1))
        await before.pipeline.database.write(lambda connection: connection.execute(query))
    async with opened_talk(tmp_path, database_url, before) as talk:
        helper = Speaker(talk.web, talk.pipeline, first.run)
        assert (await helper.status())["response"]["ret"]["status"] == "partial_timeout"
        assert (await helper.current())["status"] == "running"


async def test_a_reply_whose_process_died_before_the_run_went_on_is_found_at_the_start(database_url, tmp_path):
    async with opened_talk(tmp_path, database_url) as before:
        first = await before.begin_run()
        wait = await first.wait_for("send_message", text="@ann?")
        await before.pipeline.gateway.waits.timer.stop()
        # The route ends the wait after this, but its process dies.
        actor = Actor(ANN, entity_id="ann", may_act_as=True)
        store = SqlMessageStore(before.pipeline.database)
        posted = await store.post(actor, before.space_id, NewMessage(text="yes"), None)
        assert list(posted.due) == [wait["wait_id"]]
        assert (await first.status())["status"] == "waiting"
    async with opened_talk(tmp_path, database_url, before) as talk:
        helper = Speaker(talk.web, talk.pipeline, first.run)
        response = (await helper.status())["response"]
        assert (response["ret"]["status"], response["ret"]["replies"][0]["text"]) == ("resolved", "yes")
        assert wait["message_id"] == response["ret"]["message_id"]


async def test_of_many_replies_at_once_one_is_taken_and_the_others_are_messages(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="first one wins")
    sent = await asyncio.gather(*(talk.say("ann", f"@helper {n}", wait["message_id"]) for n in range(12)))
    whys = sorted(run["why"] for one in sent for run in one["runs"])
    assert whys == ["mention"] * 11 + ["resumed"]
    [taken] = [one["message"]["text"] for one in sent if one["runs"][0]["why"] == "resumed"]
    assert [reply["text"] for reply in (await helper.ret())["replies"]] == [taken]
    assert len(await talk.queued("helper")) == 11


async def test_a_reply_against_the_end_of_the_time_is_never_lost(talk):
    helper = await talk.begin_run()
    for number in range(1, 9):
        wait = await helper.wait_for("send_message", text=f"@ann {number}?")
        sent, _ = await asyncio.gather(talk.say("ann", "@helper now", wait["message_id"]), expire(talk, wait))
        ret = await helper.ret(f"call-{number}")
        [run] = sent["runs"]
        taken = [reply["message_id"] for reply in ret["replies"]]
        if run["why"] == "resumed":
            assert (ret["status"], taken) == ("resolved", [sent["message"]["message_id"]])
        else:
            assert (ret["status"], taken) == ("timeout", [])
        assert (await helper.current())["status"] == "running"


async def test_a_cancelled_wait_takes_no_reply(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann?")
    await talk.web.delete("/v1/tool-calls/call-1")
    sent = await talk.say("ann", "@helper late", wait["message_id"])
    assert [run["why"] for run in sent["runs"]] == ["mention"]
    assert (await helper.current())["status"] == "running"


async def test_the_end_of_a_run_takes_no_reply(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann?")
    await talk.web.delete(f"/v1/runs/{helper.run['run_id']}")
    assert (await talk.say("ann", "late", wait["message_id"]))["runs"] == []


async def test_a_wait_for_replies_is_not_answered_like_a_card(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann?")
    path = f"/v1/spaces/{talk.space_id}/messages/{wait['message_id']}/result"
    card = await talk.web.post(path, json={"result": 1, "entity_id": "ann"})
    assert (card.status_code, card.json()["code"]) == (409, "not_waiting")
    key = await talk.web.post("/v1/tool-calls/call-1/result", json={"result": 1})
    assert (key.status_code, key.json()["code"]) == (403, "may_not_answer")
    assert (await helper.status())["status"] == "waiting"


async def test_a_text_that_cannot_wait_is_not_sent(talk):
    helper = await talk.begin_run()
    for _ in range(20):
        await helper.wait_for("send_message", text="?")
    refused = await helper.call("send_message", {"text": "@clerk one too many", "wait": True})
    assert (refused["ok"], refused["error"]["code"]) == (False, "too_many_waits")
    assert (len(await talk.texts()), await talk.queued("clerk")) == (20, [])


async def test_a_run_that_was_released_comes_back_with_the_reply(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann?")
    await talk.web.post(f"/v1/runs/{helper.run['run_id']}/release", headers=helper.leased())
    await talk.say("ann", "yes", wait["message_id"])
    claimed = await talk.claim("helper")
    assert claimed.run["run_id"] == helper.run["run_id"]
    answered = await claimed.call("send_message", {"wait": True, "text": "@ann?"}, lease=2)
    assert answered["ret"]["replies"][0]["text"] == "yes"


async def test_the_chain_of_mentions_ends_at_its_depth(talk):
    helper = await talk.begin_run()
    depth = update(runs).where(runs.c.run_id == helper.run["run_id"])
    await talk.pipeline.database.write(lambda connection: connection.execute(depth.values(chain_depth=4)))
    sent = await helper.call("send_message", {"text": "@clerk go on"})
    assert sent["warnings"] == []
    clerk = await talk.claim("clerk")
    assert clerk.run["chain_depth"] == 5
    stopped = await clerk.call("send_message", {"text": "@helper go on"})
    assert ids(stopped["ret"]["mentioned"]) == [("agent:helper", None)]
    assert [warning["code"] for warning in stopped["warnings"]] == ["mention_depth"]
    assert await talk.queued("helper") == []
    wait = await clerk.wait_for("send_message", text="@helper and now?")
    await talk.pipeline.gateway.waits.services.answers.expire_overdue()
    await expire(talk, wait)
    warned = (await clerk.status("call-2"))["response"]["warnings"]
    assert [warning["code"] for warning in warned] == ["mention_depth"]


async def test_two_agents_that_mention_each_other_at_once_both_come_through(talk):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    sent = await asyncio.gather(
        *(
            speaker.call("send_message", {"text": f"@{other} {number}"})
            for number in range(10)
            for speaker, other in ((helper, "clerk"), (clerk, "helper"))
        )
    )
    assert all(one["ok"] for one in sent)
    assert (len(await talk.queued("helper")), len(await talk.queued("clerk"))) == (10, 10)
    seqs = [item["seq"] for item in (await talk.web.get(f"/v1/spaces/{talk.space_id}/messages")).json()["items"]]
    assert seqs == list(range(1, 21))


async def test_two_runs_that_reply_to_each_other_at_once_both_go_on(talk, caplog):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    for number in range(4):
        asked = await helper.wait_for("send_message", text="a?")
        other = await clerk.wait_for("send_message", text="b?")
        await asyncio.gather(
            helper.call("send_reply", {"text": "to b", "reply_to": other["message_id"]}),
            clerk.call("send_reply", {"text": "to a", "reply_to": asked["message_id"]}),
        )
        for speaker, text in ((helper, "to a"), (clerk, "to b")):
            ret = await speaker.ret(f"call-{2 * number + 1}")
            assert [reply["text"] for reply in ret["replies"]] == [text]
    assert "deadlock" not in caplog.text  # PostgreSQL needs a second to find one


async def test_a_queue_that_is_full_refuses_the_whole_message(talk):
    helper = await talk.begin_run()
    await talk.say("ann", "@clerk one")

    def fill(connection):
        queued = connection.execute(select(runs).where(runs.c.status == "queued")).mappings().one()
        copied = {name: value for name, value in queued.items() if name != "id"}
        connection.execute(insert(runs), [{**copied, "run_id": f"run_{n}"} for n in range(RUN_QUEUED_MAX - 1)])

    await talk.pipeline.database.write(fill)
    refused = await helper.call("send_message", {"text": "@clerk two"})
    assert (refused["ok"], refused["error"]["code"]) == (False, "too_many_items")
    body = {"text": "@clerk three", "entity_id": "ann"}
    posted = await talk.web.post(f"/v1/spaces/{talk.space_id}/messages", json=body)
    assert (posted.status_code, posted.json()["code"]) == (429, "queue_full")
    assert await talk.texts() == ["@clerk one"]


async def test_a_run_whose_agent_has_left_sends_nothing(talk):
    helper = await talk.begin_run()
    await talk.web.delete(f"/v1/spaces/{talk.space_id}/members/agent:helper")
    refused = await helper.call("send_message", {"text": "hello?"})
    assert (refused["ok"], refused["error"]["code"]) == (False, "no_active_space")
    count = select(waits.c.id)
    rows = await talk.pipeline.database.read(lambda connection: connection.execute(count).all())
    assert (await talk.texts(), rows) == ([], [])


async def post_as_agent(talk, text, reply_to=None):
    body = {"text": text, "entity_id": "agent:helper", "reply_to": reply_to}
    posted = await talk.web.post(f"/v1/spaces/{talk.space_id}/messages", json=body)
    assert posted.status_code == 201, posted.text
    return posted.json()


async def test_an_agent_that_posts_without_a_run_answers_only_what_it_replies_to(talk):
    clerk = await talk.begin_run("clerk")
    wait = await clerk.wait_for("send_message", text="@helper?")
    assert (await post_as_agent(talk, "hm"))["runs"] == []
    sent = await post_as_agent(talk, "yes", wait["message_id"])
    assert [run["why"] for run in sent["runs"]] == ["resumed"]


async def test_a_mention_of_an_agent_that_posts_without_a_run_counts_for_the_depth(talk):
    await post_as_agent(talk, "@clerk go")
    assert [run["chain_depth"] for run in await talk.queued("clerk")] == [1]


async def leave(talk, how):
    """The member that is waited for can reply no more."""
    if how == "left":
        left = await talk.web.delete(f"/v1/spaces/{talk.space_id}/members/agent:clerk")
    elif how == "deleted":
        left = await talk.web.delete("/v1/agents/clerk", params={"cancel_runs": "true"})
    else:
        left = await talk.web.delete(f"/v1/spaces/{talk.space_id}")
    assert left.status_code == 204, left.text


@pytest.mark.parametrize("how", ["left", "deleted", "archived"])
async def test_a_wait_ends_once_nobody_can_reply_to_it(talk, how):
    helper = await talk.begin_run()
    await helper.wait_for("send_message", text="@clerk?")
    await leave(talk, how)
    ret = await helper.ret()
    assert (ret["status"], ret["replies"], ret["wait_ms"] < 60_000) == ("timeout", [], True)
    assert (await helper.current())["status"] == "running"


async def test_a_wait_goes_on_while_somebody_can_reply_to_it(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann @clerk @bob?")
    await leave(talk, "left")
    await talk.say("ann", "yes", wait["message_id"])
    assert (await helper.current())["status"] == "waiting_reply"
    await talk.web.delete(f"/v1/spaces/{talk.space_id}/members/bob")
    ret = await helper.ret()
    assert (ret["status"], [reply["text"] for reply in ret["replies"]]) == ("partial_timeout", ["yes"])


async def test_an_agent_that_gets_no_run_is_not_waited_for(talk):
    helper = await talk.begin_run()
    deep = update(runs).where(runs.c.run_id == helper.run["run_id"]).values(chain_depth=5)
    await talk.pipeline.database.write(lambda connection: connection.execute(deep))
    wait = await helper.wait_for("send_message", text="@clerk @ann?")
    assert [entity["entity_id"] for entity in wait["waiting_for"]] == ["ann"]
    await talk.say("ann", "yes", wait["message_id"])
    assert (await helper.ret())["status"] == "resolved"
    await helper.post_call("send_message", {"text": "@clerk?", "wait": True})
    ret = await helper.ret("call-2")
    assert (ret["status"], ret["waiting_for"], ret["wait_ms"]) == ("timeout", [], 0)


async def test_a_text_that_mentions_too_many_agents_is_refused(talk):
    names = [f"a{number}" for number in range(21)]
    for name in names:
        await talk.write_agent(agent_id=name, name=name)
        await talk.web.put(f"/v1/spaces/{talk.space_id}/members/agent:{name}")
    text = " ".join(f"@{name}" for name in names)
    body = {"text": text, "entity_id": "ann"}
    refused = await talk.web.post(f"/v1/spaces/{talk.space_id}/messages", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")
    answer = await (await talk.begin_run()).call("send_message", {"text": text})
    assert (answer["ok"], answer["error"]["code"]) == (False, "too_many_items")
    assert await talk.texts() == []
    assert len((await talk.say("ann", text.removesuffix(" @a20")))["runs"]) == 20


async def test_a_space_has_a_bounded_number_of_waits_for_replies(talk):
    helper = await talk.begin_run()
    await helper.wait_for("send_message", text="@ann?")

    def fill(connection):
        [row] = connection.execute(select(waits)).mappings().all()
        copied = {name: value for name, value in row.items() if name not in ("id", "wait_id", "run")}
        rows = [{**copied, "wait_id": f"wait_{number}", "run": None} for number in range(SPACE_WAITS_MAX - 2)]
        connection.execute(insert(waits), rows)

    await talk.pipeline.database.write(fill)
    last = await helper.wait_for("send_message", text="one more?")
    refused = await helper.call("send_message", {"text": "and another?", "wait": True})
    assert (refused["ok"], refused["error"]["code"]) == (False, "too_many_waits")
    assert await talk.texts() == ["@ann?", "one more?"]
    await talk.say("bob", "yes", last["message_id"])
    await helper.wait_for("send_message", text="now?")


async def test_a_message_ends_a_few_waits_and_leaves_the_others_to_the_timer(talk):
    due = (f"wait_{number}" for number in range(30))
    await talk.pipeline.gateway.waits.services.answers.settle(due)
    assert len(list(due)) == 10
