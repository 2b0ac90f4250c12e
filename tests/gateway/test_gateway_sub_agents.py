"""Sub-agents: what their model is sent, what their tools do, and every bound of their loop."""

import asyncio
import json

import pytest

from proofbox.service.timeline.bpe_tokens import BpeTokenCounter
from tests.support.gateway_client import opened_loop
from tests.support.llm_server import CHAT, KEY, Held, asks, json_response, llm_server, says
from tests.support.mcp_servers import desk, raw_server, raw_tool, sdk_server
from tests.support.web_server import response

ECHO = {"name": "echo", "description": "Echoes.", "executionType": "gateway", "execution": {"output": "{{input}}"}}
ADD = {
    "name": "add",
    "description": "Adds.",
    "executionType": "internal",
    "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    "execution": {"output": {"n": "{{input.n}}"}},
}


def sub_agent(*tools, steps=5, visibility="hidden", **more):
    config = {"tools": list(tools), "loop": {"maxSteps": steps}, **more.pop("config", {})}
    return {
        "name": "research",
        "description": "Finds out.",
        "executionType": "gateway",
        "visibility": visibility,
        "execution": {"agentConfig": config, **more},
    }


def http_tool(server, **execution):
    return {
        "name": "fetch",
        "description": "Asks a server.",
        "executionType": "gateway",
        "execution": {"url": server.url("/data"), **execution},
    }


def inner_lines(loop):
    return [line for line in loop.pipeline.audit_lines() if ":s" in line.call.tool_call_id]


def results(body):
    """The results of tools that a request to the model has."""
    return [message["content"] for message in body["messages"] if message["role"] == "tool"]


async def test_the_prompt_goes_to_the_operator_s_model_and_its_text_is_the_result(asking, llm):
    llm.answers = [says("It is 7.")]
    agent = {"name": "Finder", "system": "Be brief.", "instructions": ["No jokes.", "In English."]}
    await asking.begin(sub_agent(config={"agent": agent, "model": {"name": CHAT}}))
    answer = await asking.call("research", {"prompt": "What is 3 + 4? ${env.X} {{input.y}}"})
    assert answer["ret"] == {
        "text": "It is 7.",
        "finish": "stop",
        "steps": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }
    (request,) = llm.requests
    assert request.line == "POST /v1/chat/completions HTTP/1.1"
    assert request.headers()["authorization"] == f"Bearer {KEY}"
    assert json.loads(request.body) == {
        "model": CHAT,
        "messages": [
            {"role": "system", "content": "Be brief.\n\nNo jokes.\nIn English."},
            {"role": "user", "content": "What is 3 + 4? ${env.X} {{input.y}}"},
        ],
    }
    (effect,) = asking.pipeline.audit_lines()[-1].gateway.effects
    assert (effect.host, effect.method, effect.status) == (f"127.0.0.1:{llm.port}", "POST", 200)


async def test_tools_run_one_after_another_with_audit_lines_and_nothing_else_is_stored(asking, llm, elsewhere):
    elsewhere.answers = [response(b'{"rows": 3}', "application/json")]
    llm.answers = [asks(("fetch", {}), ("add", {"n": 4}), text="Let me see."), says("There are 3 rows.")]
    await asking.begin(sub_agent(http_tool(elsewhere), ADD))
    answer = await asking.call("research", {"prompt": "Count"})
    assert [(step["tool"], step["ok"]) for step in answer["ret"]["steps"]] == [("fetch", True), ("add", True)]
    assert answer["ret"]["usage"]["total_tokens"] == 30
    first, second = llm.bodies()
    assert [tool["function"]["name"] for tool in first["tools"]] == ["fetch", "add"]
    assert second["messages"][1]["tool_calls"][1]["function"] == {"name": "add", "arguments": '{"n":4}'}
    assert [message.get("tool_call_id") for message in second["messages"][2:]] == ["id-0", "id-1"]
    assert [json.loads(text) for text in results(second)] == [{"status": 200, "data": {"rows": 3}}, {"n": 4}]
    lines = inner_lines(asking)
    assert [(line.call.tool_call_id, line.call.tool_id, line.gateway.execution) for line in lines] == [
        ("call-1:s1:1", "gateway_tools.fetch", "http"),
        ("call-1:s1:2", "gateway_tools.add", "output"),
    ]
    assert [[effect.status for effect in line.gateway.effects] for line in lines] == [[200], []]
    assert {(line.gateway.run_id, line.gateway.visibility) for line in lines} == {(asking.run["run_id"], "hidden")}
    conversation = asking.run["conversation_id"]
    timeline = (await asking.web.get(f"/v1/conversations/{conversation}/timeline")).json()
    assert {block["call_id"] for block in timeline["blocks"]} == {"call-1"}
    assert (await asking.web.get("/v1/tool-calls/call-1:s1:1")).status_code == 404


async def test_only_the_sub_agent_itself_is_shown_in_the_space(asking, llm):
    await asking.web.put("/v1/entities/ann", json={"type": "human", "handle": "ann", "display_name": "Ann"})
    await asking.write_agent(sub_agent({**ECHO, "visibility": "visible"}, visibility="visible"))
    made = await asking.web.post("/v1/spaces", json={"name": "room", "members": ["ann", "agent:helper"]})
    space = made.json()["space_id"]
    llm.answers = [asks(("echo", {"a": 1})), says("done")]
    await asking.begin(sub_agent({**ECHO, "visibility": "visible"}, visibility="visible"), space_id=space)
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["posted"]["space_id"] == space
    page = (await asking.web.get(f"/v1/spaces/{space}/messages")).json()
    assert [message["tool"]["name"] for message in page["items"]] == ["research"]


async def test_endless_calls_end_at_the_last_step_and_its_calls_are_not_run(asking, llm):
    llm.answers = [asks(("echo", {"a": 1}))]
    await asking.begin(sub_agent(ECHO, steps=10))
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["error"]["code"] == "sub_agent_limit"
    assert len(llm.requests) == 10
    assert len(answer["ret"]["steps"]) == len(inner_lines(asking)) == 9
    llm.answers = [asks(("echo", {"a": 1}), text="So far: 1")]
    answer = await asking.call("research", {"prompt": "x"})
    assert (answer["ok"], answer["ret"]["text"], answer["ret"]["finish"]) == (True, "So far: 1", "max_steps")


async def test_the_default_is_five_steps(asking, llm):
    llm.answers = [asks(("echo", {}))]
    await asking.begin(sub_agent(ECHO, config={"loop": {}}))
    await asking.call("research", {"prompt": "x"})
    assert len(llm.requests) == 5


async def test_the_21st_call_is_not_run(asking, llm):
    llm.answers = [asks(*[("echo", {"n": number}) for number in range(7)], text="Working")]
    await asking.begin(sub_agent(ECHO, steps=10))
    answer = await asking.call("research", {"prompt": "x"})
    assert (answer["ret"]["finish"], answer["ret"]["text"]) == ("max_calls", "Working")
    assert len(answer["ret"]["steps"]) == len(inner_lines(asking)) == 20
    assert len(llm.requests) == 3
    assert inner_lines(asking)[-1].call.tool_call_id == "call-1:s3:6"


async def test_three_calls_in_a_row_that_cannot_be_read_end_it(asking, llm):
    llm.answers = [asks(("echo", '{"a": ')), asks(("echo", "[1]")), asks(("nothing", {})), says("no")]
    await asking.begin(sub_agent(ECHO, steps=10))
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["error"]["code"] == "sub_agent_failed"
    assert len(llm.requests) == 3
    assert [step["ok"] for step in answer["ret"]["steps"]] == [False] * 3
    assert inner_lines(asking) == []
    # What the model wrote is not sent back to a server that would parse it.
    assert llm.bodies()[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_a_call_that_can_be_read_ends_the_row(asking, llm):
    broken, fine = ("echo", "{"), ("echo", {"a": 1})
    llm.answers = [asks(broken, broken, fine, broken, broken), says("done")]
    await asking.begin(sub_agent(ECHO))
    answer = await asking.call("research", {"prompt": "x"})
    assert [step["ok"] for step in answer["ret"]["steps"]] == [False, False, True, False, False]
    assert answer["ret"]["text"] == "done"


async def test_the_tokens_of_all_replies_are_bounded(asking, llm):
    llm.answers = [asks(("echo", {}), text="half", tokens=(20_000, 5_001))]
    await asking.begin(sub_agent(ECHO, steps=10))
    answer = await asking.call("research", {"prompt": "x"})
    assert (answer["ret"]["finish"], answer["ret"]["usage"]["total_tokens"]) == ("max_tokens", 50_002)
    assert len(llm.requests) == 2
    assert len(inner_lines(asking)) == 1


async def test_tokens_that_an_endpoint_does_not_count_are_counted_here(asking, llm):
    llm.answers = [asks(("echo", {}), text="word " * 30_000, tokens=None)]
    await asking.begin(sub_agent(ECHO, steps=10))
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["ret"]["finish"] == "max_tokens"
    assert len(llm.requests) == 1
    answer = await asking.call("research", {"prompt": "word " * 60_000})
    assert answer["error"]["code"] == "sub_agent_limit"
    assert len(llm.requests) == 1


async def test_a_slow_model_ends_with_the_time_of_the_call(asking, llm):
    held = Held()
    llm.answers = [held]
    await asking.begin(sub_agent(ECHO, timeout=1_000))
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["error"]["code"] == "sub_agent_limit"
    await held.closed.wait()
    later = Held()
    llm.answers = [asks(("echo", {}), text="So far"), later]
    await asking.begin(sub_agent(ECHO, timeout=2_500))  # its first step needs less on a busy machine
    answer = await asking.call("research", {"prompt": "x"})
    assert (answer["ok"], answer["ret"]["text"], answer["ret"]["finish"]) == (True, "So far", "timeout")
    await later.closed.wait()


async def test_cancelling_ends_the_request_to_the_model_at_once(asking, llm):
    held = Held()
    llm.answers = [asks(("echo", {})), held]
    await asking.begin(sub_agent(ECHO))
    calling = asyncio.create_task(asking.post_call("research", {"prompt": "x"}))
    await held.arrived.wait()
    await asking.web.delete("/v1/tool-calls/call-1")
    answer = await calling
    assert (answer.status_code, answer.json()["code"]) == (409, "cancelled")
    async with asyncio.timeout(20):  # not only when the request would have timed out
        await held.closed.wait()
    assert len(llm.requests) == 2


async def test_cancelling_ends_the_call_of_a_tool_which_has_its_audit_line(asking, llm):
    async with llm_server() as slow:
        held = Held()
        slow.answers = [held]
        llm.answers = [asks(("fetch", {}), ("echo", {}))]
        tool = {**ECHO, "name": "fetch", "execution": {"url": f"http://127.0.0.1:{slow.port}/"}}
        await asking.begin(sub_agent(tool, ECHO))
        calling = asyncio.create_task(asking.post_call("research", {"prompt": "x"}))
        await held.arrived.wait()
        await asking.web.delete("/v1/tool-calls/call-1")
        assert (await calling).json()["code"] == "cancelled"
        async with asyncio.timeout(20):
            await held.closed.wait()
    (line,) = inner_lines(asking)
    assert (line.call.tool_call_id, line.outcome.state, line.outcome.code) == (
        "call-1:s1:1",
        "cancelled",
        "cancelled",
    )
    assert len(llm.requests) == 1


async def test_the_key_comes_back_nowhere(asking, llm, caplog):
    caplog.set_level("DEBUG")
    llm.answers = [
        asks(("echo", {"leak": KEY}), text=f"my key is {KEY}"),
        says(f"it is {KEY}"),
        json_response({"error": {"message": f"bad {KEY}"}}, "400 Bad Request"),
        response(f"<html>{KEY}</html>".encode(), "text/html", "404 Not Found"),
        response(f"no JSON {KEY}".encode(), "application/json"),
        json_response({KEY: KEY}),
    ]
    await asking.begin(sub_agent(ECHO))
    answers = [await asking.post_call("research", {"prompt": "x"}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 5
    assert answers[0].json()["ret"]["text"] == "it is [redacted]"
    assert json.loads(results(llm.bodies()[1])[0]) == {"leak": "[redacted]"}
    assert "bad [redacted]" in answers[1].text
    codes = [answer.json()["error"]["code"] for answer in answers[1:]]
    assert codes == ["sub_agent_failed"] * 4
    conversation = asking.run["conversation_id"]
    timeline = await asking.web.get(f"/v1/conversations/{conversation}/timeline")
    agent = await asking.web.get("/v1/agents/helper")
    lines = "".join(line.model_dump_json() for line in asking.pipeline.audit_lines())
    everything = "".join(answer.text for answer in answers) + timeline.text + agent.text + lines + caplog.text
    assert KEY not in everything
    assert json.dumps(KEY)[1:-1] not in everything
    assert repr(asking.pipeline.gateway.services.endpoints.find("default", "chat")).find(KEY) == -1


async def test_sub_agents_that_have_all_places_leave_them_to_their_tools(tmp_path, llm, elsewhere, monkeypatch):
    monkeypatch.setenv("LLM_KEY", KEY)
    settings = {"gateway_running_max": 1, "llm_endpoints": llm.settings(), "queue_max": 10}
    async with opened_loop(tmp_path, **settings) as loop:
        llm.answers = [asks(("fetch", {})), asks(("fetch", {})), asks(("fetch", {})), says("done")]
        await loop.begin(sub_agent(http_tool(elsewhere), steps=9))
        answers = await asyncio.gather(*[loop.call("research", {"prompt": "x"}) for _ in range(3)])
    assert [answer["ret"]["text"] for answer in answers] == ["done"] * 3
    assert len(elsewhere.requests) == 3


async def test_the_end_of_the_conversation_is_read_if_it_is_wanted(asking, llm):
    llm.answers = [says("yes")]
    await asking.begin(ECHO, sub_agent(includeContext=True))
    lines = [f"line {number} of a long story" for number in range(3_000)]
    await asking.call("echo", {"lines": "\n".join(lines[:600])})
    for start in range(600, 3_000, 600):
        await asking.call("echo", {"lines": "\n".join(lines[start : start + 600])})
    await asking.call("research", {"prompt": "How does it end?"})
    (content,) = [message["content"] for message in llm.bodies()[0]["messages"]]
    assert content.startswith("The end of the conversation so far:\n\n")
    assert content.endswith("Your task:\n\nHow does it end?")
    assert "line 2999 of" in content
    assert "line 0 of" not in content
    tokens = BpeTokenCounter().count(content)
    assert 6_000 < tokens <= 8_050


async def test_mistakes_in_calls_are_results_that_the_model_reads(asking, llm, elsewhere):
    elsewhere.answers = [response(b"busy", "text/plain", "500 Oh")]
    llm.answers = [asks(("add", {"n": "four"}), ("fetch", {})), says("sorry")]
    await asking.begin(sub_agent(ADD, http_tool(elsewhere)))
    answer = await asking.call("research", {"prompt": "x"})
    assert [step["ok"] for step in answer["ret"]["steps"]] == [False, False]
    wrong, failed = (json.loads(text) for text in results(llm.bodies()[1]))
    assert wrong["error"]["code"] == "invalid_input"
    assert (failed["error"]["code"], failed["result"]) == ("http_status", {"status": 500, "data": "busy"})
    assert [line.outcome.code for line in inner_lines(asking)] == ["invalid_input", "http_status"]


async def test_tools_of_mcp_servers_are_called_and_those_that_are_missing_are_warnings(asking, llm):
    async with sdk_server(desk()) as served, sdk_server(desk()) as gone:
        gone_entry = gone.entry("gone", timeout=500)
        gone_entry["url"] = "http://127.0.0.1:9/mcp"
        mcp = {"servers": [served.entry(allowedTools=["add"]), gone_entry]}
        llm.answers = [asks(("desk__add", {"numbers": [1, 2]}), ("desk__say", {"text": "x"})), says("3")]
        await asking.begin(sub_agent(config={"mcp": mcp}))
        answer = await asking.call("research", {"prompt": "Add"})
        assert [tool["function"]["name"] for tool in llm.bodies()[0]["tools"]] == ["desk__add"]
        assert served.called == ["add"]
    assert json.loads(results(llm.bodies()[1])[0])["total"] == 3
    assert [step["ok"] for step in answer["ret"]["steps"]] == [True, False]
    assert [warning["code"] for warning in answer["warnings"]] == ["mcp_unavailable"]
    (line,) = inner_lines(asking)
    assert (line.call.tool_id, line.gateway.execution) == ("mcp_tools.desk.add", "mcp")


async def test_our_own_tools_run_with_their_files_and_reports(asking, llm):
    asking.pipeline.engine.program = lambda run: run.write("a.txt", b"hello")
    params = {"contract": [{"filename": "a.txt", "description": "A text"}]}
    tool = {**ECHO, "name": "python", "execution": {"tool": "exec_tools.execute_code_python"}}
    llm.answers = [asks(("python", {**params, "code": "print(1)"})), says("made it")]
    await asking.begin(sub_agent(tool))
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["ret"]["steps"][0]["ok"] is True
    assert "code" in llm.bodies()[0]["tools"][0]["function"]["parameters"]["properties"]
    assert "a.txt" in results(llm.bodies()[1])[0]
    assert [artifact["verdict"] for artifact in answer["artifacts"]] == ["produced"]
    (line,) = inner_lines(asking)
    assert (line.gateway.execution, line.sandbox.engine, len(line.outputs)) == ("own_tool", "fake", 1)


async def test_our_tools_that_read_show_the_model_what_they_read(asking, llm):
    tool = {**ECHO, "name": "read", "execution": {"tool": "react.read"}}
    await asking.begin(sub_agent(tool))
    conversation = asking.run["conversation_id"]
    base = f"/v1/conversations/{conversation}/turns/turn_0/attachments"
    await asking.web.put(f"{base}/a.txt", content=b"the answer is 42")
    llm.answers = [asks(("read", {"paths": ["fi:turn_0.user.attachments/a.txt"]})), says("42")]
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["ret"]["steps"][0]["ok"] is True
    assert "the answer is 42" in results(llm.bodies()[1])[0]


async def test_a_long_result_of_a_tool_is_cut_for_the_model(asking, llm):
    llm.answers = [asks(("echo", {"text": "word " * 10_000})), says("long")]
    await asking.begin(sub_agent(ECHO))
    assert (await asking.call("research", {"prompt": "x"}))["ret"]["text"] == "long"
    assert 20_000 < len(results(llm.bodies()[1])[0]) < 21_000


async def test_a_failure_of_the_service_within_a_call_is_its_result(asking, llm):
    asking.pipeline.engine.is_down = True
    tool = {**ECHO, "name": "python", "execution": {"tool": "exec_tools.execute_code_python"}}
    llm.answers = [asks(("python", {"explore": True, "code": "print(1)"})), says("it is down")]
    await asking.begin(sub_agent(tool))
    answer = await asking.call("research", {"prompt": "x"})
    assert (answer["ret"]["text"], answer["ret"]["steps"][0]["ok"]) == ("it is down", False)
    assert json.loads(results(llm.bodies()[1])[0])["error"]["code"] == "engine_unavailable"
    assert [line.outcome.state for line in inner_lines(asking)] == ["failed"]


@pytest.mark.parametrize(
    ("reply", "code", "part"),
    [
        (says("", reason="length"), "sub_agent_limit", "cut"),
        (says(""), "sub_agent_failed", "neither"),
        (says("half", reason="content_filter"), "sub_agent_failed", "withheld"),
        (json_response({"choices": []}), "sub_agent_failed", "choices"),
        (json_response([1]), "sub_agent_failed", "choices"),
        (json_response({"choices": [{"message": "x"}]}), "sub_agent_failed", "choices"),
        (response(b"<html>", "text/html"), "sub_agent_failed", "no JSON"),
        (response(b"x" * 3_000_000, "application/octet-stream"), "sub_agent_failed", "more than may be read"),
        (
            json_response({"error": {"message": "no such model"}}, "404 Not Found"),
            "sub_agent_failed",
            "no such model",
        ),
        (json_response({"error": "seen: sk-t3st-***"}, "401 Unauthorized"), "sub_agent_failed", "operator's key"),
        (response(b"boom", "text/plain", "500 Oh"), "sub_agent_failed", "HTTP status 500"),
        (response(b"", "", "302 Found", location="http://127.0.0.1:1/"), "sub_agent_failed", "final address"),
    ],
)
async def test_a_reply_that_is_no_answer_fails_the_call(asking, llm, reply, code, part):
    llm.answers = [reply]
    await asking.begin(sub_agent(ECHO))
    answer = await asking.call("research", {"prompt": "x"})
    assert answer["error"]["code"] == code
    assert part in answer["error"]["message"]
    assert "127.0.0.1" not in answer["error"]["message"]


async def test_a_text_that_the_endpoint_cut_is_a_result_and_says_so(asking, llm):
    llm.answers = [says("and then", reason="length")]
    await asking.begin(sub_agent())
    answer = await asking.call("research", {"prompt": "x"})
    assert (answer["ok"], answer["ret"]["text"], answer["ret"]["finish"]) == (True, "and then", "length")


async def test_an_endpoint_that_is_busy_is_asked_once_more(asking, llm):
    llm.answers = [response(b"", "", "503 Busy"), says("now")]
    await asking.begin(sub_agent())
    assert (await asking.call("research", {"prompt": "x"}))["ret"]["text"] == "now"
    assert len(llm.requests) == 2


async def test_a_model_or_endpoint_that_the_operator_does_not_have_is_not_asked(tmp_path, llm, monkeypatch):
    monkeypatch.setenv("LLM_KEY", KEY)
    async with opened_loop(tmp_path, llm_endpoints=llm.settings(can=["chat"])) as loop:
        await loop.begin(sub_agent(config={"model": {"provider": "elsewhere", "name": "big"}}))
        answer = await loop.call("research", {"prompt": "x"})
        assert answer["error"]["code"] == "endpoint_not_configured"
        bad = sub_agent(config={"model": {"name": "big"}})
        document = {"version": "2", "agent": {"name": "Helper"}, "tools": [bad]}
        refused = await loop.web.put("/v1/agents/helper", json=document)
        assert refused.status_code == 422
        (error,) = refused.json()["errors"]
        assert error["field"] == "tools[0].execution.agentConfig.model.name"
        await loop.begin(sub_agent(config={"model": {"name": CHAT}}))
    # The operator removes the model; the run's version of the agent still names it.
    later = {"default": {**llm.settings()["default"], "models": ["other"]}}
    run = loop.run
    async with opened_loop(tmp_path, llm_endpoints=later) as loop:
        loop.run, loop.count = run, 10
        answer = await loop.call("research", {"prompt": "x"})
    assert answer["error"]["code"] == "endpoint_not_configured"
    assert "its models are other" in answer["error"]["message"]
    assert llm.requests == []


async def test_a_long_id_of_the_call_is_shortened_by_its_hash(asking, llm):
    llm.answers = [asks(("echo", {})), says("done")]
    await asking.begin(sub_agent(ECHO))
    for parent in ("a" * 110, "a" * 111, "a" * 110 + "b"):
        llm.answers = [asks(("echo", {})), says("done")]
        await asking.call("research", {"prompt": "x"}, tool_call_id=parent)
    ids = [line.call.tool_call_id for line in inner_lines(asking)]
    assert ids[0] == "a" * 110 + ":s1:1"
    assert [len(each) for each in ids] == [115] * 3
    assert len(set(ids)) == 3


async def test_another_input_than_a_prompt_is_sent_as_json(asking, llm):
    llm.answers = [says("ok")]
    tool = {**sub_agent(), "inputSchema": {"type": "object"}}
    await asking.begin(tool)
    await asking.call("research", {"city": "Oslo", "prompt": "x"})
    assert json.loads(llm.bodies()[0]["messages"][0]["content"]) == {"city": "Oslo", "prompt": "x"}
    assert (await asking.call("research", {}))["ok"] is True


async def test_the_tools_of_mcp_servers_are_tools_of_a_sub_agent_too(asking, llm):
    async with raw_server(raw_tool("rows"), raw_tool("wipe")) as server:
        server.results = {"rows": {"content": [{"type": "text", "text": "three"}]}}
        llm.answers = [asks(("desk__rows", {}), ("desk__wipe", {})), says("There are 3 rows.")]
        servers = {"servers": [server.entry(allowedTools=["rows"])]}
        await asking.begin(sub_agent(ADD, config={"mcp": servers}))
        answer = await asking.call("research", {"prompt": "Count."})
        assert server.called == ["rows"]
    names = [tool["function"]["name"] for tool in json.loads(llm.requests[0].body)["tools"]]
    assert names == ["add", "desk__rows"]
    assert results(json.loads(llm.requests[1].body))[0] == '"three"'
    assert answer["ret"]["text"] == "There are 3 rows."
    line = inner_lines(asking)[0]
    assert (line.call.tool_id, line.gateway.execution) == ("mcp_tools.desk.rows", "mcp")


async def test_a_sub_agent_without_its_required_server_asks_no_model(asking, llm):
    gone = {"name": "gone", "url": "http://nobody.example/mcp", "transport": "http", "required": True}
    asking.pipeline.names.answers["nobody.example"] = [["127.0.0.77"]]
    await asking.begin(sub_agent(config={"mcp": {"servers": [gone]}}))
    answer = await asking.call("research", {"prompt": "Count."})
    assert answer["error"]["code"] == "mcp_unavailable"
    assert llm.requests == []
