"""The pool of waiting containers, over a start that the test lets happen."""

import asyncio

import pytest

from contracts.tool_calls import SandboxInfo
from service.core.errors import EngineUnavailableError, ShuttingDownError
from service.engines.pool import Box, Pool


class Stream:
    """An end of a stream that a test can close."""

    def __init__(self):
        self.is_open = True


class Sandbox:
    def __init__(self):
        self.info = SandboxInfo(engine="x", runtime="x", image_digest="sha256:1", acquired="cold")


class Starts:
    """Starts that wait for the test."""

    def __init__(self):
        self.begun = 0
        self.discarded = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error = None

    async def start(self):
        self.begun += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return Box(str(self.begun), Stream(), Sandbox())

    async def discard(self, box):
        self.discarded.append(box.container_id)


async def eventually(look):
    while not look():  # noqa: ASYNC110 - the pool tells nobody when it has filled itself
        await asyncio.sleep(0.01)


@pytest.fixture
async def starts():
    return Starts()


@pytest.fixture
async def pool(starts):
    pool = Pool(starts.start, starts.discard, size=1, starts_max=2, age_max_s=1000)
    yield pool
    await pool.drain()


async def test_what_replaces_a_taken_container_does_not_start_with_the_call_but_soon_after(pool, starts):
    pool.fill()
    await eventually(lambda: pool.ready == 1)
    box = await pool.take()
    for _ in range(10):
        await asyncio.sleep(0)
    assert (box.sandbox.info.acquired, starts.begun) == ("warm", 1)
    await eventually(lambda: pool.ready == 1)
    assert starts.begun == 2


async def test_a_call_that_finds_nothing_ready_has_a_container_started_at_once(pool, starts):
    starts.gate.clear()
    taken = asyncio.create_task(pool.take())
    for _ in range(3):
        await asyncio.sleep(0)
    assert starts.begun == 2  # for the call, and for the pool
    starts.gate.set()
    assert (await taken).sandbox.info.acquired == "cold"


async def test_a_start_that_fails_is_told_to_the_call_that_waits(pool, starts):
    starts.error = EngineUnavailableError("no")
    with pytest.raises(EngineUnavailableError, match="no"):
        await pool.take()


async def test_a_container_that_ended_while_it_waited_is_replaced(pool, starts):
    pool.fill()
    await eventually(lambda: pool.ready == 1)
    pool._ready[0].transport.is_open = False
    assert (await pool.take()).container_id == "2"
    assert starts.discarded == ["1"]


async def test_a_drained_pool_keeps_nothing_and_takes_no_call(pool, starts):
    pool.fill()
    await eventually(lambda: pool.ready == 1)
    await pool.drain()
    assert (pool.ready, starts.discarded) == (0, ["1"])
    with pytest.raises(ShuttingDownError):
        await pool.take()
