"""Processes that are killed or stopped while they have a call: it ends once, and its program never runs twice."""

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager

import pytest

from proofbox.service.calls.port import CallState
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from tests.support.dispatching import SCOPE, noted, notes, opened_process, response, submit


@pytest.fixture
def started(place):
    """Starts processes that may be killed."""

    @asynccontextmanager
    async def start(role="worker", **settings):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.store_contract.dying_worker",
            place.dump(),
            role,
            json.dumps(settings),
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            assert (await process.stdout.readline()).strip() == b"started"
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    return start


def report_of(answer):
    return json.loads(answer.body)["report"]


async def test_a_call_whose_worker_is_killed_ends_and_its_outcome_is_unknown(place, started):
    async with opened_process(place, "api") as api:
        async with started() as worker:
            ticket = await submit(api.calls, hold="go")
            await noted(place.folder, "began")
            worker.kill()
        async with opened_process(place, "worker"):
            answer = await ticket.answer()
        assert "its outcome is unknown" in report_of(answer)
        assert json.loads(answer.body)["error"]["code"] == "sandbox_failed"
        assert (notes(place.folder, "began"), notes(place.folder, "ended")) == (["call-1"], [])


@pytest.mark.slow
async def test_calls_are_found_although_the_queue_has_lost_them(place, started):
    async with opened_process(place, "api") as api:
        async with started() as worker:
            begun = await submit(api.calls, hold="go")
            claimed = await submit(api.calls, "call-2", prepares="ready")
            await noted(place.folder, "began")
            await noted(place.folder, "claimed")
            worker.kill()
        link = api.dispatching.link
        await link.client.request(f"$JS.API.STREAM.PURGE.{link.stream}", b"", timeout=10)
        (place.folder / "ready").touch()
        async with opened_process(place, "worker"):
            assert "its outcome is unknown" in report_of(await begun.answer())
            assert report_of(await claimed.answer()) == "ran call-2"


async def test_a_call_that_was_only_claimed_is_run_by_another_worker(place, started):
    async with opened_process(place, "api") as api:
        async with started() as worker:
            ticket = await submit(api.calls, prepares="ready")
            await noted(place.folder, "claimed")
            worker.kill()
        (place.folder / "ready").touch()
        async with opened_process(place, "worker"):
            assert report_of(await ticket.answer()) == "ran call-1"
        assert notes(place.folder, "began") == ["call-1"]


@pytest.mark.slow
async def test_a_stopped_worker_writes_no_end_when_it_goes_on(place, started):
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        async with started(running_max=4) as worker:
            tickets = [await submit(api.calls, f"call-{number}", hold="go") for number in range(8)]
            await noted(place.folder, "began", 8)
            worker.send_signal(signal.SIGSTOP)
            lost = await ended_as_unknown(tickets)
            assert len(lost) == 4  # those of the stopped one
            (place.folder / "go").touch()
            worker.send_signal(signal.SIGCONT)
            answers = [await ticket.answer() for ticket in tickets]
            await noted(place.folder, "ended", 4)
            worker.terminate()
            await worker.wait()
        again = [await (await submit(api.calls, f"call-{number}", hold="go")).answer() for number in range(8)]
        assert [answer.body for answer in again] == [answer.body for answer in answers]
        assert sum("is unknown" in report_of(answer) for answer in again) == 4
        assert sorted(notes(place.folder, "began")) == [f"call-{number}" for number in range(8)]


async def ended_as_unknown(tickets):
    """The tickets that have an answer although their programs go on; four of them."""
    waits = {asyncio.ensure_future(ticket.answer()) for ticket in tickets}
    lost = set()
    while len(lost) < 4:
        done, waits = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        lost |= done
    for wait in waits:
        wait.cancel()
    return lost


@pytest.mark.slow
async def test_a_stopped_worker_that_had_only_claimed_a_call_does_not_begin_it(place, started):
    async with opened_process(place, "api") as api, started() as worker:
        ticket = await submit(api.calls, prepares="ready")
        await noted(place.folder, "claimed")
        worker.send_signal(signal.SIGSTOP)
        async with opened_process(place, "worker"):
            await noted(place.folder, "claimed", 2)
            worker.send_signal(signal.SIGCONT)
            (place.folder / "ready").touch()
            assert report_of(await ticket.answer()) == "ran call-1"
            worker.terminate()
            await worker.wait()
        assert notes(place.folder, "began") == ["call-1"]


async def test_a_call_whose_api_process_is_killed_runs_on_and_is_found_by_another(place, started):
    async with opened_process(place, "worker"), opened_process(place, "api") as other:
        async with started("api") as api:
            await noted(place.folder, "began")
            api.kill()
        (place.folder / "go").touch()
        ticket = await submit(other.calls, hold="go")
        assert report_of(await ticket.answer()) == "ran call-1"
        assert notes(place.folder, "began") == ["call-1"]


@pytest.mark.slow
async def test_a_call_that_no_worker_can_begin_is_set_aside_and_released(place, started):
    async with opened_process(place, "api", dispatch_attempts_max=1) as api:
        async with started(dispatch_attempts_max=1) as worker:
            ticket = await submit(api.calls, prepares="ready", detached=True)
            await noted(place.folder, "claimed")
            worker.kill()
        async with opened_process(place, "worker", dispatch_attempts_max=1) as other:
            answer = await ticket.answer()
            assert (answer.http_status, json.loads(answer.body)["code"]) == (503, "set_aside")
            dispatches = SqlDispatchStore(other.dispatching.database)
            [dead] = await dispatches.dead(10)
            assert (dead.key.tool_call_id, dead.attempts, dead.tool_id) == ("call-1", 1, "a.tool")
            (place.folder / "ready").touch()
            assert await dispatches.release_dead(dead.number)
            assert report_of(await ticket.answer()) == "ran call-1"


@pytest.mark.slow
async def test_a_call_that_was_set_aside_can_be_cancelled(place, started):
    async with opened_process(place, "api") as api:
        async with started(dispatch_attempts_max=1) as worker:
            ticket = await submit(api.calls, prepares="ready")
            await noted(place.folder, "claimed")
            worker.kill()
        async with opened_process(place, "worker", dispatch_attempts_max=1):
            await ticket.answer()
            status = await api.calls.cancel(SCOPE.principal, "call-1", None)
            assert status.status == "cancelled"
        assert notes(place.folder, "began") == []


async def test_a_call_that_another_process_has_ended_is_not_queued_although_its_event_is_lost(place):
    async with opened_process(place, "api") as api:
        await submit(api.calls)
        [call] = await api.store.find(SCOPE.principal, "call-1")
        await api.store.finish(call.key, CallState.DONE, response("ended").model_dump_json())
        assert (await api.calls.status(SCOPE.principal, "call-1", None)).status == "done"


async def test_a_worker_that_stops_gives_back_what_it_has_not_begun(place):
    async with opened_process(place, "api") as api:
        async with opened_process(place, "worker"):
            ticket = await submit(api.calls, prepares="ready")
            await noted(place.folder, "claimed")
        (place.folder / "ready").touch()
        async with opened_process(place, "worker"):
            assert report_of(await ticket.answer()) == "ran call-1"
        assert notes(place.folder, "began") == ["call-1"]


@pytest.mark.slow
async def test_a_worker_without_its_database_kills_its_calls_before_another_can_have_them(place):
    lease = {"dispatch_lease_s": 9}
    async with opened_process(place, "api", **lease) as api, opened_process(place, "worker", **lease) as worker:
        await submit(api.calls, hold="never", detached=True)
        await noted(place.folder, "began")
        keeper = worker.dispatching.worker.keeper
        [held] = keeper.held.values()
        await worker.dispatching.database.close()
        await asyncio.wait([held.running.task])
        assert held.claim.is_lost
        assert await SqlDispatchStore(api.dispatching.database).lost(10) == []  # it is still valid
        assert notes(place.folder, "ended") == []
