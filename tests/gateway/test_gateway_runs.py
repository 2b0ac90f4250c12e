"""Runs over HTTP: a loop makes or claims one, calls its tools under a lease, and ends it."""

import asyncio
import json
import re
import time

import pytest

from tests.support.gateway_client import opened_loop
from tests.support.pipeline import EXEC
from tests.support.web_server import response

SAYS = {
    "name": "say",
    "description": "Says.",
    "executionType": "internal",
    "execution": {"output": {"said": "{{input.x}}"}},
}
PRICED = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]},
        }
    },
    "required": ["items"],
    "additionalProperties": False,
}


async def events_of(loop):
    """The events of a run that has ended."""
    text = (await loop.web.get(f"/v1/runs/{loop.run['run_id']}/events")).text
    frames = [dict(line.split(": ", 1) for line in frame.split("\n")) for frame in text.split("\n\n") if frame]
    assert [frame["id"] for frame in frames] == [str(number + 1) for number in range(len(frames))]
    return [frame["event"] for frame in frames]


async def finish(loop, **fields):
    return await loop.web.post(
        f"/v1/runs/{loop.run['run_id']}/finish", json={"status": "completed", **fields}, headers=loop.leased()
    )


async def test_a_loop_drives_a_run_from_its_making_to_its_end(loop):
    run = await loop.begin(SAYS, metadata={"case": 7})
    assert run["status"] == "running"
    assert run["lease"]["number"] == 1
    assert run["conversation_id"] == f"run:{run['run_id']}"
    tools = (await loop.web.get("/v1/tools", params={"run_id": run["run_id"], "format": "openai"})).json()["tools"]
    names = [tool["function"]["name"] for tool in tools]
    assert names[:2] == ["say", "enter_space"]
    assert "exec_tools__execute_code_python" in names
    answer = await loop.call("say", {"x": [1, None]})
    assert answer["ret"] == {"said": [1, None]}
    assert (answer["ok"], answer["warnings"], answer["posted"]) == (True, [], None)
    context = (await loop.web.get(f"/v1/runs/{run['run_id']}/context")).json()
    [call] = context["calls"]
    assert (call["tool_id"], call["name"], call["status"], call["ok"]) == ("gateway_tools.say", "say", "done", True)
    assert call["result"] == {"said": [1, None]}
    assert context["agent"]["configuration"]["tools"] == [SAYS]
    assert [other["run_id"] for other in context["runs"]] == [run["run_id"]]
    ended = await finish(loop, summary="said it")
    assert (ended.status_code, ended.json()["status"], ended.json()["summary"]) == (200, "completed", "said it")
    assert await events_of(loop) == ["run.started", "call.answered", "run.completed"]


async def test_the_blocks_of_a_call_are_on_the_timeline_of_the_run(loop):
    run = await loop.begin(SAYS)
    await loop.call("say", {"x": "hello"}, notes="now I say it")
    timeline = (await loop.web.get(f"/v1/conversations/{run['conversation_id']}/timeline")).json()
    blocks = [(block["type"], block["turn_id"]) for block in timeline["blocks"]]
    turn = f"turn_{run['run_id']}"
    assert blocks == [("react.notes", turn), ("react.tool.call", turn), ("react.tool.result", turn)]
    payload = json.loads(timeline["blocks"][1]["text"])
    assert (payload["tool_id"], payload["params"]) == ("gateway_tools.say", {"x": "hello"})
    assert json.loads(timeline["blocks"][2]["text"]) == {"ok": True, "result": {"said": "hello"}}


async def test_input_that_does_not_fit_is_refused_field_by_field_and_nothing_runs(loop, elsewhere):
    tool = {
        "name": "price",
        "description": "Prices.",
        "executionType": "gateway",
        "inputSchema": PRICED,
        "execution": {"url": elsewhere.url(), "method": "POST"},
    }
    await loop.begin(tool)
    answer = await loop.call("price", {"items": [{"price": "x"}, {}], "more": 1})
    assert (answer["ok"], answer["error"]["code"]) == (False, "invalid_input")
    notice = next(json.loads(block["text"]) for block in answer["blocks"] if block["type"] == "react.notice")
    assert notice["code"] == "protocol_violation.invalid_input"
    fields = [error["field"] for error in notice["errors"]]
    assert sorted(fields) == ["input.items[0].price", "input.items[1].price", "input.more"]
    assert elsewhere.connections == 0
    many = await loop.call("price", {"items": [{}] * 100})
    notice = next(json.loads(block["text"]) for block in many["blocks"] if block["type"] == "react.notice")
    assert len(notice["errors"]) == 20


async def test_a_call_of_an_old_lease_runs_nothing_and_the_new_holder_repeats_calls(loop, elsewhere):
    tool = {"name": "ask", "executionType": "gateway", "description": "x", "execution": {"url": elsewhere.url()}}
    run = await loop.begin(tool)
    first = await loop.call("ask")
    route = f"/v1/runs/{run['run_id']}"
    assert (await loop.web.post(f"{route}/release", headers=loop.leased())).json()["status"] == "queued"
    refused = await loop.post_call("ask", lease=1)
    assert (refused.status_code, refused.json()["code"]) == (409, "run_not_running")
    claimed = await loop.web.post("/v1/runs/claim", json={})
    assert (claimed.status_code, claimed.headers["run-lease"]) == (200, "2")
    old = await loop.post_call("ask", lease=1)
    assert (old.status_code, old.json()["code"]) == (409, "lease_lost")
    loop.count = 0
    again = await loop.post_call("ask", lease=2)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == first
    assert len(elsewhere.requests) == 1
    loop.run = claimed.json()
    await finish(loop)
    late = await loop.post_call("ask", lease=2)
    assert (late.status_code, late.json()["code"]) == (409, "run_ended")


async def test_a_claim_waits_for_a_run_and_gets_it_at_once(loop):
    await loop.write_agent(SAYS)
    nothing = await loop.web.post("/v1/runs/claim", json={"wait_s": 0})
    assert nothing.status_code == 204
    claiming = asyncio.create_task(loop.web.post("/v1/runs/claim", json={"agent_ids": ["helper"], "wait_s": 30}))
    await asyncio.sleep(0.1)
    made = await loop.web.post(
        "/v1/runs", json={"agent_id": "helper", "queued": True, "trigger": {"type": "service"}}
    )
    assert (made.json()["status"], "run-lease" in made.headers) == ("queued", False)
    claimed = await claiming
    assert (claimed.status_code, claimed.json()["run_id"]) == (200, made.json()["run_id"])
    assert claimed.json()["trigger"]["type"] == "service"


async def test_the_conversation_and_the_run_have_to_fit(loop):
    await loop.begin(SAYS)
    wrong = await loop.post_call("say", conversation_id="conv-1")
    assert (wrong.status_code, wrong.json()["code"]) == (409, "wrong_conversation")
    unknown = await loop.post_call("say", run_id="run_unknown")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_run")
    missing = await loop.post_call("shout")
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_tool")
    body = {"tool_id": "gateway_tools.say", "tool_call_id": "t", "conversation_id": "c", "params": {}}
    without = await loop.web.post("/v1/tool-calls", json=body)
    assert (without.status_code, without.json()["code"]) == (422, "invalid_request")
    assert "run_id" in without.json()["detail"]
    leaseless = await loop.web.post("/v1/tool-calls", json={**body, "run_id": loop.run["run_id"]})
    assert (leaseless.status_code, leaseless.json()["code"]) == (422, "invalid_request")
    assert "Run-Lease" in leaseless.json()["detail"]


async def test_a_name_of_the_model_and_the_id_of_the_tool_are_one_call(loop):
    await loop.begin(SAYS)
    first = await loop.call("say", {"x": 1})
    loop.count = 0
    again = await loop.post_call("gateway_tools.say", {"x": 1})
    assert (again.headers["idempotent-replayed"], again.json()) == ("true", first)


async def test_own_tools_are_called_by_name_with_code_among_the_params(loop):
    run = await loop.begin()
    params = {"explore": True, "code": "print(1)"}
    answer = await loop.call("exec_tools__execute_code_python", params)
    assert answer["ok"] is True, answer["error"]
    assert [block["type"] for block in answer["blocks"]] == [
        "react.tool.code",
        "react.tool.call",
        "react.tool.result",
    ]
    assert json.loads(answer["blocks"][1]["text"])["tool_id"] == EXEC
    assert answer["blocks"][0]["path"] == f"fi:turn_{run['run_id']}.code.call-1"


async def test_a_full_queue_refuses_new_calls_and_answers_repeated_ones(tmp_path):
    async with opened_loop(tmp_path, running_max=1) as loop:
        await loop.begin(SAYS)
        first = await loop.call(EXEC, {"contract": []}, code="print(1)")
        until, admission = time.monotonic() + 60, loop.pipeline.admission
        with await admission.enter(until, int):
            waits = asyncio.create_task(admission.enter(until, int))
            await asyncio.sleep(0)
            loop.count = 0
            again = await loop.post_call(EXEC, {"contract": []}, code="print(1)")
            refused = await loop.post_call(EXEC, {"contract": []}, code="print(2)")
        with await waits:
            pass
        assert (again.status_code, again.json()) == (200, first)
        assert (refused.status_code, refused.json()["code"]) == (429, "queue_full")
        assert (await loop.web.get("/v1/tool-calls/call-2")).status_code == 404


async def test_a_shown_own_tool_has_the_blocks_of_the_hidden_one(loop):
    shown = {"name": "run_python", "description": "x", "executionType": "gateway", "execution": {"tool": EXEC}}
    await loop.begin(shown)
    contract = [{"filename": "a.txt", "description": "a text"}]
    hidden = await loop.call(EXEC, {"contract": contract}, code="print(1)")
    visible = await loop.call("run_python", {"contract": contract, "code": "print(1)"})

    def blocks(answer, call_id):
        text = json.dumps([{**block, "ts": ""} for block in answer["blocks"]]).replace(call_id, "call")
        return re.sub(r"\d{4}-\d\d-\d\dT[0-9:.]+Z", "now", text)

    assert blocks(visible, "call-2") == blocks(hidden, "call-1")
    assert [artifact["verdict"] for artifact in visible["artifacts"]] == [
        artifact["verdict"] for artifact in hidden["artifacts"]
    ]
    assert [warning["code"] for warning in visible["warnings"]] == ["no_active_space"]
    assert hidden["warnings"] == []


async def test_an_own_tool_can_have_fixed_params(loop):
    execution = {"tool": EXEC, "params": {"explore": True}, "code": "print('{{input.word}}')"}
    tool = {
        "name": "shout",
        "description": "x",
        "executionType": "gateway",
        "visibility": "hidden",
        "execution": execution,
    }
    await loop.begin(tool)
    answer = await loop.call("shout", {"word": "hey"})
    assert answer["ok"] is True, answer["error"]
    assert answer["blocks"][0]["text"] == "print('hey')"


@pytest.mark.parametrize(
    "execution",
    [
        {"output": ["{{input}}"] * 200},
        {"tool": EXEC, "code": "{{input.x}}" * 200},
        {"tool": EXEC, "params": {"x": "{{input.x}}" * 200}},
        {"url": "https://api.example/", "method": "POST", "body": ["{{input.x}}"] * 200},
    ],
)
async def test_an_input_that_makes_templates_too_large_is_invalid_input(loop, execution):
    tool = {"name": "echo", "executionType": "gateway", "visibility": "hidden", "execution": execution}
    await loop.begin({**tool, "inputSchema": {"type": "object"}})
    answer = await loop.call("echo", {"x": "x" * 50_000})
    assert (answer["ok"], answer["error"]["code"]) == (False, "invalid_input")
    assert "8,388,608 characters" in answer["error"]["message"]


async def test_an_internal_tool_without_execution_says_ok(loop):
    await loop.begin({"name": "note", "description": "x", "executionType": "internal"})
    assert (await loop.call("note", {"any": 1}))["ret"] == {"status": "ok"}


async def test_a_visible_call_without_a_space_warns_and_goes_to_the_agent(loop):
    tool = {"name": "show", "description": "x", "executionType": "gateway", "execution": {"output": "{{input}}"}}
    await loop.begin(tool)
    answer = await loop.call("show", {"a": 1})
    assert (answer["ok"], answer["ret"], answer["posted"]) == (True, {"a": 1}, None)
    assert [warning["code"] for warning in answer["warnings"]] == ["no_active_space"]
    notices = [json.loads(block["text"])["code"] for block in answer["blocks"] if block["type"] == "react.notice"]
    assert notices == ["tool_call_warning.no_active_space"]


async def test_the_audit_line_has_the_run_and_every_request_that_left(loop, elsewhere):
    elsewhere.answers = [response(b"{}", "application/json")]
    tool = {
        "name": "ask",
        "description": "x",
        "executionType": "gateway",
        "execution": {"url": elsewhere.url("/secret-path")},
    }
    run = await loop.begin(tool)
    await loop.call("ask")
    line = loop.pipeline.audit_lines()[-1].gateway
    assert (line.run_id, line.agent_id, line.agent_version) == (run["run_id"], "helper", 1)
    assert (line.execution, line.visibility) == ("http", "visible")
    [effect] = line.effects
    assert (effect.host, effect.method, effect.status) == (f"127.0.0.1:{elsewhere.port}", "GET", 200)
    assert "secret-path" not in line.model_dump_json()


async def test_cancelling_a_run_cancels_its_calls(loop, elsewhere):
    arrived = asyncio.Event()

    async def hold(_writer):
        arrived.set()
        await asyncio.sleep(60)

    elsewhere.answers = [hold]
    run = await loop.begin(
        {"name": "ask", "description": "x", "executionType": "gateway", "execution": {"url": elsewhere.url()}}
    )
    asking = asyncio.create_task(loop.post_call("ask"))
    await arrived.wait()
    cancelled = await loop.web.delete(f"/v1/runs/{run['run_id']}")
    assert cancelled.json()["status"] == "cancelled"
    answer = await asking
    assert (answer.status_code, answer.json()["code"]) == (409, "cancelled")
    assert (await loop.web.delete(f"/v1/runs/{run['run_id']}")).json()["status"] == "cancelled"
    assert await events_of(loop) == ["run.started", "run.cancelled", "call.answered"]


async def test_a_lease_that_passes_gives_the_run_to_another_and_the_third_time_fails_it(loop):
    run = await loop.begin(SAYS)
    for attempt in (2, 3, None):
        await loop.pipeline.database.write(
            lambda connection: connection.exec_driver_sql(
                "UPDATE runs SET lease_until = '2020-01-01T00:00:00.000Z'"
            )
        )
        await loop.pipeline.gateway.runs.sweep()
        current = await loop.current()
        if attempt is None:
            break
        assert (current["status"], current["attempt"], current["lease"]) == ("queued", attempt, None)
        await loop.web.post("/v1/runs/claim", json={})
    assert (current["status"], current["error"]["code"]) == ("failed", "lease_lost")
    assert run["run_id"] == current["run_id"]


async def test_a_heartbeat_extends_the_lease_and_only_its_holder_may(loop):
    run = await loop.begin(SAYS)
    route = f"/v1/runs/{run['run_id']}/heartbeat"
    extended = await loop.web.post(route, json={"lease_s": 600}, headers=loop.leased())
    assert extended.json()["lease"]["until"] > run["lease"]["until"]
    assert (await loop.web.post(route, json={}, headers=loop.leased(7))).json()["code"] == "lease_lost"
    assert (await loop.web.post(route, json={})).status_code == 422


async def test_the_same_key_makes_one_run(loop):
    await loop.write_agent(SAYS)
    headers, body = {"Idempotency-Key": "k1"}, {"agent_id": "helper", "queued": True}
    first = await loop.web.post("/v1/runs", json=body, headers=headers)
    again = await loop.web.post("/v1/runs", json=body, headers=headers)
    assert (again.json(), again.headers["idempotent-replayed"]) == (first.json(), "true")
    other = await loop.web.post("/v1/runs", json={**body, "metadata": {"a": 1}}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (409, "id_reused")
    listed = (await loop.web.get("/v1/runs", params={"agent_id": "helper", "status": "queued"})).json()
    assert [run["run_id"] for run in listed["items"]] == [first.json()["run_id"]]


async def test_lists_of_runs_have_pages(loop):
    await loop.write_agent(SAYS)
    made = [(await loop.web.post("/v1/runs", json={"agent_id": "helper", "queued": True})).json() for _ in range(5)]
    first = (await loop.web.get("/v1/runs", params={"limit": 3})).json()
    assert first["next"].isdecimal()  # the run of that position may be deleted before the next page
    rest = (await loop.web.get("/v1/runs", params={"limit": 3, "before": first["next"]})).json()
    listed = [run["run_id"] for run in first["items"] + rest["items"]]
    assert (listed, rest["next"]) == ([run["run_id"] for run in reversed(made)], None)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"agent_id": "helper", "metadata": {"a": "x" * 20_000}}, "metadata"),
        ({"agent_id": "helper", "trigger": {"payload": "x" * 300_000}}, "trigger.payload"),
    ],
)
async def test_what_is_too_large_is_refused_with_its_field(loop, body, field):
    await loop.write_agent(SAYS)
    refused = await loop.web.post("/v1/runs", json=body)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, field)


async def test_a_call_that_ran_when_the_service_died_is_not_run_again(tmp_path, elsewhere):
    arrived = asyncio.Event()

    async def hold(_writer):
        arrived.set()
        await asyncio.sleep(60)

    elsewhere.answers = [hold]
    tool = {"name": "ask", "description": "x", "executionType": "gateway", "execution": {"url": elsewhere.url()}}
    async with opened_loop(tmp_path) as loop:
        run = await loop.begin(tool)
        asking = asyncio.create_task(loop.post_call("ask"))
        await arrived.wait()
        # As a process that was killed leaves it: open, of another boot.
        await loop.pipeline.database.write(
            lambda connection: connection.exec_driver_sql("UPDATE calls SET boot_id = 'boot-0'")
        )
        await loop.pipeline.calls.recover()
        status = (await loop.web.get("/v1/tool-calls/call-1")).json()
        asking.cancel()
    assert status["response"]["error"]["code"] == "tool_interrupted"
    assert len(elsewhere.requests) == 1
    assert run["status"] == "running"
