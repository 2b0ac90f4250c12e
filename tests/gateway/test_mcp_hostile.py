"""MCP servers that mean harm: schemas, results, sizes and addresses; the service goes on answering."""

import asyncio
import contextlib
import gzip
import json
import sys
import threading

import pytest

from tests.support.gateway_client import opened_loop
from tests.support.mcp_servers import begin_with, desk, mcp_tools_of, raw_server, raw_tool, sdk_server
from tests.support.recording_server import recording_server
from tests.support.web_server import redirect, response

EVIL = "^(a+)+$"
TEXT = "a" * 40 + "!"


@pytest.fixture
async def raw():
    async with raw_server() as server:
        yield server


def doublings(count):
    """A schema that has 2 ** count parts when its references are followed."""
    definitions = {f"d{number}": {"allOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 2} for number in range(count)}
    definitions[f"d{count}"] = {"type": "string"}
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}


async def test_schemas_that_read_elsewhere_or_explode_drop_their_tools(loop, raw):
    async with recording_server() as listener:
        outside = {"type": "object", "properties": {"x": {"$ref": listener.url("/schema.json")}}}
        file = {"type": "object", "properties": {"x": {"$ref": "file:///etc/hostname"}}}
        look = {"type": "object", "properties": {"x": {"type": "string", "pattern": "(?=a)b"}}}
        raw.tools = [
            raw_tool("outside", outside),
            raw_tool("file", file),
            raw_tool("many", doublings(40)),
            raw_tool("look", look),
            raw_tool("out", outputSchema=outside),
            raw_tool("fine"),
        ]
        begun, alive = await asyncio.gather(begin_with(loop, raw.entry()), loop.web.get("/livez"))
        assert listener.connections == 0
    assert (begun.status_code, alive.status_code) == (201, 200)
    assert list(await mcp_tools_of(loop)) == ["desk__fine"]
    warnings = loop.run["warnings"]
    assert [warning["code"] for warning in warnings] == ["mcp_schema_refused"] * 5
    assert [warning["message"].split(":")[0] for warning in warnings[:3]] == [
        "desk.outside",
        "desk.file",
        "desk.many",
    ]


@pytest.mark.timeout(60)  # the other engine needs hours
async def test_a_pattern_that_backtracks_elsewhere_is_checked_in_linear_time(loop, raw):
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": EVIL}}}
    raw.tools = [raw_tool("ask", schema, outputSchema=schema)]
    raw.results = {"ask": {"content": [], "structuredContent": {"x": TEXT}}}
    await begin_with(loop, raw.entry())
    answer, alive = await asyncio.gather(loop.call("desk__ask", {"x": TEXT}), loop.web.get("/livez"))
    assert (answer["error"]["code"], alive.status_code) == ("invalid_input", 200)
    assert raw.called == []
    answer, alive = await asyncio.gather(loop.call("desk__ask", {"x": "aaa"}), loop.web.get("/livez"))
    assert (answer["error"]["code"], alive.status_code) == ("mcp_tool_error", 200)
    assert "result.x" in answer["error"]["message"]
    raw.results = {"ask": {"content": [], "structuredContent": {"x": "aa"}}}
    assert (await loop.call("desk__ask", {"x": "a"}))["ret"] == {"x": "aa"}


async def test_a_result_without_its_structured_part_does_not_fit(loop, raw):
    raw.tools = [raw_tool("ask", outputSchema={"type": "object"})]
    raw.results = {"ask": {"content": [{"type": "text", "text": "hi"}]}}
    await begin_with(loop, raw.entry())
    assert (await loop.call("desk__ask"))["error"]["code"] == "mcp_tool_error"


@pytest.mark.parametrize(
    "addresses", [[["169.254.169.254"]], [["::ffff:10.0.0.1"]], [["8.8.8.8", "127.0.0.1"]], [["127.0.0.1"]]]
)
async def test_a_name_that_leads_inside_gets_no_connection(tmp_path, addresses):
    async with recording_server() as inside, opened_loop(tmp_path, gateway_networks=()) as loop:
        for transport in ("http", "sse"):
            loop.pipeline.names.answers["inside.example"] = list(addresses)
            entry = {"name": "desk", "url": inside.url("/mcp", "inside.example"), "transport": transport}
            begun = await begin_with(loop, entry)
            [warning] = begun.json()["warnings"]
            assert warning["code"] == "mcp_unavailable"
            assert "127.0.0.1" not in warning["message"]
        assert inside.connections == 0


async def test_an_address_that_turns_inside_after_the_list_gets_no_call(tmp_path, raw):
    raw.tools = [raw_tool("say")]
    async with opened_loop(tmp_path, gateway_networks=("127.0.0.0/30",)) as loop:
        await begin_with(loop, raw.entry(host="moves.example"))
        loop.pipeline.names.answers["moves.example"] = [["127.0.0.9"]]
        answer = await loop.call("desk__say")
    assert answer["error"]["code"] == "mcp_unavailable"
    assert raw.called == []
    assert loop.pipeline.audit_lines()[-1].gateway.effects == []


async def test_other_ports_are_not_asked(tmp_path, raw):
    async with opened_loop(tmp_path, gateway_ports=(80, 443)) as loop:
        begun = await begin_with(loop, raw.entry())
    assert [warning["code"] for warning in begun.json()["warnings"]] == ["mcp_unavailable"]
    assert raw.messages == []


async def test_a_redirect_to_another_origin_is_not_followed(loop, raw):
    raw.tools = [raw_tool("say")]
    await begin_with(loop, raw.entry())
    async with recording_server() as other:
        raw.raw = redirect(other.url("/mcp"), "307 Temporary Redirect")
        answer = await loop.call("desk__say")
        assert other.connections == 0
    assert answer["ok"] is False


async def test_what_comes_back_is_bounded(tmp_path, raw):
    raw.tools = [raw_tool("say")]
    limit = 20_000
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    endless = head + b"Content-Length: 9000000\r\n\r\n" + b" " * 1_000_000
    many = json.dumps([1] * limit).encode()
    events = b": wait\n\n" * 2 * limit
    bomb = gzip.compress(b" " * 10_000_000)
    async with opened_loop(tmp_path, gateway_response_bytes_max=limit) as loop:
        await begin_with(loop, raw.entry())
        found = []
        for answer in (
            endless,
            response(many, "application/json"),
            response(events, "text/event-stream"),
            response(bomb, "application/json", content_encoding="gzip"),
        ):
            raw.raw = answer
            found.append((await loop.call("desk__say"))["error"]["code"])
        raw.raw = None
        raw.results = {"say": {"content": [{"type": "text", "text": "x" * (limit + 1)}]}}
        found.append((await loop.call("desk__say"))["error"]["code"])
        raw.tools = [raw_tool("say", description="x" * (limit + 1))]
        begun = await begin_with(loop, raw.entry())
    assert found == ["response_too_large"] * 3 + ["mcp_unavailable", "response_too_large"]
    assert [warning["code"] for warning in begun.json()["warnings"]] == ["mcp_unavailable"]


async def test_a_list_of_very_many_values_is_not_read(loop, raw):
    raw.tools = [raw_tool("say", {"type": "object", "x": [[1]] * 30_000})]
    begun = await begin_with(loop, raw.entry())
    [warning] = begun.json()["warnings"]
    assert warning["code"] == "mcp_unavailable"
    assert "50,000 commas and brackets" in warning["message"]


async def test_what_a_server_sends_is_read_beside_the_event_loop(loop, raw):
    raw.tools = [raw_tool("say")]
    await begin_with(loop, raw.entry())
    parts = []

    def note(frame, _event, _argument):
        if "site-packages/mcp/" in frame.f_code.co_filename:
            parts.append(threading.current_thread().name)

    threading.setprofile(note)
    sys.setprofile(note)  # this thread is there already
    try:
        assert (await loop.call("desk__say"))["ok"]
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert set(parts) == {"mcp"}


async def test_a_list_without_an_end_is_read_to_the_limit(tmp_path, raw):
    raw.tools, raw.extra = [raw_tool("say")], {"nextCursor": "again"}
    async with opened_loop(tmp_path) as loop:
        begun = await begin_with(loop, raw.entry())
        assert begun.status_code == 201
        assert list(await mcp_tools_of(loop)) == ["desk__say"]


async def test_a_server_that_sends_for_ever_costs_no_longer_than_its_timeout(loop):
    left = asyncio.Event()

    async def trickle(reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
            while True:
                writer.write(b": wait\n\n")
                await writer.drain()
                await asyncio.sleep(0.05)
        left.set()
        writer.close()

    trickling = await asyncio.start_server(trickle, "127.0.0.1", 0)
    async with trickling:
        port = trickling.sockets[0].getsockname()[1]
        entry = {"name": "slow", "url": f"http://127.0.0.1:{port}/mcp", "transport": "http", "timeout": 300}
        begun = await begin_with(loop, entry)
        await left.wait()
    [warning] = begun.json()["warnings"]
    assert warning["code"] == "mcp_unavailable"
    assert "within 0.3 s" in warning["message"]


async def test_a_result_that_fits_no_protocol_is_an_error_of_the_tool(loop, raw):
    raw.tools = [raw_tool("say")]
    await begin_with(loop, raw.entry())
    for result in ({"content": 1}, {"resultType": "input_required"}, {"content": [{"type": "odd"}]}):
        raw.results = {"say": result}
        assert (await loop.call("desk__say"))["error"]["code"] == "mcp_tool_error"
    bad = {"type": "image", "data": "not base64!", "mimeType": "image/png"}
    raw.results = {"say": {"content": [bad]}}
    assert (await loop.call("desk__say"))["error"]["code"] == "mcp_tool_error"


async def test_a_cancelled_call_ends_its_request(loop):
    async with sdk_server(desk(), "handshake") as server:
        await begin_with(loop, server.entry())
    # The server is gone, and another one holds what comes to its port.
    arrived, gone = asyncio.Event(), asyncio.Event()

    async def hold(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        while await reader.read(1_000):
            pass
        gone.set()
        writer.close()

    holding = await asyncio.start_server(hold, "127.0.0.1", server.port)
    async with holding:
        asking = asyncio.create_task(loop.post_call("desk__add", {"numbers": [1]}))
        await arrived.wait()
        await loop.web.delete("/v1/tool-calls/call-1")
        answer = await asking
        await gone.wait()
    assert (answer.status_code, answer.json()["code"]) == (409, "cancelled")
