"""Claims of workers on every database: one worker has a call, its number rises, and a lost claim writes no end."""

import asyncio
import math
from dataclasses import replace

import pytest
from sqlalchemy import text

from proofbox.service.calls.claim import ClaimLostError
from proofbox.service.calls.port import Alongside, CallKey, CallState, NewCall
from proofbox.service.dispatch.effects import (
    EndClaimed,
    EndExpired,
    EndQueued,
    ForgetDispatch,
    QueueCall,
    ResumeDispatch,
    SuspendClaimed,
)
from proofbox.service.dispatch.port import (
    ClaimedCall,
    DispatchState,
    GivenBack,
    Lead,
    QueuedCall,
    QueueFigures,
    Refusal,
    StopReason,
)
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from proofbox.service.storage.dispatch.effects import dispatch_effects
from proofbox.service.storage.dispatch.members import SqlMemberStore
from tests.support.dispatching import SCOPE

KEY = CallKey(SCOPE, "call-1")
LONG_S = 1_000.0
EXPIRED_S = -1.0  # a claim that has expired when it is made


@pytest.fixture
async def database(opened_database, tmp_path, database_url):
    async with opened_database(tmp_path, database_url) as database:
        yield database


@pytest.fixture
def store(database):
    return SqlCallStore(database, dispatch_effects())


@pytest.fixture
def dispatches(database):
    return SqlDispatchStore(database)


async def queued(store, *, key=KEY, detached=False, key_id="key-1", queue_s=None):
    """The number of a new call."""
    effect = QueueCall(key_id, "request-1", detached, queue_s)
    new = NewCall(key, "sha", '{"tool_id": "a.tool"}', "boot-1", None, (effect,))
    return (await store.claim(new))[0].number


async def finish(store, *effects, was=CallState.OPEN):
    return await store.finish(KEY, CallState.DONE, "{}", (), None, Alongside(was, None, effects))


async def test_of_many_workers_one_gets_a_call(store, dispatches):
    number = await queued(store)
    found = await asyncio.gather(*(dispatches.claim(number, f"w{n}", LONG_S, 5) for n in range(10)))
    claims = [each for each in found if isinstance(each, ClaimedCall)]
    assert [each.claim for each in claims] == [1]
    assert {each.why for each in found if each not in claims} == {Refusal.TAKEN}
    assert claims[0].stored.key.scope.principal.key_id == "key-1"
    assert (claims[0].request_id, claims[0].stop, claims[0].outcome) == ("request-1", None, None)


async def test_an_expired_claim_is_taken_over_and_the_old_one_writes_nothing(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", EXPIRED_S, 5)
    assert (await dispatches.claim(number, "w2", LONG_S, 5)).claim == 2
    assert not await dispatches.start(number, 1, "w1", LONG_S)
    assert not await dispatches.release(number, 1, "w1", GivenBack())
    with pytest.raises(ClaimLostError):
        await finish(store, EndClaimed(1, "w1"))
    [stored] = await store.find(SCOPE.principal, "call-1")
    assert stored.state is CallState.OPEN
    assert await dispatches.start(number, 2, "w2", LONG_S)
    assert (await finish(store, EndClaimed(2, "w2"))).state is CallState.DONE
    assert await dispatches.states([number]) == {}


async def test_a_claim_of_the_same_number_by_another_worker_is_another_claim(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    assert not await dispatches.start(number, 1, "w2", LONG_S)
    with pytest.raises(ClaimLostError):
        await finish(store, EndClaimed(1, "w2"))


async def test_a_claim_that_has_expired_begins_nothing(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", EXPIRED_S, 5)
    assert not await dispatches.start(number, 1, "w1", LONG_S)


async def test_a_call_that_has_begun_is_never_claimed_again_but_ended(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    assert await dispatches.start(number, 1, "w1", EXPIRED_S)
    found = await dispatches.claim(number, "w2", LONG_S, 5)
    assert (found.why, found.claim, found.stored.key) == (Refusal.LOST, 1, KEY)
    assert await dispatches.lost(10) == [QueuedCall(number, 1)]
    assert (await dispatches.expire(number, 1)).number == number
    assert (await finish(store, EndExpired(1))).state is CallState.DONE
    assert (await dispatches.claim(number, "w2", LONG_S, 5)).why is Refusal.GONE


async def test_a_worker_that_is_heard_of_in_time_keeps_its_call(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    await dispatches.start(number, 1, "w1", LONG_S)
    assert await dispatches.renew("w1", LONG_S, [(number, 1)]) == {number: (1, None)}
    assert await dispatches.lost(10) == []
    assert await dispatches.expire(number, 1) is None
    with pytest.raises(ClaimLostError):
        await finish(store, EndExpired(1))
    assert (await dispatches.claim(number, "w2", LONG_S, 5)).why is Refusal.TAKEN


@pytest.mark.parametrize("starts", [False, True])
async def test_a_claim_that_has_expired_is_not_renewed(store, dispatches, starts):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S if starts else EXPIRED_S, 5)
    if starts:
        await dispatches.start(number, 1, "w1", EXPIRED_S)
    assert await dispatches.renew("w1", LONG_S, [(number, 1)]) == {}
    assert await dispatches.lost(10) == [QueuedCall(number, 1)]


@pytest.mark.parametrize("claim", [None, 2])
async def test_a_claim_that_its_worker_does_not_name_is_not_renewed(store, dispatches, claim):
    number = await queued(store)
    await dispatches.claim(number, "w1", 0.0, 5)
    await dispatches.claim(number, "w1", LONG_S, 5)
    await dispatches.claim(await queued(store, key=replace(KEY, tool_call_id="other")), "w1", LONG_S, 5)
    named = [] if claim is None else [(number, claim), (number + 1, 2)]
    assert set(await dispatches.renew("w1", LONG_S, named)) == (set() if claim is None else {number})
    assert await dispatches.renew("w2", LONG_S, [(number, 2)]) == {}


async def test_a_call_that_a_service_of_one_process_ended_is_not_run(store, dispatches, database):
    number = await queued(store)
    await store.finish(KEY, CallState.DONE, "{}")
    assert await database.read(lambda connection: connection.scalar(text("SELECT count(*) FROM dispatches"))) == 0
    assert (await dispatches.claim(number, "w1", LONG_S, 5)).why is Refusal.GONE
    assert await dispatches.due(60, 10) == []
    assert not await dispatches.release_dead(number)


async def test_a_call_that_waits_is_not_run_whatever_its_row_says(store, dispatches):
    number = await queued(store)
    await store.suspend(KEY, [])
    assert (await dispatches.claim(number, "w1", LONG_S, 5)).why is Refusal.GONE
    assert (await dispatches.claim(number, "w1", LONG_S, 0)).why is Refusal.GONE


async def test_calls_that_a_service_of_one_process_left_open_are_found(store, dispatches):
    await queued(store)
    local = replace(KEY, tool_call_id="local")
    await store.claim(NewCall(local, "sha", "{}", "boot-1", None))
    resumed = await queued(store, key=replace(KEY, tool_call_id="resumed"))
    await dispatches.claim(resumed, "w1", LONG_S, 5)
    await store.suspend(replace(KEY, tool_call_id="resumed"), [SuspendClaimed(1, "w1", 7)])
    assert [each.key for each in await dispatches.left(10)] == [local]
    await store.resume(replace(KEY, tool_call_id="resumed"), "boot-2", [])
    assert [each.key.tool_call_id for each in await dispatches.left(10)] == ["local", "resumed"]
    assert len(await dispatches.left(1)) == 1


async def test_a_claim_that_is_given_back_does_not_count_unless_its_worker_failed(store, dispatches):
    number = await queued(store)
    for claim in range(1, 4):
        await dispatches.claim(number, "w1", LONG_S, 2)
        assert await dispatches.release(number, claim, "w1", GivenBack())
    for claim in range(4, 6):
        await dispatches.claim(number, "w1", LONG_S, 2)
        assert await dispatches.release(number, claim, "w1", GivenBack(counts=True))
    assert (await dispatches.claim(number, "w1", LONG_S, 2)).why is Refusal.DEAD


async def test_a_call_that_is_given_back_is_published_again_after_its_time(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    await dispatches.release(number, 1, "w1", GivenBack(again_s=LONG_S))
    assert await dispatches.due(60, 10) == []
    await dispatches.unpublish([number])
    assert await dispatches.due(60, 10) == [QueuedCall(number, 1)]


async def test_a_queued_call_is_overdue_after_its_deadline(store, dispatches):
    numbers = [
        await queued(store, key=replace(KEY, tool_call_id=str(queue_s)), queue_s=queue_s)
        for queue_s in (None, LONG_S, EXPIRED_S, EXPIRED_S - 1)
    ]
    await dispatches.claim(numbers[3], "w1", LONG_S, 5)  # one that has a worker is not
    assert [each.number for each in await dispatches.overdue(10)] == [numbers[2]]


async def test_a_call_that_runs_on_or_is_released_by_its_operator_has_no_deadline(store, dispatches):
    number = await queued(store, queue_s=EXPIRED_S)
    await dispatches.claim(number, "w1", LONG_S, 5)
    await store.suspend(KEY, [SuspendClaimed(1, "w1", 7)])
    await store.resume(KEY, "boot-2", [ResumeDispatch("{}")])
    other = await queued(store, key=replace(KEY, tool_call_id="other"), queue_s=EXPIRED_S)
    await dispatches.claim(other, "w1", LONG_S, 0)
    assert await dispatches.release_dead(other)
    assert await dispatches.overdue(10) == []


async def test_a_call_that_was_claimed_and_lost_is_queued_again(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", EXPIRED_S, 5)
    assert await dispatches.expire(number, 1) is None
    assert await dispatches.states([number]) == {number: (CallState.OPEN, DispatchState.QUEUED)}
    assert await dispatches.due(60, 10) == [QueuedCall(number, 1)]
    assert await dispatches.due(60, 10) == []  # not before a minute has passed


async def test_a_call_that_was_lost_too_often_is_set_aside_until_it_is_released(store, dispatches):
    number = await queued(store)
    for _ in range(2):
        await dispatches.claim(number, "w1", EXPIRED_S, 2)
    assert (await dispatches.claim(number, "w1", LONG_S, 2)).why is Refusal.DEAD
    assert (await dispatches.claim(number, "w1", LONG_S, 99)).why is Refusal.DEAD
    [dead] = await dispatches.dead(10)
    assert (dead.number, dead.key, dead.tool_id, dead.attempts) == (number, KEY, "a.tool", 2)
    assert await dispatches.release_dead(number)
    assert not await dispatches.release_dead(number)
    assert (await dispatches.claim(number, "w1", LONG_S, 2)).claim == 3


async def test_a_call_is_withdrawn_only_while_no_worker_has_it(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    assert not await dispatches.withdraw(number)
    assert await dispatches.release(number, 1, "w1", GivenBack())
    assert await dispatches.withdraw(number)
    assert await store.find(SCOPE.principal, "call-1") == []


async def test_only_a_call_without_clients_elsewhere_is_abandoned(store, dispatches):
    number = await queued(store)
    await dispatches.keep(number)
    assert await dispatches.request_stop(number, StopReason.ABANDONED) is None
    assert (await dispatches.request_stop(number, StopReason.CANCELLED)).state is DispatchState.QUEUED
    assert (await dispatches.claim(number, "w1", LONG_S, 5)).stop is StopReason.CANCELLED
    assert await dispatches.renew("w1", LONG_S, [(number, 1)]) == {number: (1, StopReason.CANCELLED)}
    with pytest.raises(ClaimLostError):
        await finish(store, EndQueued())


async def test_a_call_that_waited_is_claimed_with_the_answer_and_a_higher_number(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    await dispatches.start(number, 1, "w1", LONG_S)
    assert await store.suspend(KEY, [SuspendClaimed(1, "w1", 7)]) is not None
    assert (await dispatches.claim(number, "w2", LONG_S, 5)).why is Refusal.GONE
    assert await dispatches.states([number]) == {number: (CallState.WAITING, DispatchState.SUSPENDED)}
    assert await store.resume(KEY, "boot-2", [ResumeDispatch('{"how": "result"}')]) is not None
    claimed = await dispatches.claim(number, "w2", LONG_S, 5)
    assert (claimed.claim, claimed.events, claimed.outcome) == (2, 7, '{"how": "result"}')
    with pytest.raises(ClaimLostError):
        await store.suspend(KEY, [SuspendClaimed(1, "w1", 8)])


@pytest.mark.parametrize(("reason", "left"), [("cancelled", "cancelled"), ("abandoned", None)])
async def test_a_cancel_in_a_wait_is_not_forgotten_when_the_call_is_resumed(store, dispatches, reason, left):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    await store.suspend(KEY, [SuspendClaimed(1, "w1", 7)])
    assert (await dispatches.request_stop(number, StopReason(reason))).state is DispatchState.SUSPENDED
    await store.resume(KEY, "boot-2", [ResumeDispatch('{"how": "result"}')])
    assert (await dispatches.claim(number, "w2", LONG_S, 5)).stop == left


async def test_a_call_that_ends_in_its_wait_leaves_no_claim(store, dispatches):
    number = await queued(store)
    await dispatches.claim(number, "w1", LONG_S, 5)
    await store.suspend(KEY, [SuspendClaimed(1, "w1", 7)])
    await finish(store, ForgetDispatch(), was=CallState.WAITING)
    assert await dispatches.renew("w1", LONG_S, [(number, 1)]) == {}
    assert await dispatches.states([number]) == {}


async def test_queued_calls_are_due_in_their_order_and_bounded(store, dispatches):
    numbers = [await queued(store, key=replace(KEY, tool_call_id=f"call-{number}")) for number in range(3)]
    for number in numbers:
        await dispatches.claim(number, "w1", LONG_S, 5)
        await dispatches.release(number, 1, "w1", GivenBack())
    assert [each.number for each in await dispatches.due(60, 2)] == numbers[:2]
    assert [each.number for each in await dispatches.due(60, 2)] == numbers[2:]


async def test_one_process_leads_until_it_stops_or_is_not_heard_of(database):
    members = SqlMemberStore(database)
    assert (await members.beat("one", "api", LONG_S, Lead)).leads == set(Lead)
    found = await members.beat("two", "worker", LONG_S, Lead)
    assert (found.leads, LONG_S - 100 < found.free_in_s <= LONG_S) == (set(), True)
    assert await members.living() == {"one", "two"}
    await members.leave("one")
    assert (await members.beat("two", "worker", EXPIRED_S, Lead)).leads == set(Lead)
    assert (await members.beat("three", "worker", LONG_S, Lead)).leads == set(
        Lead
    )  # the other one is not heard of any more
    assert await members.living() == {"two", "three"}  # for a minute


async def test_a_process_that_does_not_want_a_lead_gives_it_to_another_one(database):
    members = SqlMemberStore(database)
    await members.beat("one", "api", LONG_S, Lead)
    assert (await members.beat("one", "api", LONG_S, [Lead.JOBS])).leads == {Lead.JOBS}
    assert (await members.beat("two", "worker", LONG_S, Lead)).leads == {Lead.QUEUE}
    assert (await members.beat("one", "api", LONG_S, Lead)).leads == {Lead.JOBS}
    found = await members.beat("three", "worker", LONG_S, [])
    assert (found.leads, found.free_in_s) == (set(), math.inf)


async def test_a_look_counts_what_there_is_and_what_needs_something_done(database, store, dispatches):
    assert await dispatches.read_figures() == QueueFigures(0, 0.0, 0, 0, 0, 0, 0, 0)
    names = ("waits", "overdue", "due", "held", "expired", "dead")
    numbers = {
        name: await queued(
            store, key=replace(KEY, tool_call_id=name), queue_s=EXPIRED_S if name == "overdue" else 60
        )
        for name in names
    }
    await dispatches.unpublish([numbers["due"]])
    await dispatches.claim(numbers["held"], "w1", LONG_S, 5)
    await dispatches.claim(numbers["expired"], "w1", EXPIRED_S, 5)
    await dispatches.claim(numbers["dead"], "w1", LONG_S, 0)
    members = SqlMemberStore(database)
    for name, role, lease_s in (
        ("a", "api", LONG_S),
        ("w", "worker", LONG_S),
        ("b", "all", LONG_S),
        ("l", "all", -1),
    ):
        await members.beat(name, role, lease_s, ())
    found = await dispatches.read_figures()
    assert replace(found, oldest_waiting_s=0.0) == QueueFigures(
        waiting=3, oldest_waiting_s=0.0, held=2, set_aside=1, expired=1, due=1, overdue=1, workers=2
    )


async def test_the_oldest_waiting_call_is_the_one_that_came_first(database, store, dispatches):
    numbers = [await queued(store, key=replace(KEY, tool_call_id=f"call-{n}"), queue_s=60) for n in range(2)]
    for number, created in zip(numbers, ("2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z"), strict=True):
        await set_created(database, number, created)
    older = (await dispatches.read_figures()).oldest_waiting_s
    await dispatches.claim(numbers[0], "w1", LONG_S, 5)
    assert 3_500 < older - (await dispatches.read_figures()).oldest_waiting_s <= 3_600


async def set_created(database, number, created):
    changed = text("UPDATE calls SET created = :created WHERE id = :number")
    await database.write(lambda connection: connection.execute(changed, {"created": created, "number": number}))
