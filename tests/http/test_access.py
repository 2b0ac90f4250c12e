"""The doors with keys: every route asks for one, each for its own scope, and nobody speaks for another tenant."""

import re
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from proofbox.service.access.api_keys import (
    ALL_PERMISSIONS,
    ApiKey,
    Permission,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.api.app import create_app
from proofbox.service.api.middleware.authentication import OPEN_PATHS
from proofbox.service.storage.api_keys import SqlApiKeys
from tests.http.conftest import PRINCIPAL

CALLS = "/v1/tool-calls"
METHODS = ("get", "put", "post", "delete", "patch", "head")
# Which scopes each route asks for; "any" is any key, "open" is nobody's.
NEEDED = {
    "make_tool_call": "calls:run",
    "get_tool_call": "calls:read",
    "cancel_tool_call": "calls:run",
    "watch_tool_call": "calls:read",
    "get_provenance": "calls:read",
    "rerun_tool_call": "calls:run",
    "list_tools": "any",
    "put_attachment": "artifacts:write",
    "list_conversations": "timeline:read",
    "list_files": "artifacts:read",
    "delete_conversation": "artifacts:write timeline:write",
    "delete_file": "artifacts:write",
    "get_artifact": "artifacts:read",
    "put_linked_attachment": "open",
    "list_artifacts": "artifacts:read",
    "get_linked_file": "open",
    "get_timeline": "timeline:read",
    "append_to_timeline": "timeline:write",
    "get_sources": "timeline:read",
    "live": "open",
    "ready": "open",
    "get_metrics": "metrics:read",
    "put_agent": "agents:write",
    "import_agent": "agents:write",
    "get_agent": "agents:read",
    "get_agent_state": "agents:read",
    "delete_agent": "agents:write",
    "list_agents": "agents:read",
    "create_run": "runs:write",
    "list_runs": "runs:read",
    "claim_run": "runs:write",
    "get_run": "runs:read",
    "cancel_run": "runs:write",
    "get_run_context": "runs:read",
    "extend_run_lease": "runs:write",
    "release_run": "runs:write",
    "finish_run": "runs:write",
    "watch_run": "runs:read",
    "put_entity": "spaces:write",
    "get_entity": "spaces:read",
    "list_entities": "spaces:read",
    "create_space": "spaces:write",
    "list_spaces": "spaces:read",
    "get_space": "spaces:read",
    "change_space": "spaces:write",
    "archive_space": "spaces:write",
    "add_member": "spaces:write",
    "remove_member": "spaces:write",
    "create_space_token": "spaces:write",
    "list_messages": "spaces:read",
    "post_message": "spaces:write",
    "get_message": "spaces:read",
    "get_message_artifact": "spaces:read",
    "watch_space": "spaces:read",
    "post_tool_input": "runs:write",
    "answer_message": "spaces:write",
    "answer_tool_call": "any",
    "get_signing_secret": "agents:write",
    "call_by_webhook": "calls:run",
    "get_archive": "artifacts:read",
    "get_preview": "artifacts:read",
    "list_versions": "artifacts:read",
    "get_difference": "artifacts:read",
    "list_tool_calls": "calls:read",
    "get_status": "metrics:read",
    "get_caller": "any",
    "list_keys": "keys:read",
    "get_aligned_timeline": "timeline:read",
}


@pytest.fixture
def keyring(stores) -> Keyring:
    return Keyring(SqlApiKeys(stores.database))


@pytest.fixture
def guarded(services, keyring) -> FastAPI:
    return create_app(replace(services, authenticator=Authenticator(PRINCIPAL, keyring, required=True)))


@pytest.fixture
async def outsider(guarded):
    transport = httpx.ASGITransport(guarded, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://api.example.com") as client:
        yield client


@pytest.fixture
def issued(stores, keyring):
    """Makes a key and answers its header."""

    async def issue(**fields: Any) -> dict[str, str]:
        key_id = new_key_id()
        secret = new_secret(key_id)
        values = {
            "id": key_id,
            "name": "loop",
            "tenant": "acme",
            "project": "sales",
            "user_type": None,
            "user": None,
            "permissions": ALL_PERMISSIONS,
            "sha256": secret_sha256(secret),
            "created": "2026-01-01T00:00:00.000Z",
        }
        await SqlApiKeys(stores.database).add(ApiKey(**{**values, **fields}))
        keyring._read_at = float("-inf")
        return {"Authorization": f"Bearer {secret}"}

    return issue


_documents: list[dict[str, Any]] = []


def operations(app: FastAPI) -> list[tuple[str, str, dict[str, Any]]]:
    if not _documents:  # it says the same of every application, and takes a while
        _documents.append(app.openapi())
    found = [
        (method, path, operation)
        for path, item in _documents[0]["paths"].items()
        for method, operation in item.items()
        if method in METHODS
    ]
    return sorted(found, key=lambda each: each[2]["operationId"])


def filled(path: str) -> str:
    return re.sub(r"\{(\w+)\}", lambda part: "fi:turn_1.files/a" if part[1] == "logical_path" else "turn_1", path)


def test_every_operation_says_which_scope_it_asks_for(guarded):
    told = {}
    for _, _, operation in operations(guarded):
        scopes = operation.get("security", [{"api_key": ["open"]}])[0]["api_key"]
        told[operation["operationId"]] = " ".join(scopes) or "any"
    assert told == NEEDED
    assert guarded.openapi()["components"]["securitySchemes"]["api_key"]["scheme"] == "bearer"


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer x",
        "Basic dTpw",
        "bearer pbx_abcdefghijkm_" + "0" * 49,
        pytest.param(f"Bearer {new_secret('abcdefghijkm')}", id="well-made"),
        "Bearer \xff",
    ],
)
@pytest.mark.shares_fixtures
async def test_every_route_without_a_key_that_works_is_401_and_says_how_to_ask(outsider, guarded, authorization):
    headers = {} if authorization is None else {b"Authorization": authorization.encode("latin-1")}
    asked = 0
    for method, path, operation in operations(guarded):
        if NEEDED[operation["operationId"]] == "open":
            continue
        answer = await outsider.request(method.upper(), filled(path), headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), path
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["www-authenticate"].startswith('Bearer realm="proofbox"')
        assert ("invalid_token" in answer.headers["www-authenticate"]) == (authorization is not None)
        assert "ratelimit" not in answer.headers
        asked += 1
    assert asked == len([needed for needed in NEEDED.values() if needed != "open"])


async def test_what_no_route_has_is_closed_too(outsider):
    paths = [
        "/v1",
        "/v2/x",
        "/v1/tool-calls/",
        "/admin",
        "/docs/x",
        "/livez/",
        "/livez//",
        "/%2Flivez",
        "/v1/links",
    ]
    answers = {(m, p): (await outsider.request(m.upper(), p)).status_code for m in METHODS for p in paths}
    assert answers == dict.fromkeys(answers, 401)


async def test_health_and_the_documentation_are_open(outsider):
    expected = {**dict.fromkeys(OPEN_PATHS, 200), "/docs/site": 308}
    assert {path: (await outsider.get(path)).status_code for path in OPEN_PATHS} == expected


async def test_a_body_is_not_read_before_the_key_is(outsider):
    async def never():
        raise AssertionError("the body was read")
        yield b""

    answer = await outsider.post(CALLS, content=never(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 401


@pytest.mark.parametrize("lacking", list(Permission))
@pytest.mark.shares_fixtures
async def test_a_key_opens_the_routes_of_its_scopes_and_no_others(outsider, guarded, issued, lacking):
    headers = await issued(permissions=ALL_PERMISSIONS - {lacking})
    for method, path, operation in operations(guarded):
        if operation["operationId"] == "watch_tool_call" and lacking is not Permission.CALLS_READ:
            continue
        if operation["operationId"] == "answer_tool_call":  # a callback token opens it too, so the route asks
            continue
        answer = await outsider.request(method.upper(), filled(path), headers=headers)
        if lacking.value in NEEDED[operation["operationId"]].split():
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
            assert f'error="insufficient_scope", scope="{lacking}"' in answer.headers["www-authenticate"]
        else:
            assert answer.status_code != 401, path
            assert "insufficient_scope" not in answer.headers.get("www-authenticate", ""), path


async def test_a_key_without_any_scope_opens_only_the_catalogue_and_what_it_is_itself(outsider, guarded, issued):
    headers = await issued(permissions=frozenset())
    opened = [
        operation["operationId"]
        for method, path, operation in operations(guarded)
        if (await outsider.request(method.upper(), filled(path), headers=headers)).status_code == 200
    ]
    assert opened == ["get_caller", "list_tools", "live", "ready"]


async def test_what_one_tenant_stores_another_tenants_key_does_not_find(outsider, issued, call_body):
    ours, theirs = await issued(), await issued(tenant="other")
    elsewhere = await issued(project="other")
    path = "/v1/conversations/c1/turns/turn_1/attachments/a.txt"
    stored = await outsider.put(path, content=b"ours", headers=ours)
    assert stored.status_code == 201
    assert (await outsider.post(CALLS, json=call_body, headers=ours)).status_code == 200
    for headers, status in ((ours, 200), (theirs, 404), (elsewhere, 404)):
        assert (await outsider.get(stored.headers["location"], headers=headers)).status_code == status
        assert (await outsider.get(f"{CALLS}/t1", headers=headers)).status_code == status
        sources = (await outsider.get("/v1/conversations/c1/sources", headers=headers)).json()["sources"]
        assert len(sources) == (1 if status == 200 else 0)


@pytest.mark.parametrize(
    ("claim", "status"),
    [
        ({"Proofbox-Tenant": "acme"}, 200),
        ({"Proofbox-Project": "sales"}, 200),
        ({"Proofbox-Tenant": "other"}, 403),
        ({"Proofbox-Project": "other"}, 403),
        ({"Proofbox-Tenant": "acme", "Proofbox-Project": "x"}, 403),
    ],
)
async def test_a_request_that_claims_another_tenant_or_project_is_403(outsider, issued, claim, status):
    answer = await outsider.get("/v1/tools", headers={**await issued(), **claim})
    assert answer.status_code == status
    if status == 403:
        assert answer.json()["code"] == "wrong_tenant"


@pytest.mark.parametrize("name", ["Proofbox-Tenant", "Proofbox-Project"])
async def test_a_claim_that_stands_twice_is_refused(outsider, issued, name):
    headers = [*(await issued()).items(), (name, "acme"), (name, "acme")]
    answer = await outsider.get("/v1/tools", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (400, "unsafe_path")
    assert answer.json()["detail"] == f"{name}: the header stands more than once (limit 1); send it once"


async def test_a_body_cannot_claim_a_tenant_at_all(outsider, issued, call_body):
    answer = await outsider.post(CALLS, json={**call_body, "tenant": "other"}, headers=await issued())
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "tenant")


async def test_a_key_that_was_revoked_or_has_expired_is_401(outsider, issued, stores, keyring):
    headers = await issued()
    assert (await outsider.get("/v1/tools", headers=headers)).status_code == 200
    [key] = await SqlApiKeys(stores.database).all()
    await SqlApiKeys(stores.database).revoke(key.id)
    keyring._read_at = float("-inf")
    assert (await outsider.get("/v1/tools", headers=headers)).status_code == 401
    expired = await issued(expires="2026-01-02T00:00:00.000Z")
    assert (await outsider.get("/v1/tools", headers=expired)).status_code == 401


async def test_where_no_key_is_needed_a_bad_one_is_still_refused(client):
    assert (await client.get("/v1/tools")).status_code == 200


async def test_a_closed_store_lets_nobody_in(outsider, issued, stores, keyring):
    headers = await issued()
    await stores.database.close()
    keyring._read_at = float("-inf")
    answer = await outsider.get("/v1/tools", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_failed")
