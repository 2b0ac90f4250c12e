"""``POST /v1/agent-imports`` over HTTP: the report, what is saved, and what is refused."""

import pytest

from proofbox.contracts.gateway.configuration import CONFIGURATION_BYTES_MAX
from proofbox.service.access.api_keys import ALL_PERMISSIONS, Permission
from tests.support.gateway_client import opened_loop

ROUTE = "/v1/agent-imports"
OLD = {
    "version": "1.0",
    "agent": {"name": "shop desk"},
    "model": {"provider": "openai", "name": "gpt-4o-mini", "apiKey": "sk-model"},
    "tools": [
        {
            "name": "margin",
            "description": "The margin",
            "executionType": "compute",
            "execution": {"operation": "calculate", "expression": "(revenue - costs) / revenue"},
        },
        {"name": "anywhere", "executionType": "request", "execution": {"url": "https://{{host}}/"}},
        {"name": "setGoals", "executionType": "prebuilt"},
    ],
}


@pytest.fixture
async def web(tmp_path):
    async with opened_loop(tmp_path) as opened:
        yield opened.web


async def test_a_configuration_is_converted_reported_and_saved_without_what_needs_review(web):
    answer = await web.post(ROUTE, json={"config": OLD, "save_as": "shop"})
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    body = answer.json()
    assert set(body) == {"config", "report", "saved"}
    assert [(part["tool"], part["from"], part["to"], part["status"]) for part in body["report"]] == [
        ("margin", "compute", "gateway compute", "converted"),
        ("anywhere", "request", "gateway http", "needs_review"),
        ("setGoals", "prebuilt", None, "dropped"),
        (None, "agent", "agent", "converted"),
        (None, "model", "model", "converted"),
    ]
    assert all(set(part) == {"tool", "from", "to", "status", "message"} for part in body["report"])
    assert [tool["name"] for tool in body["config"]["tools"]] == ["margin", "anywhere"]
    assert (body["saved"]["agent_id"], body["saved"]["version"]) == ("shop", 1)
    stored = (await web.get("/v1/agents/shop")).json()["configuration"]
    assert stored == {**body["config"], "tools": body["config"]["tools"][:1]}
    assert "sk-model" not in str(stored)


async def test_an_exported_configuration_comes_back_as_it_is(web):
    await web.post(ROUTE, json={"config": OLD, "save_as": "shop"})
    exported = (await web.get("/v1/agents/shop")).json()
    again = await web.post(ROUTE, json={"config": exported["configuration"], "save_as": "shop"})
    assert again.json()["config"] == exported["configuration"]
    assert (again.json()["saved"]["version"], again.json()["saved"]["sha256"]) == (1, exported["sha256"])
    assert [part["status"] for part in again.json()["report"]] == ["unchanged"]


async def test_without_a_name_nothing_is_saved(web):
    answer = await web.post(ROUTE, json={"config": OLD})
    assert (answer.status_code, answer.json()["saved"]) == (200, None)
    assert (await web.get("/v1/agents")).json()["items"] == []


async def test_mistakes_beyond_single_tools_are_refused_and_nothing_is_saved(web):
    async def refused(body):
        answer = await web.post(ROUTE, json=body)
        problem = answer.json()
        return answer.status_code, problem["code"], [error["field"] for error in problem.get("errors") or []]

    assert await refused({"config": {"version": "3"}, "save_as": "a"}) == (
        422,
        "invalid_tool",
        ["version", "agent.name"],
    )
    assert await refused({"config": {**OLD, "model": 7}, "save_as": "a"}) == (422, "invalid_tool", ["model"])
    new = {"version": "2", "agent": {"name": "a"}, "tools": [{"name": "enter_space", "executionType": "internal"}]}
    assert await refused({"config": new, "save_as": "a"}) == (422, "invalid_tool", ["tools[0].name"])
    assert await refused({"config": [], "save_as": "a"}) == (422, "invalid_request", ["config"])
    assert await refused({"config": OLD, "save_as": "../a"}) == (422, "invalid_request", ["save_as"])
    assert await refused({"config": OLD, "keep": 1}) == (422, "invalid_request", ["keep"])
    large = {**OLD, "agent": {"name": "a", "system": "x" * CONFIGURATION_BYTES_MAX}}
    assert (await refused({"config": large}))[:2] == (413, "body_too_large")
    assert (await web.get("/v1/agents")).json()["items"] == []


async def test_the_handle_of_somebody_else_is_a_conflict(web):
    assert (await web.post(ROUTE, json={"config": OLD, "save_as": "one"})).status_code == 200
    answer = await web.post(ROUTE, json={"config": OLD, "save_as": "two"})
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


async def test_a_key_needs_the_scope_of_writing_agents(office):
    reader = await office.key("reader", ALL_PERMISSIONS - {Permission.AGENTS_WRITE})
    answer = await reader.post(ROUTE, json={"config": OLD})
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert (await office.admin.post(ROUTE, json={"config": OLD})).status_code == 200
