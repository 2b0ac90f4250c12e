"""Goals, memories and plans on both databases: all or nothing, bounds, projects, and plans that fire once."""

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from proofbox.contracts.gateway.records import GOALS_MAX, MEMORIES_MAX, PLAN_RUNS_MAX, PLANS_MAX, TEXTS_BYTES_MAX
from proofbox.service.errors import QueueFullError
from proofbox.service.gateway.agents.port import NewVersion
from proofbox.service.gateway.records.plan_timer import PlanTimer
from proofbox.service.gateway.records.port import ItemsRefusedError, NewGoal, NewMemory, NewPlan, Removal
from proofbox.service.gateway.records.schedules import decide_firing, utc_text
from proofbox.service.gateway.runs_port import QUEUE_TOPIC, RUN_QUEUED_MAX, NewRun, RunFilter, RunLimits, RunStatus
from proofbox.service.gateway_errors import UnknownAgentError
from proofbox.service.identity import Principal
from proofbox.service.storage.database import Database
from proofbox.service.storage.gateway.agents import SqlAgentStore
from proofbox.service.storage.gateway.plans import SqlPlanStore
from proofbox.service.storage.gateway.records import SqlAgentStates, SqlGoalStore, SqlMemoryStore
from proofbox.service.storage.gateway.runs import SqlRunStore, create_run
from proofbox.service.storage.gateway.schema import plans as plan_rows
from tests.support.gateway_world import copy_run

ANN = Principal("acme", "books", "registered", "ann")
STRANGER = Principal("acme", "films", "registered", "ann")
FUTURE = "2040-01-01T00:00:00.000Z"
LIMITS = RunLimits(lease_s=60, work_s=1_000, running_max=2)


@pytest.fixture(autouse=True)
async def agents(database):
    store = SqlAgentStore(database)
    for principal in (ANN, STRANGER):
        for agent_id in ("helper", "other"):
            document = json.dumps({"version": "2", "agent": {"name": agent_id}, "tools": []})
            await store.write(principal, agent_id, NewVersion(agent_id, document, "a" * 64), None)
    return store


@pytest.fixture
def goals(database):
    return SqlGoalStore(database)


@pytest.fixture
def memories(database):
    return SqlMemoryStore(database)


@pytest.fixture
def plans(database):
    return SqlPlanStore(database, LIMITS)


@pytest.fixture
def runs(database):
    return SqlRunStore(database, LIMITS)


@pytest.fixture
def states(database):
    return SqlAgentStates(database)


def plan(name="report", **fields):
    return NewPlan(
        **{"id": None, "name": name, "instruction": "do it", "run_at": FUTURE, "next_run": FUTURE, **fields}
    )


def daily(**fields):
    return plan(run_at=None, cron="0 7 * * *", time_zone="UTC", **fields)


def ago(**units):
    return utc_text(datetime.now(UTC) - timedelta(**units))


async def all_runs(runs, principal=ANN):
    return await runs.list(principal, RunFilter(limit=100))


# ---- items ----


async def test_goals_are_listed_by_priority_and_replaced_by_id(goals):
    low, high = NewGoal(None, "low"), NewGoal(None, "high", priority=5, is_long_term=True)
    listed = await goals.set(ANN, "helper", [low, high])
    assert [(goal.description, goal.priority, goal.is_long_term, goal.status) for goal in listed] == [
        ("high", 5, True, "active"),
        ("low", 0, False, "active"),
    ]
    assert len({goal.id for goal in listed}) == 2
    changed = await goals.set(ANN, "helper", [NewGoal(listed[1].id, "done", status="completed")])
    assert [(goal.id, goal.description, goal.status) for goal in changed] == [
        (listed[0].id, "high", "active"),
        (listed[1].id, "done", "completed"),
    ]
    assert changed[1].created == listed[1].created


async def test_one_unknown_id_leaves_all_goals_as_they_were(goals):
    [goal] = await goals.set(ANN, "helper", [NewGoal(None, "first")])
    with pytest.raises(ItemsRefusedError, match=r"goals\[2\]\.id: there is no goal 'goal_x'") as refused:
        await goals.set(
            ANN, "helper", [NewGoal(goal.id, "changed"), NewGoal(None, "new"), NewGoal("goal_x", "unknown")]
        )
    assert refused.value.code == "unknown_item"
    with pytest.raises(ItemsRefusedError, match="'goal_x'"):
        await goals.delete(ANN, "helper", [goal.id, "goal_x"])
    assert await goals.set(ANN, "helper", []) == [goal]


async def test_an_agent_has_a_bounded_number_of_items_and_too_many_change_nothing(goals, memories, plans, states):
    last = NewMemory("key-0", "changed")
    many = [NewMemory(f"key-{number}", "x") for number in range(MEMORIES_MAX)]
    for store, most, new, more in (
        (goals, GOALS_MAX, [NewGoal(None, "x")] * GOALS_MAX, [NewGoal(None, "more")]),
        (memories, MEMORIES_MAX, many, [last, NewMemory("m", "")]),
        (plans, PLANS_MAX, [plan()] * PLANS_MAX, [plan("more")]),
    ):
        before = await store.set(ANN, "helper", new)
        assert len(before) == most
        with pytest.raises(ItemsRefusedError, match=f"limit {most:,}, got {most + 1:,}") as refused:
            await store.set(ANN, "helper", more)
        assert refused.value.code == "too_many_items"
        assert await store.set(ANN, "helper", []) == before
    assert len(await memories.set(ANN, "helper", [last])) == MEMORIES_MAX
    assert (await states.state(ANN, "helper")).memories[0].value == "changed"


async def test_two_calls_at_once_do_not_pass_the_bound_together(goals):
    half = [NewGoal(None, "x")] * (GOALS_MAX // 2 + 1)
    done = await asyncio.gather(*(goals.set(ANN, "helper", half) for _ in range(2)), return_exceptions=True)
    assert sorted(isinstance(each, ItemsRefusedError) for each in done) == [False, True]


async def test_memories_are_replaced_by_key_and_deleted_all_or_none(memories):
    await memories.set(ANN, "helper", [NewMemory("a", "1", "topic"), NewMemory("b", "2")])
    listed = await memories.set(ANN, "helper", [NewMemory("a", "3"), NewMemory("c", "\0ü\ud800")])
    assert [(memory.key, memory.value, memory.topic) for memory in listed] == [
        ("a", "3", None),
        ("b", "2", None),
        ("c", "?ü?", None),
    ]
    with pytest.raises(ItemsRefusedError, match=r"keys: there is no memory 'd', 'e'"):
        await memories.delete(ANN, "helper", ["a", "d", "e"])
    assert await memories.delete(ANN, "helper", ["a", "b", "a"]) == Removal(2, 1)
    assert await memories.delete(ANN, "helper", None) == Removal(1, 0)
    assert await memories.delete(ANN, "helper", None) == Removal(0, 0)


async def test_a_key_that_no_database_can_store_is_still_one_key(memories):
    await memories.set(ANN, "helper", [NewMemory("a\0b", "1")])
    assert [memory.key for memory in await memories.set(ANN, "helper", [NewMemory("a\0b", "2")])] == ["a?b"]
    assert await memories.delete(ANN, "helper", ["a\0b"]) == Removal(1, 0)


async def test_items_are_those_of_one_agent_of_one_project(goals, memories, plans, states):
    [goal] = await goals.set(ANN, "helper", [NewGoal(None, "mine")])
    await memories.set(ANN, "helper", [NewMemory("k", "mine")])
    [kept] = await plans.set(ANN, "helper", [plan()])
    for principal, agent_id in ((ANN, "other"), (STRANGER, "helper")):
        state = await states.state(principal, agent_id)
        assert (state.goals, state.memories, state.plans) == ([], [], [])
        with pytest.raises(ItemsRefusedError):
            await goals.delete(principal, agent_id, [goal.id])
        with pytest.raises(ItemsRefusedError):
            await plans.set(principal, agent_id, [plan(id=kept.id)])
        assert await memories.delete(principal, agent_id, None) == Removal(0, 0)
    for asked in (
        states.state(ANN, "nobody"),
        goals.set(ANN, "nobody", [NewGoal(None, "x")]),
        plans.newest(ANN, "nobody", ["pending"], 5),
    ):
        with pytest.raises(UnknownAgentError):
            await asked
    state = await states.state(ANN, "helper")
    assert (state.goals, state.plans) == ([goal], [kept])


async def test_a_deleted_agent_leaves_no_items(agents, goals, memories, plans, states):
    await goals.set(ANN, "helper", [NewGoal(None, "x")])
    await memories.set(ANN, "helper", [NewMemory("k", "v")])
    await plans.set(ANN, "helper", [plan(next_run=ago(seconds=1))])
    [others] = await plans.set(ANN, "other", [plan("others")])
    await agents.delete(ANN, "helper")
    with pytest.raises(UnknownAgentError):
        await states.state(ANN, "helper")
    assert await plans.due(ago(seconds=0), None) == []
    await agents.write(ANN, "helper", NewVersion("helper", "{}", "b" * 64), None)
    state = await states.state(ANN, "helper")
    assert (state.goals, state.memories, state.plans) == ([], [], [])
    assert (await states.state(ANN, "other")).plans == [others]


# ---- plans ----


async def test_plans_have_a_status_and_are_listed_by_it_the_newest_first(plans):
    first, second, third = await plans.set(ANN, "helper", [plan("a"), plan("b"), plan("c", next_run=None)])
    assert [(each.name, each.status, each.next_run) for each in (first, second, third)] == [
        ("a", "pending", FUTURE),
        ("b", "pending", FUTURE),
        ("c", "cancelled", None),
    ]
    assert await plans.newest(ANN, "helper", ["pending"], 1) == [second]
    assert await plans.newest(ANN, "helper", ["completed", "cancelled"], 5) == [third]
    assert await plans.delete(ANN, "helper", [first.id]) == Removal(1, 2)


async def test_due_plans_come_by_their_time_and_each_once(plans):
    # The first 100 end within those of one time.
    minute, second = ago(seconds=60), ago(seconds=1)
    times = [minute if number % 2 else second for number in range(150)]
    made = await plans.set(ANN, "helper", [plan(str(n), next_run=time) for n, time in enumerate(times)])
    soon, later = ago(seconds=-40), ago(seconds=-50)
    await plans.set(STRANGER, "helper", [plan(next_run=later), plan(next_run=soon)])
    now, seen, after = ago(seconds=0), [], None
    while batch := await plans.due(now, after):
        seen += batch
        after = batch[-1]
    assert [due.next_run for due in seen] == sorted(times)
    assert {due.plan_id for due in seen} == {each.id for each in made}
    assert await plans.next_time(now) == soon
    assert await plans.next_time(FUTURE) is None


async def test_a_plan_that_fires_makes_a_queued_run_and_is_completed(plans, runs, states):
    [made] = await plans.set(ANN, "helper", [plan(next_run=ago(seconds=90))])
    [due] = await plans.due(ago(seconds=0), None)
    assert await plans.fire(due, decide_firing(due, datetime.now(UTC)))
    [run] = await all_runs(runs)
    late_s = run.trigger["late_s"]
    assert 90 <= late_s < 120
    assert run.trigger == {
        "type": "plan",
        "name": "report",
        "payload": {"instruction": "do it"},
        "plan_id": made.id,
        "late_s": late_s,
    }
    assert (run.status, run.principal, run.conversation_id) == (RunStatus.QUEUED, None, f"run:{run.run_id}")
    [fired] = (await states.state(ANN, "helper")).plans
    assert (fired.status, fired.next_run, fired.run_ids, fired.missed) == ("completed", None, [run.run_id], None)
    assert fired.last_run is not None
    assert await all_runs(runs, STRANGER) == []
    claimed = await runs.claim(ANN, ["helper"], 60)
    assert claimed.run_id == run.run_id


async def test_a_plan_with_a_schedule_goes_on_and_lists_its_newest_runs(database, plans, runs, states):
    await plans.set(ANN, "helper", [daily(next_run=ago(seconds=1))])
    for _ in range(PLAN_RUNS_MAX + 2):
        [due] = await plans.due(ago(seconds=0), None)
        firing = decide_firing(due, datetime.now(UTC))
        assert await plans.fire(due, firing)
        past = update(plan_rows).values(next_run=ago(seconds=1))
        await database.write(lambda connection, past=past: connection.execute(past))
    [listed] = (await states.state(ANN, "helper")).plans
    assert (listed.status, listed.cron) == ("pending", "0 7 * * *")
    newest = [run.run_id for run in await all_runs(runs)]
    assert len(newest) == PLAN_RUNS_MAX + 2
    assert listed.run_ids == newest[:PLAN_RUNS_MAX]
    assert firing.following > ago(seconds=0)


async def test_two_processes_that_fire_a_plan_at_once_make_one_run(database_url, tmp_path, plans, runs):
    await plans.set(ANN, "helper", [plan(str(number), next_run=ago(seconds=1)) for number in range(10)])
    beside = Database(tmp_path / "data", database_url)
    await beside.open_beside()
    try:
        other = SqlPlanStore(beside, LIMITS)
        due = await plans.due(ago(seconds=0), None)
        now = datetime.now(UTC)
        fired = await asyncio.gather(
            *(store.fire(each, decide_firing(each, now)) for each in due for store in (plans, other))
        )
    finally:
        await beside.close()
    assert sorted(fired) == [False] * 10 + [True] * 10
    assert len(await all_runs(runs)) == 10


async def test_a_plan_that_was_changed_or_deleted_meanwhile_does_not_fire(plans, runs):
    changed, deleted = await plans.set(
        ANN, "helper", [plan(next_run=ago(seconds=2)), plan(next_run=ago(seconds=1))]
    )
    due = await plans.due(ago(seconds=0), None)
    await plans.set(ANN, "helper", [plan(id=changed.id)])
    await plans.delete(ANN, "helper", [deleted.id])
    assert [await plans.fire(each, decide_firing(each, datetime.now(UTC))) for each in due] == [False, False]
    assert await all_runs(runs) == []


async def test_a_full_queue_leaves_the_plan_due_until_there_is_a_place(database, plans, runs, states):
    new = NewRun("run_0", "helper", "run:run_0", {"type": "manual"}, queued=True)
    await database.write(lambda connection: create_run(connection, ANN, new, LIMITS))
    await database.write(lambda connection: copy_run(connection, "run_0", range(1, RUN_QUEUED_MAX)))
    [made] = await plans.set(ANN, "helper", [plan(next_run=ago(seconds=5))])
    await plans.set(ANN, "other", [plan("others", next_run=ago(seconds=1))])
    [due, _] = await plans.due(ago(seconds=0), None)
    with pytest.raises(QueueFullError):
        await plans.fire(due, decide_firing(due, datetime.now(UTC)))
    timer = PlanTimer(plans, database.changes)
    assert await timer.fire_due(datetime.now(UTC)) == 1
    assert (await states.state(ANN, "helper")).plans == [made]
    assert (await states.state(ANN, "other")).plans[0].status == "completed"
    await runs.cancel(ANN, "run_0")
    assert await timer.fire_due(datetime.now(UTC)) == 0
    [run] = [run for run in await runs.list(ANN, RunFilter("helper", limit=1)) if run.trigger["type"] == "plan"]
    assert run.trigger["late_s"] >= 5
    assert (await states.state(ANN, "helper")).plans[0].run_ids == [run.run_id]


async def test_what_was_missed_for_over_a_day_makes_no_run_and_is_recorded(database, plans, runs, states):
    long_ago, lately = ago(hours=25), ago(hours=23)
    month = (datetime.now(UTC).month + 5) % 12 + 1
    await plans.set(
        ANN,
        "helper",
        [
            plan("lost", run_at=long_ago, next_run=long_ago),
            plan("late", run_at=lately, next_run=lately),
            plan("yearly", run_at=None, cron=f"0 7 1 {month} *", time_zone="UTC", next_run=long_ago),
        ],
    )
    assert await PlanTimer(plans, database.changes).fire_due(datetime.now(UTC)) == 0
    lost, late, yearly = (await states.state(ANN, "helper")).plans
    assert (lost.status, lost.missed, lost.run_ids, lost.next_run) == ("missed", long_ago, [], None)
    assert (late.status, late.missed) == ("completed", None)
    assert (yearly.status, yearly.missed, yearly.run_ids) == ("pending", long_ago, [])
    assert yearly.next_run > ago(seconds=0)
    [run] = await all_runs(runs)
    assert (run.trigger["plan_id"], run.trigger["late_s"] >= 23 * 3_600) == (late.id, True)
    assert [each.name for each in await plans.newest(ANN, "helper", ["missed"], 5)] == ["lost"]


async def test_a_plan_that_cannot_be_read_does_not_stop_the_others(database, plans, runs):
    await plans.set(
        ANN,
        "helper",
        [
            plan("broken", run_at=None, cron="* * * * *", time_zone="Gone/Zone", next_run=ago(seconds=9)),
            plan("good", next_run=ago(seconds=1)),
        ],
    )
    assert await PlanTimer(plans, database.changes).fire_due(datetime.now(UTC)) == 1
    [run] = await all_runs(runs)
    assert run.trigger["name"] == "good"
    rows = await database.read(lambda connection: connection.execute(select(plan_rows.c.status)).scalars().all())
    assert sorted(rows) == ["completed", "pending"]


async def test_a_plan_that_was_set_meanwhile_for_the_same_time_follows_its_new_schedule(plans, states):
    time = ago(seconds=1)
    [made] = await plans.set(ANN, "helper", [daily(next_run=time)])
    [due] = await plans.due(ago(seconds=0), None)
    await plans.set(ANN, "helper", [plan("once", id=made.id, run_at=time, next_run=time)])
    assert await plans.fire(due, decide_firing(due, datetime.now(UTC))) is False
    [due] = await plans.due(ago(seconds=0), None)
    assert await plans.fire(due, decide_firing(due, datetime.now(UTC))) is True
    [fired] = (await states.state(ANN, "helper")).plans
    assert (fired.status, fired.next_run) == ("completed", None)


async def test_a_time_that_cannot_be_read_does_not_stop_the_timer(database, plans):
    timer = PlanTimer(plans, database.changes)
    await plans.set(ANN, "helper", [plan("broken")])
    await database.write(lambda connection: connection.execute(update(plan_rows).values(next_run="broken")))
    with database.changes.listen(QUEUE_TOPIC) as queued:
        timer.start()
        for name in ("one", "two"):
            await plans.set(ANN, "helper", [plan(name, next_run=ago(seconds=1))])
            assert await queued.wait(20)
    await timer.stop()


@pytest.mark.parametrize("kind", ["goals", "plans"])
async def test_the_texts_of_an_agent_have_a_limit_together(goals, plans, states, kind):
    store = goals if kind == "goals" else plans

    def long(size):
        return NewGoal(None, "é" * size) if kind == "goals" else plan(instruction="é" * size)

    full = TEXTS_BYTES_MAX // 2
    made = await store.set(ANN, "helper", [long(full - 10)])
    await store.set(STRANGER, "helper", [long(full)])
    with pytest.raises(ItemsRefusedError, match="too long together") as refused:
        await store.set(ANN, "helper", [long(11)])
    assert refused.value.code == "too_many_items"
    assert getattr(await states.state(ANN, "helper"), kind) == list(made)
    await store.set(ANN, "helper", [long(10)])
