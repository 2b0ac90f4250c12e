"""The pool of waiting containers, over starts that the test lets happen and a clock that it moves."""

import asyncio

import pytest

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.errors import EngineUnavailableError, ShuttingDownError
from proofbox.service.observability.log_context import about, log_context
from proofbox.service.sandbox.pool import Pool
from proofbox.service.sandbox.pool_sizing import PoolPolicy
from proofbox.service.sandbox.pooled_container import PooledContainer
from proofbox.service.sandbox.preload import PreloadSet
from tests.support.clock import FakeClock

BARE, DOCUMENTS, DATA = PreloadSet.BARE, PreloadSet.DOCUMENTS, PreloadSet.DATA


class Stream:
    """An end of a stream that a test can close."""

    def __init__(self):
        self.is_open = True


class Sandbox:
    def __init__(self):
        self.info = SandboxInfo(engine="x", runtime="x", image_digest="sha256:1", acquired="cold")
        self.hangs = False
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def answers(self):
        self.asked.set()
        await self.may_answer.wait()
        return not self.hangs


class Machine:
    """What starts and removes containers, and how busy it is."""

    def __init__(self, clock):
        self.clock = clock
        self.takes_s = 0
        self.begun = []
        self.boxes = []
        self.discarded = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.permits = None
        self.error = None
        self.load = 0.0
        self.cancelled = 0
        self.absent = set()
        self.unloaded = set()

    async def start(self, flavour):
        self.begun.append(flavour)
        try:
            await self.gate.wait()
            if self.permits is not None:
                await self.permits.acquire()
            if self.takes_s:
                over = asyncio.Event()
                self.clock.call_later(self.takes_s, over.set)
                await over.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        if flavour in self.absent:
            return None
        inside = BARE if flavour in self.unloaded else flavour
        box = PooledContainer(str(len(self.boxes)), "name", Stream(), Sandbox(), inside)
        self.boxes.append(box)
        return box

    def discard(self, box):
        self.discarded.append(box)


async def settle():
    """Lets everything happen that needs no time to pass."""
    for _ in range(30):
        await asyncio.sleep(0)


class Rig:
    """A pool, its machine and its clock."""

    def __init__(self, size=1, starts_max=2, most=32, reserve=0):
        self.clock = FakeClock()
        self.machine = Machine(self.clock)
        policy = PoolPolicy(size, most, 1 << 40, starts_max, age_max_s=1000, unused_s=600, reserve=reserve)
        self.pool = Pool(
            self.machine.start,
            self.machine.discard,
            policy,
            load=lambda: self.machine.load,
            clock=self.clock,
        )

    async def passes(self, seconds):
        """Lets time pass in steps, so that what happens in one begins the next."""
        steps = max(1, round(seconds / (0.05 if seconds < 100 else 1)))
        for _ in range(steps):
            self.clock.advance(seconds / steps)
            await settle()

    async def filled(self):
        self.pool.fill()
        await self.passes(1)
        return self

    def counted(self, what):
        return tuple(what(flavour) for flavour in (BARE, DOCUMENTS, DATA))

    @property
    def waiting(self):
        return self.counted(self.pool.waiting)


@pytest.fixture
async def rig():
    rig = Rig()
    yield rig
    rig.machine.gate.set()
    await rig.pool.drain()


@pytest.fixture
async def eight():
    rig = Rig(size=8)
    yield rig
    rig.machine.gate.set()
    await rig.pool.drain()


# ---- what a call gets ----


async def test_a_burst_as_large_as_the_pool_finds_a_container_waiting_for_each_call(eight):
    await eight.filled()
    boxes = await asyncio.gather(*(eight.pool.take() for _ in range(8)))
    assert [box.sandbox.info.acquired for box in boxes] == ["warm"] * 8
    assert (len(set(map(id, boxes))), len(eight.machine.begun)) == (8, 8)


async def test_a_call_that_finds_none_has_a_bare_one_started_at_once(rig):
    rig.machine.gate.clear()
    taken = asyncio.create_task(rig.pool.take(DATA))
    await settle()
    assert rig.machine.begun == [BARE]
    rig.machine.gate.set()
    box = await taken
    assert (box.flavour, box.sandbox.info.acquired) == (BARE, "cold")


async def test_a_call_takes_a_container_of_its_flavour_and_else_a_bare_one_that_waits(rig):
    await rig.filled()
    first = await rig.pool.take(DATA)
    assert (first.flavour, first.sandbox.info.acquired) == (BARE, "warm")
    await rig.passes(1)
    assert rig.waiting == (1, 0, 1)
    second = await rig.pool.take(DATA)
    assert (second.flavour, second.sandbox.info.acquired) == (DATA, "warm")
    assert rig.pool.counts.taken == {(DATA, "bare"): 1, (DATA, "warm"): 1}


async def test_a_flavour_whose_libraries_cannot_be_had_yet_is_tried_again_and_fails_no_call(rig):
    await rig.filled()
    rig.machine.absent = {DATA}
    first = await rig.pool.take(DATA)
    await rig.passes(2)
    assert (first.flavour, rig.waiting, rig.pool.counts.failed) == (BARE, (1, 0, 0), 0)
    assert 2 <= rig.machine.begun.count(DATA) <= 8
    rig.machine.absent = set()
    await rig.passes(1)
    assert rig.waiting == (1, 0, 1)


async def test_containers_that_start_without_their_libraries_wait_as_bare_ones_and_are_ever_fewer(rig):
    await rig.filled()
    rig.machine.unloaded = {DATA}
    await rig.pool.take(DATA)
    await rig.passes(100)
    assert rig.pool.waiting(DATA) == 0
    assert 4 <= rig.machine.begun.count(DATA) <= 9
    await rig.pool.renew()
    assert rig.pool.waiting(BARE) == 2
    rig.machine.unloaded = set()
    await rig.passes(60)
    assert rig.pool.waiting(DATA) == 1


async def test_a_call_that_wants_no_libraries_never_gets_a_container_that_has_imported_some(rig):
    await rig.filled()
    await rig.pool.take(DATA)
    await rig.passes(1)
    await rig.pool.take()
    rig.machine.gate.clear()
    taken = asyncio.create_task(rig.pool.take())
    await settle()
    assert (rig.waiting, taken.done()) == ((0, 0, 1), False)
    rig.machine.gate.set()
    assert (await taken).flavour is BARE


async def test_a_call_that_waits_and_wants_no_libraries_is_not_given_one_that_was_importing_some():
    rig = await Rig(starts_max=4).filled()
    rig.machine.gate.clear()
    await rig.pool.take(DATA)
    await rig.passes(0.3)
    assert sorted(rig.machine.begun[1:]) == [BARE, DATA]
    first, second = (asyncio.create_task(rig.pool.take()) for _ in range(2))
    await settle()
    rig.machine.gate.set()
    assert [(await call).flavour for call in (first, second)] == [BARE, BARE]
    assert rig.waiting[2] == 1
    await rig.pool.drain()


async def test_calls_that_wait_are_served_in_the_order_they_came(rig):
    rig.machine.gate.clear()
    order = []

    async def call(name):
        await rig.pool.take()
        order.append(name)

    calls = []
    for name in "abcd":
        calls.append(asyncio.create_task(call(name)))
        await settle()
    rig.machine.gate.set()
    await asyncio.gather(*calls)
    assert order == ["a", "b", "c", "d"]


async def test_owners_whose_calls_wait_are_served_in_turn(rig):
    rig.machine.gate.clear()
    order = []

    async def call(owner, number):
        await rig.pool.take(owner=owner)
        order.append(f"{owner} {number}")

    calls = []
    for owner, number in (("many", 0), ("many", 1), ("many", 2), ("many", 3), ("few", 0), ("few", 1)):
        calls.append(asyncio.create_task(call(owner, number)))
        await settle()
    rig.machine.gate.set()
    await asyncio.gather(*calls)
    assert order == ["many 0", "few 0", "many 1", "few 1", "many 2", "many 3"]


async def test_a_call_that_waits_takes_the_first_container_that_serves_it_whatever_it_was_started_for(rig):
    await rig.filled()
    rig.machine.gate.clear()
    await rig.pool.take(DATA)
    await rig.passes(0.2)  # the refill has begun
    begun = list(rig.machine.begun)
    taken = asyncio.create_task(rig.pool.take(DATA))
    await settle()
    rig.machine.gate.set()
    box = await taken
    assert (begun[1:], box is rig.machine.boxes[1]) == ([box.flavour], True)


# ---- the reserve ----


@pytest.fixture
async def reserving():
    """Two containers beside a reserve of two, filled; a caller "many" has drained what it may take, and two of its
    calls wait for starts that the machine does not end."""
    rig = await Rig(size=2, reserve=2, starts_max=2).filled()
    rig.machine.gate.clear()
    rig.machine.load = 1.0
    rig.taken = [await rig.pool.take(owner="many", is_only_call=number == 0) for number in range(2)]
    rig.calls = [asyncio.create_task(rig.pool.take(owner="many", is_only_call=False)) for _ in range(2)]
    await settle()
    yield rig
    rig.machine.gate.set()
    await asyncio.gather(*rig.calls)
    await rig.pool.drain()


async def test_a_caller_with_other_calls_drains_all_but_the_reserve(reserving):
    assert reserving.waiting == (2, 0, 0)
    assert [call.done() for call in reserving.calls] == [False, False]
    assert len(reserving.machine.begun) == 4 + 2


async def test_a_caller_with_nothing_running_takes_from_the_reserve_whatever_it_imports(reserving):
    boxes = [await reserving.pool.take(flavour, "one") for flavour in (BARE, DATA)]
    assert [box.sandbox.info.acquired for box in boxes] == ["warm", "warm"]
    assert reserving.waiting == (0, 0, 0)


async def test_the_reserve_is_refilled_before_calls_that_wait_and_while_they_use_all_of_the_machine(reserving):
    machine, machine.permits = reserving.machine, asyncio.Semaphore(0)
    more = [asyncio.create_task(reserving.pool.take(owner="many", is_only_call=False)) for _ in range(3)]
    await reserving.pool.take(owner="one")
    await reserving.passes(0.2)
    machine.gate.set()
    seen = []
    for _ in range(3):
        machine.permits.release()
        await settle()
        seen.append((reserving.waiting[0], sum(call.done() for call in [*reserving.calls, *more])))
    assert seen == [(1, 1), (1, 2), (2, 2)]
    assert len(machine.begun) == 4 + 2 + 1 + 2
    for _ in range(9):
        machine.permits.release()
    await asyncio.gather(*more)


async def test_what_is_started_for_the_reserve_goes_to_a_caller_that_waits_with_nothing_running():
    rig = await Rig(size=1, reserve=1, starts_max=1).filled()
    rig.machine.permits = asyncio.Semaphore(0)
    await rig.pool.take(owner="many")
    call = asyncio.create_task(rig.pool.take(owner="many", is_only_call=False))
    await rig.pool.take(owner="one")
    await rig.passes(0.2)
    rig.machine.permits.release()
    await settle()
    two = asyncio.create_task(rig.pool.take(owner="two"))
    await settle()
    begun = len(rig.machine.begun)
    rig.machine.permits.release()
    await settle()
    assert (call.done(), two.done(), begun) == (True, True, 2 + 1 + 1)
    await rig.pool.drain()


async def test_a_container_beyond_the_reserve_goes_to_a_call_that_came_while_it_was_asked():
    rig = await Rig(size=1, reserve=1).filled()
    rig.machine.gate.clear()
    asked = rig.machine.boxes[0]
    asked.sandbox.may_answer.clear()
    renewing = asyncio.create_task(rig.pool.renew())
    await settle()
    call = asyncio.create_task(rig.pool.take(owner="many", is_only_call=False))
    await settle()
    assert not call.done()
    asked.sandbox.may_answer.set()
    await settle()
    assert (call.done(), rig.waiting) == (True, (1, 0, 0))
    rig.machine.gate.set()
    await renewing
    await rig.pool.drain()


async def test_no_container_with_libraries_is_reserved():
    rig = await Rig(size=2, reserve=2).filled()
    await rig.pool.take(DATA)
    await rig.passes(2)
    assert rig.waiting == (4, 0, 1)
    box = await rig.pool.take(DATA, "many", is_only_call=False)
    assert box.flavour is DATA
    await rig.pool.drain()


async def test_renewing_gives_no_container_of_the_reserve_to_a_caller_with_other_calls(reserving):
    await reserving.pool.renew()
    await settle()
    assert reserving.waiting == (2, 0, 0)
    assert [call.done() for call in reserving.calls] == [False, False]


async def test_a_start_for_the_reserve_that_fails_is_reported_to_no_call():
    rig = await Rig(size=2, reserve=2, starts_max=2).filled()
    rig.machine.gate.clear()
    for number in range(2):
        await rig.pool.take(owner="many", is_only_call=number == 0)
    await rig.pool.take(owner="one")
    rig.clock.advance(1)
    await settle()
    calls = [asyncio.create_task(rig.pool.take(owner="many", is_only_call=False)) for _ in range(2)]
    await settle()
    assert len(rig.machine.begun) == 4 + 1 + 1
    rig.machine.permits, rig.machine.error = asyncio.Semaphore(2), EngineUnavailableError("away")
    rig.machine.gate.set()
    await settle()
    assert [call.done() for call in calls] == [True, False]
    rig.machine.permits.release()
    rig.machine.error = None
    await settle()
    assert calls[1].result().sandbox.info.acquired == "cold"
    assert isinstance(calls[0].exception(), EngineUnavailableError)
    await rig.pool.drain()


@pytest.mark.parametrize("starts_max", [1, 2, 4])
async def test_callers_with_one_call_that_keep_coming_do_not_starve_one_with_two(starts_max):
    rig = await Rig(size=2, reserve=2, starts_max=starts_max).filled()
    rig.machine.permits = asyncio.Semaphore(0)
    drained = [await rig.pool.take(owner=f"early {number}") for number in range(4)]
    singles = [asyncio.create_task(rig.pool.take(owner=f"one {number}")) for number in range(4)]
    await rig.passes(0.2)
    two = [asyncio.create_task(rig.pool.take(owner="two", is_only_call=False)) for _ in range(2)]
    for number in range(4, 16):
        await settle()
        rig.machine.permits.release()
        await rig.passes(0.2)
        singles.append(asyncio.create_task(rig.pool.take(owner=f"one {number}")))
    served = sum(call.done() for call in singles)
    assert (len(drained), [call.done() for call in two], served) == (4, [True, True], 12 - 2)
    for call in (*singles, *two):
        call.cancel()
    await rig.pool.drain()


async def test_without_a_reserve_a_caller_may_drain_all_that_waits(eight):
    await eight.filled()
    boxes = [await eight.pool.take(owner="many", is_only_call=False) for _ in range(8)]
    assert [box.sandbox.info.acquired for box in boxes] == ["warm"] * 8


# ---- refilling ----


async def test_what_replaces_a_taken_container_does_not_start_with_the_call_but_soon_after(rig):
    await rig.filled()
    await rig.pool.take()
    await rig.passes(0.1)
    assert len(rig.machine.begun) == 1
    await rig.passes(0.1)
    assert (len(rig.machine.begun), rig.waiting) == (2, (1, 0, 0))


async def test_a_container_that_was_started_for_a_call_is_not_followed_by_a_refill_at_once(rig):
    await rig.pool.take()
    await rig.passes(0.1)
    assert len(rig.machine.begun) == 1
    await rig.passes(0.2)
    assert len(rig.machine.begun) == 2


async def test_refills_use_half_of_the_starts_and_calls_that_wait_all_of_them(eight):
    eight.machine.gate.clear()
    eight.pool.fill()
    await eight.passes(1)
    assert len(eight.machine.begun) == 1
    calls = [asyncio.create_task(eight.pool.take()) for _ in range(5)]
    await eight.passes(1)
    assert len(eight.machine.begun) == 2
    eight.machine.gate.set()
    await asyncio.gather(*calls)


async def test_nothing_is_refilled_while_a_call_waits_for_a_container():
    rig = Rig(size=8, starts_max=8)
    rig.machine.gate.clear()
    calls = [asyncio.create_task(rig.pool.take()) for _ in range(2)]
    await settle()
    rig.pool.fill()
    await rig.passes(20)
    assert rig.machine.begun == [BARE, BARE]
    rig.machine.gate.set()
    await asyncio.gather(*calls)
    await rig.passes(2)
    assert rig.waiting == (8, 0, 0)
    await rig.pool.drain()


async def test_while_calls_use_all_of_the_machine_refills_wait_and_trickle(eight):
    await eight.filled()
    eight.machine.load = 1.0
    for _ in range(4):
        await eight.pool.take()
    await eight.passes(1.0)
    assert eight.waiting == (4, 0, 0)
    await eight.passes(3.5)
    assert eight.waiting == (6, 0, 0)
    eight.machine.load = 0.0
    await eight.passes(0.5)
    assert eight.waiting == (8, 0, 0)


async def test_while_any_call_runs_refills_wait_as_long_as_half_of_the_pool_is_left(eight):
    await eight.filled()
    eight.machine.load = 0.5
    for _ in range(4):
        await eight.pool.take()
    await eight.passes(1.0)
    held_back = eight.waiting
    await eight.pool.take()
    await eight.passes(0.4)
    assert (held_back, eight.waiting) == ((4, 0, 0), (4, 0, 0))
    eight.machine.load = 0.0
    await eight.passes(0.5)
    assert eight.waiting == (8, 0, 0)


async def test_the_flavour_that_lacks_most_is_refilled_first(eight):
    await eight.filled()
    await eight.pool.take(DATA)  # a bare one; no container of data waits
    await eight.passes(0.5)
    assert eight.machine.begun[8:] == [DATA, BARE]


async def test_a_flavour_that_nobody_asks_for_any_more_is_removed_and_the_others_stay(rig):
    await rig.filled()
    await rig.pool.take(DATA)
    await rig.passes(1)
    await rig.pool.renew()
    assert rig.waiting == (1, 0, 1)
    await rig.passes(600)
    await rig.pool.renew()
    assert (rig.waiting, [box.flavour for box in rig.machine.discarded]) == ((1, 0, 0), [DATA])


async def test_after_many_calls_the_surplus_goes_but_for_one():
    rig = Rig(size=8, starts_max=8)
    await rig.filled()
    rig.machine.takes_s = 0.3
    for _ in range(40):
        await asyncio.gather(*(rig.pool.take() for _ in range(8)))
        await rig.passes(2)
    grown = rig.waiting
    await rig.passes(300)
    await rig.pool.renew()
    await rig.passes(1)
    assert (grown, rig.waiting) == ((10, 0, 0), (9, 0, 0))
    await rig.pool.drain()


# ---- health and age ----


async def test_a_container_that_ended_while_it_waited_is_not_given_to_a_call(rig):
    await rig.filled()
    rig.machine.boxes[0].transport.is_open = False
    assert await rig.pool.take() is rig.machine.boxes[1]
    assert (rig.machine.discarded, rig.pool.counts.ended) == ([rig.machine.boxes[0]], 1)


async def test_a_container_whose_runner_does_not_answer_is_not_given_to_a_call(rig):
    await rig.filled()
    rig.machine.boxes[0].sandbox.hangs = True
    assert await rig.pool.take() is rig.machine.boxes[1]
    assert (rig.machine.discarded, rig.pool.counts.ended) == ([rig.machine.boxes[0]], 1)


async def test_renewing_replaces_what_ended_or_hangs_before_a_call_comes(eight):
    await eight.filled()
    ended, hanging = eight.machine.boxes[2:4]
    ended.transport.is_open = False
    hanging.sandbox.hangs = True
    await eight.pool.renew()
    await eight.passes(1)
    assert (eight.machine.discarded, eight.waiting) == ([ended, hanging], (8, 0, 0))


async def test_a_container_that_is_being_asked_is_not_given_to_a_call(rig):
    await rig.filled()
    asked = rig.machine.boxes[0]
    asked.sandbox.may_answer.clear()
    renewing = asyncio.create_task(rig.pool.renew())
    await asked.sandbox.asked.wait()
    assert await rig.pool.take() is rig.machine.boxes[1]
    asked.sandbox.may_answer.set()
    await renewing
    assert (rig.waiting, rig.machine.discarded) == ((1, 0, 0), [])


async def test_containers_that_were_started_together_are_replaced_one_at_a_time(eight):
    await eight.filled()
    await eight.passes(801)
    for replaced in (1, 2, 3):
        await eight.pool.renew()
        await eight.passes(1)
        assert (len(eight.machine.discarded), eight.waiting) == (replaced, (8, 0, 0))


async def test_a_container_beyond_its_age_is_never_given_to_a_call(rig):
    await rig.filled()
    await rig.passes(1000)
    assert await rig.pool.take() is rig.machine.boxes[1]
    assert rig.machine.discarded == [rig.machine.boxes[0]]


# ---- starts that fail ----


async def test_a_start_that_fails_is_told_to_one_call_that_waits(rig):
    rig.machine.error = EngineUnavailableError("no")
    with pytest.raises(EngineUnavailableError, match="no"):
        await rig.pool.take()
    assert rig.pool.counts.failed == 1


async def test_an_engine_that_answers_and_starts_nothing_is_told_until_a_start_may_work_again(rig):
    async def starts(count):
        for _ in range(count):
            with pytest.raises(EngineUnavailableError, match="no"):
                await rig.pool.take()

    await rig.pool.take()
    rig.machine.error = EngineUnavailableError("no runtime")
    await starts(2)
    rig.pool.require_starts()
    await starts(1)
    with pytest.raises(EngineUnavailableError, match="the last 3 starts of a sandbox failed: no runtime"):
        rig.pool.require_starts()
    rig.machine.error = None
    await rig.pool.take()
    rig.pool.require_starts()


async def test_until_the_first_start_works_the_pool_tells_that_none_has_and_why(eight):
    eight.machine.gate.clear()
    eight.pool.fill()
    with pytest.raises(EngineUnavailableError, match=r"^the first sandbox is being started$"):
        eight.pool.require_starts()
    eight.machine.error = EngineUnavailableError("no runtime")
    eight.machine.gate.set()
    await eight.passes(100)
    with pytest.raises(EngineUnavailableError, match=r"^no sandbox could be started yet: no runtime$"):
        eight.pool.require_starts()
    eight.machine.error = None
    await eight.passes(6)
    eight.pool.require_starts()


async def test_what_went_wrong_in_our_own_code_is_told_as_the_engines_failure(rig):
    rig.machine.error = ZeroDivisionError("inside")
    with pytest.raises(EngineUnavailableError, match="a sandbox could not be started"):
        await rig.pool.take()
    with pytest.raises(EngineUnavailableError, match=r"yet: a sandbox could not be started$"):
        rig.pool.require_starts()


async def test_while_the_engine_is_away_refills_are_tried_ever_less_often(eight):
    eight.machine.error = EngineUnavailableError("gone")
    eight.pool.fill()
    tries = []
    for seconds in (0.2, 0.3, 0.6, 1.1, 2.1, 4.1, 63):
        await eight.passes(seconds)
        tries.append(len(eight.machine.begun))
    assert tries == [1, 2, 3, 4, 5, 6, 18]


async def test_when_the_engine_is_back_the_pool_fills_within_seconds(eight):
    eight.machine.error = EngineUnavailableError("gone")
    eight.pool.fill()
    await eight.passes(60)
    eight.machine.error = None
    await eight.passes(5)
    assert eight.waiting == (8, 0, 0)


async def test_after_a_start_that_worked_the_pauses_begin_anew(eight):
    eight.machine.error = EngineUnavailableError("gone")
    eight.pool.fill()
    await eight.passes(60)
    eight.machine.error = None
    await eight.passes(5)
    eight.machine.error = EngineUnavailableError("gone again")
    before = len(eight.machine.begun)
    await eight.pool.take()
    await eight.passes(0.2)
    await eight.passes(0.4)
    assert len(eight.machine.begun) - before == 2


async def test_a_call_has_a_try_of_its_own_however_many_starts_failed_before(rig):
    rig.machine.error = EngineUnavailableError("gone")
    rig.pool.fill()
    await rig.passes(30)
    rig.machine.error = None
    assert (await rig.pool.take()).sandbox.info.acquired == "cold"


async def test_a_start_that_began_before_a_call_and_fails_is_not_told_to_the_call(rig):
    rig.machine.takes_s = 5
    rig.machine.error = EngineUnavailableError("killed while it started")
    rig.pool.fill()
    await rig.passes(1)
    taken = asyncio.create_task(rig.pool.take())
    await rig.passes(4.5)
    rig.machine.error = None
    await rig.passes(5)
    assert (await taken).sandbox.info.acquired == "cold"


async def test_every_call_that_waits_is_told_when_starts_fail(rig):
    rig.machine.error = EngineUnavailableError("gone")
    told = await asyncio.gather(*(rig.pool.take() for _ in range(7)), return_exceptions=True)
    assert [type(error) for error in told] == [EngineUnavailableError] * 7


# ---- calls that give up, and the end ----


async def test_the_container_of_a_call_that_gave_up_waits_for_the_next(rig):
    rig.machine.gate.clear()
    taken = asyncio.create_task(rig.pool.take())
    await settle()
    taken.cancel()
    await settle()
    rig.machine.gate.set()
    await rig.passes(1)
    assert (rig.waiting, rig.machine.discarded) == ((1, 0, 0), [])


async def test_a_call_that_gives_up_at_the_moment_it_is_served_leaves_no_container_behind(rig):
    rig.machine.gate.clear()
    taken = asyncio.create_task(rig.pool.take())
    await settle()
    rig.machine.gate.set()
    await asyncio.sleep(0)  # the start goes on, and serves the call that has not noticed yet
    assert (len(rig.machine.boxes), taken.done()) == (1, False)
    taken.cancel()
    await asyncio.gather(taken, return_exceptions=True)
    assert (taken.cancelled(), rig.waiting, rig.machine.discarded) == (True, (1, 0, 0), [])


async def test_a_call_that_gives_up_while_its_container_is_asked_has_it_removed(rig):
    await rig.filled()
    box = rig.machine.boxes[0]
    box.sandbox.may_answer.clear()
    taken = asyncio.create_task(rig.pool.take())
    await box.sandbox.asked.wait()
    taken.cancel()
    await asyncio.gather(taken, return_exceptions=True)
    assert (rig.machine.discarded, rig.waiting) == ([box], (0, 0, 0))


async def test_a_drained_pool_keeps_nothing_and_takes_no_call(eight):
    await eight.filled()
    await eight.pool.drain()
    await eight.passes(10)
    assert (eight.waiting, eight.machine.discarded) == ((0, 0, 0), eight.machine.boxes)
    with pytest.raises(ShuttingDownError):
        await eight.pool.take()


async def test_draining_ends_starts_and_tells_calls_that_wait(rig):
    rig.machine.gate.clear()
    calls = [asyncio.create_task(rig.pool.take()) for _ in range(3)]
    await settle()
    await rig.pool.drain()
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert ([type(error) for error in told], rig.machine.cancelled) == ([ShuttingDownError] * 3, 2)


async def test_a_container_that_is_being_asked_when_the_pool_is_drained_is_removed(rig):
    await rig.filled()
    box = rig.machine.boxes[0]
    box.sandbox.may_answer.clear()
    renewing = asyncio.create_task(rig.pool.renew())
    await box.sandbox.asked.wait()
    await rig.pool.drain()
    box.sandbox.may_answer.set()
    await renewing
    assert (rig.machine.discarded, rig.waiting) == ([box], (0, 0, 0))


async def test_starts_are_counted_with_the_time_they_took(rig):
    rig.machine.gate.clear()
    rig.pool.fill()
    await rig.passes(2)
    rig.machine.gate.set()
    await settle()
    counts = rig.pool.counts
    assert (counts.starts, counts.start_s[DATA]) == ({BARE: 1}, 0.0)
    assert counts.start_s[BARE] == pytest.approx(2.0, abs=0.1)


async def test_a_start_is_not_about_the_call_that_happened_to_ask_for_it(rig):
    seen = []
    start = rig.machine.start

    async def noting(flavour):
        seen.append(log_context().call_id)
        return await start(flavour)

    rig.pool._start = noting
    with about(call_id="call-1"):
        await rig.pool.take()  # nothing waits: a container is started at once
        await rig.filled()
    assert (len(seen) >= 2, set(seen)) == (True, {""})
