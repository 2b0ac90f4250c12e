"""``/v1/agents`` over HTTP: writing, conditions, versions, refusals, deletion."""

import json

import pytest

from tests.support.gateway_client import opened_loop

SECRET = "wx-secret-0123456789"
WEATHER = {
    "name": "get_weather",
    "description": "The weather of a city",
    "executionType": "gateway",
    "execution": {"url": "https://api.weather.example/{{input.city}}", "headers": {"X-Key": "${env.WX}"}},
}


@pytest.fixture
async def service(tmp_path, monkeypatch):
    monkeypatch.setenv("WX_KEY_OF_TEST", SECRET)
    secrets = {"WX": {"variable": "WX_KEY_OF_TEST", "hosts": ["api.weather.example"], "projects": None}}
    async with opened_loop(tmp_path, gateway_env=secrets) as opened:
        yield opened


@pytest.fixture
def web(service):
    return service.web


def document(*tools, name="Helper", **more):
    return {"version": "2", "agent": {"name": name, "description": "Helps"}, "tools": list(tools), **more}


async def test_an_agent_is_written_read_listed_and_deleted(web):
    written = await web.put("/v1/agents/helper", json=document(WEATHER))
    assert (written.status_code, written.headers["etag"], written.headers["location"]) == (
        201,
        '"1"',
        "../../v1/agents/helper",
    )
    body = written.json()
    assert {key: body[key] for key in ("agent_id", "version", "tools", "warnings")} == {
        "agent_id": "helper",
        "version": 1,
        "tools": [
            {
                "tool_id": "gateway_tools.get_weather",
                "name": "get_weather",
                "execution_type": "gateway",
                "visibility": "visible",
            }
        ],
        "warnings": [],
    }
    read = await web.get("/v1/agents/helper")
    assert (read.status_code, read.headers["etag"]) == (200, '"1"')
    assert read.json()["configuration"] == document(WEATHER)
    assert SECRET not in read.text
    assert read.json()["sha256"] == body["sha256"]
    (listed,) = (await web.get("/v1/agents")).json()["items"]
    assert (listed["handle"], listed["description"], listed["entity_id"]) == ("Helper", "Helps", "agent:helper")
    assert (await web.delete("/v1/agents/helper")).status_code == 204
    gone = await web.get("/v1/agents/helper")
    assert (gone.status_code, gone.json()["code"]) == (404, "unknown_agent")


async def test_the_same_configuration_again_changes_nothing_and_another_is_a_version(web):
    await web.put("/v1/agents/helper", json=document(WEATHER))
    again = await web.put("/v1/agents/helper", json=document(WEATHER))
    assert (again.status_code, again.json()["version"]) == (200, 1)
    other = await web.put("/v1/agents/helper", json=document())
    assert (other.status_code, other.json()["version"], other.headers["etag"]) == (200, 2, '"2"')


async def test_if_match_protects_what_somebody_else_wrote(web):
    async def put(condition, **more):
        answer = await web.put("/v1/agents/helper", json=document(**more), headers={"If-Match": condition})
        return answer.status_code, answer.json().get("code")

    assert await put('"1"') == (412, "version_moved")
    assert await put('"0"') == (201, None)
    assert await put('"0"', model={"name": "m"}) == (412, "version_moved")
    assert await put('"2"', model={"name": "m"}) == (412, "version_moved")
    assert (await web.get("/v1/agents/helper")).json()["version"] == 1
    assert await put('"1"', model={"name": "m"}) == (200, None)
    for wrong in ("1", "*", 'W/"1"', '"x"', '"1", "2"', '"-1"'):
        assert await put(wrong) == (422, "invalid_request")


async def test_the_same_conditional_write_again_is_answered_as_the_first(web):
    async def put(condition, **more):
        answer = await web.put("/v1/agents/helper", json=document(**more), headers={"If-Match": condition})
        return answer.status_code, answer.json().get("version")

    assert [await put('"0"'), await put('"0"')] == [(201, 1), (200, 1)]
    assert [await put('"1"', model={"name": "m"}) for _ in range(2)] == [(200, 2), (200, 2)]
    assert await put('"0"', model={"name": "m"}) == (412, None)
    assert await put('"1"') == (412, None)


async def test_all_mistakes_are_in_one_problem(web):
    wrong = document(
        {**WEATHER, "visibility": "loud", "execution": {"url": "https://{{input.host}}/", "timeout": 0}},
        {"name": "ask", "executionType": "space", "visibility": "hidden"},
        {"name": "get_weather", "executionType": "internal", "execution": {"output": "{{input.x"}},
    )
    answer = await web.put("/v1/agents/helper", json=wrong)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "invalid_tool")
    assert {error["field"] for error in problem["errors"]} == {
        "tools[0].visibility",
        "tools[0].execution.timeout",
        "tools[1].visibility",
        "tools[2].name",
        "tools[2].execution.output",
    }
    assert "(and 4 more)" in problem["detail"]
    assert (await web.get("/v1/agents/helper")).status_code == 404


@pytest.mark.parametrize(
    ("host", "name"),
    [("other.example", "WX"), ("api.weather.example", "PATH"), ("api.weather.example", "WX_KEY_OF_TEST")],
)
async def test_a_secret_that_is_not_for_this_host_or_not_in_the_operators_table_is_unknown(web, host, name):
    tool = {**WEATHER, "execution": {"url": f"https://{host}/", "headers": {"X-Key": f"${{env.{name}}}"}}}
    answer = await web.put("/v1/agents/helper", json=document(tool))
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["code"]) == (422, "unknown_env")
    assert error["field"] == "tools[0].execution.headers.X-Key"
    assert SECRET not in answer.text


async def test_a_handle_is_taken_once_whatever_its_case(web):
    await web.put("/v1/agents/one", json=document(name="Scout"))
    answer = await web.put("/v1/agents/two", json=document(name="sCOUT"))
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


async def test_the_request_itself_is_checked(web):
    async def refusal(**request):
        answer = await web.request("PUT", "/v1/agents/helper", **request)
        return answer.status_code, answer.json()["code"]

    json_type = {"Content-Type": "application/json"}
    assert await refusal(json=[]) == (422, "invalid_request")
    assert await refusal(content=b"{", headers=json_type) == (422, "invalid_request")
    assert await refusal(content=b'{"version":"2","version":"2"}', headers=json_type) == (422, "invalid_request")
    assert await refusal(content=b"{}", headers={"Content-Type": "text/plain"}) == (422, "invalid_request")
    assert await refusal(content=b" " * 1_048_577, headers=json_type) == (413, "body_too_large")
    for path in ("/v1/agents/a b", "/v1/agents/" + "a" * 101, "/v1/agents/.x"):
        assert (await web.put(path, json=document())).status_code == 400
    assert (await web.get("/v1/agents", params={"limit": 101})).status_code == 422
    assert (await web.get("/v1/agents/helper", params={"version": 0})).status_code == 422


async def test_pages_follow_one_another(web):
    for number in range(5):
        await web.put(f"/v1/agents/a{number}", json=document(name=f"h{number}"))
    first = (await web.get("/v1/agents", params={"limit": 2})).json()
    assert ([agent["agent_id"] for agent in first["items"]], first["next"]) == (["a4", "a3"], "a3")
    second = (await web.get("/v1/agents", params={"limit": 3, "before": "a3"})).json()
    assert ([agent["agent_id"] for agent in second["items"]], second["next"]) == (["a2", "a1", "a0"], None)
    unknown = await web.get("/v1/agents", params={"before": "none"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_agent")


async def test_an_old_version_is_read_while_a_run_uses_it(service):
    web = service.web
    await service.begin(WEATHER)
    await web.put("/v1/agents/helper", json=document())
    await web.put("/v1/agents/helper", json=document(model={"name": "m"}))
    old = await web.get("/v1/agents/helper", params={"version": 1})
    assert [tool["name"] for tool in old.json()["configuration"]["tools"]] == ["get_weather"]
    unused = await web.get("/v1/agents/helper", params={"version": 2})
    assert (unused.status_code, unused.json()["code"]) == (404, "unknown_agent")


async def test_an_agent_in_use_is_deleted_only_with_its_runs(service):
    web = service.web
    run = await service.begin(WEATHER)
    refused = await web.delete("/v1/agents/helper")
    assert (refused.status_code, refused.json()["code"]) == (409, "agent_in_use")
    assert (await web.delete("/v1/agents/helper", params={"cancel_runs": "true"})).status_code == 204
    assert (await web.get(f"/v1/runs/{run['run_id']}")).json()["status"] == "cancelled"
    made = await web.post("/v1/runs", json={"agent_id": "helper"})
    assert (made.status_code, made.json()["code"]) == (404, "unknown_agent")
    assert (await web.delete("/v1/agents/helper")).status_code == 404


async def test_every_kind_of_tool_is_accepted_and_given_back(web):
    tools = [
        WEATHER,
        {"name": "hook", "executionType": "external", "execution": {"webhookUrl": "https://hooks.example/x"}},
        {"name": "ask", "executionType": "space", "resultSchema": {"type": "object"}},
        {"name": "note", "executionType": "internal"},
        {"name": "think", "executionType": "gateway", "execution": {"agentConfig": {"tools": [WEATHER]}}},
        {"name": "paint", "executionType": "gateway", "execution": {"provider": "dall-e"}},
        {
            "name": "sum",
            "executionType": "gateway",
            "execution": {"operation": "evaluate", "expression": "{{input.a}} + 1"},
        },
        {"name": "run_python", "executionType": "gateway", "execution": {"tool": "exec_tools.execute_code_python"}},
    ]
    servers = {"servers": [{"name": "maps", "url": "https://mcp.example", "transport": "http"}]}
    written = await web.put("/v1/agents/helper", json=document(*tools, mcp=servers))
    assert written.status_code == 201
    assert [tool["visibility"] for tool in written.json()["tools"]] == [
        "visible", "visible", "visible", "hidden", "visible", "visible", "visible", "visible",
    ]  # fmt: skip
    assert {warning["code"] for warning in written.json()["warnings"]} == {"blank_description"}
    given = (await web.get("/v1/agents/helper")).json()["configuration"]
    assert given == document(*tools, mcp=servers)
    again = await web.put("/v1/agents/helper", json=given)
    assert again.json()["version"] == 1


async def test_the_state_of_an_agent_is_hidden_from_other_tenants_as_an_unknown_one(people):
    found = await people.ann.get("/v1/agents/helper/state")
    assert (found.status_code, found.json()) == (200, {"goals": [], "memories": [], "plans": []})
    foreign = await people.foreigner.get("/v1/agents/helper/state")
    unknown = await people.foreigner.get("/v1/agents/nobody/state")
    assert (foreign.status_code, foreign.json()["code"]) == (404, "unknown_agent")
    bodies = [{**answer.json(), "request_id": ""} for answer in (foreign, unknown)]
    assert json.dumps(bodies[0]).replace("helper", "nobody") == json.dumps(bodies[1])
