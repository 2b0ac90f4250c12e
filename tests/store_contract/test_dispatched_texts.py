"""A text is shown as it is written, and sent under the same id, whichever process runs the call that sends it."""

import json
from contextlib import AsyncExitStack, aclosing, asynccontextmanager

import pytest

from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.spaces.tool_inputs import STREAMS_MAX
from proofbox.service.storage.gateway.space_events import SqlSpaceEventStore
from tests.support.dispatching import joined
from tests.support.pipeline import ANN, NO_SERVER, opened_pipeline
from tests.support.talking import opened_talk

ANN_IN_SPACE = Actor(ANN, entity_id="ann", may_act_as=True)


@asynccontextmanager
async def nats_talk(tmp_path, place):
    many = {"url": place.url, "shared": True}
    async with AsyncExitStack() as stack:
        talk = await stack.enter_async_context(opened_talk(tmp_path / "api", boot_id="boot-api", **many))
        worker = await stack.enter_async_context(
            opened_pipeline(tmp_path / "worker", boot_id="boot-worker", **many)
        )
        await stack.enter_async_context(joined(place, talk.pipeline, "api"))
        await stack.enter_async_context(joined(place, worker, "worker"))
        yield talk


@pytest.fixture(params=["sqlite", "postgres", "nats"])
async def talk(request, tmp_path, postgres_url):
    if request.param == "nats":
        opened = nats_talk(tmp_path, request.getfixturevalue("place"))
    else:
        opened = opened_talk(tmp_path, NO_SERVER if request.param == "sqlite" else postgres_url)
    async with opened as found:
        yield found


async def write(speaker, arguments, tool="send_message", call="call-1"):
    path = f"/v1/runs/{speaker.run['run_id']}/tool-inputs/{call}"
    body = {"tool": tool, "offset": 0, "delta": arguments}
    written = await speaker.web.post(path, json=body, headers=speaker.leased())
    assert written.status_code == 200, written.text


@asynccontextmanager
async def followed(talk, after=0, space_id=None):
    feed = talk.pipeline.gateway.services.feed
    async with aclosing(await feed.follow(ANN_IN_SPACE, space_id or talk.space_id, after, 30)) as events:
        yield events


async def read_until(events, name):
    """The names and data of messages until the first event of a name."""
    found = []
    async for event in events:
        if event is not None and event.name.startswith("message."):
            found.append((event.name, json.loads(event.data)))
            if event.name == name:
                break
    return found


@pytest.mark.parametrize("wait", [False, True])
async def test_the_id_of_a_text_that_is_written_is_the_one_under_which_it_is_sent(talk, wait):
    helper = await talk.begin_run()
    params = {"text": "hello @clerk", "wait": wait}
    async with followed(talk) as events:
        await write(helper, json.dumps(params)[:-1])
        [(_, shown)] = await read_until(events, "message.delta")
        response = await helper.post_call("send_message", params)
        assert response.status_code == (202 if wait else 200), response.text
        created = (await read_until(events, "message.created"))[-1][1]
    assert (shown["delta"], shown["message_id"]) == ("hello @clerk", created["message"]["message_id"])


async def test_a_text_that_was_sent_is_not_shown_as_written_any_more(talk):
    helper = await talk.begin_run()
    await write(helper, '{"text": "hello"')
    assert (await helper.call("send_message", {"text": "hello"}))["ok"]
    sent = (await SqlSpaceEventStore(talk.pipeline.database).open(ANN_IN_SPACE, talk.space_id)).last
    async with followed(talk, sent) as events:
        names = []
        for text in ("nearly", "the end"):
            await talk.say("ann", text)
            names += [name for name, _ in await read_until(events, "message.created")]
    assert names == ["message.created", "message.created"]


async def other_space(talk):
    made = await talk.web.post("/v1/spaces", json={"name": "other", "members": ["ann", "agent:helper"]})
    return made.json()["space_id"]


async def test_a_text_after_an_enter_space_that_was_written_is_shown_as_soon_as_that_has_ended(talk):
    other, helper = await other_space(talk), await talk.begin_run()
    async with followed(talk, space_id=other) as events:
        entering = {"space_id": other}
        await write(helper, json.dumps(entering), "enter_space")
        await write(helper, '{"text": "too early', call="call-9")
        assert (await helper.call("enter_space", entering))["ok"]
        await write(helper, '{"text": "hello', call="call-2")
        [(_, shown)] = await read_until(events, "message.delta")
    assert (shown["stream_id"], shown["delta"]) == ("call-2", "hello")


@pytest.mark.slow
async def test_a_run_may_write_the_arguments_of_any_number_of_calls_one_after_another(talk):
    helper = await talk.begin_run()
    for number in range(1, STREAMS_MAX + 2):
        await write(helper, "{}", "get_my_runs", f"call-{number}")
        assert (await helper.call("get_my_runs"))["ok"]


async def test_texts_of_one_id_have_ids_of_their_own_in_two_spaces(talk):
    other, helper = await other_space(talk), await talk.begin_run()
    await write(helper, '{"text": "hello"')
    async with followed(talk) as events:
        [(_, shown)] = await read_until(events, "message.delta")
    helper.count = 1
    assert (await helper.call("enter_space", {"space_id": other}))["ok"]
    helper.count = 0
    sent = await helper.call("send_message", {"text": "hello"})
    assert sent["ret"]["message_id"] != shown["message_id"]
