"""Calls that wait, with an answer or a failure in the moment between two steps, on every database."""

import asyncio

import pytest

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.calls import SqlCallStore
from tests.store_contract.asking_tool import (
    AskingTool,
    build_calls,
    events_of,
    opened_calls,
    outcome,
    stored_call,
    submit,
)


@pytest.fixture
def tool():
    return AskingTool()


@pytest.fixture
def calls(call_store, tool):
    return build_calls(call_store, tool)


class RacedStore(SqlCallStore):
    """A store where something happens right after one method: an answer, or a failed commit."""

    def __init__(self, database, method, after):
        super().__init__(database)
        self.method, self._after = method, after

    async def _then(self, method, result):
        if self.method == method:
            self.method = None
            await self._after()
        return result

    async def find(self, *args):
        return await self._then("find", await super().find(*args))

    async def claim(self, *args):
        return await self._then("claim", await super().claim(*args))

    async def suspend(self, *args):
        return await self._then("suspend", await super().suspend(*args))

    async def resume(self, *args):
        return await self._then("resume", await super().resume(*args))

    async def finish(self, *args):
        return await self._then("finish", await super().finish(*args))


async def fail_after_commit():
    raise StoreFailedError("the connection was lost at the commit")


@pytest.mark.parametrize("method", ["find", "claim", "suspend"])
async def test_an_answer_that_comes_before_the_call_is_followed_is_not_missed(
    database, call_store, scope, tool, method
):
    calls = build_calls(call_store, tool)

    async def answer():
        await calls.waiting.resolve(await stored_call(call_store, scope), outcome(7), [])

    later = build_calls(RacedStore(database, method, answer), tool, "boot-2")
    if method != "suspend":
        await (await submit(calls, scope)).answer()
    async with asyncio.timeout(20):
        if method == "find":
            assert (await events_of(later, scope))[-1].name == "result"
        else:
            ticket = await submit(later, scope)
            await ticket.answer()
            assert "answered 7" in (await ticket.ended()).body


@pytest.mark.parametrize(("given", "runs"), [(7, ["asked"]), ("go", ["asked", "ran on"])])
async def test_an_answer_may_come_before_it_is_known_that_the_call_waits(database, scope, tool, given, runs):
    suspended = asyncio.Event()

    async def fail():
        suspended.set()
        await fail_after_commit()

    store = RacedStore(database, "suspend", fail)
    calls = build_calls(store, tool)
    ticket = await submit(calls, scope)
    await suspended.wait()
    assert await calls.waiting.resolve(await stored_call(store, scope), outcome(given), [])
    async with asyncio.timeout(20):
        assert (await ticket.answer()).http_status in {200, 202}
        assert (await (await submit(calls, scope)).answer()).http_status == 200
    assert (tool.runs, await calls.is_busy(scope)) == (runs, False)


async def test_a_call_runs_on_although_the_commit_was_unsure(database, scope, tool):
    store = RacedStore(database, "resume", fail_after_commit)
    calls = build_calls(store, tool)
    ticket = await submit(calls, scope)
    await ticket.answer()
    ended = ticket.ended()
    assert await calls.waiting.resolve(await stored_call(store, scope), outcome("go"), [])
    async with asyncio.timeout(20):
        assert "ran on" in (await ended).body
    assert tool.runs == ["asked", "ran on"]


async def test_a_call_that_nothing_runs_after_an_unsure_commit_can_be_cancelled(database, scope, tool):
    async def fail():
        store.method = "find"  # whoever looks, until the test goes on: what follows the call may look late
        await fail_after_commit()

    store = RacedStore(database, "resume", fail)
    calls = build_calls(store, tool)
    await (await submit(calls, scope)).answer()
    call = await stored_call(store, scope)
    with pytest.raises(StoreFailedError):
        await calls.waiting.resolve(call, outcome("go"), [])
    store.method = None
    assert (await calls.cancel(scope.principal, "call-1", None)).status == "cancelled"
    assert tool.runs == ["asked"]


class TwiceUnsureStore(SqlCallStore):
    """A store whose first change fails after its commit; meanwhile another answer fails before its own."""

    def __init__(self, database):
        super().__init__(database)
        self.other = None
        self.refused = 0

    async def resume(self, *args):
        if self.other is None:
            raise StoreFailedError("the connection was lost before the commit")
        other, self.other = self.other, None
        stored = await super().resume(*args)
        assert stored is not None
        try:
            await other()
        except StoreFailedError:
            self.refused += 1
        raise StoreFailedError("the connection was lost at the commit")


async def test_of_two_answers_with_unsure_commits_one_runs_the_call_once(database, scope, tool):
    store = TwiceUnsureStore(database)
    async with opened_calls(store, tool) as calls:
        ticket = await submit(calls, scope)
        await ticket.answer()
        ended, call = ticket.ended(), await stored_call(store, scope)
        store.other = lambda: calls.waiting.resolve(call, outcome("go"), [])
        async with asyncio.timeout(20):
            assert await calls.waiting.resolve(call, outcome("go"), [])
            assert store.refused == 1
            assert "ran on" in (await ended).body
        assert tool.runs == ["asked", "ran on"]


async def test_a_call_whose_answer_is_stored_makes_its_conversation_busy_no_more(database, scope, tool):
    stored, goes_on = asyncio.Event(), asyncio.Event()

    async def hold():
        stored.set()
        await goes_on.wait()

    store = RacedStore(database, "finish", hold)
    calls = build_calls(store, tool)
    await (await submit(calls, scope)).answer()
    assert await calls.waiting.resolve(await stored_call(store, scope), outcome("go"), [])
    async with asyncio.timeout(20):
        await stored.wait()
        asked = asyncio.create_task(calls.is_busy(scope))
        goes_on.set()  # it has been asked by then
        assert await asked is False
