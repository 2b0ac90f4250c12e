"""What belongs to one project is not there for another: each route answers as it does for an id that nobody has."""

import re

import pytest

LEASE = {"Run-Lease": "1"}
# How each operation whose path names an agent, a run, a space, a message or an entity is asked.
REQUESTS = {
    "get_agent": ("GET", "/v1/agents/{agent_id}", None),
    "get_agent_state": ("GET", "/v1/agents/{agent_id}/state", None),
    "delete_agent": ("DELETE", "/v1/agents/{agent_id}", None),
    "get_signing_secret": ("POST", "/v1/agents/{agent_id}/signing-secret", {}),
    "get_run": ("GET", "/v1/runs/{run_id}", None),
    "cancel_run": ("DELETE", "/v1/runs/{run_id}", None),
    "get_run_context": ("GET", "/v1/runs/{run_id}/context", None),
    "extend_run_lease": ("POST", "/v1/runs/{run_id}/heartbeat", {}),
    "release_run": ("POST", "/v1/runs/{run_id}/release", None),
    "finish_run": ("POST", "/v1/runs/{run_id}/finish", {"status": "completed"}),
    "watch_run": ("GET", "/v1/runs/{run_id}/events", None),
    "post_tool_input": (
        "POST",
        "/v1/runs/{run_id}/tool-inputs/call-2",
        {"tool": "ask", "offset": 0, "delta": "{"},
    ),
    "get_entity": ("GET", "/v1/entities/{entity_id}", None),
    "get_space": ("GET", "/v1/spaces/{space_id}", None),
    "change_space": ("PATCH", "/v1/spaces/{space_id}", {"name": "Mine"}),
    "archive_space": ("DELETE", "/v1/spaces/{space_id}", None),
    "add_member": ("PUT", "/v1/spaces/{space_id}/members/{entity_id}", None),
    "remove_member": ("DELETE", "/v1/spaces/{space_id}/members/{entity_id}", None),
    "create_space_token": ("POST", "/v1/spaces/{space_id}/tokens", {"entity_id": "ann", "expires_s": 60}),
    "list_messages": ("GET", "/v1/spaces/{space_id}/messages", None),
    "post_message": ("POST", "/v1/spaces/{space_id}/messages", {"text": "hello"}),
    "get_message": ("GET", "/v1/spaces/{space_id}/messages/{message_id}", None),
    "get_message_artifact": ("GET", "/v1/spaces/{space_id}/messages/{message_id}/artifacts/{logical_path}", None),
    "watch_space": ("GET", "/v1/spaces/{space_id}/events", None),
    "answer_message": ("POST", "/v1/spaces/{space_id}/messages/{message_id}/result", {"result": 1}),
    "answer_tool_call": ("POST", "/v1/tool-calls/{tool_call_id}/result", {"result": 1}),
}
# Writing under an id that another project has makes one of the caller's own.
OWN_BY_WRITING = {"put_agent", "put_entity"}
NOT_OF_A_PROJECT = {"call_by_webhook"}  # its path names a tool of the service
ASKS = [{"name": "ask", "executionType": "space"}]


@pytest.fixture
async def ids(people, kitchen):
    """The ids of what ann's project has: an agent, its run with a waiting call, and the message that asks."""
    await people.loop.write_agent(*ASKS, name="helper")
    run = (await people.ann.post("/v1/runs", json={"agent_id": "helper", "space_id": kitchen})).json()
    call = {
        "tool_id": "ask",
        "tool_call_id": "call-1",
        "conversation_id": run["conversation_id"],
        "run_id": run["run_id"],
        "params": {},
    }
    answer = await people.ann.post("/v1/tool-calls", json=call, headers=LEASE)
    assert answer.status_code == 202, answer.text
    return {
        "agent_id": "helper",
        "run_id": run["run_id"],
        "space_id": kitchen,
        "entity_id": "bob",
        "message_id": answer.json()["wait"]["message_id"],
        "tool_call_id": "call-1",
        "logical_path": "files/plot.png",
    }


async def _ask(client, operation, ids):
    method, path, body = REQUESTS[operation]
    return await client.request(method, path.format_map(ids), json=body, headers=LEASE)


def _without(text, ids):
    """A text without the ids that it repeats."""
    for value in sorted(ids.values(), key=len, reverse=True):
        text = text.replace(value, "…")
    return re.sub(r'"(instance|request_id)":"[^"]*"', "", text)


def test_every_route_that_names_something_of_a_project_is_asked(office):
    named = {
        operation["operationId"]
        for path, methods in office.app.openapi()["paths"].items()
        for operation in methods.values()
        if re.match(r"/v1/(agents|runs|entities|spaces|external)/\{", path) or path.endswith("}/result")
    }
    assert named == REQUESTS.keys() | OWN_BY_WRITING | NOT_OF_A_PROJECT


@pytest.mark.parametrize("operation", REQUESTS)
@pytest.mark.shares_fixtures
async def test_of_another_tenant_nothing_is_there(people, ids, operation):
    nobodys = {name: f"{value[:4]}_0000000000" for name, value in ids.items()}
    foreign, unknown = [await _ask(people.foreigner, operation, each) for each in (ids, nobodys)]
    assert foreign.status_code == 404, foreign.text
    assert unknown.status_code == 404, unknown.text
    assert _without(foreign.text, ids) == _without(unknown.text, nobodys)
    assert (await people.ann.get(f"/v1/runs/{ids['run_id']}")).json()["status"] == "waiting_tool"


@pytest.mark.usefixtures("ids")
async def test_an_id_of_another_project_names_something_of_ones_own(people):
    body = {"type": "human", "handle": "bob", "display_name": "Mine", "user": "x"}
    assert (await people.foreigner.put("/v1/entities/bob", json=body)).status_code == 201
    assert (await people.ann.get("/v1/entities/bob")).json()["display_name"] == "Bob"
    mine = {"version": "2", "agent": {"name": "mine"}, "tools": []}
    assert (await people.foreigner.put("/v1/agents/helper", json=mine)).status_code == 201
    assert (await people.admin.get("/v1/agents/helper")).json()["configuration"]["agent"]["name"] == "helper"
