"""Limits of a caller hold for all processes together, and callers take turns in the queue."""

import asyncio
import json

import pytest

from proofbox.service.access.quotas import Allowances
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.dispatch.effects import EndQueued, QueueCall, QueuePlace
from proofbox.service.dispatch.port import ClaimedCall, GivenBack, Refusal
from proofbox.service.dispatch.turns import published_max
from proofbox.service.errors import QueueFullError
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from proofbox.service.storage.dispatch.effects import dispatch_effects
from tests.support.dispatching import SCOPE, noted, notes, opened_process, submit

LONG_S = 1_000.0
ANN, BOB = SCOPE.principal, Principal("other", "books", "registered", "bob")


@pytest.fixture(autouse=True)
def plan_of_many_reads(monkeypatch):
    """PostgreSQL reads a subquery again for each row where it can, as its statistics may lead it to."""
    ways = ("hashagg", "sort", "material", "memoize", "hashjoin", "mergejoin")
    monkeypatch.setenv("PGOPTIONS", " ".join(f"-c enable_{way}=off" for way in ways))


@pytest.fixture
def store(database):
    return SqlCallStore(database, dispatch_effects())


@pytest.fixture
def dispatches(database):
    return SqlDispatchStore(database)


async def queued(store, name, place, conversation=SCOPE.conversation_id):
    """The number of a new call, and whether it waits for its turn."""
    key = CallKey(ConversationKey(SCOPE.principal, conversation), name)
    deferred = []
    effect = QueueCall(None, "r", detached=False, place=QueuePlace(**place, on_deferred=deferred.append))
    stored, _ = await store.claim(NewCall(key, "sha", "{}", "boot-1", None, (effect,)))
    assert deferred in ([], [stored.number])
    return stored.number, bool(deferred)


async def test_a_call_beyond_those_in_the_queue_waits_for_its_turn_and_gets_it_in_order(store, dispatches):
    place = {"caller": "a", "published_max": 2}
    calls = [await queued(store, f"call-{number}", place) for number in range(5)]
    numbers = [number for number, _ in calls]
    assert [is_deferred for _, is_deferred in calls] == [False, False, True, True, True]
    assert (await queued(store, "of-b", {"caller": "b", "published_max": 2}))[1] is False
    assert await dispatches.release_turns("a", 2) == []
    assert (await dispatches.claim(numbers[3], "w", LONG_S, 5)).why is Refusal.GONE
    found = await dispatches.claim(numbers[0], "w", LONG_S, 5)
    assert (found.caller, found.makes_room) == ("a", True)
    assert await dispatches.waiting_callers(10) == ["a"]
    assert await dispatches.release_turns("a", 2) == [numbers[2]]
    assert await dispatches.release_turns("a", 2) == []
    assert await dispatches.release_turns("a", 9) == numbers[3:]
    assert await dispatches.waiting_callers(10) == []
    assert isinstance(found := await dispatches.claim(numbers[3], "w", LONG_S, 5), ClaimedCall)
    assert found.makes_room is False


async def test_a_call_that_waits_for_its_turn_is_not_overtaken(store, dispatches):
    place = {"caller": "a", "published_max": 1}
    first, second = [(await queued(store, name, place))[0] for name in ("call-1", "call-2")]
    await dispatches.claim(first, "w", LONG_S, 5)
    third, is_deferred = await queued(store, "call-3", place)
    assert is_deferred
    assert await dispatches.release_turns("a", 1) == [second]
    assert await dispatches.release_turns("a", 2) == [third]


async def test_workers_have_as_many_calls_of_a_caller_as_its_limit(store, dispatches):
    place = {"caller": "a", "published_max": 10, "running_max": 2}
    one, two, three, four = [(await queued(store, f"call-{number}", place))[0] for number in range(4)]
    claimed = await dispatches.claim(one, "w", LONG_S, 5)
    assert claimed.makes_room
    await dispatches.start(one, claimed.claim, "w", LONG_S)
    assert await dispatches.release_turns("a", 10) == []
    again = await dispatches.claim(two, "w", LONG_S, 5)
    await dispatches.release(two, again.claim, "w", GivenBack())
    assert await dispatches.release_turns("a", 10) == []
    await dispatches.withdraw(two)
    assert await dispatches.release_turns("a", 10) == [three]
    await store.forget(CallKey(SCOPE, "call-0"))
    assert await dispatches.release_turns("a", 10) == [four]


async def test_a_call_that_waits_for_its_turn_can_be_ended_and_is_not_published(store, dispatches):
    place = {"caller": "a", "published_max": 1}
    await queued(store, "call-1", place)
    number, _ = await queued(store, "call-2", place)
    assert number not in {call.number for call in await dispatches.due(0.0, 10)}
    assert await dispatches.withdraw(number)
    assert await dispatches.release_turns("a", 5) == []
    await queued(store, "call-3", place)
    key = CallKey(SCOPE, "call-3")
    await store.suspend(key, [EndQueued()])
    assert await dispatches.waiting_callers(10) == []


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"caller": "a", "queued_max": 3}, "queued_calls: 3 calls of yours wait, 3 may"),
        ({"caller": "a", "queue_max": 3}, "3 calls wait for a worker, 3 may"),
    ],
)
async def test_calls_that_are_accepted_at_the_same_time_do_not_exceed_a_limit(store, dispatches, place, expected):
    first, _ = await queued(store, "first", place)
    await dispatches.claim(first, "w", LONG_S, 5)  # its program has not begun: it counts
    numbers = range(10 if "queued_max" in place else 2)
    at_once = [queued(store, f"call-{number}", place, f"conv-{number}") for number in numbers]
    found = await asyncio.gather(*at_once, return_exceptions=True)
    assert sum(not isinstance(each, Exception) for each in found) == 2
    with pytest.raises(QueueFullError, match=expected) as caught:
        await queued(store, "one-more", place)
    assert caught.value.retry_after_s
    fields = [error.field for error in caught.value.errors or ()]
    assert fields == (["queued_calls"] if "queued_max" in place else [])
    assert await store.find(SCOPE.principal, "one-more") == []
    assert (await queued(store, "first", place))[0] == first  # a known one is never refused


@pytest.mark.parametrize(
    ("place", "seconds"),
    [({"queued_max": 1}, 7), ({"queue_max": 1}, 3), ({"queued_max": 1, "next_s": (None, 3)}, 5)],
)
async def test_a_refused_call_is_told_when_a_place_is_free_as_far_as_it_is_known(store, place, seconds):
    place = {"caller": "a", "next_s": (7, 3), **place}
    await queued(store, "call-1", place)
    with pytest.raises(QueueFullError) as caught:
        await queued(store, "call-2", place)
    assert caught.value.retry_after_s == seconds


def report_of(answer):
    return json.loads(answer.body)["report"]


def limit(*processes, principal=ANN, **limits):
    """Give a caller limits, as a request with its key does."""
    for process in processes:
        process.tool.quotas.meter(principal.caller, Allowances(**limits))


async def test_waiting_calls_of_a_caller_are_counted_at_all_processes(place):
    async with opened_process(place, "api") as one, opened_process(place, "api") as other:
        limit(one, other, queued_calls=6)
        both = [one.calls, other.calls] * 10
        found = await asyncio.gather(
            *(submit(calls, f"call-{number}") for number, calls in enumerate(both)), return_exceptions=True
        )
        tickets = [each for each in found if not isinstance(each, BaseException)]
        assert len(tickets) == 6
        assert {type(each) for each in found if each not in tickets} == {QueueFullError}
        async with opened_process(place, "worker"):
            for ticket in tickets:
                assert report_of(await ticket.answer()).startswith("ran ")


def most_at_once(folder):
    """How many programs ran at the same time."""
    running, most = set(), 0
    for line in (folder / "notes").read_text().splitlines():
        what, name = line.split(" ", 1)
        if what == "began":
            running.add(name)
        elif what == "ended":
            running.discard(name)
        most = max(most, len(running))
    return most


async def test_the_limit_of_running_calls_holds_for_all_workers_together(place):
    async with (
        opened_process(place, "api") as one,
        opened_process(place, "api") as other,
        opened_process(place, "worker"),
        opened_process(place, "worker"),
    ):
        limit(one, other, running_calls=3)
        both = [one.calls, other.calls] * 7
        tickets = [await submit(calls, f"call-{number}", hold="go") for number, calls in enumerate(both)]
        await noted(place.folder, "began", 3)
        of_bob = [await submit(one.calls, f"bob-{number}", principal=BOB) for number in range(4)]
        for number, ticket in enumerate(of_bob):
            assert report_of(await ticket.answer()) == f"ran bob-{number}"
        assert len([name for name in notes(place.folder, "began") if name.startswith("call")]) == 3
        (place.folder / "go").touch()
        for number, ticket in enumerate(tickets):
            assert report_of(await ticket.answer()) == f"ran call-{number}"
    own = [line for line in (place.folder / "notes").read_text().splitlines() if "bob" not in line]
    (place.folder / "notes").write_text("\n".join(own))
    assert most_at_once(place.folder) == 3


async def test_many_calls_of_one_caller_are_not_before_the_one_of_another(place):
    many = 120
    async with opened_process(place, "api", running_max=1) as api:
        tickets = [await submit(api.calls, f"call-{number}") for number in range(many)]
        other = await submit(api.calls, "of-bob", principal=BOB)
        async with opened_process(place, "worker", running_max=1):
            assert report_of(await other.answer()) == "ran of-bob"
            for ticket in tickets:
                await ticket.answer()
    began = notes(place.folder, "began")
    assert began.index("of-bob") <= published_max(1)
    assert sorted(began) == sorted([f"call-{number}" for number in range(many)] + ["of-bob"])
    own = [int(name.removeprefix("call-")) for name in began if name != "of-bob"]
    # A caller's calls run in their order, but for those that two processes publish at the same moment.
    assert all(abs(place - number) <= published_max(1) for place, number in enumerate(own))


@pytest.mark.slow
async def test_calls_that_wait_for_their_turn_run_although_all_before_them_were_cancelled(place):
    first = published_max(4)
    async with opened_process(place, "api") as api:
        await asyncio.gather(*(submit(api.calls, f"call-{number}", detached=True) for number in range(first)))
        last = await submit(api.calls, "last")
        for number in range(first):
            await api.calls.cancel(ANN, f"call-{number}", None)
        async with opened_process(place, "worker"):
            assert report_of(await last.answer()) == "ran last"
    assert notes(place.folder, "began") == ["last"]


async def test_a_refused_call_is_told_how_fast_the_calls_of_its_caller_got_workers(place):
    now = [100.0]

    async def left(departures, waiting):
        while departures._waiting.total() != waiting:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)

    async with opened_process(place, "api") as api, opened_process(place, "worker", running_max=1):
        departures = api.dispatching.remote._parts.departures
        departures._clock = lambda: now[0]
        limit(api, queued_calls=2)
        tickets = [await submit(api.calls, "call-0", hold="go-0")]
        await left(departures, 0)
        tickets += [await submit(api.calls, f"call-{number}", hold="go") for number in (1, 2)]
        now[0] += 14
        (place.folder / "go-0").touch()
        await left(departures, 1)
        tickets.append(await submit(api.calls, "call-3", hold="go"))
        with pytest.raises(QueueFullError, match="2 calls of yours wait") as caught:
            await submit(api.calls, "call-4")
        assert (caught.value.retry_after_s, departures.next_s()) == (14, 7)
        (place.folder / "go").touch()
        assert [report_of(await ticket.answer()) for ticket in tickets] == [f"ran call-{n}" for n in range(4)]
        assert departures._own == {}
