"""The workspace of a conversation on many workers: one call has it at a time, and the next gets what it left."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewSave
from proofbox.service.calls.claim import CURRENT_CLAIM, ClaimId, ClaimLostError
from proofbox.service.calls.port import CallKey, NewCall
from proofbox.service.dispatch.effects import QueueCall
from proofbox.service.dispatch.port import GivenBack
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts.s3_blobs import S3BlobStore
from proofbox.service.storage.artifacts.store import SqlArtifactStore
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.claims import SqlDispatchStore
from proofbox.service.storage.dispatch.effects import dispatch_effects
from tests.store_contract.test_workspaces import content, new
from tests.support.dispatching import SCOPE

LONG_S = 1_000.0


class WorkerStores:
    """The stores of one worker, with a connection of its own to the database and the bucket."""

    def __init__(self, database, artifacts, name):
        self.artifacts, self.name = artifacts, name
        self.dispatches = SqlDispatchStore(database)
        self.calls = SqlCallStore(database, dispatch_effects())

    async def claim(self, tool_call_id, scope=SCOPE):
        """Accept a call and claim it for this worker."""
        new_call = NewCall(
            CallKey(scope, tool_call_id), "s", "{}", "b", None, (QueueCall(None, "r", detached=False),)
        )
        number = (await self.calls.claim(new_call))[0].number
        claimed = await self.dispatches.claim(number, self.name, LONG_S, 5)
        await self.dispatches.start(number, claimed.claim, self.name, LONG_S)
        return ClaimId(number, claimed.claim, self.name)


@pytest.fixture
async def workers(tmp_path, postgres_url, bucket):
    """Two workers that share the database and the bucket, and no folder."""

    @asynccontextmanager
    async def opened(name):
        folder = tmp_path / name
        database = Database(folder, postgres_url, shared=True)
        await database.open()
        artifacts = SqlArtifactStore(
            database, S3BlobStore(bucket, folder / "staging", 5 * 1024 * 1024, 900), owner=name
        )
        await artifacts.open()
        try:
            yield WorkerStores(database, artifacts, name)
        finally:
            await artifacts.close()
            await database.close()

    async with opened("worker-a") as one, opened("worker-b") as other:
        yield one, other


async def test_files_and_workspace_of_a_call_are_there_for_the_next_one_on_another_worker(workers, save):
    one, other = workers
    CURRENT_CLAIM.set(await one.claim("call-1"))
    await save(one.artifacts, SCOPE, {"turn_1/files/report.txt": b"the report"}, tool_call_id="call-1")
    async with one.artifacts.hold_workspace(SCOPE):
        await (
            await one.artifacts.prepare(NewSave(SCOPE, [], workspace=new(b"left by one", call="call-1")))
        ).store()
    CURRENT_CLAIM.set(await other.claim("call-2"))
    found = await other.artifacts.latest(SCOPE, FilePath.from_physical("turn_1/files/report.txt"))
    assert await other.artifacts.contents(SCOPE, [found]) == [b"the report"]
    async with other.artifacts.hold_workspace(SCOPE):
        assert await content(other.artifacts, SCOPE, await other.artifacts.workspace(SCOPE)) == b"left by one"


async def test_calls_of_two_workers_change_a_workspace_one_after_the_other(workers):
    holding = 0

    async def append(worker, name):
        nonlocal holding
        CURRENT_CLAIM.set(await worker.claim(name))
        async with worker.artifacts.hold_workspace(SCOPE):
            holding += 1
            assert holding == 1
            before = await worker.artifacts.workspace(SCOPE)
            data = b"" if before is None else await content(worker.artifacts, SCOPE, before)
            await (
                await worker.artifacts.prepare(
                    NewSave(SCOPE, [], workspace=new(data + name.encode() + b"\n", call=name))
                )
            ).store()
            holding -= 1

    names = [f"call-{number}" for number in range(8)]
    await asyncio.gather(*(append(workers[number % 2], name) for number, name in enumerate(names)))
    stored = await content(workers[0].artifacts, SCOPE, await workers[0].artifacts.workspace(SCOPE))
    assert sorted(stored.decode().splitlines()) == names


async def test_another_conversation_does_not_wait_and_a_call_that_was_lost_holds_nothing(workers):
    one, other = workers
    first = await one.claim("call-1")
    CURRENT_CLAIM.set(first)
    async with one.artifacts.hold_workspace(SCOPE):
        second = ConversationKey(SCOPE.principal, "conv-2")
        CURRENT_CLAIM.set(await other.claim("call-2", second))
        async with other.artifacts.hold_workspace(second):
            pass
        CURRENT_CLAIM.set(await other.claim("call-3"))
        waiting = asyncio.create_task(_hold(other))
        assert await one.dispatches.release(first.call, first.claim, first.worker, GivenBack())
        await waiting
        CURRENT_CLAIM.set(first)
    with pytest.raises(ClaimLostError):
        await _hold(one)
    again = await other.dispatches.claim(first.call, other.name, LONG_S, 5)
    CURRENT_CLAIM.set(await other.claim("call-4"))  # the claim alone gives no workspace
    await _hold(other)
    CURRENT_CLAIM.set(ClaimId(first.call, again.claim, other.name))
    await _hold(other)


async def _hold(worker):
    async with worker.artifacts.hold_workspace(SCOPE):
        pass
