"""What the store of runs promises, on each database."""

import asyncio
import json

import pytest

from proofbox.contracts.gateway.runs import RunFinish
from proofbox.service.calls.port import Alongside, CallKey, CallState, NewCall
from proofbox.service.errors import IdReusedError, QueueFullError
from proofbox.service.gateway.agents.port import NewVersion
from proofbox.service.gateway.call_effects import AcceptRunCall, EndRunCall
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool, PinnedTools
from proofbox.service.gateway.posting import Posting
from proofbox.service.gateway.runs import RunParts, Runs
from proofbox.service.gateway.runs_port import (
    RUN_QUEUED_MAX,
    AgentMovedError,
    NewRun,
    QueuedKind,
    RunEnd,
    RunFilter,
    RunLimits,
    RunStatus,
)
from proofbox.service.gateway.spaces.port import RequestKey
from proofbox.service.gateway.waits.port import CancelWaits, OpenWait
from proofbox.service.gateway_errors import (
    LeaseLostError,
    RunEndedError,
    RunNotRunningError,
    UnknownAgentError,
    UnknownRunError,
    UnknownSpaceError,
)
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.storage.calls import SqlCallStore
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.gateway.effects import call_effects
from proofbox.service.storage.gateway.runs import SqlRunStore
from tests.support.gateway_world import copy_run, recorded_call, shown_tool

ANN = Principal("acme", "books", "registered", "ann")
BOB = Principal("acme", "books", "registered", "bob")
STRANGER = Principal("acme", "films", "registered", "ann")
PAST = "2020-01-01T00:00:00.000Z"


@pytest.fixture
async def run_store(database):
    document = json.dumps({"version": "2", "agent": {"name": "Helper"}, "tools": []})
    await SqlAgentStore(database).write(ANN, "helper", NewVersion("Helper", document, "a" * 64), None)
    return SqlRunStore(database, RunLimits(lease_s=60, work_s=1_000, running_max=2))


@pytest.fixture
def calls(database):
    return SqlCallStore(database, call_effects())


def new(number=1, **more):
    run_id = f"run_{number}"
    fields = {"conversation_id": f"run:{run_id}", "trigger": {"type": "manual"}, **more}
    return NewRun(run_id=run_id, agent_id="helper", **fields)


async def made(store, number=1, principal=ANN, **more):
    run, _ = await store.create(principal, new(number, **more))
    return run


async def names(store, run_id="run_1"):
    return [event.name for event in await store.events(ANN, run_id, 0, 100)]


def a_call(number=1, lease=1, principal=ANN, run_id="run_1"):
    effect = AcceptRunCall(principal, run_id, lease, 60)
    key = CallKey(ConversationKey(principal, f"run:{run_id}"), f"call-{number}")
    return NewCall(key, f"{number}" * 64, "{}", "boot-1", None, [effect])


async def end(calls, key):
    return await calls.finish(key, CallState.DONE, "{}", also=Alongside(effects=[EndRunCall(60)]))


async def test_the_creator_of_a_run_holds_its_first_lease(run_store):
    run = await made(run_store, metadata={"a": [1]})
    assert (run.status, run.lease, run.is_held, run.attempt) == (RunStatus.RUNNING, 1, True, 1)
    assert (run.principal, run.conversation_id, run.agent_version) == (ANN, "run:run_1", 1)
    assert run.metadata == {"a": [1]}
    assert run.started is not None
    assert run.lease_until > run.created
    assert await run_store.find(ANN, "run_1") == run
    assert await names(run_store) == ["run.started"]


async def test_a_run_that_another_principal_has_claimed_is_not_there_for_its_holders_part(run_store, calls):
    await made(run_store)
    end = RunEnd(RunStatus.COMPLETED)
    for asked in (
        run_store.require(BOB, "run_1", 1),
        run_store.renew(BOB, "run_1", 1, 60),
        run_store.release(BOB, "run_1", 1),
        run_store.finish(BOB, "run_1", 1, end, cancel_waits=True),
        run_store.context(BOB, "run_1"),
        calls.claim(a_call(principal=BOB)),
    ):
        with pytest.raises(UnknownRunError):
            await asked
    assert (await run_store.find(BOB, "run_1")).status is RunStatus.RUNNING
    await made(run_store, 2, queued=True)
    assert (await run_store.context(BOB, "run_2")).calls == []


async def test_unknown_agents_spaces_and_runs_of_another_project_are_not_there(run_store):
    await made(run_store)
    with pytest.raises(UnknownAgentError):
        await run_store.create(STRANGER, new(2))
    with pytest.raises(UnknownSpaceError):
        await run_store.create(ANN, new(2, space_id="space_9"))
    with pytest.raises(UnknownRunError):
        await run_store.find(STRANGER, "run_1")
    with pytest.raises(UnknownRunError):
        await run_store.renew(STRANGER, "run_1", 1, 60)
    assert await run_store.list(STRANGER, RunFilter()) == []


async def test_a_queued_run_goes_to_one_of_twenty_claims(run_store):
    run = await made(run_store, queued=True)
    assert (run.status, run.lease, run.is_held, run.principal) == (RunStatus.QUEUED, 0, False, None)
    claims = await asyncio.gather(*(run_store.claim(BOB, None, 60) for _ in range(20)))
    [claimed] = [claim for claim in claims if claim is not None]
    assert (claimed.run_id, claimed.lease, claimed.principal) == ("run_1", 1, BOB)
    assert await names(run_store) == ["run.queued", "run.started"]


async def test_a_claim_takes_the_oldest_run_of_the_named_agents(run_store):
    await made(run_store, 1, queued=True)
    await made(run_store, 2, queued=True)
    assert await run_store.claim(ANN, ["other"], 60) is None
    assert (await run_store.claim(ANN, ["other", "helper"], 60)).run_id == "run_1"


async def test_a_released_run_comes_back_to_its_user_only_and_fences_off_the_old_holder(run_store):
    await made(run_store)
    released = await run_store.release(ANN, "run_1", 1)
    assert (released.status, released.is_held, released.attempt) == (RunStatus.QUEUED, False, 1)
    with pytest.raises(RunNotRunningError):
        await run_store.renew(ANN, "run_1", 1, 60)
    assert await run_store.claim(BOB, None, 60) is None
    again = await run_store.claim(ANN, None, 60)
    assert (again.lease, again.status) == (2, RunStatus.RUNNING)
    with pytest.raises(LeaseLostError, match="has lease 2, not 1"):
        await run_store.renew(ANN, "run_1", 1, 60)
    assert (await run_store.renew(ANN, "run_1", 2, 120)).lease_until > again.lease_until


async def test_more_runs_of_an_agent_than_may_run_stay_queued(run_store):
    assert [(await made(run_store, number)).status for number in (1, 2, 3)] == ["running", "running", "queued"]
    assert await run_store.claim(ANN, None, 60) is None
    await run_store.finish(ANN, "run_1", 1, RunEnd(RunStatus.COMPLETED), cancel_waits=False)
    assert (await run_store.claim(ANN, None, 60)).run_id == "run_3"


async def test_a_passed_lease_queues_the_run_and_the_third_one_fails_it(run_store, change):
    await made(run_store)
    for attempt in (2, 3):
        await change("UPDATE runs SET lease_until = :past", past=PAST)
        lease = (await run_store.find(ANN, "run_1")).lease
        with pytest.raises(LeaseLostError, match="has passed"):
            await run_store.renew(ANN, "run_1", lease, 60)
        await run_store.sweep()
        run = await run_store.find(ANN, "run_1")
        assert (run.status, run.attempt) == (RunStatus.QUEUED, attempt)
        await run_store.claim(ANN, None, 60)
    await change("UPDATE runs SET lease_until = :past", past=PAST)
    await run_store.sweep()
    run = await run_store.find(ANN, "run_1")
    assert (run.status, run.error["code"]) == (RunStatus.FAILED, "lease_lost")


async def test_a_run_that_works_for_too_long_or_is_too_old_fails(run_store, change):
    await made(run_store, 1)
    await made(run_store, 2, queued=True)
    await run_store.sweep()
    assert (await run_store.find(ANN, "run_1")).status is RunStatus.RUNNING
    await change("UPDATE runs SET worked_s = 1001 WHERE run_id = 'run_1'")
    await change("UPDATE runs SET created = :past WHERE run_id = 'run_2'", past=PAST)
    await run_store.sweep()
    for run_id in ("run_1", "run_2"):
        run = await run_store.find(ANN, run_id)
        assert (run.status, run.error["code"]) == (RunStatus.FAILED, "run_timeout")


async def test_a_finished_run_takes_nothing_more_and_the_same_end_is_answered_again(run_store):
    await made(run_store)
    finished = RunEnd(RunStatus.COMPLETED, "all done")
    run = await run_store.finish(ANN, "run_1", 1, finished, cancel_waits=False)
    assert (run.status, run.summary, run.is_held) == (RunStatus.COMPLETED, "all done", False)
    assert await run_store.finish(ANN, "run_1", 1, finished, cancel_waits=False) == run
    for late in (
        run_store.finish(ANN, "run_1", 1, RunEnd(RunStatus.FAILED), cancel_waits=False),
        run_store.renew(ANN, "run_1", 1, 60),
        run_store.release(ANN, "run_1", 1),
    ):
        with pytest.raises(RunEndedError):
            await late
    assert await run_store.cancel(ANN, "run_1") == run
    assert await names(run_store) == ["run.started", "run.completed"]


async def test_the_same_key_answers_the_same_run(run_store):
    key = RequestKey("key-1", "a" * 64)
    first, was_known = await run_store.create(ANN, new(1), key)
    again, is_known = await run_store.create(ANN, new(2), key)
    assert (again, was_known, is_known) == (first, False, True)
    with pytest.raises(IdReusedError):
        await run_store.create(ANN, new(3), RequestKey("key-1", "b" * 64))


async def test_a_list_has_the_newest_first_by_agent_and_status(run_store):
    for number in (1, 2, 3, 4):
        await made(run_store, number, queued=number > 2)
    listed = await run_store.list(ANN, RunFilter(limit=2))
    assert [run.run_id for run in listed] == ["run_4", "run_3"]
    older = await run_store.list(ANN, RunFilter(before="run_3"))
    assert [run.run_id for run in older] == ["run_2", "run_1"]
    assert await run_store.list(ANN, RunFilter(agent_id="other")) == []
    queued = await run_store.list(ANN, RunFilter(agent_id="helper", status=RunStatus.QUEUED))
    assert [run.run_id for run in queued] == ["run_4", "run_3"]


async def test_a_run_takes_calls_under_its_lease_only_and_nothing_is_stored_of_others(run_store, calls, change):
    await made(run_store)
    stored, is_new = await calls.claim(a_call(1))
    assert is_new
    with pytest.raises(LeaseLostError):
        await calls.claim(a_call(2, lease=2))
    assert await calls.find(ANN, "call-2") == []
    await end(calls, stored.key)
    assert await names(run_store) == ["run.started", "call.answered"]
    await change("UPDATE runs SET lease_until = :past", past=PAST)
    with pytest.raises(LeaseLostError):
        await calls.claim(a_call(3))
    await run_store.sweep()
    with pytest.raises(RunNotRunningError):
        await calls.claim(a_call(3))
    await run_store.cancel(ANN, "run_1")
    with pytest.raises(RunEndedError):
        await calls.claim(a_call(3))


async def test_the_lease_stands_still_while_a_call_runs_and_is_extended_by_its_end(run_store, calls, change):
    await made(run_store)
    stored, _ = await calls.claim(a_call(1))
    await change("UPDATE runs SET lease_until = :past", past=PAST)
    await run_store.sweep()
    assert (await run_store.find(ANN, "run_1")).status is RunStatus.RUNNING
    await end(calls, stored.key)
    await run_store.sweep()
    run = await run_store.find(ANN, "run_1")
    assert run.status is RunStatus.RUNNING
    assert run.lease_until > run.created


async def test_calls_that_a_cancelled_run_left_are_found(run_store, calls):
    await made(run_store)
    stored, _ = await calls.claim(a_call(1))
    assert await run_store.calls_of_ended() == []
    await run_store.cancel(ANN, "run_1")
    [left] = await run_store.calls_of_ended()
    assert (left.principal, left.conversation_id, left.tool_call_id) == (ANN, "run:run_1", "call-1")
    await end(calls, stored.key)
    assert await run_store.calls_of_ended() == []


class Cancelled:
    """Notes which calls are to be cancelled, and cancels none."""

    def __init__(self):
        self.calls = []

    async def cancel(self, _principal, tool_call_id, _conversation_id):
        self.calls.append(tool_call_id)


@pytest.mark.parametrize("how", ["cancel", "finish"])
async def test_the_end_of_a_run_cancels_its_own_calls_and_a_pass_those_of_all(run_store, calls, database, how):
    cancelled = Cancelled()
    runs = Runs(RunParts(run_store, cancelled, database.changes, RunLimits()))
    for number in (1, 2):
        await made(run_store, number)
        await calls.claim(a_call(number, run_id=f"run_{number}"))
    await run_store.cancel(ANN, "run_2")
    if how == "cancel":
        await runs.cancel(ANN, "run_1")
    else:
        await runs.finish(ANN, "run_1", 1, RunFinish(status="failed"))
    assert cancelled.calls == ["call-1"]
    await runs.sweep()
    assert sorted(cancelled.calls[1:]) == ["call-1", "call-2"]


def a_wait(number=1, run_id="run_1"):
    call = recorded_call(shown_tool("hidden"), f"call-{number}", run_id)
    return OpenWait(f"wait_{number}", "external", call, Posting(), "2099-01-01T00:00:00.000Z")


async def begin_wait(calls, number=1, lease=1, run_id="run_1"):
    stored, _ = await calls.claim(a_call(number, lease, run_id=run_id))
    await calls.suspend(stored.key, [a_wait(number, run_id)])
    return stored.key


async def end_wait(calls, key):
    also = Alongside(was=CallState.WAITING, effects=[CancelWaits(60), EndRunCall(60)])
    return await calls.finish(key, CallState.DONE, "{}", also=also)


async def test_a_run_whose_call_begins_to_wait_after_its_release_is_claimed_after_the_wait(run_store, calls):
    await made(run_store)
    stored, _ = await calls.claim(a_call(1))
    assert (await run_store.release(ANN, "run_1", 1)).status is RunStatus.QUEUED
    await calls.suspend(stored.key, [a_wait()])
    run = await run_store.find(ANN, "run_1")
    assert (run.status, run.is_held) == (RunStatus.WAITING_TOOL, False)
    assert [wait["wait_id"] for wait in run.waiting_for] == ["wait_1"]
    assert await run_store.claim(ANN, None, 60) is None
    await end_wait(calls, stored.key)
    assert (await run_store.claim(ANN, None, 60)).lease == 2
    assert await names(run_store) == [
        "run.started",
        "run.queued",
        "run.waiting_tool",
        "run.queued",
        "call.answered",
        "run.started",
    ]


@pytest.mark.parametrize("how", ["release", "lapse"])
async def test_a_run_with_open_waits_is_never_queued(run_store, calls, change, how):
    await made(run_store)
    key = await begin_wait(calls)
    await change("UPDATE runs SET status = 'running', lease_until = '2099-01-01T00:00:00.000Z'")
    if how == "release":
        await run_store.release(ANN, "run_1", 1)
    else:
        await change("UPDATE runs SET lease_until = :past", past=PAST)
        await run_store.sweep()
    run = await run_store.find(ANN, "run_1")
    assert (run.status, run.is_held, run.lease_until) == (RunStatus.WAITING_TOOL, False, None)
    assert await run_store.claim(ANN, None, 60) is None
    await end_wait(calls, key)
    assert (await run_store.claim(ANN, None, 60)).lease == 2


async def test_the_queue_of_an_agent_is_bounded(run_store, database):
    await made(run_store, 0, queued=True)
    await database.write(lambda connection: copy_run(connection, "run_0", range(1, RUN_QUEUED_MAX - 1)))
    await made(run_store, RUN_QUEUED_MAX - 1, queued=True)
    with pytest.raises(QueueFullError, match="1000 queued runs"):
        await made(run_store, RUN_QUEUED_MAX, queued=True)


PAY = PinnedTool("desk", "pay", "mcp_tools.desk.pay", "desk__pay", "Pays", {"type": "object"}, None, {}, "a" * 64)
WARNED = {"code": "mcp_unavailable", "message": "other: gone"}
PINNED = PinnedTools(1, has_servers=True, tools=[PAY], warnings=[WARNED])


async def test_a_run_gets_its_tools_when_it_begins_and_keeps_them(run_store):
    run = await made(run_store, pinned=PINNED)
    assert run.warnings == [WARNED]
    assert await run_store.tools_of("run_1") == [PAY]
    await run_store.release(ANN, "run_1", 1)
    assert await run_store.queued(ANN, None) == [QueuedKind("helper", 1, has_tools=True)]
    again = await run_store.claim(ANN, None, 60, {("helper", 1): PinnedTools(1, has_servers=True)})
    assert (again.lease, again.warnings) == (2, [WARNED])
    assert await run_store.tools_of("run_1") == [PAY]


async def test_a_claim_takes_runs_of_prepared_versions_only(run_store):
    await made(run_store, queued=True, pinned=PINNED)
    assert await run_store.tools_of("run_1") is None
    assert await run_store.queued(ANN, None) == [QueuedKind("helper", 1, has_tools=False)]
    assert await run_store.queued(ANN, None, [("helper", 1)]) == []
    assert await run_store.queued(ANN, ["other"]) == []
    assert await run_store.claim(ANN, None, 60, {}) is None
    assert await run_store.claim(ANN, None, 60, {("helper", 2): PINNED}) is None
    claimed = await run_store.claim(ANN, None, 60, {("helper", 1): PINNED})
    assert (claimed.run_id, claimed.warnings) == ("run_1", [WARNED])
    assert await run_store.tools_of("run_1") == [PAY]


async def test_tools_of_another_version_are_not_pinned(run_store):
    with pytest.raises(AgentMovedError):
        await made(run_store, pinned=PinnedTools(2, has_servers=True))
    assert await run_store.list(ANN, RunFilter()) == []


async def test_the_run_of_an_earlier_request_is_found_by_its_key(run_store):
    key = RequestKey("once", "b" * 64)
    assert await run_store.find_created(ANN, key) is None
    run, _ = await run_store.create(ANN, new(), key)
    assert await run_store.find_created(ANN, key) == run
    with pytest.raises(IdReusedError):
        await run_store.find_created(ANN, RequestKey("once", "c" * 64))
