"""``proofbox mcp``: the same tools over standard input and output, in both eras."""

import asyncio
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from proofbox.service.mcp.results import RESULT_BYTES_MAX
from tests.container.mcp_server.conftest import COMMAND, ROOT, Host, bridged, environment
from tests.container.mcp_server.test_mcp_tools import NOISE, _ended, _running

pytestmark = [pytest.mark.docker, pytest.mark.asyncio(loop_scope="session")]

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def parameters(url: str, key: str = "") -> StdioServerParameters:
    return StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--url", url], cwd=str(ROOT), env=environment(key)
    )


async def test_a_host_that_starts_the_program_runs_programs(url, era):
    seen: list[str | None] = []

    async def note(*progress: Any) -> None:
        seen.append(progress[2])

    async with Client(parameters(url), mode=era) as client:
        assert client.protocol_version == {"auto": "2026-07-28", "legacy": "2025-11-25"}[era]
        call = Host(client)
        assert "run_python" in [tool.name for tool in (await client.list_tools()).tools]
        result = await call("run_python", code=NOISE)
        assert len(result.pictures) == 1
        assert result.size_bytes <= RESULT_BYTES_MAX
        code = "import time\nprint('begun', flush=True)\ntime.sleep(2.5)"
        await client.call_tool("run_python", {"code": code}, progress_callback=note)
        both = await asyncio.gather(*(call("run_python", code=f"print({n} * 11)") for n in (2, 3)))
        assert ["22" in both[0].text, "33" in both[1].text] == [True, True]
    assert "begun" in seen


async def test_nothing_but_the_protocol_is_written_and_the_process_ends_with_its_input(url):
    async with bridged(url) as bridge:
        first = bridge.request("initialize", INITIALIZE)
        assert (await bridge.answer(first))["result"]["protocolVersion"] == "2025-06-18"
        bridge.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        listed = bridge.request("tools/list")
        assert (await bridge.answer(listed))["result"]["tools"]
        last = bridge.request("tools/call", {"name": "run_python", "arguments": {"code": "print('last words')"}})
        bridge.process.stdin.close()
        assert "last words" in (await bridge.answer(last))["result"]["content"][0]["text"]
        assert await bridge.process.stdout.read() == b""
        assert await bridge.process.wait() == 0
        assert await bridge.process.stderr.read() == b""


@pytest.mark.parametrize(
    ("line", "code"),
    [(b"{", -32700), (b"\xff", -32700), (b"[]", -32600), (b"[" * 100_000, -32700), (b'"text"', -32600)],
)
async def test_lines_that_are_no_messages_are_answered_and_the_next_is_served(url, line, code):
    async with bridged(url) as bridge:
        bridge.send(line)
        assert (await bridge.answer(None))["error"]["code"] == code
        bridge.send({"jsonrpc": "2.0", "id": 9, "result": {}})  # an answer to nothing
        bridge.send(b"")
        unknown = bridge.request("no/such")
        assert (await bridge.answer(unknown))["error"]["code"] == -32601


async def test_unknown_tools_with_odd_names_are_the_services_to_refuse(url):
    async with bridged(url) as bridge:
        await bridge.answer(bridge.request("initialize", INITIALIZE))
        for name in ("no", "ünï", " x ", "=?base64?x?=", "a\nb"):
            request = bridge.request("tools/call", {"name": name, "arguments": {}})
            assert (await bridge.answer(request))["error"]["code"] == -32602


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_a_cancelled_request_stops_its_program(url, service, version):
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    conversation = f"stdio-{version}"
    params = {"name": "run_bash", "arguments": {"code": "sleep 300", "conversation": conversation}}
    async with bridged(url) as bridge:
        if version.startswith("2025"):
            await bridge.answer(bridge.request("initialize", INITIALIZE))
        else:
            params["_meta"] = meta
        request = bridge.request("tools/call", params)
        call_id = await _running(service, conversation)
        bridge.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}})
        assert (await _ended(service, conversation, call_id)).status == "cancelled"
        bridge.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}})
        bridge.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})


async def test_a_service_that_is_not_there_and_a_key_that_is_wrong_are_errors_with_a_sentence(guarded_url):
    async with bridged("http://127.0.0.1:9") as bridge:
        answer = await bridge.answer(bridge.request("initialize", INITIALIZE))
        assert "proofbox serve" in answer["error"]["message"]
    async with bridged(guarded_url) as bridge:
        answer = await bridge.answer(bridge.request("initialize", INITIALIZE))
        assert "key" in answer["error"]["message"]
        assert answer["error"]["data"]["code"] == "unauthorized"


async def test_the_key_is_sent(guarded_url, issue):
    async with bridged(guarded_url, await issue("stdio")) as bridge:
        await bridge.answer(bridge.request("initialize", INITIALIZE))
        request = bridge.request("tools/call", {"name": "run_python", "arguments": {"code": "print(6 * 7)"}})
        assert "42" in (await bridge.answer(request))["result"]["content"][0]["text"]
