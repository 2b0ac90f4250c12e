"""How often the followers of a space read the store: once for all of them, and not for heartbeats."""

import asyncio
import itertools
from contextlib import AsyncExitStack, aclosing

import pytest

from proofbox.contracts.gateway.messages import NewMessage
from proofbox.service.gateway.spaces.feed import SpaceFeed
from proofbox.service.gateway.spaces.tool_inputs import ToolInputs
from proofbox.service.storage.gateway.call_record_store import SqlCallRecords
from proofbox.service.storage.gateway.messages import SqlMessageStore
from proofbox.service.storage.gateway.space_events import SqlSpaceEventStore
from tests.support.gateway_world import build_world

FOLLOWERS = 20
IDLE_S = 0.01


class CountedEvents(SqlSpaceEventStore):
    """The store; counts the pages that are read, and may hold the first one after `hold_next` was set."""

    def __init__(self, database):
        super().__init__(database)
        self.pages = 0
        self.hold_next = False
        self.is_held = asyncio.Event()
        self.release = asyncio.Event()

    async def after(self, row, position, limit):
        self.pages += 1
        is_held, self.hold_next = self.hold_next, False
        page = await super().after(row, position, limit)
        if is_held:
            self.is_held.set()
            await self.release.wait()
        return page


@pytest.fixture
async def world(database):
    return await build_world(database)


@pytest.fixture
def events(world):
    return CountedEvents(world.database)


@pytest.fixture
async def follow(world, events):
    """Opens the stream of the space after an event."""
    inputs = ToolInputs(SqlCallRecords(world.database), None, world.database.changes)
    feed = SpaceFeed(events, inputs, world.database.changes)
    async with AsyncExitStack() as stack:

        async def opened(after):
            stream = await feed.follow(world.actor, world.space_id, after, IDLE_S)
            return await stack.enter_async_context(aclosing(stream))

        yield opened


async def _post(world):
    await SqlMessageStore(world.database).post(world.actor, world.space_id, NewMessage(text="hello"), None)


async def _next(stream):
    async with asyncio.timeout(20):
        async for event in stream:
            if event is not None:
                return event.id
        raise AssertionError("the stream ended")


async def test_an_event_costs_one_read_for_all_followers(world, events, follow):
    last = len(await world.events())
    streams = [await follow(last) for _ in range(FOLLOWERS)]
    for stream in streams:
        assert await anext(stream) is None  # it has read, and waits
    waiting = [asyncio.create_task(_next(stream)) for stream in streams]
    before = events.pages
    await _post(world)
    assert await asyncio.gather(*waiting) == [last + 1] * FOLLOWERS
    assert events.pages == before + 1


async def test_heartbeats_read_nothing(world, events, follow):
    stream = await follow(len(await world.events()))
    assert await anext(stream) is None
    before = events.pages
    for _ in range(5):
        assert await anext(stream) is None
    assert events.pages == before


async def test_a_read_that_began_before_an_event_is_not_shared_after_it(world, events, follow):
    last = len(await world.events())
    early = await follow(last)
    events.hold_next = True
    held = asyncio.create_task(_next(early))
    await events.is_held.wait()
    await _post(world)
    assert await _next(await follow(last)) == last + 1
    assert not held.done()
    events.release.set()
    assert await held == last + 1


async def test_a_follower_that_leaves_does_not_end_the_read_of_another(events, follow):
    events.hold_next = True
    leaving = asyncio.create_task(_next(await follow(0)))
    await events.is_held.wait()
    staying = asyncio.create_task(_next(await follow(0)))
    for _ in itertools.repeat(None, 3):
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    events.release.set()
    assert await staying == 1
