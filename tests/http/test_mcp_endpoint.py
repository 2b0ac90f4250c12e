"""The endpoint ``/mcp``: who may use it, from where, in which versions, and within which limits."""

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from typing import Any

import httpx
import httpx2
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from proofbox.contracts.paths import FilePath, Namespace
from proofbox.service.access.api_keys import Permission
from proofbox.service.access.authenticator import Authenticator
from proofbox.service.access.quotas import Allowances, Quotas
from proofbox.service.api.app import create_app
from proofbox.service.api.connections import ConnectionLimits
from proofbox.service.api.limited_protocol import LimitedProtocol
from proofbox.service.identity import ConversationKey
from proofbox.service.mcp.endpoint import mcp_route
from proofbox.service.mcp.options import BODY_BYTES_MAX, McpOptions
from tests.http.conftest import LIMITS, LINK_S, PRINCIPAL, AnnouncedServer
from tests.http.test_access import issued, keyring

__all__ = ["issued", "keyring"]

OPTIONS = McpOptions(LIMITS, "1.2.3", LINK_S, frozenset({"web_tools.web_search"}))
ERAS = ["auto", "legacy"]
ACCEPT = {"Accept": "application/json, text/event-stream"}


def app_of(services, options=OPTIONS):
    app = create_app(services)
    app.router.routes.append(mcp_route(services, options))
    return app


@contextlib.asynccontextmanager
async def served(services, options=OPTIONS) -> AsyncIterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            app_of(services, options),
            http=partial(LimitedProtocol, ConnectionLimits()),
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        running = AnnouncedServer(config)
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        await running.up.wait()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        running.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@pytest.fixture
async def url(services) -> AsyncIterator[str]:
    async with served(services) as address:
        yield address


@pytest.fixture
async def raw(services) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app_of(services), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        yield client


@contextlib.asynccontextmanager
async def connected(url: str, era: str, headers: dict[str, str] | None = None) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers=headers or {}, trust_env=False, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=era) as client:
            yield client


def discover(version: str = "2026-07-28", **meta: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "server/discover",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                **meta,
            }
        },
    }


def headers(version: str = "2026-07-28", method: str = "server/discover") -> dict[str, str]:
    return {**ACCEPT, "MCP-Protocol-Version": version, "Mcp-Method": method}


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_of_each_era_lists_tools_that_hosts_accept(url, era):
    async with connected(url, era) as client:
        assert client.protocol_version == {"legacy": "2025-11-25", "auto": "2026-07-28"}[era]
        assert client.instructions is not None
        assert "conversation" in client.instructions
        tools = (await client.list_tools()).tools
        again = (await client.list_tools()).tools
        templates = await client.list_resource_templates()
        resources = await client.list_resources()
    assert [tool.name for tool in tools] == [
        *("run_python", "run_bash", "render", "read_file", "list_files", "get_upload_link", "get_download_link"),
        *("get_result", "cancel_call", "write_file", "patch_file", "search_files", "search_memory", "record_plan"),
        "web_fetch",
    ]
    assert [tool.name for tool in again] == [tool.name for tool in tools]
    for tool in tools:
        assert tool.input_schema["type"] == "object"
        assert tool.description
        assert tool.annotations
        assert "." not in tool.name
        assert len(tool.name) <= 64
    assert [template.uri_template for template in templates.resource_templates] == [
        "proofbox://{conversation}/{+path}"
    ]
    assert resources.resources == []
    # What every host sends to its model: the names, descriptions and parameters.
    shown = json.dumps([[tool.name, tool.description, tool.input_schema] for tool in tools])
    assert len(shown) < 16_000


@pytest.mark.parametrize("era", ERAS)
async def test_the_query_switches_parts_of_results_off_and_the_text_suffices(url, saved, era):
    await saved(FilePath("turn_1", Namespace.FILES, "a.txt"), b"some text")
    link = {"conversation": "c1", "path": "a.txt"}
    for query, kinds, is_structured in [
        ("", ["text", "resource_link"], True),
        ("?resource_links=false", ["text"], True),
        ("?structured_content=0", ["text", "resource_link"], False),
        ("?resource_links=0&structured_content=false&other=1", ["text"], False),
    ]:
        async with connected(f"{url}{query}", era) as client:
            schemas = [tool.output_schema for tool in (await client.list_tools()).tools]
            result = await client.call_tool("get_download_link", link)
            listed = await client.call_tool("list_files", {"conversation": "c1"})
        assert [block.type for block in result.content] == kinds, query
        assert (result.structured_content is not None) == is_structured
        assert any(schemas) == is_structured
        assert "/v1/links/" in result.content[0].text
        assert "turn_1/files/a.txt (text/plain, 9 bytes)" in listed.content[0].text


async def test_a_switch_that_is_neither_true_nor_false_is_refused(raw):
    answer = await raw.post("/mcp?structured_content=off", json=discover(), headers=headers())
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["errors"][0]["field"] == "structured_content"
    assert "write structured_content=false" in answer.json()["errors"][0]["message"]


async def test_the_catalogue_may_be_cached_and_files_may_not(url):
    async with connected(url, "auto") as client:
        tools = await client.list_tools()
        assert (tools.cache_scope, tools.ttl_ms) == ("public", 60_000)
        assert (await client.list_resource_templates()).cache_scope == "public"


async def test_the_server_describes_itself(raw):
    answer = await raw.post("/mcp", json=discover(), headers=headers())
    result = answer.json()["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert set(result["capabilities"]) == {"tools", "resources"}
    assert (result["resultType"], result["cacheScope"]) == ("complete", "public")
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["version"] == "1.2.3"


async def test_a_session_of_an_earlier_process_goes_on_and_notifications_are_accepted(raw):
    old = {**ACCEPT, "MCP-Protocol-Version": "2025-06-18", "Mcp-Session-Id": "of-an-earlier-process"}
    listed = await raw.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, headers=old)
    assert listed.status_code == 200
    assert "run_python" in listed.text
    assert "mcp-session-id" not in listed.headers
    for given in (old, {**ACCEPT, "MCP-Protocol-Version": "2026-07-28"}):
        sent = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await raw.post("/mcp", json=sent, headers=given)).status_code == 202


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_each_older_revision_gets_the_blocks_that_it_knows(raw, saved, version):
    await saved(FilePath("turn_1", Namespace.FILES, "a.txt"), b"text")
    arguments = {"conversation": "c1", "path": "a.txt"}
    body = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "get_download_link", "arguments": arguments},
    }
    answer = await raw.post("/mcp", json=body, headers={**ACCEPT, "MCP-Protocol-Version": version})
    [line] = [line for line in answer.text.splitlines() if line.startswith("data: {")]
    result = json.loads(line.removeprefix("data: "))["result"]
    kinds = [block["type"] for block in result["content"]]
    assert kinds == (["text", "resource_link"] if version >= "2025-06-18" else ["text"])
    url = result["content"][0]["text"].splitlines()[-1]
    assert url.startswith("http://proofbox/v1/links/")
    assert (await raw.get(url)).content == b"text"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_other_methods_are_refused_at_once(raw, method):
    answer = await raw.request(method, "/mcp", headers=ACCEPT)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_requests_are_counted_under_their_route(raw, services):
    await raw.post("/mcp", json=discover(), headers=headers())
    assert 'route="/mcp"' in services.metrics().decode()


async def test_a_slash_at_the_end_is_another_path(raw):
    assert (await raw.post("/mcp/", json=discover(), headers=headers())).status_code == 404


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        (None, 200),
        ("http://proofbox", 200),
        ("https://proofbox", 200),
        ("https://files.example.com", 200),
        ("http://files.example.com", 403),
        ("http://evil.example", 403),
        ("http://proofbox.evil.example", 403),
        ("http://proofbox:8081", 403),
        ("null", 403),
        ("", 403),
        ("http://[", 403),
    ],
)
async def test_web_pages_of_other_origins_are_refused_although_keys_are_required(
    services, issued, keyring, origin, status
):
    guarded = replace(
        services,
        authenticator=Authenticator(PRINCIPAL, keyring, required=True),
        public_url="https://files.example.com/box",
    )
    given = {**headers(), **(await issued()), **({} if origin is None else {"Origin": origin})}
    transport = httpx.ASGITransport(app_of(guarded), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        assert (await client.post("/mcp", json=discover(), headers=given)).status_code == status


async def test_a_key_is_asked_for_and_there_is_no_oauth(services, keyring):
    guarded = replace(services, authenticator=Authenticator(PRINCIPAL, keyring, required=True))
    transport = httpx.ASGITransport(app_of(guarded), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        answer = await client.post("/mcp", json=discover(), headers=headers())
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="proofbox"')
        wrong = {**headers(), "Authorization": "Bearer pbx_x"}
        answer = await client.post("/mcp", json=discover(), headers=wrong)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (
            401,
            'Bearer realm="proofbox", error="invalid_token"',
        )
        for path in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
            assert (await client.get(f"/.well-known/{path}")).status_code == 404


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "needed",
    [
        (Permission.CALLS_RUN, "run_python", {"code": "1"}),
        (Permission.ARTIFACTS_WRITE, "run_python", {"code": "1", "files": [{"name": "a", "text": "b"}]}),
        (Permission.CALLS_READ, "get_result", {"handle": "c1/call_1"}),
        (Permission.CALLS_RUN, "cancel_call", {"handle": "c1/call_1"}),
        (Permission.ARTIFACTS_READ, "list_files", {"conversation": "c1"}),
        (Permission.ARTIFACTS_READ, "get_download_link", {"conversation": "c1", "path": "a"}),
        (Permission.ARTIFACTS_READ, "read_file", {"conversation": "c1", "path": "a"}),
        (Permission.ARTIFACTS_WRITE, "get_upload_link", {"name": "a"}),
        (Permission.CALLS_RUN, "write_file", {"path": "a", "content": "b"}),
    ],
)
async def test_each_tool_needs_the_scope_of_its_route(services, issued, keyring, era, needed):
    scope, tool, arguments = needed
    guarded = replace(services, authenticator=Authenticator(PRINCIPAL, keyring, required=True))
    without = await issued(permissions=frozenset(Permission) - {scope})
    async with served(guarded) as url, connected(url, era, without) as client:
        with pytest.raises(MCPError, match=f"does not have the scope {scope}") as caught:
            await client.call_tool(tool, arguments)
    assert caught.value.data["code"] == "forbidden"


@pytest.mark.parametrize("era", ERAS)
async def test_programs_in_python_have_packages_where_the_operator_has_an_index(services, era):
    async with served(services, replace(OPTIONS, has_packages=True)) as url, connected(url, era) as client:
        tools = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
        assert tools["run_python"]["packages"]["items"]["type"] == "string"
        assert "packages" not in tools["run_bash"]
        wrong = await client.call_tool("run_python", {"code": "1", "packages": ["https://evil.example/a.whl"]})
        assert wrong.is_error
        assert "is not a package; write a name, extras and versions" in wrong.content[0].text
    async with served(services) as url, connected(url, era) as client:
        tools = {tool.name: tool.input_schema["properties"] for tool in (await client.list_tools()).tools}
        assert "packages" not in tools["run_python"]
        result = await client.call_tool("run_python", {"code": "1", "packages": ["tiny"]})
        assert "packages: no such argument; leave it out" in result.content[0].text


@pytest.mark.parametrize("era", ERAS)
async def test_wrong_arguments_are_the_models_to_correct_and_wrong_names_are_not(url, era):
    async with connected(url, era) as client:
        result = await client.call_tool("run_python", {"cod": "1"})
        assert result.is_error
        assert "code: Field required" in result.content[0].text
        assert "cod: no such argument" in result.content[0].text
        result = await client.call_tool("render", {"path": "a.odt", "content": "x"})
        assert result.is_error
        assert "'.odt' cannot be rendered; use one of pdf, docx" in result.content[0].text
        result = await client.call_tool("get_result", {"handle": "nonsense"})
        assert result.is_error
        assert "handle:" in result.content[0].text
        for name in ("exec_tools.execute_code_python", "run_ruby", "ü" * 3):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {})
            assert caught.value.code == -32602
        for uri in (
            "proofbox://c1/turn_1/files/no.txt",
            "proofbox://c1",
            "file:///etc/passwd",
            "proofbox:///a/b",
            "x",
        ):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert caught.value.code == -32602


@pytest.mark.parametrize("era", ERAS)
async def test_a_resource_may_be_a_name(url, era, saved, tmp_path):
    stored = await saved(FilePath.from_physical("turn_1/files/my notes.md"), b"# Notes")
    async with connected(url, era) as client:
        for name in ("my%20notes.md", "files/my%20notes.md", "turn_1/files/my%20notes.md"):
            [found] = (await client.read_resource(f"proofbox://c1/{name}")).contents
            assert (found.text, str(found.uri)) == ("# Notes", "proofbox://c1/turn_1/files/my%20notes.md")
        [blob] = (tmp_path / "data" / "blobs").rglob(stored.sha256)
        blob.unlink()
        with pytest.raises(MCPError, match="resource not found"):
            await client.read_resource("proofbox://c1/my%20notes.md")


async def test_versions_and_headers_that_do_not_fit_are_refused(raw):
    unknown = await raw.post("/mcp", json=discover("1999-01-01"), headers=headers("1999-01-01"))
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (400, -32022)
    differs = await raw.post("/mcp", json=discover(), headers=headers(method="tools/list"))
    assert (differs.status_code, differs.json()["error"]["code"]) == (400, -32020)
    body = {**discover(), "method": "no/such"}
    unknown = await raw.post("/mcp", json=body, headers=headers(method="no/such"))
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, -32601)
    for content in (b"{", b"[1", b"[]", b"1", b'{"jsonrpc":"2.0"}', b"\xff"):
        answer = await raw.post("/mcp", content=content, headers={**headers(), "Content-Type": "application/json"})
        assert answer.status_code == 400, content


async def test_a_body_beyond_the_limit_is_a_problem_document(services):
    large = replace(services, body_bytes_max=BODY_BYTES_MAX * 2)
    transport = httpx.ASGITransport(app_of(large), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://proofbox") as client:
        answer = await client.post("/mcp", content=b" " * (BODY_BYTES_MAX + 1), headers=headers())
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


async def test_the_operators_limit_of_bodies_holds_too(raw):
    answer = await raw.post("/mcp", content=b" " * 400_000, headers=headers())
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("era", ERAS)
async def test_calls_are_counted_and_one_too_many_is_an_error_that_says_when_to_come_again(services, era):
    limited = replace(
        services,
        quotas=Quotas(Allowances(calls_per_minute=2)),
        authenticator=Authenticator(PRINCIPAL, without_key=Allowances()),
    )
    async with served(limited) as url, connected(url, era) as client:
        for _ in range(2):
            data = (await client.call_tool("run_python", {"code": "1"})).structured_content
            assert (data["status"], data["report"]) == ("done", "Produced files:\n")
        with pytest.raises(MCPError, match="calls_per_minute") as caught:
            await client.call_tool("run_python", {"code": "1"})
    assert (caught.value.data["code"], caught.value.data["retryable"]) == ("rate_limited", True)
    assert caught.value.data["retry_after_s"] > 1


@pytest.mark.parametrize("tool", [("run_python", {"code": "1"}), ("render", {"path": "a.pdf", "content": "x"})])
@pytest.mark.parametrize("limits", [{"calls_per_minute": 1}, {"stored_bytes": 1}])
async def test_a_call_beyond_a_limit_stores_no_file_of_its_arguments(services, stores, saved, tool, limits):
    name, arguments = tool
    await saved(FilePath("turn_1", Namespace.FILES, "old.bin"), b"old", conversation="c2")
    limited = replace(
        services,
        quotas=Quotas(Allowances(**limits), stores.artifacts.stored_bytes),
        authenticator=Authenticator(PRINCIPAL, without_key=Allowances()),
    )
    given = {**arguments, "conversation": "c1", "files": [{"name": "new.txt", "text": "new"}]}
    async with served(limited) as url, connected(url, "auto") as client:
        if "calls_per_minute" in limits:
            await client.call_tool("run_python", {"code": "1"})
        with pytest.raises(MCPError, match=next(iter(limits))):
            await client.call_tool(name, given)
    scope = ConversationKey(PRINCIPAL, "c1")
    assert await stores.artifacts.latest(scope, FilePath("turn_1", Namespace.ATTACHMENTS, "new.txt")) is None


async def test_an_upload_link_replaces_the_version_that_it_was_made_for(url):
    async with connected(url, "auto") as client, httpx.AsyncClient(trust_env=False) as web:
        statuses = []
        for content in (b"one", b"two"):
            arguments = {"conversation": "c1", "name": "a.txt"}
            link = (await client.call_tool("get_upload_link", arguments)).structured_content["url"]
            statuses += [(await web.put(link, content=each)).status_code for each in (content, content, b"else")]
    assert statuses == [201, 200, 409] * 2


def test_the_sdk_is_not_imported_before_the_first_request():
    program = (
        "import sys, proofbox.service.app.serving; "
        "print([name for name in ('mcp', 'mcp_types', 'sse_starlette') if name in sys.modules], "
        "'proofbox.service.mcp.endpoint' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True\n"
