"""Goals, memories, plans and own runs of an agent, as its loop sets and reads them over HTTP."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from proofbox.service.gateway.records.schedules import utc_text
from proofbox.service.storage.gateway.schema import plans as plan_rows
from tests.support.gateway_client import opened_loop

ASKS = {"name": "ask", "description": "Asks a person.", "executionType": "space"}
FUTURE = "2035-01-01T00:00:00Z"


async def get(loop, route):
    response = await loop.web.get(route)
    assert response.status_code == 200, response.text
    return response.json()


async def context(loop):
    return await get(loop, f"/v1/runs/{loop.run['run_id']}/context")


async def state(loop):
    return await get(loop, "/v1/agents/helper/state")


async def claim(loop):
    """Claims the next run, once there is one."""
    response = await loop.web.post("/v1/runs/claim", json={"agent_ids": ["helper"], "wait_s": 30})
    assert response.status_code == 200, response.text
    loop.run = response.json()
    return loop.run


async def failure(loop, tool, params):
    answer = await loop.call(tool, params)
    assert answer["ok"] is False
    return answer["error"]["code"], answer["error"]["message"]


def item(**fields):
    return {"name": "report", "instruction": "Write the report.", **fields}


async def test_the_tools_of_records_are_in_every_run_and_hidden(loop):
    await loop.begin()
    tools = (await get(loop, f"/v1/tools?run_id={loop.run['run_id']}"))["tools"]
    built_in = {tool["name"]: tool for tool in tools if tool["source"] == "built_in"}
    assert built_in.keys() >= {
        "set_goals",
        "delete_goals",
        "set_memories",
        "delete_memories",
        "set_plans",
        "delete_plans",
        "get_plans",
        "get_my_runs",
        "stop_run",
    }
    assert {(tool["execution_type"], tool["visibility"]) for tool in built_in.values()} == {("internal", "hidden")}
    assert built_in["set_goals"]["tool_id"] == "space_tools.set_goals"


async def test_goals_and_memories_stay_for_later_runs(loop):
    await loop.begin()
    goals = (await loop.call("set_goals", {"goals": [{"description": "a"}, {"description": "b", "priority": 2}]}))[
        "ret"
    ]["goals"]
    assert [(goal["description"], goal["status"], goal["is_long_term"]) for goal in goals] == [
        ("b", "active", False),
        ("a", "active", False),
    ]
    memory = {"key": "tea", "value": "no milk", "topic": "kitchen"}
    memories = (await loop.call("set_memories", {"memories": [memory]}))["ret"]["memories"]
    assert [{name: each[name] for name in memory} for each in memories] == [memory]
    await loop.begin()
    found = await context(loop)
    assert (found["goals"], found["memories"], found["plans"]) == (goals, memories, [])
    assert await state(loop) == {"goals": goals, "memories": memories, "plans": []}
    answer = await loop.call("delete_goals", {"ids": [goals[0]["id"]]})
    assert answer["ret"] == {"deleted": 1, "left": 1}
    assert (await loop.call("delete_memories", {"all": True}))["ret"] == {"deleted": 1, "left": 0}
    assert (await context(loop))["goals"] == goals[1:]


@pytest.mark.parametrize(
    ("tool", "params", "field"),
    [
        ("set_goals", {"goals": [{"priority": 1}]}, "input.goals[0].description"),
        ("set_goals", {"goals": [{"description": "x" * 20_001}]}, "input.goals[0].description"),
        ("set_goals", {"goals": [{"description": "x", "id": "g"}] * 2}, "input.goals[1].id"),
        ("set_memories", {"memories": [{"key": "k", "value": "ü" * 2_049}]}, "input.memories[0].value"),
        ("set_memories", {"memories": [{"key": "k", "value": "v"}] * 2}, "input.memories[1].key"),
        ("set_memories", {"memories": []}, "input.memories"),
        ("delete_goals", {}, "input.ids"),
        ("delete_goals", {"ids": ["a"], "all": True}, "input.ids"),
        ("delete_memories", {"keys": []}, "input.keys"),
        ("get_plans", {"limit": 201}, "input.limit"),
        ("get_my_runs", {"limit": 51}, "input.limit"),
        ("get_my_runs", {"status": "gone"}, "input.status"),
        ("stop_run", {"run_id": ""}, "input.run_id"),
        ("set_plans", {"plans": [item(after_s=1e12)]}, "input.plans[0].after_s"),
        ("set_plans", {"plans": [item(after_s=10**400)]}, "input.plans[0].after_s"),
        ("send_message", {"text": "a", "wait": True, "timeout_s": 10**400}, "input.timeout_s"),
    ],
)
@pytest.mark.shares_fixtures
async def test_what_does_not_fit_names_its_field_and_changes_nothing(loop, tool, params, field):
    await loop.begin()
    code, message = await failure(loop, tool, params)
    assert code == "invalid_input"
    assert message.startswith(f"{field}: ")
    assert await state(loop) == {"goals": [], "memories": [], "plans": []}


async def test_an_unknown_id_or_too_many_items_change_nothing(loop):
    await loop.begin()
    await loop.call("set_goals", {"goals": [{"description": "kept"}]})
    before = await state(loop)
    many = [{"description": "x"}] * 200
    assert (await failure(loop, "set_goals", {"goals": many}))[0] == "too_many_items"
    assert (await failure(loop, "set_plans", {"plans": [item(after_s=9)] * 201}))[0] == "too_many_items"
    code, message = await failure(
        loop, "set_goals", {"goals": [{"description": "x"}, {"id": "g", "description": "y"}]}
    )
    assert (code, "goals[1].id" in message) == ("unknown_item", True)
    assert (await failure(loop, "delete_memories", {"keys": ["none"]}))[0] == "unknown_item"
    assert (await failure(loop, "stop_run", {"run_id": "run_none"}))[0] == "unknown_item"
    assert await state(loop) == before


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        ({}, "cron"),
        ({"run_at": FUTURE, "after_s": 60}, "cron"),
        ({"cron": "* * * * *", "after_s": 60}, "cron"),
        ({"cron": "*/10 * * * * *"}, "cron"),
        ({"cron": "61 * * * *"}, "cron"),
        ({"cron": "0 0 31 2 *"}, "cron"),
        ({"cron": "* * * * *", "time_zone": "Mars/Base"}, "time_zone"),
        ({"run_at": "2020-01-01T00:00:00Z"}, "run_at"),
        ({"run_at": "soon"}, "run_at"),
        ({"after_s": 0}, "after_s"),
    ],
)
@pytest.mark.shares_fixtures
async def test_a_plan_with_a_wrong_schedule_is_refused_with_all_others(loop, schedule, field):
    await loop.begin()
    code, message = await failure(loop, "set_plans", {"plans": [item(after_s=600), item(**schedule)]})
    assert code == "invalid_schedule"
    assert message.startswith(f"plans[1].{field}: ")
    assert (await state(loop))["plans"] == []


async def test_plans_show_when_they_fire_and_only_pending_ones_are_in_the_context(loop):
    await loop.begin()
    asked = [
        item(run_at="2035-01-01T01:00:00+02:00"),
        item(cron="30 8 * * *", time_zone="Europe/Berlin"),
        item(after_s=3_600, status="cancelled"),
    ]
    plans = (await loop.call("set_plans", {"plans": asked}))["ret"]["plans"]
    once, again, cancelled = plans
    assert (once["next_run"], once["run_at"], once["status"]) == (
        "2034-12-31T23:00:00.000Z",
        "2034-12-31T23:00:00.000Z",
        "pending",
    )
    assert (again["cron"], again["time_zone"], again["run_at"]) == ("30 8 * * *", "Europe/Berlin", None)
    assert again["next_run"][11:16] in ("06:30", "07:30")
    assert (cancelled["status"], cancelled["next_run"]) == ("cancelled", None)
    assert (await context(loop))["plans"] == [once, again]
    assert (await loop.call("get_plans"))["ret"]["plans"] == [cancelled]
    assert (await loop.call("get_plans", {"status": "pending", "limit": 1}))["ret"]["plans"] == [again]
    answer = await loop.call("delete_plans", {"ids": [once["id"], cancelled["id"]]})
    assert answer["ret"] == {"deleted": 2, "left": 1}
    assert (await state(loop))["plans"] == [again]


async def test_a_plan_fires_at_its_time_and_its_run_is_driven_as_any_other(loop):
    first = await loop.begin()
    [plan] = (await loop.call("set_plans", {"plans": [item(after_s=1)]}))["ret"]["plans"]
    run = await claim(loop)
    assert run["run_id"] != first["run_id"]
    trigger = run["trigger"]
    assert (trigger["type"], trigger["plan_id"], trigger["name"]) == ("plan", plan["id"], "report")
    assert trigger["payload"] == {"instruction": "Write the report."}
    assert 0 <= trigger["late_s"] < 30
    assert run["created"] >= plan["next_run"]
    [fired] = (await loop.call("get_plans"))["ret"]["plans"]
    assert (fired["id"], fired["status"], fired["run_ids"]) == (plan["id"], "completed", [run["run_id"]])
    assert fired["last_run"] >= plan["next_run"]


async def test_a_plan_whose_time_came_while_the_service_was_down_fires_once_after_its_start(tmp_path):
    async with opened_loop(tmp_path) as loop:
        await loop.begin()
        await loop.call("set_plans", {"plans": [item(run_at=FUTURE), item(name="lost", run_at=FUTURE)]})
    async with opened_loop(tmp_path) as loop:
        # As if the service had been down meanwhile.
        await loop.pipeline.gateway.plans.stop()
        for name, hours in (("report", 2), ("lost", 30)):
            past = utc_text(datetime.now(UTC) - timedelta(hours=hours))
            change = update(plan_rows).where(plan_rows.c.name == name).values(next_run=past)
            await loop.pipeline.database.write(lambda connection, change=change: connection.execute(change))
    async with opened_loop(tmp_path) as loop:
        run = await claim(loop)
        assert run["trigger"]["name"] == "report"
        assert 7_200 <= run["trigger"]["late_s"] < 7_260
        report, lost = (await state(loop))["plans"]
        assert (report["status"], report["run_ids"]) == ("completed", [run["run_id"]])
        assert (lost["status"], lost["run_ids"], lost["missed"] is not None) == ("missed", [], True)
    async with opened_loop(tmp_path) as loop:
        runs = (await get(loop, "/v1/runs"))["items"]
        assert [each["trigger"]["type"] for each in runs].count("plan") == 1


async def test_an_agent_sees_its_own_runs_with_their_tools(loop):
    await loop.begin(ASKS)
    other = loop.run
    await loop.web.post(f"/v1/runs/{other['run_id']}/finish", json={"status": "completed"}, headers=loop.leased())
    await loop.write_agent(agent_id="stranger", name="Stranger")
    await loop.web.post("/v1/runs", json={"agent_id": "stranger"})
    run = await loop.begin(ASKS, trigger={"name": "noon", "payload": {"large": "x" * 1_000}})
    await loop.call("set_goals", {"goals": [{"description": "a"}]})
    ret = (await loop.call("get_my_runs"))["ret"]
    assert ret["active"] == 1
    assert [(each["run_id"], each["is_current"], each["status"]) for each in ret["runs"]] == [
        (run["run_id"], True, "running"),
        (other["run_id"], False, "completed"),
    ]
    current = ret["runs"][0]
    assert current["tools"] == [{"name": "set_goals", "state": "done"}, {"name": "get_my_runs", "state": "running"}]
    assert current["trigger"] == {"type": "manual", "name": "noon"}
    assert (current["active_space_id"], current["ended"], current["waiting_for"]) == (None, None, [])
    listed = (await loop.call("get_my_runs", {"status": "completed", "limit": 1}))["ret"]["runs"]
    assert [each["run_id"] for each in listed] == [other["run_id"]]


async def test_an_agent_stops_another_of_its_runs_with_its_waiting_call(loop):
    person = {"type": "human", "handle": "ann", "display_name": "Ann"}
    await loop.write_agent(ASKS)
    assert (await loop.web.put("/v1/entities/ann", json=person)).status_code == 201
    space = {"name": "Desk", "members": ["ann", "agent:helper"]}
    space_id = (await loop.web.post("/v1/spaces", json=space)).json()["space_id"]
    waiting = await loop.begin(ASKS, space_id=space_id)
    assert (await loop.post_call("ask")).status_code == 202
    call_id = f"call-{loop.count}"
    await loop.begin(ASKS)
    answer = await loop.call("stop_run", {"run_id": waiting["run_id"], "reason": "not needed"})
    assert answer["ret"] == {"run_id": waiting["run_id"], "was": "waiting_tool", "status": "cancelled"}
    stopped = await get(loop, f"/v1/runs/{waiting['run_id']}")
    assert (stopped["status"], stopped["summary"], stopped["waiting_for"]) == ("cancelled", "not needed", [])
    # Its call is cancelled right after.
    events = await loop.web.get(f"/v1/tool-calls/{call_id}/events")
    assert '"cancelled"' in events.text
    code, message = await failure(loop, "stop_run", {"run_id": waiting["run_id"]})
    assert (code, "cancelled" in message) == ("run_ended", True)


async def test_an_agent_stops_no_run_of_another_agent(loop):
    await loop.write_agent(agent_id="stranger", name="Stranger")
    foreign = (await loop.web.post("/v1/runs", json={"agent_id": "stranger"})).json()
    await loop.begin()
    assert (await failure(loop, "stop_run", {"run_id": foreign["run_id"]}))[0] == "unknown_item"
    assert (await get(loop, f"/v1/runs/{foreign['run_id']}"))["status"] == "running"


async def test_a_run_that_stops_itself_has_the_answer_of_that_call_and_takes_no_more(loop):
    run = await loop.begin()
    answer = await loop.call("stop_run", {"run_id": run["run_id"], "reason": "done for today"})
    assert answer["ret"] == {"run_id": run["run_id"], "was": "running", "status": "cancelled"}
    stopped = await loop.current()
    assert (stopped["status"], stopped["summary"]) == ("cancelled", "done for today")
    events = (await loop.web.get(f"/v1/runs/{run['run_id']}/events")).text
    names = [line.removeprefix("event: ") for line in events.splitlines() if line.startswith("event: ")]
    assert names == ["run.started", "call.answered", "run.cancelled"]
    stored = await get(loop, f"/v1/tool-calls/call-{loop.count}")
    assert (stored["status"], stored["response"]["ok"]) == ("done", True)
    late = await loop.post_call("get_my_runs")
    assert (late.status_code, late.json()["code"]) == (409, "run_ended")


async def test_calls_that_run_when_their_run_stops_itself_are_cancelled(loop, elsewhere):
    arrived, answer = asyncio.Event(), asyncio.Event()

    async def slow(_writer):
        arrived.set()
        await answer.wait()

    elsewhere.answers = [slow]
    tool = {"name": "slow", "description": "x", "executionType": "gateway", "execution": {"url": elsewhere.url()}}
    run = await loop.begin(tool)
    running = asyncio.create_task(loop.post_call("slow"))
    await arrived.wait()
    await loop.call("stop_run", {"run_id": run["run_id"]})
    cancelled = await running
    answer.set()
    assert (cancelled.status_code, cancelled.json()["code"]) == (409, "cancelled")


async def test_the_state_of_an_agent_is_of_its_project_and_ends_with_it(loop):
    await loop.begin()
    await loop.call("set_memories", {"memories": [{"key": "k", "value": "v"}]})
    unknown = await loop.web.get("/v1/agents/nobody/state")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_agent")
    assert (await loop.web.delete("/v1/agents/helper", params={"cancel_runs": "true"})).status_code == 204
    assert (await loop.web.get("/v1/agents/helper/state")).status_code == 404
    await loop.write_agent()
    assert (await state(loop))["memories"] == []


@pytest.mark.parametrize("time", ["2020-01-01T00:00:00." + "0" * 1000 + "Z", "9000-01-01T00:00:00." + "0" * 1000])
async def test_a_refused_time_is_repeated_in_part(loop, time):
    await loop.begin()
    code, message = await failure(loop, "set_plans", {"plans": [item(run_at=time)]})
    assert (code, len(message) < 200) == ("invalid_schedule", True)
