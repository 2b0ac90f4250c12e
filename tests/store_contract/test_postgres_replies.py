"""Messages on a PostgreSQL server that meet other transactions: none deadlocks, and no reply is lost."""

import asyncio
import logging

import pytest
from sqlalchemy import select

from proofbox.contracts.gateway.messages import NewMessage
from proofbox.service.gateway.runs_port import RunEnd, RunLimits, RunStatus
from proofbox.service.gateway.spaces.outbox import OutgoingText
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.waits.answers import expiry
from proofbox.service.gateway.waits.port import CloseWait, WaitMovedError, WaitState
from proofbox.service.storage.gateway.messages import SqlMessageStore
from proofbox.service.storage.gateway.outbox import SqlOutbox
from proofbox.service.storage.gateway.runs import SqlRunStore
from proofbox.service.storage.gateway.schema import spaces
from proofbox.service.storage.gateway.waits import close_wait
from tests.support.held_database import LONG_S, HeldDatabase, blocked, meet
from tests.support.pipeline import ANN
from tests.support.talking import opened_talk

PERSON = Actor(ANN, entity_id="ann", may_act_as=True)
LOCKED_SPACES = select(spaces.c.id).with_for_update()


@pytest.fixture
async def talk(postgres_url, tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    async with opened_talk(tmp_path, postgres_url) as opened:
        yield opened
    assert "deadlock" not in caplog.text


def outgoing(talk, speaker, words, reply_to=None):
    return OutgoingText(speaker.run["run_id"], "call-1", talk.space_id, words, reply_to)


async def test_two_agents_mention_each_other_at_once(talk):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    held = HeldDatabase(talk.pipeline.database)
    first = SqlOutbox(held).send(ANN, outgoing(talk, helper, "@clerk"))
    second = SqlOutbox(talk.pipeline.database).send(ANN, outgoing(talk, clerk, "@helper"))
    made = [one.mentioned[0]["run_id"] for one in await meet(talk.pipeline.database, held, first, second)]
    queued = [run["run_id"] for name in ("clerk", "helper") for run in await talk.queued(name)]
    assert made == queued


async def test_two_runs_that_wait_for_each_other_are_answered_at_once(talk):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    asked = await helper.wait_for("send_message", text="a?")
    other = await clerk.wait_for("send_message", text="b?")
    held = HeldDatabase(talk.pipeline.database)
    first = SqlOutbox(held).send(ANN, outgoing(talk, helper, "@clerk to b", other["message_id"]))
    second = SqlOutbox(talk.pipeline.database).send(ANN, outgoing(talk, clerk, "to a", asked["message_id"]))
    await meet(talk.pipeline.database, held, first, second)
    assert (await helper.ret())["replies"][0]["text"] == "to a"
    assert (await clerk.ret())["replies"][0]["text"] == "@clerk to b"
    assert await talk.queued("clerk") == []


async def test_a_reply_that_comes_while_its_wait_expires_is_a_message(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann?")
    held = HeldDatabase(talk.pipeline.database)
    closing = CloseWait(wait["wait_id"], WaitState.EXPIRED, expiry(10_000), replies=0)
    first = held.write(lambda connection: close_wait(connection, None, closing))
    second = talk.say("ann", "@helper here", wait["message_id"])
    _, sent = await meet(talk.pipeline.database, held, first, second)
    assert [run["why"] for run in sent["runs"]] == ["mention"]


async def test_a_wait_that_expires_while_a_reply_comes_has_the_reply(talk):
    helper = await talk.begin_run()
    wait = await helper.wait_for("send_message", text="@ann @bob?")
    held = HeldDatabase(talk.pipeline.database)
    new = NewMessage(text="@helper here", reply_to=wait["message_id"])
    first = SqlMessageStore(held).post(PERSON, talk.space_id, new, None)
    closing = CloseWait(wait["wait_id"], WaitState.EXPIRED, expiry(10_000), replies=0)
    second = talk.pipeline.database.write(lambda connection: close_wait(connection, None, closing))
    with pytest.raises(WaitMovedError):  # it is ended again, with the reply
        await meet(talk.pipeline.database, held, first, second)
    assert await talk.queued("helper") == []
    await talk.say("bob", "here too", wait["message_id"])
    ret = await helper.ret()
    assert (ret["status"], [reply["text"] for reply in ret["replies"]]) == (
        "resolved",
        ["@helper here", "here too"],
    )


async def test_a_message_that_comes_while_a_wait_is_opened_answers_it(talk):
    helper, database = await talk.begin_run(), talk.pipeline.database
    held = HeldDatabase(database)
    locked = asyncio.create_task(held.write(lambda connection: connection.execute(LOCKED_SPACES).all()))
    assert await asyncio.to_thread(held.has_worked.wait, LONG_S)
    try:
        async with asyncio.timeout(LONG_S):
            waiting = asyncio.create_task(helper.wait_for("send_message", text="anyone?"))
            await blocked(database)  # it has the space before the message, which has looked for waits
            saying = asyncio.create_task(talk.say("ann", "me"))
            await blocked(database, 2)
    finally:
        held.let_go.set()
    await asyncio.gather(locked, waiting)
    assert [run["why"] for run in (await saying)["runs"]] == ["resumed"]
    assert (await helper.ret())["replies"][0]["text"] == "me"


async def test_a_run_ends_while_a_reply_to_it_comes(talk):
    helper, clerk = await talk.begin_run("helper"), await talk.begin_run("clerk")
    wait = await helper.wait_for("send_message", text="@clerk?")
    held = HeldDatabase(talk.pipeline.database)
    first = SqlOutbox(held).send(ANN, outgoing(talk, clerk, "@helper yes", wait["message_id"]))
    store = SqlRunStore(talk.pipeline.database, RunLimits())
    end = RunEnd(RunStatus.COMPLETED)
    second = store.finish(ANN, helper.run["run_id"], 1, end, cancel_waits=True)
    _, ended = await meet(talk.pipeline.database, held, first, second)
    assert ended.status is RunStatus.COMPLETED
