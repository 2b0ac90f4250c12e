"""The text of a message while a model writes it, as members of the space see it."""

import asyncio
import json
from contextlib import aclosing

import pytest

from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.storage.gateway.space_events import SqlSpaceEventStore
from tests.support.pipeline import ANN
from tests.support.talking import opened_talk

ARGUMENTS = r'{"text": "Bl\u00e5 \ud83d\ude00 \"hi\" @clerk\n é", "wait": false}'
TEXT = json.loads(ARGUMENTS)["text"]
TOPICS = ("message", "tool")


@pytest.fixture
async def talk(tmp_path):
    async with opened_talk(tmp_path) as opened:
        yield opened


async def write(speaker, delta, offset=0, *, tool="send_message", call="call-1"):
    body = {"tool": tool, "offset": offset, "delta": delta}
    path = f"/v1/runs/{speaker.run['run_id']}/tool-inputs/{call}"
    written = await speaker.web.post(path, json=body, headers=speaker.leased())
    assert written.status_code == 200, written.text


class Reader:
    """A member that follows the space."""

    def __init__(self, talk, after):
        self._talk, self._after = talk, after
        self.events = []

    async def __aenter__(self):
        feed = self._talk.pipeline.gateway.services.feed
        actor = Actor(ANN, entity_id="ann", may_act_as=True)
        stream = await feed.follow(actor, self._talk.space_id, self._after, 0.05)
        self._stream = await aclosing(stream).__aenter__()
        return self

    async def __aexit__(self, *_):
        await self._stream.aclose()

    async def until(self, is_there):
        """Reads until the events fulfil a condition."""
        async with asyncio.timeout(20):
            while not is_there(self):
                event = await anext(self._stream)
                if event is not None and event.name.startswith(TOPICS):
                    self.events.append((event.id, event.name, json.loads(event.data)))

    @property
    def text(self):
        """The text that the deltas make, each at its place."""
        text = ""
        for _, name, data in self.events:
            if name == "message.delta":
                assert (data["offset"], data["stream_id"]) == (len(text), "call-1")
                assert data["run_id"].startswith("run_")
                text += data["delta"]
        return text

    @property
    def names(self):
        return [name for _, name, _ in self.events]


async def newest(talk):
    """The id of the newest event of the space."""
    actor = Actor(ANN, entity_id="ann", may_act_as=True)
    return (await SqlSpaceEventStore(talk.pipeline.database).open(actor, talk.space_id)).last


@pytest.mark.parametrize("tool", ["send_message", "send_reply"])
async def test_a_text_is_seen_as_it_is_written_then_as_it_was_sent(talk, tool):
    asked = (await talk.say("ann", "say something"))["message"]["message_id"]
    helper = await talk.begin_run()
    async with Reader(talk, await newest(talk)) as reader:
        for at, character in enumerate(ARGUMENTS):
            await write(helper, character, at, tool=tool)
            if at in (11, 30, 45):  # it reads while the rest is written
                before = reader.text
                await reader.until(lambda seen, before=before: seen.text != before)
        await reader.until(lambda seen: seen.text == TEXT)
        params = json.loads(ARGUMENTS) | ({"reply_to": asked} if tool == "send_reply" else {})
        assert (await helper.call(tool, params))["ok"]
        await reader.until(lambda seen: "message.created" in seen.names)
    assert set(reader.names) == {"message.delta", "message.created"}
    assert all(number is None for number, name, _ in reader.events if name == "message.delta")
    created = reader.events[-1][2]
    assert (created["stream_id"], created["message"]["text"]) == ("call-1", TEXT)
    ids = {data["message_id"] for _, name, data in reader.events if name == "message.delta"}
    assert ids == {created["message"]["message_id"]}
    assert reader.text == TEXT


async def test_who_comes_later_gets_the_text_from_its_beginning(talk):
    helper = await talk.begin_run()
    await write(helper, ARGUMENTS[:30])
    async with Reader(talk, await newest(talk)) as reader:
        await reader.until(lambda seen: seen.text)
        assert TEXT.startswith(reader.text)
        await write(helper, ARGUMENTS[30:], 30)
        await reader.until(lambda seen: seen.text == TEXT)
        assert reader.events[0][2]["offset"] == 0


async def test_after_the_call_nothing_of_its_text_is_written_any_more(talk):
    helper = await talk.begin_run()
    await write(helper, ARGUMENTS[:20])
    await helper.call("send_message", {"text": "something else"})
    await write(helper, ARGUMENTS[20:], 20)
    async with Reader(talk, 0) as reader:
        await reader.until(lambda seen: "message.created" in seen.names)
        await talk.say("ann", "the end")
        await reader.until(lambda seen: seen.names.count("message.created") == 2)
    assert "message.delta" not in reader.names


@pytest.mark.parametrize(("tool", "space"), [("read_messages", True), ("send_message", False)])
async def test_nothing_is_kept_of_other_tools_and_without_a_space(talk, tool, space):
    helper = await talk.begin_run(**({} if space else {"space_id": None}))
    await write(helper, '{"text": "secret"}', tool=tool)
    inputs = talk.pipeline.gateway.services.inputs
    assert inputs.find(helper.run["run_id"], "call-1").text == ""
    async with Reader(talk, 0) as reader:
        await talk.say("ann", "the end")
        await reader.until(lambda seen: "message.created" in seen.names)
    assert "message.delta" not in reader.names


async def other_space(talk, *members):
    made = await talk.web.post("/v1/spaces", json={"name": "private", "members": ["agent:helper", *members]})
    return made.json()["space_id"]


def shown(talk):
    """What followers of any space read of texts that are being written."""
    inputs = talk.pipeline.gateway.services.inputs
    rows = {stream.text_space for stream in inputs._streams.values()} - {None}
    return [stream.message_text for row in rows for stream in inputs.texts_of_space(row)]


async def test_a_text_written_with_an_unfinished_enter_space_is_shown_nowhere_before_it_is_sent(talk):
    other, helper = await other_space(talk, "bob"), await talk.begin_run()
    async with Reader(talk, await newest(talk)) as reader:
        await write(helper, json.dumps({"space_id": other}), tool="enter_space")
        await write(helper, '{"text": "secret for bob"}', call="call-2")
        assert shown(talk) == []
        assert (await helper.call("enter_space", {"space_id": other}))["ok"]
        await write(helper, '{"text": "secret for bob"}', call="call-2")
        assert shown(talk) == []
        sent = await helper.call("send_message", {"text": "secret for bob"})
        assert sent["ret"]["space_id"] == other
        await talk.say("ann", "the end")
        await reader.until(lambda seen: "message.created" in seen.names)
    assert reader.names == ["message.created"]


async def test_a_text_that_is_being_written_is_hidden_once_its_run_enters_a_space(talk):
    other, helper = await other_space(talk, "bob"), await talk.begin_run()
    await write(helper, '{"text": "one', call="call-9")
    assert shown(talk) == ["one"]
    await helper.call("enter_space", {"space_id": other})
    await write(helper, ' two"}', 13, call="call-9")
    assert shown(talk) == []
    await write(helper, '{"text": "hello"}', call="call-10")
    assert shown(talk) == ["hello"]


async def test_a_text_that_is_being_written_is_hidden_once_its_agent_left_the_space(talk):
    helper = await talk.begin_run()
    await write(helper, '{"text": "one')
    await talk.web.delete(f"/v1/spaces/{talk.space_id}/members/agent:helper")
    stream = talk.pipeline.gateway.services.inputs.find(helper.run["run_id"], "call-1")
    stream.checked_s = float("-inf")  # the next look at the run is due
    await write(helper, ' two"}', 13)
    assert shown(talk) == []
