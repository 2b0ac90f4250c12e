"""The state of the process, recent calls, the caller and the keys over HTTP."""

from dataclasses import replace

import httpx
import pytest

from proofbox.contracts.operations import CallPage, ServiceStatus
from proofbox.service.access.api_keys import (
    ALL_PERMISSIONS,
    USUAL_PERMISSIONS,
    ApiKey,
    Permission,
    new_key_id,
    new_secret,
    secret_sha256,
)
from proofbox.service.access.authenticator import Authenticator, Keyring
from proofbox.service.access.quotas import Allowances, Quotas
from proofbox.service.api.app import create_app
from proofbox.service.egress.policy import CallerHosts
from proofbox.service.packages.installer import InstallerParts, PackageInstaller
from proofbox.service.packages.limits import InstallLimits
from proofbox.service.storage.api_keys import SqlApiKeys
from tests.http.conftest import PRINCIPAL
from tests.support.pipeline import opened_pipeline, services_over
from tests.support.program_proxy import network_policy


def key_of(**fields) -> tuple[ApiKey, str]:
    key_id = new_key_id()
    secret = new_secret(key_id)
    values = {
        "id": key_id,
        "name": "loop",
        "tenant": PRINCIPAL.tenant,
        "project": PRINCIPAL.project,
        "user_type": None,
        "user": None,
        "permissions": ALL_PERMISSIONS,
        "sha256": secret_sha256(secret),
        "created": "2026-01-01T00:00:00.000Z",
    }
    return ApiKey(**{**values, **fields}), secret


def packages_of(quotas):
    """The packages of an operator who allows two."""
    parts = InstallerParts(None, None, None, None, None, None)
    installer = PackageInstaller(
        parts, InstallLimits(120, 1_000, 100, 60), ("scikit-image", "tiny"), quotas.packages
    )
    return lambda principal: installer.describe(principal.caller)


@pytest.fixture
async def asked(services, stores, flags):
    """Asks a route with a key of these fields; others may be listed."""

    async def ask(path, *others, allowed=None, has_packages=False, **fields):
        key, secret = key_of(**fields)
        flags.operations.listed = [key, *others]
        keys = SqlApiKeys(stores.database)
        await keys.add(key)
        quotas = Quotas(allowed or Allowances(calls_per_minute=60), stores.artifacts.stored_bytes)
        guarded = replace(
            services,
            authenticator=Authenticator(PRINCIPAL, Keyring(keys), required=True),
            quotas=quotas,
            network_of=network_policy(["pypi.org", "*.example.com"], CallerHosts(quotas.network)).list_hosts,
            packages_of=packages_of(quotas) if has_packages else lambda _: None,
        )
        transport = httpx.ASGITransport(create_app(guarded), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://api.example.com") as client:
            return key, await client.get(path, headers={"Authorization": f"Bearer {secret}"})

    return ask


async def test_the_status_has_slots_queue_and_pool(client, flags):
    flags.operations.running = 3
    answer = await client.get("/v1/status")
    status = ServiceStatus.model_validate_json(answer.content)
    assert (status.running, status.queued, status.pool[0].waiting) == (3, 1, 2)
    assert answer.headers["cache-control"] == "no-store"


async def test_a_usual_key_sees_neither_status_nor_keys(asked):
    for path, scope in (("/v1/status", "metrics:read"), ("/v1/keys", "keys:read")):
        _, answer = await asked(path, permissions=USUAL_PERMISSIONS)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
        assert scope in answer.json()["detail"]


async def test_a_caller_learns_its_identity_scopes_and_limits(asked):
    key, answer = await asked(
        "/v1/caller", permissions=frozenset({Permission.CALLS_READ}), limits={"stored_bytes": 1000}
    )
    found = answer.json()
    assert (found["tenant"], found["project"], found["key_id"]) == ("acme", "sales", key.id)
    assert found["scopes"] == ["calls:read"]
    limits = {limit["name"]: limit for limit in found["limits"]}
    assert limits["calls_per_minute"] == {"name": "calls_per_minute", "limit": 60, "own": False, "used": 0}
    assert limits["stored_bytes"] == {"name": "stored_bytes", "limit": 1000, "own": True, "used": 0}
    assert (limits["running_calls"]["used"], limits["queued_calls"]["used"]) == (2, 1)


@pytest.mark.parametrize(
    ("of_key", "hosts"),
    [
        (None, ["pypi.org:443", "*.example.com:443"]),
        (("a.example.com:443",), ["a.example.com:443"]),
        ((), []),
    ],
)
async def test_a_caller_learns_the_hosts_that_its_programs_may_reach(asked, of_key, hosts):
    _, answer = await asked("/v1/caller", network=of_key)
    assert [host["host"] for host in answer.json()["network"]] == hosts


@pytest.mark.parametrize(
    ("of_key", "names"), [(None, ["scikit-image", "tiny"]), (("Tiny", "evil"), ["tiny"]), ((), [])]
)
async def test_a_caller_learns_the_packages_that_its_programs_may_have(asked, of_key, names):
    operator = Allowances(package_count=60, package_bytes=1_000, package_install_s=120)
    limits = {"package_count": 5, "package_bytes": 9_000}
    _, answer = await asked("/v1/caller", allowed=operator, has_packages=True, packages=of_key, limits=limits)
    assert answer.json()["packages"] == {"names": names}
    shown = {each["name"]: (each["limit"], each["own"]) for each in answer.json()["limits"]}
    assert shown["package_count"] == (5, True)
    assert shown["package_bytes"] == (1_000, True)
    assert shown["package_install_s"] == (120, False)
    _, catalogue = await asked("/v1/tools", has_packages=True, packages=of_key)
    assert ("packages" in catalogue.json()["tools"][0]["params_schema"]["properties"]) == bool(names)


async def test_without_an_index_no_limit_of_packages_is_shown(asked):
    _, answer = await asked("/v1/caller", allowed=Allowances(package_count=60))
    assert answer.json()["packages"] is None
    assert [each for each in answer.json()["limits"] if each["name"].startswith("package_")] == []


async def test_the_used_part_of_a_limit_counts_this_request(asked):
    _, answer = await asked("/v1/caller", allowed=Allowances(requests_per_minute=100))
    limits = {limit["name"]: limit["used"] for limit in answer.json()["limits"]}
    assert limits["requests_per_minute"] == 1


async def test_a_caller_without_a_key_has_all_scopes(client):
    found = (await client.get("/v1/caller")).json()
    assert (found["key_id"], found["scopes"]) == (None, sorted(ALL_PERMISSIONS))


async def test_keys_are_listed_without_secrets_and_only_those_of_the_tenant(asked):
    other, _ = key_of(tenant="other", name="of another tenant")
    key, answer = await asked("/v1/keys", other, project=None, limits={"calls_per_minute": 5}, packages=("tiny",))
    [listed] = answer.json()["keys"]
    assert (listed["network"], listed["packages"]) == (None, ["tiny"])
    assert (listed["key_id"], listed["state"], listed["limits"]) == (key.id, "works", {"calls_per_minute": 5})
    assert key.sha256 not in answer.text


async def test_a_key_of_one_project_lists_the_keys_of_that_project(asked):
    elsewhere, _ = key_of(project="hr")
    anywhere, _ = key_of(project=None)
    beside, _ = key_of(revoked="2026-02-01T00:00:00.000Z")
    key, answer = await asked("/v1/keys", elsewhere, anywhere, beside)
    assert [(each["key_id"], each["state"]) for each in answer.json()["keys"]] == [
        (key.id, "works"),
        (beside.id, "revoked"),
    ]


async def test_an_expired_key_is_listed_as_expired(asked):
    past, _ = key_of(expires="2026-01-02T00:00:00.000Z")
    _, answer = await asked("/v1/keys", past)
    assert answer.json()["keys"][1]["state"] == "expired"


@pytest.fixture
async def calls_client(tmp_path):
    """A pipeline of real calls, and a client of its routes."""
    async with opened_pipeline(tmp_path) as pipeline:
        transport = httpx.ASGITransport(create_app(services_over(pipeline)), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
            yield pipeline, client


async def listed(client, **query) -> CallPage:
    answer = await client.get("/v1/tool-calls", params=query)
    assert answer.status_code == 200, answer.text
    return CallPage.model_validate_json(answer.content)


async def test_recent_calls_are_listed_newest_first_with_their_codes(calls_client):
    pipeline, client = calls_client
    await pipeline.execute()
    await pipeline.execute({"filename": "a.txt", "description": "never written"})
    page = await listed(client)
    assert [(call.tool_call_id, call.status, call.tool_id) for call in page.calls] == [
        ("call_2", "done", "exec_tools.execute_code_python"),
        ("call_1", "done", "exec_tools.execute_code_python"),
    ]
    assert page.calls[1].code == "ok"
    assert page.calls[0].code not in {"ok", None}
    assert all(call.conversation_id == "conv-1" and call.turn_id == "turn_1" for call in page.calls)
    assert all(call.ended is not None and call.ended >= call.created for call in page.calls)


async def test_pages_of_recent_calls_follow_one_another(calls_client):
    pipeline, client = calls_client
    for _ in range(3):
        await pipeline.execute()
    first = await listed(client, limit=2)
    second = await listed(client, limit=2, before=first.next)
    assert [call.tool_call_id for call in (*first.calls, *second.calls)] == ["call_3", "call_2", "call_1"]
    assert second.next is None


async def test_a_call_that_waits_is_listed_as_open_with_its_tool(calls_client):
    pipeline, client = calls_client
    with await pipeline.admission.enter(pipeline.deadline(), lambda _: None):
        ticket = await pipeline.submit("exec_tools.execute_code_python", {"explore": True}, code="print(1)")
        await pipeline.until("queued", ticket)
        [call] = (await listed(client)).calls
        assert (call.status, call.tool_id, call.code, call.ended) == (
            "open",
            "exec_tools.execute_code_python",
            None,
            None,
        )
    await ticket.answer()


@pytest.mark.parametrize("query", [{"minutes": 0}, {"minutes": 20_000}, {"limit": 501}, {"before": 0}])
async def test_a_list_of_calls_that_cannot_be_is_refused(client, query):
    assert (await client.get("/v1/tool-calls", params=query)).status_code == 422


async def test_calls_of_another_user_are_not_listed(calls_client):
    pipeline, _ = calls_client
    await pipeline.execute()
    services = replace(services_over(pipeline), authenticator=Authenticator(PRINCIPAL))
    transport = httpx.ASGITransport(create_app(services), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as other:
        assert (await listed(other)).calls == []
