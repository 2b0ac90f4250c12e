"""Calls that wait for an answer from outside, on every database: restarted, cancelled, joined and answered."""

import asyncio
import json

import pytest
from sqlalchemy import select, update

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import EnvelopeError, ToolCallResponse
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.interruptions import SERVICE_STOPPED
from proofbox.service.calls.port import Alongside, CallKey, CallState, EffectRefusedError, NewCall
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.calls.suspension import Suspension, WaitOutcome
from proofbox.service.calls.tool import PreparedCall
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
from proofbox.service.storage.schema import calls as calls_table
from tests.support.gateway_world import build_world, recorded_call


def response(report, *, ok=True):
    error = None if ok else EnvelopeError(code="failed", message=report, where="run", managed=True)
    return ToolCallResponse(ok=ok, error=error, report=report, blocks=[])


def outcome(value):
    return WaitOutcome("space", "result", value, "human:ann", {})


class AskingTool:
    """A tool that waits for an answer; the answer ``go`` lets it run on."""

    def __init__(self, effects=()):
        self.runs = []
        self._effects = effects

    def prepare(self, _scope, _request):
        async def run(_observer):
            self.runs.append("asked")
            return Suspension(self._effects, lambda code, message: response(f"{code}: {message}", ok=False))

        async def run_on(_observer):
            self.runs.append("ran on")
            return response("ran on")

        async def resume(ended):
            return run_on if ended.value == "go" else response(f"answered {ended.value}")

        return PreparedCall(run, lambda why: response(why.message, ok=False), resume=resume)


@pytest.fixture
def tool():
    return AskingTool()


def build_calls(call_store, tool, boot_id="boot-1"):
    admission = Admission(running_max=4, queue_max=4)
    return Calls({"a.tool": tool}, admission, call_store, CallSettings(10_000, boot_id))


@pytest.fixture
def calls(call_store, tool):
    return build_calls(call_store, tool)


async def submit(calls, scope, tool_call_id="call-1"):
    request = ToolCallRequest(tool_id="a.tool", tool_call_id=tool_call_id, conversation_id="conv-1", params={})
    return await calls.submit(scope.principal, request, idempotency_key=None, request_id="r", detached=False)


async def stored_call(call_store, scope, tool_call_id="call-1"):
    [found] = await call_store.find(scope.principal, tool_call_id)
    return found


async def events_of(calls, scope, after=0):
    followed = await calls.events(scope.principal, "call-1", None, after=after)
    return [event async for event in followed]


async def test_a_call_that_waits_answers_202_and_is_stored_as_waiting(calls, call_store, scope):
    answer = await (await submit(calls, scope)).answer()
    assert (answer.http_status, answer.is_problem) == (202, False)
    assert (await stored_call(call_store, scope)).state is CallState.WAITING
    assert (await calls.status(scope.principal, "call-1", None)).status == "waiting"


async def test_a_repeated_call_joins_the_wait_and_runs_nothing(calls, scope, tool):
    await (await submit(calls, scope)).answer()
    again = await submit(calls, scope)
    assert (again.replayed, (await again.answer()).http_status, tool.runs) == (False, 202, ["asked"])


async def test_all_who_hold_a_request_open_get_the_answer(calls, call_store, scope):
    first = await submit(calls, scope)
    await first.answer()
    second = await submit(calls, scope)
    ended = [first.ended(), second.ended()]
    assert await calls.waiting.resolve(await stored_call(call_store, scope), outcome(7), [])
    answers = await asyncio.gather(*ended)
    assert [answer.http_status for answer in answers] == [200, 200]
    assert "answered 7" in answers[0].body


async def test_the_events_go_on_to_the_result(calls, call_store, scope):
    await (await submit(calls, scope)).answer()
    following = asyncio.create_task(events_of(calls, scope))
    await asyncio.sleep(0)
    await calls.waiting.resolve(await stored_call(call_store, scope), outcome(7), [])
    assert [(event.id, event.name) for event in await following] == [(1, "waiting"), (2, "result")]


async def test_a_waiting_call_outlives_its_process(call_store, scope, tool):
    await (await submit(build_calls(call_store, tool), scope)).answer()
    later = build_calls(call_store, tool, "boot-2")
    assert await later.recover() == 0
    assert (await (await submit(later, scope)).answer()).http_status == 202
    following = asyncio.create_task(events_of(later, scope, after=1))
    await asyncio.sleep(0.05)
    assert await later.waiting.resolve(await stored_call(call_store, scope), outcome(7), [])
    assert [event.name for event in await following] == ["result"]
    assert (await (await submit(later, scope)).answer()).http_status == 200
    assert tool.runs == ["asked"]


async def test_an_answer_may_let_the_call_run_on(calls, call_store, scope, tool):
    ticket = await submit(calls, scope)
    await ticket.answer()
    ended = ticket.ended()
    assert await calls.waiting.resolve(await stored_call(call_store, scope), outcome("go"), [])
    assert "ran on" in (await ended).body
    assert ((await stored_call(call_store, scope)).state, tool.runs) == (CallState.DONE, ["asked", "ran on"])


async def test_a_call_that_ran_on_is_interrupted_by_the_end_of_its_process(call_store, scope, tool):
    await (await submit(build_calls(call_store, tool), scope)).answer()
    await call_store.resume((await stored_call(call_store, scope)).key, "boot-1", [])
    later = build_calls(call_store, tool, "boot-2")
    assert await later.recover() == 1
    assert SERVICE_STOPPED.message in (await stored_call(call_store, scope)).answer
    assert tool.runs == ["asked"]


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


async def test_only_one_of_many_answers_is_taken(calls, call_store, scope):
    await (await submit(calls, scope)).answer()
    call = await stored_call(call_store, scope)
    taken = await asyncio.gather(*(calls.waiting.resolve(call, outcome(number), []) for number in range(20)))
    assert sum(taken) == 1
    winner = taken.index(True)
    assert f"answered {winner}" in (await stored_call(call_store, scope)).answer


async def test_of_many_that_let_it_run_on_one_does(calls, call_store, scope, tool):
    ticket = await submit(calls, scope)
    await ticket.answer()
    ended = ticket.ended()
    call = await stored_call(call_store, scope)
    taken = await asyncio.gather(*(calls.waiting.resolve(call, outcome("go"), []) for _ in range(5)))
    await ended
    assert (sum(taken), tool.runs) == (1, ["asked", "ran on"])


async def test_cancelling_ends_the_wait(calls, call_store, scope):
    ticket = await submit(calls, scope)
    await ticket.answer()
    ended = ticket.ended()
    status = await calls.cancel(scope.principal, "call-1", None)
    assert (status.status, status.problem.code) == ("cancelled", "cancelled")
    assert (await ended).is_problem
    assert not await calls.waiting.resolve(await stored_call(call_store, scope), outcome(7), [])


async def test_an_effect_that_refuses_gives_the_call_its_answer(database_url, opened_database, tmp_path, scope):
    def refuse(_connection, _call, _effect):
        raise EffectRefusedError("too_many_waits", "wait for answers first")

    async with opened_database(tmp_path / "data", database_url) as database:
        store = SqlCallStore(database, {int: refuse})
        answer = await (await submit(build_calls(store, AskingTool([1])), scope)).answer()
        assert "too_many_waits: wait for answers first" in answer.body
        assert (await stored_call(store, scope)).state is CallState.DONE


async def test_a_wait_that_can_never_be_stored_fails_its_call(database_url, opened_database, tmp_path, scope):
    def look_for_nothing(connection, _call, _effect):
        connection.execute(select(calls_table).where(calls_table.c.id < 0)).one()

    async with opened_database(tmp_path / "data", database_url) as database:
        store = SqlCallStore(database, {int: look_for_nothing})
        async with asyncio.timeout(20):
            answer = await (await submit(build_calls(store, AskingTool([1])), scope)).answer()
        assert json.loads(answer.body)["code"] == "store_failed"
        assert await store.find(scope.principal, "call-1") == []  # nothing of it ran, and it may come again


async def test_an_answer_is_stored_with_its_effects_or_not_at_all(database_url, opened_database, tmp_path, scope):
    def fail(_connection, _call, _effect):
        raise ValueError("the disk is gone")

    async with opened_database(tmp_path / "data", database_url) as database:
        store = SqlCallStore(database, {int: fail})
        calls = build_calls(store, AskingTool())
        await (await submit(calls, scope)).answer()
        with pytest.raises(ValueError, match="the disk is gone"):
            await calls.waiting.resolve(await stored_call(store, scope), outcome(7), [1])
        assert (await stored_call(store, scope)).state is CallState.WAITING
        assert await calls.waiting.resolve(await stored_call(store, scope), outcome(8), [])


async def test_the_end_of_the_service_lets_go_those_who_follow(calls, call_store, scope):
    ticket = await submit(calls, scope)
    await ticket.answer()
    following = asyncio.create_task(events_of(calls, scope))
    ended = ticket.ended()
    await asyncio.sleep(0.05)
    await calls.close(0)
    assert [event.name for event in await following] == ["waiting"]
    assert (await ended).http_status == 202
    assert (await stored_call(call_store, scope)).state is CallState.WAITING
