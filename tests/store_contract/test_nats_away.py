"""NATS servers that are killed: calls are accepted all the same, and run when a server is back."""

import asyncio
import json
from types import SimpleNamespace

import httpx
import pytest
from fastapi import FastAPI

from proofbox.service.api.routes import health
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.nats_settings import NatsSettings
from proofbox.service.dispatch.streams import NatsRefusedError
from proofbox.service.storage.readiness import StoreReadiness
from tests.support.dispatching import SCOPE, Place, noted, notes, opened_process, submit
from tests.support.nats_broker import Broker, started


@pytest.fixture
async def broker(tmp_path):
    async with started(Broker(tmp_path / "nats")) as broker:
        yield broker


async def test_calls_run_on_and_are_accepted_while_nats_is_away(tmp_path, postgres_url, broker):
    place = Place(tmp_path, postgres_url, {"nats_urls": broker.url})
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        running = await submit(api.calls, "call-1", hold="go")
        await noted(place.folder, "began")
        await broker.kill()
        queued = await submit(api.calls, "call-2")
        assert (await api.calls.status(SCOPE.principal, "call-2", None)).status == "queued"
        (place.folder / "go").touch()
        assert json.loads((await running.answer()).body)["report"] == "ran call-1"  # found in the database
        await broker.start()
        assert json.loads((await queued.answer()).body)["report"] == "ran call-2"
        assert notes(place.folder, "began") == ["call-1", "call-2"]


async def test_a_call_is_cancelled_while_nats_is_away(tmp_path, postgres_url, broker):
    place = Place(tmp_path, postgres_url, {"nats_urls": broker.url})
    async with opened_process(place, "api") as api, opened_process(place, "worker"):
        ticket = await submit(api.calls, "call-1", hold="never")
        await noted(place.folder, "began")
        await broker.kill()
        await api.calls.cancel(SCOPE.principal, "call-1", None)
        assert json.loads((await ticket.answer()).body)["code"] == "cancelled"
        await broker.start()


@pytest.mark.slow
async def test_servers_that_cannot_be_used_are_refused_with_the_remedy(tmp_path):
    async with started(Broker(tmp_path, with_streams=False)) as broker:
        link = NatsLink(NatsSettings((broker.url,), "test", "test", 3.0))
        with pytest.raises(NatsRefusedError, match=r"nats_urls: no NATS server of \S+ has JetStream"):
            await link.open()


async def readyz(place, process):
    """What a process answers about itself over HTTP, beside the engine and the stores."""
    app = FastAPI()
    app.include_router(health.router)
    app.state.services = SimpleNamespace(
        draining=lambda: False,
        ping_s_max=5.0,
        ping_engine=_nothing,
        check_stores=StoreReadiness(process.dispatching.database, place.folder).check,
        find_away=process.dispatching.find_away,
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://p") as client:
        answer = await client.get("/readyz")
    return answer.status_code, answer.json()


async def _nothing():
    pass


AWAY = {"part": "nats", "cause": "the NATS servers do not answer; calls are accepted and wait"}


@pytest.mark.parametrize("role", ["api", "all"])
async def test_a_process_is_ready_while_nats_is_away_and_tells_that_it_is(tmp_path, postgres_url, broker, role):
    place = Place(tmp_path, postgres_url, {"nats_urls": broker.url})
    async with opened_process(place, role) as process:
        assert await readyz(place, process) == (200, {"status": "ok", "degraded": []})
        assert 'proofbox_degraded{part="nats"} 0.0' in process.meter.text().decode()
        await broker.kill()
        while process.dispatching.link.is_up:  # noqa: ASYNC110 - of a server
            await asyncio.sleep(0.01)
        assert await readyz(place, process) == (200, {"status": "ok", "degraded": [AWAY]})
        assert 'proofbox_degraded{part="nats"} 1.0' in process.meter.text().decode()
        await broker.start()
        while await process.dispatching.find_away():  # noqa: ASYNC110 - of a server
            await asyncio.sleep(0.02)
        assert (await readyz(place, process))[1]["degraded"] == []


async def test_processes_start_while_nats_is_away_and_run_their_calls_when_it_is_there(tmp_path, postgres_url):
    broker = Broker(tmp_path / "nats")
    place = Place(tmp_path, postgres_url, {"nats_urls": broker.url})
    async with opened_process(place, "api") as api, opened_process(place, "worker") as worker:
        ticket = await submit(api.calls, "call-1")
        detached = await submit(api.calls, "call-2", detached=True)
        assert (await api.calls.status(SCOPE.principal, "call-1", None)).status == "queued"
        assert await readyz(place, api) == (200, {"status": "ok", "degraded": [AWAY]})
        assert await worker.dispatching.find_away() == {"nats": AWAY["cause"]}
        async with started(broker):
            assert json.loads((await ticket.answer()).body)["report"] == "ran call-1"
            assert json.loads((await detached.answer()).body)["report"] == "ran call-2"
            assert sorted(notes(place.folder, "began")) == ["call-1", "call-2"]
            assert await api.dispatching.find_away() == {}
            assert "proofbox_nats_links_lost_total 0.0" in api.meter.text().decode()


async def test_a_process_that_started_without_nats_stops_at_once(tmp_path, postgres_url):
    place = Place(tmp_path, postgres_url, {"nats_urls": Broker(tmp_path / "nats").url})
    async with asyncio.timeout(10), opened_process(place, "all"):
        pass


async def test_a_process_without_its_link_shows_that_and_gives_the_queue_to_another_one(
    tmp_path, postgres_url, broker
):
    there = Broker(tmp_path / "other")
    place = Place(tmp_path, postgres_url, {"nats_urls": broker.url})
    async with opened_process(place, "api") as first:
        assert first.dispatching.membership.leads_queue
        await broker.kill()
        async with (
            started(there),
            opened_process(Place(tmp_path, postgres_url, {"nats_urls": there.url}), "api") as other,
        ):
            while not other.dispatching.membership.leads_queue:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.02)
            assert first.dispatching.membership.leads
            assert not first.dispatching.membership.leads_queue
            text = first.meter.text().decode()
            assert "proofbox_nats_up 0.0" in text
            assert "proofbox_nats_links_lost_total 1.0" in text
        await broker.start()
