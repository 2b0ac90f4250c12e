"""Callbacks of services that are faster than the service stores the wait for them, on every database."""

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from proofbox.service.gateway.waits.callbacks import CallbackWaits
from proofbox.service.storage.gateway.waits import SqlWaitStore
from tests.support.asking import opened_asking
from tests.support.dispatching import joined
from tests.support.gateway_client import LOCAL
from tests.support.pipeline import NO_SERVER, opened_pipeline
from tests.support.recording_server import recording_server
from tests.support.web_server import response


class CountedWaits(SqlWaitStore):
    """Counts how often a wait is read."""

    def __init__(self, database):
        super().__init__(database)
        self.reads = 0
        self.was_read = asyncio.Event()

    async def get(self, wait_id):
        found = await super().get(wait_id)
        self.reads += 1
        self.was_read.set()
        return found


@asynccontextmanager
async def nats_asking(tmp_path, place):
    """A service whose worker sends the webhook, and stores the wait."""
    many = {"url": place.url, "shared": True, "keys_dir": str(tmp_path)}
    async with AsyncExitStack() as stack:
        asking = await stack.enter_async_context(opened_asking(tmp_path / "api", boot_id="boot-api", **many))
        opened = opened_pipeline(tmp_path / "worker", boot_id="boot-worker", **many, **LOCAL)
        worker = await stack.enter_async_context(opened)
        await stack.enter_async_context(joined(place, asking.pipeline, "api"))
        await stack.enter_async_context(joined(place, worker, "worker"))
        yield asking


@pytest.fixture(params=["sqlite", "postgres", "nats"])
async def asking(request, tmp_path, postgres_url):
    if request.param == "nats":
        opened = nats_asking(tmp_path, request.getfixturevalue("place"))
    else:
        opened = opened_asking(tmp_path, NO_SERVER if request.param == "sqlite" else postgres_url)
    async with opened as found:
        yield found


async def test_callbacks_before_their_wait_is_stored_read_it_twice_together(asking):
    came, goes_on = asyncio.Event(), asyncio.Event()

    async def answer(writer):
        came.set()
        await goes_on.wait()
        writer.write(response(b"", "application/json", 202))

    async with recording_server() as receiver:
        receiver.answers = [answer]
        tool = {"name": "notify", "executionType": "external", "execution": {"webhookUrl": receiver.url()}}
        await asking.enter(tool)
        asked = asyncio.create_task(asking.ask("notify"))
        await came.wait()
        token = json.loads(receiver.requests[0].body)["data"]["callback"]["token"]
        wait_id = asking.pipeline.gateway.services.waits.tokens.verify(token, "call-1")
        waits = CountedWaits(asking.pipeline.database)
        callbacks = CallbackWaits(waits, asking.pipeline.database.changes)
        early = [asyncio.create_task(callbacks.find(wait_id)) for _ in range(50)]
        await waits.was_read.wait()
        goes_on.set()
        assert {(await each).wait_id for each in early} == {wait_id} == {(await asked)["wait_id"]}
    if asking.pipeline.calls.dispatch.is_local:  # else all listeners look now and then
        assert waits.reads == 2
