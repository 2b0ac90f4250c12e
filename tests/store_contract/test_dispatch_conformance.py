"""What holds of a call whoever runs it: the process that accepted it, or a worker over NATS."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.calls.suspension import WaitOutcome
from proofbox.service.errors import IdReusedError, QueueFullError
from proofbox.service.storage.calls import SqlCallStore
from tests.support.dispatching import SCOPE, Place, RecordingTool, noted, notes, opened_process, submit


@dataclass
class Service:
    """A service: two APIs for its clients, which are one in a service of one process."""

    calls: Calls
    other: Calls
    store: SqlCallStore
    folder: object


@asynccontextmanager
async def local_service(place, opened_database, grace_s, queue_max):
    async with opened_database(place.folder / "data", place.url) as database:
        store, admission = SqlCallStore(database), Admission(running_max=4, queue_max=queue_max)
        tool = RecordingTool(place.folder, admission)
        calls = Calls({"a.tool": tool}, admission, store, CallSettings(100_000, "boot", "0", grace_s))
        try:
            yield Service(calls, calls, store, place.folder)
        finally:
            await calls.close(0)


@asynccontextmanager
async def nats_service(place, grace_s, queue_max):
    async with (
        opened_process(place, "api", grace_s, queue_max=queue_max) as one,
        opened_process(place, "api", grace_s, queue_max=queue_max) as other,
        opened_process(place, "worker"),
        opened_process(place, "worker"),
    ):
        yield Service(one.calls, other.calls, one.store, place.folder)


@pytest.fixture(params=["local", "nats"])
def opened_service(request, tmp_path, postgres_url, opened_database):
    """Opens a service with a dispatcher."""

    def opened(grace_s=120.0, queue_max=100):
        if request.param == "local":
            return local_service(Place(tmp_path, postgres_url, {}), opened_database, grace_s, queue_max)
        return nats_service(request.getfixturevalue("place"), grace_s, queue_max)

    return opened


async def status_of(calls, tool_call_id="call-1"):
    return await calls.status(SCOPE.principal, tool_call_id, None)


async def ended(calls, tool_call_id="call-1"):
    while (status := await status_of(calls, tool_call_id)).status in {"queued", "running", "waiting"}:  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.01)
    return status


async def events_of(calls, after=0):
    followed = await calls.events(SCOPE.principal, "call-1", None, after=after)
    return [(event.id, event.name) async for event in followed]


async def test_a_call_runs_once_and_its_answer_is_given_again_everywhere(opened_service):
    async with opened_service() as service:
        first = await (await submit(service.calls)).answer()
        assert json.loads(first.body)["report"] == "ran call-1"
        for calls in (service.calls, service.other):
            ticket = await submit(calls)
            assert (ticket.replayed, (await ticket.answer()).body) == (True, first.body)
        assert notes(service.folder, "began") == ["call-1"]


async def test_the_same_call_at_two_processes_is_joined(opened_service):
    async with opened_service() as service:
        tickets = await asyncio.gather(*(submit(calls, hold="go") for calls in (service.calls, service.other) * 5))
        await noted(service.folder, "began")
        (service.folder / "go").touch()
        bodies = {(await ticket.answer()).body for ticket in tickets}
        assert len(bodies) == 1
        assert notes(service.folder, "began") == ["call-1"]


async def test_another_payload_under_the_id_or_the_name_is_refused(opened_service):
    async with opened_service() as service:
        await (await submit(service.calls, name="n")).answer()
        with pytest.raises(IdReusedError):
            await submit(service.other, more=1)
        with pytest.raises(IdReusedError):
            await submit(service.other, "call-2", name="n")


async def test_a_call_is_cancelled_from_another_process(opened_service):
    async with opened_service() as service:
        ticket = await submit(service.calls, hold="never")
        await noted(service.folder, "began")
        status = await service.other.cancel(SCOPE.principal, "call-1", None)
        assert (status.status, status.response.report.startswith("the call was cancelled while")) == (
            "cancelled",
            True,
        )
        answer = await ticket.answer()
        assert (answer.http_status, json.loads(answer.body)["code"]) == (409, "cancelled")
        assert notes(service.folder, "ended") == []


async def test_events_are_the_same_everywhere_and_none_is_missed(opened_service):
    texts = [f"line {number}" for number in range(50)]
    async with opened_service() as service:
        await submit(service.calls, hold="go", prints=texts, detached=True)
        await noted(service.folder, "began")
        followed = [await service.other.events(SCOPE.principal, "call-1", None, after=at) for at in (0, 10)]
        begun = [await anext(events) for events in followed]
        (service.folder / "go").touch()
        expected = [(1, "queued"), (2, "started"), *((at, "stdout") for at in range(3, 53)), (53, "result")]
        for first, events, after in zip(begun, followed, (0, 10), strict=True):
            rest = [(event.id, event.name) async for event in events]
            assert [(first.id, first.name), *rest] == expected[after:]
        for calls in (service.calls, service.other):
            assert await events_of(calls) == expected
            assert await events_of(calls, after=10) == expected[10:]


async def test_a_detached_call_runs_to_its_end_and_every_process_knows_it(opened_service):
    async with opened_service(grace_s=0) as service:
        ticket = await submit(service.calls, detached=True)
        await ticket.leave()
        assert (await ended(service.other)).response.report == "ran call-1"


async def test_a_call_without_clients_is_cancelled(opened_service):
    async with opened_service(grace_s=0) as service:
        ticket = await submit(service.calls, hold="never")
        await noted(service.folder, "began")
        await ticket.leave()
        assert (await ended(service.other)).problem.code == "cancelled"


async def test_a_call_that_another_process_follows_is_not_abandoned(opened_service):
    async with opened_service(grace_s=0) as service:
        ticket = await submit(service.calls, hold="go")
        await noted(service.folder, "began")
        joined = await submit(service.other, hold="go")
        left = await submit(service.calls, "call-2", hold="never")
        await noted(service.folder, "began", 2)
        await ticket.leave()
        await left.leave()
        assert (await ended(service.other, "call-2")).problem.code == "cancelled"  # the other one would be, too
        (service.folder / "go").touch()
        assert json.loads((await joined.answer()).body)["report"] == "ran call-1"


async def test_a_call_that_waits_is_answered_at_any_process(opened_service):
    async with opened_service() as service:
        ticket = await submit(service.calls, waits=True)
        answer = await ticket.answer()
        assert (answer.http_status, json.loads(answer.body)["status"]) == (202, "waiting")
        [stored] = await service.store.find(SCOPE.principal, "call-1")
        outcome = WaitOutcome("space", "result", "yes", "human:ann", {})
        assert await service.other.waiting.resolve(stored, outcome, ())
        assert json.loads((await asyncio.shield(ticket.ended())).body)["report"] == "answered yes"


async def test_a_call_runs_on_after_its_wait_and_its_clients_follow_it(opened_service):
    async with opened_service() as service:
        ticket = await submit(service.calls, waits=True)
        await ticket.answer()
        follow = asyncio.create_task(events_of(service.calls))
        [stored] = await service.store.find(SCOPE.principal, "call-1")
        assert await service.other.waiting.resolve(stored, WaitOutcome("space", "result", "go", "a", {}), ())
        assert json.loads((await asyncio.shield(ticket.ended())).body)["report"] == "ran on"
        names = ["queued", "started", "waiting", "result"]
        assert await follow == list(enumerate(names, 1))
        assert notes(service.folder, "ran on") == ["call-1"]


async def test_who_asks_for_a_call_as_it_runs_on_gets_its_events_from_the_first_one(opened_service):
    async with opened_service() as service:
        ticket = await submit(service.calls, waits=True, goes_on="end")
        await ticket.answer()
        [stored] = await service.store.find(SCOPE.principal, "call-1")
        assert await service.other.waiting.resolve(stored, WaitOutcome("space", "result", "go", "a", {}), ())
        events = await service.calls.events(SCOPE.principal, "call-1", None, after=0)
        joined = await submit(service.calls, waits=True, goes_on="end")
        (service.folder / "end").touch()
        names = ["queued", "started", "waiting", "result"]
        assert [(event.id, event.name) async for event in events] == list(enumerate(names, 1))
        for each in (ticket, joined):
            assert json.loads((await asyncio.shield(each.ended())).body)["report"] == "ran on"
        assert await events_of(service.calls) == list(enumerate(names, 1))


async def test_more_calls_than_may_wait_are_refused_and_those_that_are_known_are_not(opened_service):
    async with opened_service(queue_max=2) as service:
        refused = 0
        for number in range(10, 40):
            try:
                await submit(service.calls, f"call-{number}", hold="later")
            except QueueFullError:
                refused += 1
        assert refused > 0
        (service.folder / "later").touch()


async def test_events_that_were_lost_are_fetched_before_the_last_one(place):
    texts = [f"line {number}" for number in range(5)]
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        await submit(api.calls, prepares="go", prints=texts, detached=True)
        followed = await api.calls.events(SCOPE.principal, "call-1", None, after=0)
        await noted(place.folder, "claimed")
        link, [stored] = api.dispatching.link, await api.store.find(SCOPE.principal, "call-1")
        subject = link.subject("events", stored.number)
        [subscription] = [each for each in link.client._subs.values() if each.subject == subject]
        await subscription.unsubscribe()  # from now on all messages are lost
        (place.folder / "go").touch()
        names = ["queued", "started", *["stdout"] * len(texts), "result"]
        assert [(event.id, event.name) async for event in followed] == list(enumerate(names, 1))


async def test_a_call_that_waits_for_its_packages_takes_no_slot_of_a_worker_but_only_so_many_do(place):
    async with opened_process(place, "all", running_max=1) as process:
        installing = [await submit(process.calls, "call-1", installs="installed")]
        await noted(place.folder, "claimed")
        assert json.loads((await (await submit(process.calls, "call-2")).answer()).body)["report"] == "ran call-2"
        installing.append(await submit(process.calls, "call-3", installs="installed"))
        await noted(place.folder, "claimed", 2)
        waiting = await submit(process.calls, "call-4")
        (place.folder / "installed").touch()
        for ticket in (*installing, waiting):
            await ticket.answer()
        assert sorted(notes(place.folder, "ended")) == ["call-1", "call-2", "call-3", "call-4"]
