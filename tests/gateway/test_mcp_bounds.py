"""What one operation on an MCP server may cost: values and parts of its messages, requests of both sides."""

import asyncio
import re

import pytest

from proofbox.service.mcp_sources.limits import PARTS_MAX, REQUESTS_MAX
from tests.support.mcp_servers import begin_with, mcp_tools_of, raw_server, raw_tool
from tests.support.old_mcp_server import events, old_mcp_server
from tests.support.web_server import response


@pytest.fixture
async def raw():
    async with raw_server(raw_tool("say")) as server:
        yield server


@pytest.fixture
async def old():
    async with old_mcp_server() as server:
        yield server


async def failure_of(loop):
    return (await loop.call("desk__say"))["error"]


async def test_a_result_of_very_many_values_is_not_read_however_small(loop, raw):
    await begin_with(loop, raw.entry())
    raw.results = {"say": {"content": [], "structuredContent": {"x": [[]] * 60_000}}}
    failure = await failure_of(loop)
    assert failure["code"] == "response_too_large"
    assert "50,000 commas and brackets" in failure["message"]


async def test_a_text_may_have_as_many_commas_as_it_likes(loop, raw):
    await begin_with(loop, raw.entry())
    table = '"a\\",[{' * 60_000
    raw.results = {"say": {"content": [{"type": "text", "text": table}]}}
    assert (await loop.call("desk__say"))["ret"] == table


@pytest.mark.parametrize("part", [{}, 0, {"type": "text", "text": "", "annotations": {"audience": [0] * 99}}])
async def test_a_result_of_very_many_parts_never_reaches_the_checks_of_the_sdk(loop, raw, part):
    await begin_with(loop, raw.entry())
    count = PARTS_MAX if not part else PARTS_MAX // 99
    raw.results = {"say": {"content": [part] * count}}
    failure = await failure_of(loop)
    assert failure["code"] == "response_too_large"
    assert "too many parts (limit 5,000)" in failure["message"]


async def test_a_list_of_very_many_parts_is_not_read(loop, raw):
    raw.tools = [raw_tool("say", icons=[{}] * PARTS_MAX)]
    begun = await begin_with(loop, raw.entry())
    [warning] = begun.json()["warnings"]
    assert warning["code"] == "mcp_unavailable"
    assert "too many parts" in warning["message"]


async def test_what_is_any_json_to_the_sdk_is_no_part(loop, raw):
    await begin_with(loop, raw.entry())
    found = {"content": [1] * 2 * PARTS_MAX}
    raw.results = {"say": {"content": [], "structuredContent": found}}
    assert (await loop.call("desk__say"))["ret"] == found


async def test_a_stream_is_read_in_no_other_encoding_than_it_is_counted_in(loop, raw):
    await begin_with(loop, raw.entry())
    message = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": []}}
    raw.raw = response(events(message).partition(b"\r\n\r\n")[2].decode().encode("utf-16-le"), "")
    raw.raw = raw.raw.replace(b"\r\n", b"\r\nContent-Type: text/event-stream; charset=utf-16-le\r\n", 1)
    assert (await failure_of(loop))["code"] == "mcp_unavailable"


async def test_a_server_that_asks_its_client_for_ever_ends_the_operation(loop, old):
    await begin_with(loop, old.entry())
    pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(REQUESTS_MAX + 1)]
    old.called = events(*pings)
    failure = await failure_of(loop)
    assert failure["code"] == "mcp_unavailable"
    assert "limit 100 requests" in failure["message"]


async def test_a_stream_that_is_resumed_for_ever_ends_the_operation(loop, old):
    await begin_with(loop, old.entry())
    old.called = old.stream = response(b"id: 1\nretry: 0\ndata:\n\n", "text/event-stream")
    failure = await failure_of(loop)
    assert failure["code"] == "mcp_unavailable"
    assert "needs too many requests (limit 100)" in failure["message"]
    effects = loop.pipeline.audit_lines()[-1].gateway.effects
    assert len(effects) <= REQUESTS_MAX


async def test_no_stream_is_opened_that_nobody_asked_for(loop, old):
    await begin_with(loop, old.entry())
    assert list(await mcp_tools_of(loop)) == ["desk__say"]
    assert (await loop.call("desk__say"))["ok"]
    assert "GET" not in old.requests


async def test_a_server_that_asks_again_and_again_has_one_timeout_for_all_rounds(loop, raw):
    # The second round is never answered: it fails after what the first one has left of the time.
    await begin_with(loop, raw.entry(timeout=3_000))
    question = {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}},
    }
    asked = {"resultType": "input_required", "inputRequests": {"a": question}}

    def reply(_params):
        if len(raw.called) == 1:
            raw.held = asyncio.Event()
        return asked

    raw.results = {"say": reply}
    failure = await failure_of(loop)
    raw.held.set()
    assert (failure["code"], len(raw.called)) == ("mcp_unavailable", 2)
    [left_s] = re.findall(r"did not answer within ([0-9.]+) s", failure["message"])
    assert 0 < float(left_s) < 3
