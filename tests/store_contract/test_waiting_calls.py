"""Calls that wait for an answer from outside, on every database: restarted, cancelled, joined and answered."""

import asyncio
import json

import pytest
from sqlalchemy import select

from proofbox.service.calls.interruptions import SERVICE_STOPPED
from proofbox.service.calls.port import CallState, EffectRefusedError
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.schema import calls as calls_table
from tests.store_contract.asking_tool import (
    AskingTool,
    build_calls,
    events_of,
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
    followed = await calls.events(scope.principal, "call-1", None, after=0)
    assert (await anext(followed)).name == "waiting"
    following = asyncio.create_task(anext(followed, None))
    ended = ticket.ended()
    await asyncio.sleep(0)  # it follows
    await calls.close(0)
    assert await following is None
    assert (await ended).http_status == 202
    assert (await stored_call(call_store, scope)).state is CallState.WAITING
