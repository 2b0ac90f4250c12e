"""Waits and agents that another release wrote and this one cannot read: they stop no start and no other wait."""

import asyncio

import pytest
from sqlalchemy import select, update

from proofbox.service.gateway.waits.answers import expiry
from proofbox.service.storage.gateway.schema import agent_versions, runs, waits
from tests.support.talking import opened_talk

UNREADABLE = ["{}", "[]", "{", '{"posting": {}, "waiting_for": []}', '{"posting": {"space_id": null}}']


async def change(talk, query):
    await talk.pipeline.database.write(lambda connection: connection.execute(query))


def of_wait(wait):
    return update(waits).where(waits.c.wait_id == wait["wait_id"])


async def states(talk, *found):
    rows = await talk.pipeline.database.read(
        lambda connection: connection.execute(select(waits.c.wait_id, waits.c.state)).all()
    )
    by_id = {row.wait_id: row.state for row in rows}
    return [by_id[wait["wait_id"]] for wait in found]


@pytest.fixture
async def talk(database_url, tmp_path):
    async with opened_talk(tmp_path, database_url) as opened:
        yield opened


@pytest.mark.parametrize("spec", UNREADABLE)
async def test_a_wait_that_cannot_be_read_stops_no_start_and_no_other_wait(database_url, tmp_path, spec):
    async with opened_talk(tmp_path, database_url) as talk:
        helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
        odd = await helper.wait_for("send_message", text="@ann one?")
        sound = await clerk.wait_for("send_message", text="@ann two?")
        await change(talk, of_wait(odd).values(expires=expiry(-2), spec=spec))
        await change(talk, of_wait(sound).values(expires=expiry(-1)))
    async with opened_talk(tmp_path, database_url, talk) as again:
        assert "pending" not in await states(again, odd, sound)
        assert (await states(again, sound)) == ["expired"]
        found = (await again.web.get(f"/v1/runs/{helper.run['run_id']}")).json()
        assert found["status"] == "running"


async def test_an_agent_that_cannot_be_read_stops_no_start(database_url, tmp_path):
    async with opened_talk(tmp_path, database_url) as talk:
        helper = await talk.begin_run()
        wait = await helper.wait_for("send_message", text="@ann one?")
        await change(talk, of_wait(wait).values(expires=expiry(-2)))
        await change(talk, update(agent_versions).values(config='{"version": "9"}'))
    async with opened_talk(tmp_path, database_url, talk) as again:
        assert await states(again, wait) == ["expired"]
        refused = await again.web.get(f"/v1/tools?run_id={helper.run['run_id']}")
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


async def test_a_call_of_an_ended_run_that_cannot_be_read_stops_no_start(database_url, tmp_path):
    async with opened_talk(tmp_path, database_url) as talk:
        helper = await talk.begin_run()
        wait = await helper.wait_for("send_message", text="@ann one?")
        await change(talk, of_wait(wait).values(spec="{}"))
        await change(talk, update(runs).values(status="cancelled", ended=expiry(-1)))
    async with opened_talk(tmp_path, database_url, talk) as again:
        assert await states(again, wait) == ["cancelled"]


@pytest.mark.parametrize("spec", UNREADABLE)
async def test_a_wait_that_cannot_be_read_lets_messages_through_and_answers_the_others(talk, spec):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    odd = await helper.wait_for("send_message", text="anyone?")
    await clerk.wait_for("send_message", text="anyone else?")
    await change(talk, of_wait(odd).values(spec=spec))
    sent = await talk.say("ann", "yes")
    assert clerk.run["run_id"] in [run["run_id"] for run in sent["runs"]]
    assert (await clerk.ret())["replies"][0]["text"] == "yes"


async def test_a_reply_to_an_agent_that_cannot_be_read_is_posted(talk):
    helper = await talk.begin_run()
    await helper.wait_for("send_message", text="@ann?")
    await change(talk, update(agent_versions).values(config='{"version": "9"}'))
    await talk.say("ann", "yes")
    assert await talk.texts() == ["@ann?", "yes"]
    conversation = {"conversation_id": helper.run["conversation_id"]}
    async with asyncio.timeout(20):  # the stream of its events ends with it
        await talk.web.get("/v1/tool-calls/call-1/events", params=conversation)
    assert (await helper.status())["status"] != "waiting"
