"""The metrics of the queue: what the process that leads has read, and what each process has counted."""

import asyncio
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from proofbox.service.dispatch.held import ClaimKeeper, HeldClaim
from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from tests.support.dispatching import SCOPE, noted, opened_process, submit

LONG_S, EXPIRED_S = 1_000.0, -1.0
QUEUE = "proofbox_queue_"


def shown(process):
    """The metrics of a process: names, with the labels that they have."""
    families = text_string_to_metric_families(process.meter.text().decode())
    samples = [sample for family in families for sample in family.samples]
    return {" ".join([sample.name, *sample.labels.values()]): sample.value for sample in samples}


async def show_anew(process):
    """The same after one more round of its sweep."""
    await process.dispatching.sweep.sweep()
    return shown(process)


async def test_the_process_that_leads_shows_the_queue_and_each_one_what_it_has_counted(place):
    async with opened_process(place, "api") as leader, opened_process(place, "api") as other:
        ticket = await submit(leader.calls, hold="go")
        found = await show_anew(leader)
        assert (found[f"{QUEUE}waiting"], found[f"{QUEUE}held"], found["proofbox_workers"]) == (1, 0, 0)
        assert 0 < found[f"{QUEUE}oldest_seconds"] < 60
        async with opened_process(place, "worker") as worker:
            await noted(place.folder, "began")
            found = await show_anew(leader)
            assert (found[f"{QUEUE}waiting"], found[f"{QUEUE}held"], found["proofbox_workers"]) == (0, 1, 1)
            assert found[f"{QUEUE}oldest_seconds"] == 0
            assert (found["proofbox_nats_up"], found["proofbox_nats_links_lost_total"]) == (1, 0)
            counted = shown(worker)
            assert (counted[f"{QUEUE}deliveries_total first"], counted[f"{QUEUE}deliveries_total again"]) == (1, 0)
            (place.folder / "go").touch()
            await ticket.answer()
        found = await show_anew(other)
        assert [name for name in found if name.startswith((f"{QUEUE}waiting", "proofbox_workers"))] == []


async def test_calls_of_lost_workers_and_dead_letters_are_counted(place):
    async with opened_process(place, "api") as leader:
        dispatches = SqlDispatchStore(leader.dispatching.database)
        for name in ("begun", "claimed", "dead"):
            await submit(leader.calls, name, detached=True)
        numbers = {each.key.tool_call_id: each.number for each in await opened_calls(leader)}
        await dispatches.claim(numbers["dead"], "w1", LONG_S, 0)
        await dispatches.claim(numbers["begun"], "w1", LONG_S, 5)
        assert await dispatches.start(numbers["begun"], 1, "w1", EXPIRED_S)
        await dispatches.claim(numbers["claimed"], "w1", EXPIRED_S, 5)
        found = await show_anew(leader)
        assert found[f"{QUEUE}set_aside"] == 1
        lost = found[f"{QUEUE}lost_total begun"], found[f"{QUEUE}lost_total waiting"]
        assert lost == (1, 1)
        found = await show_anew(leader)
        assert (found[f"{QUEUE}held"], found[f"{QUEUE}waiting"], found[f"{QUEUE}expired"]) == (0, 1, 0)


async def opened_calls(process):
    """The calls of the test, by the store."""
    return [
        call for name in ("begun", "claimed", "dead") for call in await process.store.find(SCOPE.principal, name)
    ]


async def test_a_call_that_comes_again_is_counted_as_such(place):
    async with opened_process(place, "api") as api, opened_process(place, "worker") as worker:
        ticket = await submit(api.calls, engine="works")
        await noted(place.folder, "failed")
        (place.folder / "works").touch()
        await ticket.answer()
        assert shown(worker)[f"{QUEUE}deliveries_total again"] >= 1


async def test_a_worker_without_claims_asks_the_database_nothing(tmp_path):
    keeper = ClaimKeeper(SqlDispatchStore(Database(tmp_path)), "w1", LONG_S)  # which is not open
    await keeper.renew()
    keeper.claims[1] = HeldClaim(None, 1, 1, "w1", LONG_S, renewed_at=time.monotonic())
    with pytest.raises(StoreFailedError):
        await keeper.renew()


async def test_a_worker_claims_calls_as_long_as_its_process_can_report(tmp_path):
    keeper = ClaimKeeper(SqlDispatchStore(Database(tmp_path)), "w1", 0.03)
    while keeper.is_valid:  # noqa: ASYNC110 - two thirds of its lease
        await asyncio.sleep(0.001)
    keeper.note_answer(time.monotonic() + LONG_S)  # so that no stop of this process makes it old
    assert keeper.is_valid
