"""NATS servers that are killed: calls are accepted all the same, and run when a server is back."""

import asyncio
import json

import pytest

from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.nats_settings import NatsSettings
from proofbox.service.dispatch.streams import NatsRefusedError
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
        with pytest.raises(NatsRefusedError, match="JetStream"):
            await link.open()
    with pytest.raises(NatsRefusedError, match=r"nats_urls: no NATS server of nats://127.0.0.1:"):
        await link.open()


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
