"""Callbacks of services that are faster than the service stores the wait for them, on every database."""

import asyncio
import json

from proofbox.service.gateway.waits.callbacks import CallbackWaits
from proofbox.service.storage.gateway.waits import SqlWaitStore
from tests.support.asking import opened_asking
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


async def test_callbacks_before_their_wait_is_stored_read_it_twice_together(database_url, tmp_path):
    came, goes_on = asyncio.Event(), asyncio.Event()

    async def answer(writer):
        came.set()
        await goes_on.wait()
        writer.write(response(b"", "application/json", 202))

    async with opened_asking(tmp_path, database_url) as asking, recording_server() as receiver:
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
    assert waits.reads == 2
