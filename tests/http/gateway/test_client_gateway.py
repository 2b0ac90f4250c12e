"""Both Python clients against the routes of agents, runs, spaces and messages behind a real server."""

import asyncio
import contextlib
import inspect
import socket
from dataclasses import replace

import pytest
import uvicorn

from proofbox.client import (
    ArgumentError,
    AsyncClient,
    AsyncGateway,
    Client,
    ConflictError,
    Gateway,
    InvalidRequestError,
    NotFoundError,
)
from proofbox.contracts.gateway.runs import RunEvent
from proofbox.contracts.gateway.space_events import MessageCreatedEvent
from proofbox.service.api.app import create_app
from tests.http.conftest import AnnouncedServer
from tests.support.gateway_client import opened_loop
from tests.support.pipeline import services_over

ASK = {"name": "ask", "description": "d", "executionType": "space"}
SHOW = {"name": "show", "description": "d", "executionType": "gateway", "execution": {"output": "{{input}}"}}
CONFIGURATION = {"version": "2", "agent": {"name": "clerk"}, "tools": [ASK, SHOW]}


@pytest.fixture
async def url(tmp_path):
    async with opened_loop(tmp_path) as loop:
        services = replace(services_over(loop.pipeline), heartbeat_s=0.05)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            config = uvicorn.Config(
                create_app(services), log_config=None, lifespan="off", timeout_graceful_shutdown=1
            )
            running = AnnouncedServer(config)
            serving = asyncio.create_task(running.serve(sockets=[listening]))
            await running.up.wait()
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            loop.pipeline.gateway.spaces.feed.close()
            running.should_exit = True
            with contextlib.suppress(asyncio.CancelledError):
                await serving


class InThread:
    """The blocking client with the methods of the other one: each call is in a thread."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        method = getattr(self._client.gateway, name)

        def call(*args, **options):
            if inspect.isgeneratorfunction(method):
                return self._items(method(*args, **options))
            return asyncio.to_thread(method, *args, **options)

        return call

    async def _items(self, items):
        end = object()
        try:
            while (item := await asyncio.to_thread(next, items, end)) is not end:
                yield item
        finally:
            items.close()


@pytest.fixture(params=["sync", "async"])
async def gateway(request, url):
    if request.param == "async":
        async with AsyncClient(url) as client:
            yield client.gateway
        return
    with Client(url) as client:
        yield InThread(client)


@pytest.fixture
async def desk(gateway):
    """The id of a space of Ann and the agent ``clerk``."""
    await gateway.put_agent("clerk", CONFIGURATION)
    await gateway.put_entity("ann", handle="ann", display_name="Ann")
    return (await gateway.create_space("Desk", ["ann", "agent:clerk"], metadata={"a": 1})).space_id


async def test_an_agent_is_written_read_listed_and_deleted(gateway):
    written = await gateway.put_agent("clerk", CONFIGURATION, if_version=0)
    assert (written.version, [tool.name for tool in written.tools]) == (1, ["ask", "show"])
    with pytest.raises(Exception, match="version_moved"):
        await gateway.put_agent("clerk", {**CONFIGURATION, "tools": []}, if_version=7)
    with pytest.raises(InvalidRequestError, match="invalid_tool"):
        await gateway.put_agent("clerk", {**CONFIGURATION, "tools": [{**ASK, "visibility": "hidden"}]})
    assert (await gateway.get_agent("clerk")).configuration == CONFIGURATION
    assert [agent.handle async for agent in gateway.list_agents()] == ["clerk"]
    await gateway.create_run("clerk")
    with pytest.raises(ConflictError, match="agent_in_use"):
        await gateway.delete_agent("clerk")
    await gateway.delete_agent("clerk", cancel_runs=True)
    with pytest.raises(NotFoundError):
        await gateway.get_agent("clerk")


async def test_a_run_is_driven_to_its_end(gateway, desk):
    queued = await gateway.create_run("clerk", space_id=desk, queued=True, metadata={"n": 1})
    assert (queued.status, queued.lease) == ("queued", None)
    with pytest.raises(ArgumentError, match="claim it first"):
        await gateway.release_run(queued)
    run = await gateway.claim_run(["clerk"], wait_s=1)
    assert (run.run_id, run.lease.number, await gateway.claim_run()) == (queued.run_id, 1, None)
    assert (await gateway.get_run_context(run.run_id)).active_space.space_id == desk
    names = {tool.name for tool in await gateway.list_run_tools(run_id=run.run_id)}
    assert {"ask", "show", "send_message"} < names
    answer = await gateway.call_tool(run, "show", {"total": 3}, call_id="call-1")
    assert (answer.ok, answer.ret) == (True, {"total": 3})
    assert (await gateway.call_tool(run, "show", {"total": 3}, call_id="call-1")).ret == answer.ret
    assert (await gateway.extend_run_lease(run, lease_s=100)).status == "running"
    ended = await gateway.finish_run(run, summary="done")
    assert (ended.status, ended.summary) == ("completed", "done")
    events = [event async for event in gateway.watch_run(run.run_id)]
    assert [event.name for event in events] == ["run.queued", "run.started", "call.answered", "run.completed"]
    assert isinstance(events[-1].data, RunEvent)
    later = [event.name async for event in gateway.watch_run(run.run_id, after=events[-1].id)]
    assert later == []
    assert [listed.run_id async for listed in gateway.list_runs("clerk", status="completed")] == [run.run_id]


async def test_runs_are_failed_released_and_cancelled(gateway, desk):
    failed = await gateway.fail_run(await gateway.create_run("clerk"), "no_model", "it does not answer")
    assert (failed.status, failed.error.code) == ("failed", "no_model")
    run = await gateway.create_run("clerk", space_id=desk)
    assert (await gateway.release_run(run)).status == "queued"
    assert (await gateway.cancel_run(run.run_id)).status == "cancelled"
    assert (await gateway.get_run(run.run_id)).ended is not None


async def test_a_call_waits_for_the_answer_of_a_person(gateway, desk):
    run = await gateway.create_run("clerk", space_id=desk)
    waiting = await gateway.call_tool(run, "ask", {}, call_id="call-1")
    assert (waiting.status, waiting.wait.kind) == ("waiting", "space")
    asking = asyncio.ensure_future(gateway.call_tool(run, "ask", {}, call_id="call-1", wait_s=30))
    with pytest.raises(ArgumentError, match="exactly one"):
        await gateway.answer_message(desk, waiting.wait.message_id)
    accepted = await gateway.answer_message(desk, waiting.wait.message_id, result=None, entity_id="ann")
    assert accepted.message.tool.answered_by == "ann"
    assert ((await asking).ok, (await asking).ret) == (True, None)
    await gateway.call_tool(run, "ask", {}, call_id="call-2")
    refused = await gateway.answer_tool_call("call-2", run.conversation_id, error="nobody is here")
    assert refused.call.response.error.code == "user_error"


async def test_spaces_and_messages(gateway, desk):
    assert (await gateway.get_space(desk)).metadata == {"a": 1}
    assert [space.space_id async for space in gateway.list_spaces()] == [desk]
    await gateway.put_entity("bob", handle="bob", display_name="Bob")
    assert len((await gateway.add_member(desk, "bob")).members) == 3
    sent = await gateway.post_message(desk, "@clerk hello @eve", entity_id="ann", idempotency_key="one")
    assert ([run.why for run in sent.runs], sent.unknown_mentions) == (["mention"], ["eve"])
    again = await gateway.post_message(desk, "@clerk hello @eve", entity_id="ann", idempotency_key="one")
    assert again.message.message_id == sent.message.message_id
    reply = await gateway.post_message(desk, "yes", reply_to=sent.message.message_id, entity_id="bob")
    page = await gateway.list_messages(desk, after=sent.message.seq)
    assert [message.message_id for message in page.items] == [reply.message.message_id]
    assert (await gateway.get_message(desk, reply.message.message_id)).text == "yes"
    await gateway.remove_member(desk, "bob")
    token = await gateway.create_space_token(desk, "ann", expires_s=60)
    assert token.token.startswith("pbs_")
    await gateway.archive_space(desk)
    assert (await gateway.get_space(desk)).archived is not None


async def test_the_events_of_a_space_come_as_they_happen(gateway, desk):
    known = [message.name async for message in first(gateway.watch_space(desk), 2)]
    assert known == ["member.joined", "member.joined"]

    async def follow():
        return [event async for event in first(gateway.watch_space(desk, after=2), 1)]

    following = asyncio.create_task(follow())
    sent = await gateway.post_message(desk, "hello", entity_id="ann")
    [event] = await following
    assert (event.id, event.name, type(event.data)) == (3, "message.created", MessageCreatedEvent)
    assert event.data.message == sent.message


async def first(events, count):
    """The first events of a stream without an end."""
    async with contextlib.aclosing(events) as stream:
        for _ in range(count):
            yield await anext(stream)


def test_both_gateways_have_the_same_methods():
    def methods(kind):
        return {
            name: str(inspect.signature(value)).rpartition(" -> ")[0]
            for name, value in vars(kind).items()
            if not name.startswith("_")
        }

    assert methods(Gateway) == methods(AsyncGateway)
