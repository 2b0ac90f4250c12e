"""The events of a space as clients follow them: in order, once, and from wherever a client left."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from proofbox.contracts.gateway.messages import NewMessage, ToolInputDelta
from proofbox.contracts.gateway.space_events import ToolCallEvent, ToolInputDeltaEvent
from proofbox.service.errors import InvalidRequestError, RateLimitedError
from proofbox.service.gateway.posting import EndRecord, RecordEnding, RecordError, ResumeRecord, WaitCard
from proofbox.service.gateway.spaces.feed import SpaceFeed
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.spaces.tool_inputs import ToolInputs
from proofbox.service.gateway_errors import (
    LeaseLostError,
    StreamConflictError,
    StreamGapError,
    UnknownRunError,
    UnknownSpaceError,
)
from proofbox.service.identity import Principal
from proofbox.service.storage.gateway import call_records, space_rows
from proofbox.service.storage.gateway.call_record_store import SqlCallRecords
from proofbox.service.storage.gateway.messages import SqlMessageStore
from proofbox.service.storage.gateway.schema import runs, space_events, spaces
from proofbox.service.storage.gateway.space_events import SqlSpaceEventStore
from tests.support.gateway_world import ANN, add_run, build_world, recorded_call, shown_tool

TEXT = '{"city": "Århus", "days": [1, 2], "note": "a \\" b"}'


class OneTool:
    """A run with one tool."""

    def __init__(self, tool):
        self.tool = tool

    async def find_shown(self, principal, run_id, lease, _name):
        if principal != ANN:
            raise UnknownRunError(f"there is no run '{run_id}'")
        if lease != 1:
            raise LeaseLostError("Run-Lease: another one")
        return self.tool


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
async def world(database):
    return await build_world(database)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def tools():
    return OneTool(shown_tool())


@pytest.fixture
def inputs(world, tools, clock):
    return ToolInputs(SqlCallRecords(world.database), tools, world.database.changes, now=clock)


@pytest.fixture
def feed(world, inputs, clock):
    return SpaceFeed(SqlSpaceEventStore(world.database), inputs, world.database.changes, clock)


class Client:
    """A client that follows a space and notes what it gets."""

    def __init__(self, feed, world, after=0, actor=None):
        self.events = []
        self._feed, self._world, self._after = feed, world, after
        self._actor = actor or world.actor
        self._task = None
        self._grown = asyncio.Event()

    async def __aenter__(self):
        stream = await self._feed.follow(self._actor, self._world.space_id, self._after, 0.05)
        self._task = asyncio.create_task(self._read(stream))
        return self

    async def __aexit__(self, *_):
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self, stream):
        async with aclosing(stream):
            async for event in stream:
                if event is not None:
                    self.events.append(event)
                    self._grown.set()

    async def until(self, is_there):
        """Wait until the events fulfil a condition."""
        async with asyncio.timeout(20):
            while not is_there(self.events):
                await self._grown.wait()
                self._grown.clear()
        return self.events

    async def ended(self):
        """Wait until the service has ended the stream."""
        async with asyncio.timeout(20):
            await asyncio.gather(self._task)

    @property
    def names(self):
        return [event.name for event in self.events if event.name not in {"member.joined", "run.status"}]

    def text(self, start=""):
        """The arguments that the deltas make, each at its place."""
        text = start
        for event in self.events:
            if event.name == "tool-input-delta":
                delta = ToolInputDeltaEvent.model_validate_json(event.data)
                assert delta.offset == len(text)
                text += delta.delta
        return text


def _has(name):
    return lambda events: any(event.name == name for event in events)


async def _add(inputs, world, text, offset=0, call_id="call-1", caller=(ANN, 1)):
    principal, lease = caller
    part = ToolInputDelta(tool="weather", offset=offset, delta=text)
    return await inputs.add(principal, world.run_id, call_id, lease, part)


async def _start(world, call):
    return await world.database.write(lambda connection: call_records.start_record(connection, call))


async def _wait(world, call, posting):
    """The call waits for an approval, which is given."""
    card = WaitCard("wait_1", "2099-01-01T00:00:00.000Z", custom_ui="approval", result_schema={"type": "object"})
    resumed = ResumeRecord(call.run_id, call.tool_call_id, "ann")

    def work(connection):
        suspended = call_records.suspend_record(connection, call, posting, card)
        call_records.resume_record(connection, resumed)
        return suspended

    return await world.database.write(work)


async def _end(world, call, posting, ending):
    effect = EndRecord(call.run_id, call.tool_call_id, ending, call, posting)
    await world.database.write(lambda connection: call_records.end_record(connection, effect))


@pytest.mark.parametrize(
    ("visibility", "fails", "expected"),
    [
        ("visible", None, ["tool-call.start", "tool-input-delta", "tool-call.waiting", "tool-call.complete"]),
        ("result-only", None, ["tool-call.start", "tool-input-delta", "tool-call.waiting", "tool-call.complete"]),
        ("hidden", None, ["tool-call.start", "tool-input-delta", "tool-call.waiting", "tool-call.complete"]),
        ("visible", False, ["tool-call.start", "tool-input-delta", "tool-call.complete"]),
        ("visible", True, ["tool-call.start", "tool-input-delta", "tool-call.error"]),
        ("result-only", False, ["tool-call.complete"]),
        ("result-only", True, ["tool-call.error"]),
        ("hidden", False, []),
        ("hidden", True, []),
    ],
)
async def test_two_clients_get_exactly_the_events_of_a_visibility(world, feed, visibility, fails, expected):
    failed = RecordEnding("failed", error=RecordError("http_status", "500"))
    ending = failed if fails else RecordEnding("done", {"degrees": 3})
    async with Client(feed, world) as first, Client(feed, world) as second:
        call = recorded_call(shown_tool(visibility))
        posting = await _start(world, call)
        if fails is None:  # it waits for an approval, whose card is shown whatever the visibility is
            posting = await _wait(world, call, posting)
        await _end(world, call, posting, ending)
        await SqlMessageStore(world.database).post(world.actor, world.space_id, NewMessage(text="the end"), None)
        for client in (first, second):
            await client.until(_has("message.created"))
            assert client.names == [*expected, "message.created"]
    assert [event.id for event in first.events if event.id] == list(range(1, len(await world.events()) + 1))
    deltas = [json.loads(event.data) for event in first.events if event.name == "tool-input-delta"]
    assert all(json.loads(delta["delta"]) == delta["input"] == {"city": "Oslo"} for delta in deltas)


async def test_streamed_arguments_reach_a_client_as_they_grow(world, feed, inputs, clock):
    async with Client(feed, world) as client:
        assert await _add(inputs, world, TEXT[:20]) == 20
        await client.until(_has("tool-input-delta"))
        clock.now += 1
        await _add(inputs, world, TEXT[20:], 20)
        await client.until(lambda _: client.text() == TEXT)
        partial = [json.loads(event.data).get("input") for event in client.events if event.id is None]
        assert partial == [{"city": "Århus"}, json.loads(TEXT)]
        call = recorded_call(**json.loads(TEXT))
        posting = await _start(world, call)
        inputs.finish("run_1", "call-1", call.input)
        await _end(world, call, posting, RecordEnding("done", 1))
        await client.until(_has("tool-call.complete"))
    start = ToolCallEvent.model_validate_json(next(e for e in client.events if e.name == "tool-call.start").data)
    assert (start.stream_id, start.message.tool.state, start.resumed) == ("call-1", "streaming", False)
    assert client.names.count("tool-call.start") == 1
    assert client.text() == TEXT


async def test_calls_of_two_runs_with_the_same_id_are_streamed_apart(world, feed, inputs):
    await add_run(world.database, ANN, "run_2", "helper")
    other = replace(world, run_id="run_2")
    await other.set_active_space(world.space_id)
    async with Client(feed, world) as client:
        await _add(inputs, world, '{"of": "first')
        await _add(inputs, other, '{"of": "second')
        await client.until(lambda events: [event.name for event in events].count("tool-input-delta") == 2)
        await _add(inputs, world, ' run"}', 13)
        await _add(inputs, other, ' run"}', 14)
        await client.until(lambda events: [event.name for event in events].count("tool-input-delta") == 4)
    starts = [json.loads(event.data) for event in client.events if event.name == "tool-call.start"]
    texts = {start["message"]["message_id"]: "" for start in starts}
    for event in client.events:
        if event.name == "tool-input-delta":
            delta = json.loads(event.data)
            assert delta["offset"] == len(texts[delta["message_id"]])
            texts[delta["message_id"]] += delta["delta"]
    assert list(texts.values()) == ['{"of": "first run"}', '{"of": "second run"}']


async def test_the_readable_part_comes_at_most_every_250_ms(world, feed, inputs):
    async with Client(feed, world) as client:
        for at, character in enumerate(TEXT):
            await _add(inputs, world, character, at)
            await client.until(lambda _, length=at + 1: len(client.text()) == length)
    assert sum("input" in json.loads(event.data) for event in client.events if event.id is None) == 1


async def test_a_client_that_comes_back_at_any_character_has_the_text_once(world, feed, inputs):
    last = 0
    await _add(inputs, world, TEXT[0])
    for at in range(1, len(TEXT)):
        async with Client(feed, world, last) as client:
            await client.until(_has("tool-call.start"))
            await _add(inputs, world, TEXT[at], at)  # it goes on where the client is
            await client.until(lambda _, length=at + 1: len(_seen(client)) >= length)
            assert _seen(client) == TEXT[: at + 1]
            assert client.names.count("tool-call.start") == 1
        ids = [event.id for event in client.events if event.id is not None]
        assert all(number > last for number in ids)
        last = max([last, *ids])


def _seen(client):
    """What a client shows of the arguments: the text of a resumed start, and the deltas after it."""
    starts = [json.loads(event.data) for event in client.events if event.name == "tool-call.start"]
    return client.text(next((start["text"] for start in starts if start.get("resumed")), ""))


async def test_a_client_that_comes_back_after_the_end_gets_no_resumed_start(world, feed, inputs):
    await _add(inputs, world, TEXT)
    last = len(await world.events())
    row = await world.run_row()
    await world.database.write(lambda connection: call_records.end_streams(connection, row, "abandoned", "over"))
    async with Client(feed, world, last) as client:
        await client.until(_has("tool-call.error"))
    assert client.names == ["tool-call.error"]


async def test_parts_that_repeat_conflict_or_leave_a_gap(world, inputs):
    assert await _add(inputs, world, "abcdef") == 6
    assert await _add(inputs, world, "cdef", 2) == 6
    assert await _add(inputs, world, "efgh", 4) == 8
    with pytest.raises(StreamConflictError):
        await _add(inputs, world, "xyz", 2)
    with pytest.raises(StreamGapError, match="length 8"):
        await _add(inputs, world, "z", 9)
    assert await _add(inputs, world, "", 8) == 8
    with pytest.raises(StreamGapError, match="length 0"):
        await _add(inputs, world, "z", 9, "another")
    assert await world.names() == ["tool-call.start"]


async def test_arguments_over_256_kib_are_refused(world, inputs):
    await _add(inputs, world, "é" * (128 * 1024))
    with pytest.raises(InvalidRequestError, match="limit 262,144"):
        await _add(inputs, world, "x", 128 * 1024)


async def test_a_run_may_send_200_parts_in_a_second(world, inputs, clock):
    for at in range(200):
        await _add(inputs, world, "x", at)
    with pytest.raises(RateLimitedError):
        await _add(inputs, world, "x", 200)
    clock.now += 1
    assert await _add(inputs, world, "x", 200) == 201


async def test_arguments_are_read_once_for_all_followers_and_as_text_alone_over_32_kib(world, feed, inputs, clock):
    async with Client(feed, world) as client:
        await _add(inputs, world, '{"a": ["')
        await client.until(_has("tool-input-delta"))
        stream = inputs.find("run_1", "call-1")
        assert stream.partial is stream.partial
        assert stream.partial == {"a": [""]}
        clock.now += 10
        await _add(inputs, world, "x" * 32 * 1024, 8)
        assert stream.partial is None
        await client.until(lambda events: sum(event.name == "tool-input-delta" for event in events) == 2)
    first, second = (json.loads(event.data) for event in client.events if event.name == "tool-input-delta")
    assert (first["input"], "input" in second) == ({"a": [""]}, False)
    assert client.text() == stream.text


@pytest.mark.parametrize(
    ("caller", "error"),
    [((Principal("acme", "books", "registered", "bob"), 1), UnknownRunError), ((ANN, 2), LeaseLostError)],
    ids=["principal", "lease"],
)
async def test_a_stream_that_is_open_takes_nothing_of_others_and_does_not_count_it(world, inputs, caller, error):
    await _add(inputs, world, "a")
    for _ in range(201):
        with pytest.raises(error):
            await _add(inputs, world, "x", 1, caller=caller)
    assert await _add(inputs, world, "b", 1) == 2


async def test_a_run_has_at_most_32_streams(world, inputs):
    for number in range(32):
        await _add(inputs, world, "x", call_id=f"call-{number}")
    with pytest.raises(RateLimitedError, match="32 calls"):
        await _add(inputs, world, "x", call_id="one more")
    assert await _add(inputs, world, "y", 1, "call-3") == 2
    inputs.finish("run_1", "call-3", {})
    assert await _add(inputs, world, "x", call_id="one more") == 1


async def test_a_run_keeps_at_most_4_mib_of_arguments(world, inputs, clock):
    for number in range(16):
        await _add(inputs, world, "x" * 256 * 1024, call_id=f"call-{number}")
    with pytest.raises(RateLimitedError, match="4,194,304 bytes"):
        await _add(inputs, world, "x", call_id="one more")
    clock.now += 60
    await inputs.sweep()
    assert await _add(inputs, world, "x", call_id="after that") == 1


@pytest.mark.parametrize("visibility", ["hidden", "result-only"])
async def test_nothing_is_kept_of_calls_that_no_space_shows(world, inputs, tools, visibility):
    tools.tool = shown_tool(visibility)
    assert await _add(inputs, world, "abc") == 3
    assert await _add(inputs, world, "xyz", 3) == 6
    assert await world.names() == []
    assert [stream.text for stream in inputs._streams.values()] == [""]


async def test_a_tool_that_shows_no_input_streams_none(world, feed, inputs, tools):
    tools.tool = shown_tool(shows_input=False)
    async with Client(feed, world) as client:
        await _add(inputs, world, '{"pin": "pin-of-the-door')
        call = recorded_call(tools.tool, pin="pin-of-the-door")
        posting = await _start(world, call)
        inputs.finish("run_1", "call-1", call.input)
        await _end(world, call, posting, RecordEnding("done", 1))
        await client.until(_has("tool-call.complete"))
    assert client.names == ["tool-call.start", "tool-call.complete"]
    assert "pin-of-the-door" not in str(client.events)


async def test_a_call_that_is_not_made_in_time_is_abandoned(world, feed, inputs, clock):
    await _add(inputs, world, "abc")
    await inputs.sweep()
    clock.now += 59
    await inputs.sweep()
    assert await world.names() == ["tool-call.start"]
    clock.now += 1
    await inputs.sweep()
    async with Client(feed, world) as client:
        await client.until(_has("tool-call.error"))
    [record] = await world.records()
    assert record["tool"]["error"]["code"] == "abandoned"


async def test_a_text_that_is_begun_again_after_it_was_abandoned_comes_from_its_beginning(
    world, feed, inputs, tools, clock
):
    tools.tool = replace(shown_tool("hidden"), tool_id="space_tools.send_message")
    async with Client(feed, world) as client:
        await _add(inputs, world, '{"text": "a long beginning')
        await client.until(_has("message.delta"))
        clock.now += 60
        await inputs.sweep()
        await _add(inputs, world, '{"text": "short')
        await client.until(lambda events: sum(event.name == "message.delta" for event in events) == 2)
    deltas = [json.loads(event.data) for event in client.events if event.name == "message.delta"]
    assert [(delta["offset"], delta["delta"]) for delta in deltas] == [(0, "a long beginning"), (0, "short")]


async def test_a_call_that_was_made_is_not_abandoned(world, inputs, clock):
    await _add(inputs, world, "abc")
    await _start(world, recorded_call())
    inputs.finish("run_1", "call-1", {})
    clock.now += 100
    await inputs.sweep()
    assert await world.names() == ["tool-call.start"]


async def test_a_client_that_asks_for_what_is_gone_gets_reset(world, feed):
    await world.database.write(lambda connection: connection.execute(space_events.delete()))
    async with Client(feed, world, 1) as client:
        await client.until(_has("reset"))
        await _start(world, recorded_call())
        await client.until(_has("tool-call.start"))
    last = len(await world.events()) + 1
    assert [(event.id, event.name, json.loads(event.data)) for event in client.events[:1]] == [
        (last, "reset", {"last": last})
    ]
    assert client.events[1].id == last + 1


async def test_a_client_that_claims_the_future_gets_reset(world, feed):
    async with Client(feed, world, 10_000) as client:
        await client.until(_has("reset"))


async def test_a_client_that_reads_too_slowly_gets_reset(world, feed):
    stream = await feed.follow(world.actor, world.space_id, 0, 0.05)
    async with aclosing(stream):
        event = await anext(stream)
        while event is not None:  # it has all there is
            event = await anext(stream)

        def work(connection):
            space = space_rows.lock_space(connection, 1)
            for number in range(1_100):
                space_rows.add_event(connection, space, "message.created", {"number": number})

        await world.database.write(work)
        event = await anext(stream)
    assert event.name == "reset"
    assert json.loads(event.data)["last"] == event.id == 1_102


async def test_events_beyond_the_newest_10_000_are_deleted(world):
    def work(connection):
        connection.execute(update(spaces).values(next_event=10_047))
        space = space_rows.lock_space(connection, 1)
        for _ in range(2):
            space_rows.add_event(connection, space, "message.created", {})
        return connection.execute(select(space_events.c.id)).scalars().all()

    assert await world.database.write(work) == [10_047, 10_048]


async def test_events_older_than_7_days_are_deleted(world):
    def work(connection):
        connection.execute(update(spaces).values(next_event=63))
        connection.execute(update(space_events).values(ts="2020-01-01T00:00:00.000Z"))
        space = space_rows.lock_space(connection, 1)
        for _ in range(2):
            space_rows.add_event(connection, space, "message.created", {})
        return connection.execute(select(space_events.c.id)).scalars().all()

    assert await world.database.write(work) == [63, 64]


async def test_the_stream_of_a_member_that_leaves_ends(world, feed):
    async with Client(feed, world) as client:
        await client.until(_has("member.joined"))
        await world.spaces.remove_member(Actor(world.principal, may_act_as=True), world.space_id, "ann")
        await client.ended()
    assert client.events[-1].name == "member.left"
    with pytest.raises(UnknownSpaceError):
        await feed.follow(world.actor, world.space_id, 0, 1)


async def test_all_streams_end_when_the_service_stops(world, feed):
    async with Client(feed, world) as first, Client(feed, world) as second:
        await first.until(_has("member.joined"))
        feed.close()
        await first.ended()
        await second.ended()


async def test_the_status_of_runs_comes_with_the_events(world, feed):
    async with Client(feed, world) as client:

        def work(connection):
            connection.execute(update(runs).values(status="completed"))
            call_records.announce_run(connection, connection.execute(select(runs.c.id)).scalar_one())

        await world.database.write(work)
        await client.until(_has("run.status"))
    assert json.loads(client.events[-1].data)["status"] == "completed"
