"""``GET /v1/spaces/{space_id}/events`` behind a real server: heads, ids, heartbeats, resuming and the ends."""

import asyncio
import contextlib
import json
import socket
from dataclasses import replace

import httpx
import pytest
import uvicorn

from proofbox.service.access.space_tokens import SpaceGrant
from proofbox.service.api.app import create_app
from proofbox.service.gateway.spaces.port import Actor
from tests.http.conftest import AnnouncedServer
from tests.http.gateway.conftest import ORIGIN
from tests.support.gateway_client import opened_loop
from tests.support.pipeline import ANN

SHOW = {"name": "show", "executionType": "gateway", "execution": {"output": "{{input}}"}}


@pytest.fixture
async def served(people):
    """The URL of the office's application behind a real server."""
    services = replace(people.app.state.services, heartbeat_s=0.05)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        config = uvicorn.Config(create_app(services), log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        running = AnnouncedServer(config)
        serving = asyncio.create_task(running.serve(sockets=[listening]))
        await running.up.wait()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        people.loop.pipeline.gateway.spaces.feed.close()
        running.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await serving


@pytest.fixture
async def watch(people, served):
    """Opens the stream of a space with ann's key; the response."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx.AsyncClient(base_url=served, headers=people.ann.headers, timeout=20, trust_env=False)
        )

        async def opened(space_id, query="", **headers):
            request = client.stream("GET", f"/v1/spaces/{space_id}/events{query}", headers=headers)
            return await stack.enter_async_context(request)

        yield opened


async def _read(response, count):
    """The next events of a stream, as id (or None), name and data; and whether a heartbeat came."""
    events, fields, heartbeats = [], {}, 0
    async for line in response.aiter_lines():
        if line.startswith(":"):
            heartbeats += 1
        elif line:
            name, _, value = line.partition(": ")
            fields[name] = fields.get(name, "") + value
        elif fields:
            number = None if "id" not in fields else int(fields["id"])
            events.append((number, fields["event"], json.loads(fields["data"])))
            fields = {}
        if len(events) == count and (count or heartbeats > 1):
            return events
    return events


async def test_events_have_ids_and_deltas_have_none(people, kitchen, watch):
    response = await watch(kitchen)
    assert response.headers["Content-Type"].startswith("text/event-stream")
    assert response.headers["Cache-Control"] == "no-store"
    await people.loop.begin(SHOW, space_id=kitchen)
    await people.loop.call("show", {"x": "a\nb"})
    events = await _read(response, 6)
    assert [(number, name) for number, name, _ in events] == [
        (1, "member.joined"),
        (2, "member.joined"),
        (3, "run.status"),
        (4, "tool-call.start"),
        (None, "tool-input-delta"),
        (5, "tool-call.complete"),
    ]
    assert events[4][2]["input"] == {"x": "a\nb"}
    assert events[5][2]["message"]["tool"]["output"] == {"x": "a\nb"}


async def test_the_header_of_a_client_that_comes_back_wins(people, kitchen, watch):
    await people.ann.post(f"/v1/spaces/{kitchen}/messages", json={"text": "hello"})
    response = await watch(kitchen, "?after=0", **{"Last-Event-ID": "2"})
    [(number, name, data)] = await _read(response, 1)
    assert (number, name, data["message"]["text"]) == (3, "message.created", "hello")
    assert (await watch(kitchen, "?after=-1")).status_code == 422


async def test_heartbeats_come_while_nothing_happens(kitchen, watch):
    assert await _read(await watch(kitchen, "?after=2"), 0) == []


async def test_the_stream_of_a_member_that_leaves_ends_over_http(people, kitchen, watch):
    response = await watch(kitchen, "?after=2")
    await people.admin.delete(f"/v1/spaces/{kitchen}/members/ann")
    events = await _read(response, 2)  # the stream ends after the first
    assert [name for _, name, _ in events] == ["member.left"]


async def test_a_stream_ends_with_its_token(people, kitchen, served):
    tokens = people.loop.pipeline.gateway.services.tokens
    token = tokens.make(SpaceGrant("acme", "books", kitchen, "ann", tokens.expiry(2)))
    headers = {"Authorization": f"Bearer {token}", "Origin": ORIGIN}
    async with httpx.AsyncClient(base_url=served, headers=headers, timeout=20, trust_env=False) as page:
        async with page.stream("GET", f"/v1/spaces/{kitchen}/events?after=2") as response:
            assert response.headers["Access-Control-Allow-Origin"] == ORIGIN
            assert await _read(response, 1) == []
        assert (await page.get(f"/v1/spaces/{kitchen}")).status_code == 401


async def test_all_streams_end_when_the_service_stops_over_http(people, kitchen, watch):
    response = await watch(kitchen, "?after=2")
    people.loop.pipeline.gateway.spaces.feed.close()
    assert await _read(response, 1) == []


async def test_streams_that_a_dead_process_left_are_abandoned_at_the_start(tmp_path, people, kitchen):
    run = await people.loop.begin(SHOW, space_id=kitchen)
    url = f"/v1/runs/{run['run_id']}/tool-inputs/call-1"
    part = {"tool": "show", "offset": 0, "delta": "{"}
    assert (await people.loop.web.post(url, json=part, headers=people.loop.leased())).status_code == 200
    database = people.loop.pipeline.database
    await database.close()  # as a process that ended: nothing of it was told
    async with opened_loop(tmp_path) as loop:
        messages = loop.pipeline.gateway.services.messages
        page = await messages.list(Actor(ANN), kitchen, before=None, after=None, limit=10)
        assert [message.tool.error.code for message in page.items] == ["abandoned"]
    await database.open()
