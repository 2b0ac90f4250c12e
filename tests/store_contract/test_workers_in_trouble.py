"""Workers without a database or an engine, at a share, or about to stop: their calls end all the same."""

import asyncio
import json
import math
import time
from dataclasses import replace
from urllib.parse import urlsplit

import psycopg
import pytest
from pydantic import SecretStr

from proofbox.service.access.quotas import Share
from proofbox.service.calls.claim import ClaimLostError
from proofbox.service.calls.port import CallKey, CallState, NewCall
from proofbox.service.dispatch.effects import QueueCall
from proofbox.service.dispatch.held import HeldClaim
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.nats_settings import NatsSettings
from proofbox.service.dispatch.port import DispatchState, QueuedCall
from proofbox.service.dispatch.sweep import QueueSweep
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from proofbox.service.storage.dispatch.effects import dispatch_effects
from tests.support.cutting_relay import CuttingRelay
from tests.support.dispatching import SCOPE, Place, noted, notes, opened_process, request, submit

LONG_S = 1_000.0
BOB = replace(SCOPE.principal, tenant="other")


def report_of(answer):
    return json.loads(answer.body)["report"]


async def stored(store, *effects, tool_call_id="call-1"):
    """The number of a call that nobody has published."""
    body = request(tool_call_id).model_dump_json()
    new = NewCall(CallKey(SCOPE, tool_call_id), "sha", body, "boot-0", None, effects)
    return (await store.claim(new))[0].number


async def ended(store, tool_call_id="call-1"):
    """Waits for the answer of a call; the call."""
    while (found := (await store.find(SCOPE.principal, tool_call_id))[0]).answer is None:  # noqa: ASYNC110 - of another process
        await asyncio.sleep(0.02)
    return found


@pytest.mark.slow
async def test_a_call_that_a_worker_killed_while_its_database_was_away_ends(place):
    url = urlsplit(place.url.get_secret_value())
    async with CuttingRelay(url.port) as relay, opened_process(place, "api") as api:
        relayed = url._replace(netloc=url.netloc.replace(f":{url.port}", f":{urlsplit(relay.url).port}")).geturl()
        there = Place(place.folder, SecretStr(relayed), place.nats)
        async with opened_process(there, "worker") as worker:
            ticket = await submit(api.calls, hold="never")
            await noted(place.folder, "began")
            [held] = worker.dispatching.worker.keeper.held.values()
            relay.cut_before(b".")
            await asyncio.wait([held.running.task])
            relay.mend()
            assert "its outcome is unknown" in report_of(await ticket.answer())
        assert notes(place.folder, "began") == ["call-1"]


@pytest.mark.slow
async def test_a_call_whose_claim_was_stored_and_reported_as_failed_is_run(place):
    async with opened_process(place, "api") as api, opened_process(place, "worker") as worker:
        number = await stored(api.store, QueueCall(None, "r", detached=True))
        boot_id = worker.dispatching.link.name.removeprefix("proofbox-worker-")
        await SqlDispatchStore(api.dispatching.database).claim(number, boot_id, 3, 5)
        assert (await ended(api.store)).state is CallState.DONE
        assert notes(place.folder, "began") == ["call-1"]


_BLOCKED = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'UPDATE dispatches%'
"""


@pytest.mark.slow
async def test_calls_that_a_service_of_one_process_left_open_end(place):
    async with opened_process(place, "api") as api:
        await stored(api.store)
        assert "outcome is unknown" in (await ended(api.store)).answer


async def test_a_call_without_a_worker_ends_at_its_deadline(place):
    async with opened_process(place, "api", queue_s=0.1) as api:
        answer = await (await submit(api.calls)).answer()
        assert (answer.http_status, json.loads(answer.body)["code"]) == (503, "queue_timeout")
        assert (await ended(api.store)).state is CallState.FAILED


@pytest.mark.slow
async def test_a_worker_whose_engine_fails_pauses_and_sets_no_call_aside(place):
    async with (
        opened_process(place, "api") as api,
        opened_process(place, "worker", dispatch_attempts_max=2) as process,
    ):
        worker = process.dispatching.worker
        worker.require_engine()
        ticket = await submit(api.calls, engine="mended")
        await noted(place.folder, "failed", 3)
        while worker.keeper.claims:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.01)
        with pytest.raises(EngineUnavailableError, match="engine: 3 calls in a row could not begin"):
            worker.require_engine()
        (place.folder / "mended").touch()
        assert report_of(await ticket.answer()) == "ran call-1"
        worker.require_engine()


async def test_calls_of_one_caller_beyond_its_share_hold_up_no_other_caller(place):
    share = Share(running=1)
    more = {"running_max": 2, "dispatch_attempts_max": 1}
    async with opened_process(place, "api") as api, opened_process(place, "worker", share=share, **more):
        tickets = [await submit(api.calls, f"call-{number}", hold="go") for number in range(8)]
        await noted(place.folder, "began")
        other = await submit(api.calls, "of-bob", principal=BOB)
        assert report_of(await other.answer()) == "ran of-bob"
        assert len(notes(place.folder, "began")) == 2
        (place.folder / "go").touch()
        for number, ticket in enumerate(tickets):
            assert report_of(await ticket.answer()) == f"ran call-{number}"


async def test_a_call_that_is_claimed_while_its_worker_stops_is_given_back(place):
    async with opened_process(place, "api") as api:
        await submit(api.calls, hold="never", detached=True)
        with psycopg.connect(place.url.get_secret_value()) as lock:
            lock.execute("SELECT 1 FROM dispatches FOR UPDATE")
            async with opened_process(place, "worker", dispatch_attempts_max=1) as process:
                with psycopg.connect(place.url.get_secret_value(), autocommit=True) as look:
                    while not look.execute(_BLOCKED).fetchone()[0]:  # noqa: ASYNC110 - of another process
                        await asyncio.sleep(0.01)
                stopping = asyncio.create_task(process.dispatching.stop_work())
                await asyncio.sleep(0)  # it has begun
                lock.rollback()
                await stopping
                assert notes(place.folder, "began") == []
                [found] = await api.store.find(SCOPE.principal, "call-1")
                dispatches = SqlDispatchStore(api.dispatching.database)
                states = await dispatches.states([found.number])
                assert states == {found.number: (CallState.OPEN, DispatchState.QUEUED)}
                assert (await dispatches.claim(found.number, "w", LONG_S, 1)).claim == 2  # none was used up


@pytest.fixture
async def opened(opened_database, tmp_path, database_url):
    """The stores of calls and of dispatched calls."""
    async with opened_database(tmp_path, database_url) as database:
        yield SqlCallStore(database, dispatch_effects()), SqlDispatchStore(database)


@pytest.mark.parametrize("lease_s", [LONG_S, math.ulp(0.0)])
async def test_a_program_begins_only_while_its_claim_is_surely_valid(opened, lease_s):
    store, dispatches = opened
    number = await stored(store, QueueCall(None, "r", detached=True))
    await dispatches.claim(number, "w1", LONG_S, 5)
    claim = HeldClaim(dispatches, number, 1, "w1", lease_s, renewed_at=time.monotonic())
    if lease_s == LONG_S:
        await claim.start()
    else:  # as after a stop of the process
        with pytest.raises(ClaimLostError):
            await claim.start()
    assert (claim.has_started, claim.is_lost) == (lease_s == LONG_S, lease_s != LONG_S)


async def test_calls_that_nats_does_not_take_stay_due(opened):
    store, dispatches = opened
    numbers = [
        await stored(store, QueueCall(None, "r", detached=True), tool_call_id=f"call-{n}") for n in range(40)
    ]
    await dispatches.unpublish(numbers)
    link = NatsLink(NatsSettings(("nats://127.0.0.1:1",), "test", "test", 3.0))  # which is not open
    await QueueSweep(dispatches, None, link, None, 3.0, None).publish_due()
    assert {each.number for each in await dispatches.due(60, 100)} == set(numbers)
    assert QueuedCall(numbers[0], 0) not in await dispatches.due(60, 100)
