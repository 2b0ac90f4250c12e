"""Calls that wait and cannot go on: unreadable, of a tool or run that is gone; nothing of them stays behind."""

import json

import pytest
from sqlalchemy import select, update

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.port import Alongside, CallKey, CallState, EffectRefusedError, NewCall
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.errors import UnknownToolError
from proofbox.service.gateway.call_effects import AcceptRunCall, EndLostCall
from proofbox.service.gateway.posting import Posting, RecordEnding, RecordError, StartRecord, WaitCard
from proofbox.service.gateway.waits.answers import WaitAnswers
from proofbox.service.gateway.waits.port import CloseWait, OpenWait, WaitState
from proofbox.service.gateway_errors import WaitCancelledError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.gateway.schema import runs
from proofbox.service.storage.gateway.waits import SqlWaitStore
from tests.store_contract.asking_tool import AskingTool, build_calls, outcome, stored_call
from tests.support.gateway_world import build_world, recorded_call


@pytest.fixture
def tool():
    return AskingTool()


@pytest.fixture
def calls(call_store, tool):
    return build_calls(call_store, tool)


async def leave_unreadable(call_store, scope, state):
    """A call of boot-1 whose request another release wrote: this one cannot read it."""
    key = CallKey(scope, "call-1")
    await call_store.claim(NewCall(key, "hash", '{"tool_call_id": "call-1", "gone": 1}', "boot-1", None))
    if state is CallState.WAITING:
        await call_store.suspend(key, [])


async def test_a_call_whose_request_cannot_be_read_any_more_does_not_stop_the_start(call_store, scope, tool):
    await leave_unreadable(call_store, scope, CallState.OPEN)
    assert await build_calls(call_store, tool, "boot-2").recover() == 1
    call = await stored_call(call_store, scope)
    assert (call.state, json.loads(call.answer)["code"]) == (CallState.FAILED, "shutting_down")


async def test_a_waiting_call_whose_request_cannot_be_read_any_more_can_be_cancelled(calls, call_store, scope):
    await leave_unreadable(call_store, scope, CallState.WAITING)
    assert (await calls.cancel(scope.principal, "call-1", None)).status == "cancelled"


async def test_an_answer_ends_a_waiting_call_whose_request_cannot_be_read_any_more(calls, call_store, scope):
    await leave_unreadable(call_store, scope, CallState.WAITING)
    assert await calls.waiting.resolve(await stored_call(call_store, scope), outcome(7), [])
    assert (await stored_call(call_store, scope)).state is CallState.FAILED


class LostTools:
    """The tools of runs of a release that does not know the tool any more."""

    async def prepare(self, _scope, _request, _lease):
        raise UnknownToolError("the run has no such tool")

    def conclude_lost(self, end):
        state = "failed" if end.state is CallState.FAILED else "cancelled"
        ending = RecordEnding(state, error=RecordError(end.code, end.message))
        return [EndLostCall(ending, 60.0)]


async def lose(database, world, *, waits=True):
    """A call of a run that shows its card and waits, and the calls of a later release without its tool."""
    store = SqlCallStore(database, call_effects())
    far = "2099-01-01T00:00:00.000Z"
    await database.write(lambda connection: connection.execute(update(runs).values(lease_until=far, holder="me")))
    key = CallKey(ConversationKey(world.principal, "run:run_1"), "call-1")
    request = ToolCallRequest(
        tool_id="gone", tool_call_id="call-1", conversation_id="run:run_1", run_id="run_1", params={}
    )
    call, posting = recorded_call(), Posting(world.space_id, "msg_1")
    accept = [AcceptRunCall(world.principal, "run_1", 1, 60.0), StartRecord(call, posting)]
    await store.claim(NewCall(key, "hash", request.model_dump_json(), "boot-1", None, accept))
    if waits:
        expires = "2020-01-01T00:00:00.000Z"
        await store.suspend(key, [OpenWait("wait_1", "space", call, posting, expires, WaitCard("wait_1", expires))])
    later = Calls({}, Admission(running_max=4, queue_max=4), store, CallSettings(0, "boot-2"), runs=LostTools())
    return store, later, key


async def stands(database, world, store):
    [call] = await store.find(world.principal, "call-1")
    [record] = await world.records()
    wait = await SqlWaitStore(database).get("wait_1")
    status = await database.read(lambda connection: connection.execute(select(runs.c.status)).scalar_one())
    return call.state, record["tool"]["state"], wait and wait.state, status


@pytest.mark.parametrize("how", ["cancelled", "answered", "expired", "restarted"])
async def test_a_call_that_cannot_be_prepared_again_leaves_nothing_that_waits(database, how):
    world = await build_world(database)
    store, later, _ = await lose(database, world, waits=how != "restarted")
    answers = WaitAnswers(SqlWaitStore(database), store, later.waiting, lambda *_: [], 60.0)
    if how == "cancelled":
        await later.cancel(world.principal, "call-1", None)
    elif how == "answered":
        [call] = await store.find(world.principal, "call-1")
        assert await later.waiting.resolve(call, outcome(7), [])
    elif how == "expired":
        assert await answers.expire_overdue() == 1
    else:
        await later.recover()
    state = CallState.CANCELLED if how == "cancelled" else CallState.FAILED
    ended = {"restarted": None, "expired": WaitState.EXPIRED}.get(how, WaitState.CANCELLED)
    assert await stands(database, world, store) == (state, state.value, ended, "running")
    assert await answers.expire_overdue() == 0


async def end_run(database):
    await database.write(lambda connection: connection.execute(update(runs).values(status="cancelled")))


async def test_a_wait_of_a_run_that_has_ended_takes_no_answer(database):
    world = await build_world(database)
    store, later, key = await lose(database, world)
    await end_run(database)
    closing = CloseWait("wait_1", WaitState.ANSWERED, "2019-01-01T00:00:00.000Z", '{"result": 1}')
    with pytest.raises(WaitCancelledError, match="its run has ended"):
        await store.resume(key, "boot-2", [closing])
    await later.cancel(world.principal, "call-1", None)
    assert await stands(database, world, store) == (
        CallState.CANCELLED,
        "cancelled",
        WaitState.CANCELLED,
        "cancelled",
    )


async def test_a_call_of_a_run_that_has_ended_does_not_begin_to_wait(database):
    world = await build_world(database)
    store, _, key = await lose(database, world, waits=False)
    await end_run(database)
    opened = OpenWait("wait_1", "external", recorded_call(), Posting(), "2099-01-01T00:00:00.000Z")
    with pytest.raises(EffectRefusedError, match="has ended"):
        await store.suspend(key, [opened])
    assert await SqlWaitStore(database).get("wait_1") is None


async def test_a_wait_whose_call_has_ended_is_closed_when_it_expires(database):
    world = await build_world(database)
    store, later, key = await lose(database, world)
    await store.finish(key, CallState.FAILED, "{}", also=Alongside(was=CallState.WAITING))
    answers = WaitAnswers(SqlWaitStore(database), store, later.waiting, lambda *_: [], 60.0)
    assert (await answers.expire_overdue(), await answers.expire_overdue()) == (1, 0)
    assert (await stands(database, world, store))[2:] == (WaitState.CANCELLED, "running")
