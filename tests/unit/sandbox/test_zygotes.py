"""The zygotes of a service, over starts that the test lets happen."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.zygotes import manager as module
from proofbox.service.sandbox.zygotes.manager import ComingZygotes, Kind, Zygotes
from proofbox.service.sandbox.zygotes.zygote import Zygote


class Born(Zygote):
    """A zygote that lives."""

    is_alive = True

    def __init__(self):
        self.forks = 0
        self.born = time.monotonic()
        self.ended = False

    def end(self):
        self.ended = True


class Starts:
    """Starts zygotes once it may."""

    def __init__(self):
        self.asked = []
        self.may = threading.Event()
        self.may.set()
        self.fails = False

    def __call__(self, kind):
        self.asked.append(kind)
        self.may.wait(10)
        if self.fails:
            raise NotForkedError("no")
        return Born()


@pytest.fixture
async def starts():
    return Starts()


@pytest.fixture
async def zygotes(starts):
    with ThreadPoolExecutor(2) as threads:
        kept = Zygotes(starts, threads)
        yield kept
        starts.may.set()
        await kept.stop()


async def test_who_prepares_for_a_kind_waits_until_its_first_zygote_is_ready(zygotes, starts):
    starts.may.clear()
    waiting = asyncio.create_task(zygotes.first_of(Kind.DATA))
    await asyncio.sleep(0.05)
    before = (zygotes.has(Kind.DATA), waiting.done())
    starts.may.set()
    assert await waiting
    assert (before, zygotes.has(Kind.DATA), starts.asked) == ((False, False), True, [Kind.DATA])


async def test_where_one_is_ready_nobody_waits_for_a_younger_one(zygotes, starts):
    await zygotes.first_of(Kind.DATA)
    zygotes._ready[Kind.DATA].born -= 10_000
    starts.may.clear()
    await zygotes.first_of(Kind.DATA)
    was_there = zygotes.has(Kind.DATA)
    starts.may.set()
    await zygotes._starting[Kind.DATA]
    assert (was_there, starts.asked) == (True, [Kind.DATA, Kind.DATA])


async def test_a_start_that_fails_is_waited_for_and_not_told(zygotes, starts):
    starts.fails = True
    assert not await zygotes.first_of(Kind.DATA)
    assert (zygotes.has(Kind.DATA), starts.asked) == (False, [Kind.DATA])


async def test_a_start_that_takes_too_long_goes_on_and_is_not_waited_for(zygotes, starts, monkeypatch):
    starts.may.clear()
    with monkeypatch.context() as patched:
        patched.setattr(module, "_FIRST_WITHIN_S", 0.01)
        assert not await zygotes.first_of(Kind.DATA)
    assert not zygotes.has(Kind.DATA)
    starts.may.set()
    await zygotes.first_of(Kind.DATA)
    assert (zygotes.has(Kind.DATA), starts.asked) == (True, [Kind.DATA])


async def test_a_wait_that_is_given_up_ends_no_start(zygotes, starts):
    starts.may.clear()
    waiting = asyncio.create_task(zygotes.first_of(Kind.DATA))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    starts.may.set()
    await zygotes.first_of(Kind.DATA)
    assert (zygotes.has(Kind.DATA), starts.asked) == (True, [Kind.DATA])


FIRST = {Kind.BARE, Kind.INSPECTOR, Kind.PLAIN_INSPECTOR}


async def test_a_service_begins_before_its_first_zygotes_are_ready_and_a_sandbox_waits_for_them(starts):
    starts.may.clear()
    with ThreadPoolExecutor(3) as threads:
        coming = ComingZygotes("auto", threads)
        assert await coming.get() is None
        await coming.begin(lambda: starts)
        waiting = asyncio.create_task(coming.get())
        given_up = asyncio.create_task(coming.get())
        await asyncio.sleep(0.05)
        given_up.cancel()
        assert not waiting.done()
        starts.may.set()
        zygotes = await waiting
        assert ({kind for kind in FIRST if zygotes.has(kind)}, set(starts.asked)) == (FIRST, FIRST)
        kept = list(zygotes._ready.values())
        await coming.stop()
    assert [zygote.ended for zygote in kept] == [True] * 3


@pytest.mark.parametrize("exc", [None, EngineUnavailableError("away"), PermissionError("no")])
async def test_where_zygotes_cannot_be_had_the_service_does_without_and_waits_no_more(starts, exc):
    def starter():
        if exc is not None:
            raise exc
        return starts

    starts.fails = True
    with ThreadPoolExecutor(3) as threads:
        coming = ComingZygotes("auto", threads)
        await coming.begin(starter)
        assert await coming.get() is None
        await coming.stop()


async def test_zygotes_that_are_demanded_are_waited_for_and_refuse_the_start(starts):
    starts.fails = True
    with ThreadPoolExecutor(3) as threads:
        coming = ComingZygotes("on", threads)
        with pytest.raises(EngineUnavailableError, match="PROOFBOX_IMPORT_ONCE is on, and that cannot be: no"):
            await coming.begin(lambda: starts)
        await coming.stop()


async def test_a_service_that_stops_at_once_leaves_no_zygote(starts):
    born = []

    def start(kind):
        born.append(starts(kind))
        return born[-1]

    starts.may.clear()
    with ThreadPoolExecutor(3) as threads:
        coming = ComingZygotes("auto", threads)
        await coming.begin(lambda: start)
        stopping = asyncio.create_task(coming.stop())
        await asyncio.sleep(0.05)
        starts.may.set()
        await stopping
    assert [zygote.ended for zygote in born] == [True] * 3
