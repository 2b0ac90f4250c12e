"""Who may run: places in order of arrival, a bounded line, deadlines, and no place lost by whoever leaves."""

import asyncio
import contextlib
import gc
import time
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofbox.service.access.quotas import Share
from proofbox.service.calls.admission import Admission
from proofbox.service.errors import QueueFullError, QueueTimeoutError
from tests.support.examples import examples


def soon():
    return time.monotonic() + 60


class Caller:
    """One call: it asks for a place and holds it until it is told to leave."""

    def __init__(self, admission, deadline=None):
        self.positions = []
        self.entered = asyncio.Event()
        self.may_leave = asyncio.Event()
        self.task = asyncio.create_task(self._run(admission, soon() if deadline is None else deadline))

    async def _run(self, admission, deadline):
        with await admission.enter(deadline, self.positions.append):
            self.entered.set()
            await self.may_leave.wait()

    async def leave(self):
        self.may_leave.set()
        await self.task


async def settle():
    """Lets everything happen that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def callers(admission, count):
    made = []
    for _ in range(count):
        made.append(Caller(admission))
        await settle()
    return made


async def test_places_are_given_in_order_of_arrival():
    admission = Admission(running_max=2, queue_max=5)
    made = await callers(admission, 5)
    assert [caller.entered.is_set() for caller in made] == [True, True, False, False, False]
    assert [caller.positions for caller in made] == [[0], [0], [0], [1], [2]]
    assert (admission.running, admission.queued) == (2, 3)
    order = []
    for caller in (made[1], made[0], made[2], made[3], made[4]):
        await caller.leave()
        await settle()
        order.append([other.entered.is_set() for other in made].count(True))
    assert order == [3, 4, 5, 5, 5]
    assert (admission.running, admission.queued) == (0, 0)


async def test_one_call_more_than_may_wait_is_refused_at_once():
    admission = Admission(running_max=1, queue_max=1)
    made = await callers(admission, 2)
    told = []
    with pytest.raises(QueueFullError) as refused, await admission.enter(soon(), told.append):
        pytest.fail("there is no place")
    assert refused.value.message == "1 calls run and 1 wait, 1 may; come again later"
    assert 1 <= refused.value.retry_after_s <= 120
    with pytest.raises(QueueFullError):
        admission.refuse_if_full()
    assert told == []
    await made[0].leave()
    await settle()
    admission.refuse_if_full()
    await made[1].leave()
    assert (admission.running, admission.queued) == (0, 0)


async def test_without_a_line_a_call_runs_at_once_or_is_refused():
    admission = Admission(running_max=1, queue_max=0)
    [caller] = await callers(admission, 1)
    with pytest.raises(QueueFullError):
        admission.refuse_if_full()
    await caller.leave()
    admission.refuse_if_full()


@pytest.mark.parametrize("deadline", [0.0, None])
async def test_a_call_whose_deadline_passes_leaves_the_line(deadline):
    admission = Admission(running_max=1, queue_max=5)
    [first] = await callers(admission, 1)
    late = Caller(admission, time.monotonic() + 0.01 if deadline is None else deadline)
    behind = Caller(admission)
    with pytest.raises(QueueTimeoutError) as refused:
        await late.task
    assert refused.value.retry_after_s >= 1
    assert (admission.running, admission.queued) == (1, 1)
    await first.leave()
    await settle()
    assert behind.entered.is_set()
    await behind.leave()
    assert admission.running == 0


async def test_a_deadline_that_has_passed_does_not_matter_where_a_place_is_free():
    admission = Admission(running_max=1, queue_max=0)
    caller = Caller(admission, deadline=0.0)
    await settle()
    assert caller.entered.is_set()
    await caller.leave()


async def test_a_waiter_that_is_cancelled_frees_its_place_in_the_line():
    admission = Admission(running_max=1, queue_max=2)
    first, second, third = await callers(admission, 3)
    second.task.cancel()
    await settle()
    assert (second.task.cancelled(), admission.running, admission.queued) == (True, 1, 1)
    await first.leave()
    await settle()
    assert third.entered.is_set()
    await third.leave()
    assert (admission.running, admission.queued) == (0, 0)


async def test_a_waiter_that_is_cancelled_as_its_place_comes_hands_it_on():
    admission = Admission(running_max=1, queue_max=5)
    first, second, third = await callers(admission, 3)
    first.may_leave.set()
    while not first.task.done():  # the place has been handed to the second, which has not run since
        await asyncio.sleep(0)
        if admission.queued == 1:
            second.task.cancel()
            break
    await settle()
    assert second.task.cancelled()
    assert not second.entered.is_set()
    assert third.entered.is_set()
    assert (admission.running, admission.queued) == (1, 0)
    await third.leave()
    assert admission.running == 0


async def test_a_newcomer_does_not_overtake_the_line():
    admission = Admission(running_max=1, queue_max=5)
    first, second = await callers(admission, 2)
    first.may_leave.set()
    newcomer = Caller(admission)
    await settle()
    assert (second.entered.is_set(), newcomer.entered.is_set()) == (True, False)
    await second.leave()
    await newcomer.leave()


async def test_a_call_that_fails_in_its_place_frees_it():
    admission = Admission(running_max=1, queue_max=0)
    inside = []

    async def fails():
        with await admission.enter(soon(), lambda _: None):
            inside.append(admission.running)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fails()
    assert (inside, admission.running) == ([1], 0)


STEPS = st.lists(
    st.tuples(st.sampled_from(["arrive", "leave", "cancel", "settle"]), st.integers(0, 30)), max_size=40
)


@settings(max_examples=examples(60), deadline=None)
@given(STEPS, st.integers(1, 3), st.integers(0, 4))
def test_whatever_comes_and_goes_no_place_is_lost_or_given_twice(steps, running_max, queue_max):
    async def story():
        admission = Admission(running_max=running_max, queue_max=queue_max)
        made = []
        for step, number in steps:
            if step == "arrive":
                made.append(Caller(admission))
            elif step == "settle":
                await settle()
            elif made and step == "leave":
                made[number % len(made)].may_leave.set()
            elif made:
                made[number % len(made)].task.cancel()
            assert admission.running <= running_max
            assert admission.queued <= queue_max
        await settle()
        inside = [caller for caller in made if caller.entered.is_set() and not caller.task.done()]
        assert len(inside) == admission.running
        for caller in made:
            caller.may_leave.set()
        ends = await asyncio.gather(*(caller.task for caller in made), return_exceptions=True)
        assert all(end is None or isinstance(end, (QueueFullError, asyncio.CancelledError)) for end in ends)
        assert (admission.running, admission.queued) == (0, 0)

    asyncio.run(story())


# ---- several owners ----


class Owned(Caller):
    """A call of an owner."""

    def __init__(self, admission, owner):
        self.owner = owner
        super().__init__(admission)

    async def _run(self, admission, deadline):
        with await admission.enter(deadline, self.positions.append, self.owner):
            self.entered.set()
            await self.may_leave.wait()


async def owned(admission, *owners):
    made = []
    for owner in owners:
        made.append(Owned(admission, owner))
        await settle()
    return made


async def order_of_entry(made):
    """Who gets a place when, if each call leaves as soon as it has one."""
    order = []
    while waiting := [caller for caller in made if caller not in order]:
        inside = [caller for caller in waiting if caller.entered.is_set()]
        assert inside
        order += inside
        for caller in inside:
            await caller.leave()
            await settle()
    return [caller.owner for caller in order]


async def test_a_long_line_of_one_owner_is_felt_by_that_owner_only():
    admission = Admission(running_max=1, queue_max=100)
    made = await owned(admission, *"aaaaab", "c", "b")
    assert [caller.positions for caller in made] == [[0], [0], [1], [2], [3], [1], [2], [4]]
    assert await order_of_entry(made) == list("aabcabaa")
    assert (admission.running, admission.queued) == (0, 0)


async def test_an_owner_with_its_share_is_passed_over_and_gets_no_free_place():
    admission = Admission(running_max=3, queue_max=100, share_of=lambda owner: Share(2 if owner == "a" else 0, 0))
    made = await owned(admission, *"aaaab")
    assert [caller.entered.is_set() for caller in made] == [True, True, False, False, True]
    await made[4].leave()
    await settle()
    assert [caller.entered.is_set() for caller in made[:4]] == [True, True, False, False]
    await made[0].leave()
    await settle()
    assert [caller.entered.is_set() for caller in made[:4]] == [True, True, True, False]
    for caller in (made[1], made[2], made[3]):
        await caller.leave()
    assert (admission.running, admission.queued) == (0, 0)


async def test_the_line_of_an_owner_has_its_own_end():
    admission = Admission(running_max=1, queue_max=100, share_of=lambda _: Share(0, 2))
    made = await owned(admission, *"aaa")
    with pytest.raises(QueueFullError, match="queued_calls: 2 calls of yours wait, 2 may") as refused:
        admission.refuse_if_full("a")
    assert [error.field for error in refused.value.errors] == ["queued_calls"]
    admission.refuse_if_full("b")
    for caller in made:
        await caller.leave()


async def test_the_whole_line_has_an_end_for_all_owners():
    admission = Admission(running_max=1, queue_max=2)
    made = await owned(admission, *"aab")
    with pytest.raises(QueueFullError, match="1 calls run and 2 wait, 2 may"):
        admission.refuse_if_full("c")
    for caller in made:
        await caller.leave()


OWNERS = st.lists(
    st.tuples(st.sampled_from(["arrive", "leave", "cancel", "settle"]), st.integers(0, 30), st.sampled_from("abc")),
    max_size=40,
)


@settings(max_examples=examples(60), deadline=None)
@given(OWNERS, st.integers(1, 3), st.integers(1, 2))
def test_whatever_owners_do_shares_hold_and_no_place_stays_empty_beside_a_call_that_may_run(steps, places, share):
    async def story():
        admission = Admission(running_max=places, queue_max=1000, share_of=lambda _: Share(share, 0))
        made = []
        for step, number, owner in steps:
            if step == "arrive":
                made.append(Owned(admission, owner))
            elif step == "settle":
                await settle()
            elif made and step == "leave":
                made[number % len(made)].may_leave.set()
            elif made:
                made[number % len(made)].task.cancel()
        await settle()
        inside = [caller for caller in made if caller.entered.is_set() and not caller.task.done()]
        waiting = {caller.owner for caller in made if not caller.entered.is_set() and not caller.task.done()}
        held = {owner: [caller.owner for caller in inside].count(owner) for owner in "abc"}
        assert max(held.values(), default=0) <= share
        assert len(inside) == admission.running <= places
        if len(inside) < places:
            assert [owner for owner in waiting if held[owner] < share] == []
        for caller in made:
            caller.task.cancel()
        await asyncio.gather(*(caller.task for caller in made), return_exceptions=True)
        assert (admission.running, admission.queued) == (0, 0)

    asyncio.run(story())


async def test_a_call_that_waited_in_vain_is_held_by_nothing():
    admission = Admission(running_max=1, queue_max=5)
    [runs] = await callers(admission, 1)

    class Request:
        """What a call has in its frames."""

    async def waits(request):
        with contextlib.suppress(QueueTimeoutError), await admission.enter(time.monotonic(), lambda _: None):
            pytest.fail("there is no place")
        return weakref.ref(request)

    gc.disable()
    try:
        request = await waits(Request())
        await settle()  # what woke the task up holds the exception, too
        assert request() is None
    finally:
        gc.enable()
    await runs.leave()


# ---- when to come again ----


class Clock:
    """A clock that a test moves."""

    now = 100.0

    def __call__(self):
        return self.now


async def leaves_after(seconds, clock, caller):
    clock.now += seconds
    await caller.leave()
    await settle()


def retry_after(admission, owner=""):
    with pytest.raises(QueueFullError) as refused:
        admission.refuse_if_full(owner)
    return refused.value.retry_after_s


async def full(clock, queue_max=4, running_max=1, **more):
    admission = Admission(running_max=running_max, queue_max=queue_max, clock=clock, **more)
    return admission, await callers(admission, running_max + queue_max)


async def ended(made):
    for caller in made:
        await caller.leave()
        await settle()


async def test_a_refused_call_is_told_when_a_place_is_free_and_not_when_the_line_is_empty():
    clock = Clock()
    admission, made = await full(clock, queue_max=40)
    for number in range(4):
        await leaves_after(7, clock, made[number])
        made += await callers(admission, 1)
    assert retry_after(admission) == 7
    await ended(made[4:])


async def test_the_time_until_a_place_follows_the_newest_calls_that_left():
    clock = Clock()
    admission, made = await full(clock, queue_max=40)
    for number in range(16):
        await leaves_after(20 if number < 8 else 3, clock, made[number])
        made += await callers(admission, 1)
    assert retry_after(admission) == 3
    await ended(made[16:])


async def test_the_time_until_a_place_grows_while_no_call_leaves():
    clock = Clock()
    admission, made = await full(clock)
    await leaves_after(4, clock, made[0])
    made += await callers(admission, 1)
    assert retry_after(admission) == 4
    clock.now += 36
    assert retry_after(admission) == 20
    await ended(made[1:])


async def test_time_in_which_nobody_waited_is_not_time_in_which_no_call_left():
    clock = Clock()
    admission, made = await full(clock, queue_max=1)
    await leaves_after(2, clock, made[0])
    clock.now += 1000
    made += await callers(admission, 1)
    assert retry_after(admission) == 2
    await ended(made[1:])


async def test_before_a_call_has_left_the_line_the_calls_that_ended_tell_how_long_one_takes():
    clock = Clock()
    admission = Admission(running_max=2, queue_max=1, clock=clock)
    [first] = await callers(admission, 1)
    await leaves_after(101, clock, first)  # 1 s is assumed, and the newest counts a fifth
    made = await callers(admission, 3)
    assert retry_after(admission) == pytest.approx(21 / 2)
    await ended(made)


async def test_a_call_that_gives_up_has_left_the_line():
    clock = Clock()
    admission, made = await full(clock, queue_max=2)
    clock.now += 9
    made[1].task.cancel()
    await settle()
    made += await callers(admission, 1)
    assert retry_after(admission) == 9
    await ended([made[0], *made[2:]])


async def test_an_owner_whose_line_is_full_is_told_how_its_own_calls_leave():
    clock = Clock()
    admission = Admission(running_max=2, queue_max=100, share_of=lambda _: Share(1, 2), clock=clock)
    made = await owned(admission, *"aaabbb")
    clock.now += 6
    await made[3].leave()
    await settle()
    made += await owned(admission, "b")
    clock.now += 24
    await made[0].leave()
    await settle()
    made += await owned(admission, "a")
    assert (retry_after(admission, "a"), retry_after(admission, "b")) == (30, 15)
    for caller in (made[1], made[4], made[2], made[5], made[7], made[6]):
        await caller.leave()
        await settle()


@pytest.mark.parametrize(("takes_s", "told"), [(0.01, 1), (5000, 120)])
async def test_nobody_is_told_to_come_again_at_once_or_never(takes_s, told):
    clock = Clock()
    admission, made = await full(clock)
    await leaves_after(takes_s, clock, made[0])
    made += await callers(admission, 1)
    assert retry_after(admission) == told
    await ended(made[1:])
