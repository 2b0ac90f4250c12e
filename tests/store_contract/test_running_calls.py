"""Calls on every database: what is begun while one is registered, and what is done once its client is told."""

import asyncio
import logging

import pytest

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.calls.tool import PreparedCall


class IdleTool:
    """A tool that does nothing; notes in which order it is asked."""

    def __init__(self, order):
        self._order = order

    def prepare(self, _scope, _request):
        async def run(_observer):
            self._order.append("told")
            return ToolCallResponse(ok=True, report="done", blocks=[])

        def interrupt(why):
            return ToolCallResponse(ok=False, report=why.message, blocks=[])

        return PreparedCall(run, interrupt)


class Meter:
    """A meter that notes when it counts a call."""

    def __init__(self, order):
        self._order = order

    def call_ended(self, _call):
        self._order.append("counted")


def request(tool_call_id="call-1"):
    return ToolCallRequest(tool_id="a.tool", tool_call_id=tool_call_id, conversation_id="conv-1", params={})


@pytest.fixture
def order():
    return []


@pytest.fixture
def admission():
    return Admission(running_max=1, queue_max=1)


@pytest.fixture
def calls(call_store, admission, order):
    return Calls({"a.tool": IdleTool(order)}, admission, call_store, CallSettings(0, "boot-1"), Meter(order))


async def submitted(calls, scope, tool_call_id="call-1"):
    return await calls.submit(
        scope.principal, request(tool_call_id), idempotency_key=None, request_id="r", detached=False
    )


async def test_an_answer_that_is_stored_is_given_again(calls, scope, order):
    first = await (await submitted(calls, scope)).answer()
    ticket = await submitted(calls, scope)
    assert (ticket.replayed, await ticket.answer()) == (True, first)
    assert order.count("told") == 1


class Log(logging.Handler):
    """Notes when a line is written."""

    def __init__(self, order):
        super().__init__()
        self._order = order

    def emit(self, _record):
        self._order.append("logged")


@pytest.fixture
def audit_log(order):
    log, handler = logging.getLogger("proofbox.audit"), Log(order)
    before = log.level
    log.addHandler(handler)
    log.setLevel("INFO")
    yield
    log.removeHandler(handler)
    log.setLevel(before)


@pytest.mark.usefixtures("audit_log")
async def test_a_call_that_is_cancelled_while_its_answer_is_stored_is_done(
    calls, call_store, scope, order, monkeypatch
):
    store, is_storing, release = call_store.finish, asyncio.Event(), asyncio.Event()

    async def store_slowly(*args, **more):
        is_storing.set()
        await release.wait()
        return await store(*args, **more)

    monkeypatch.setattr(call_store, "finish", store_slowly)
    ticket = await submitted(calls, scope)
    await is_storing.wait()
    cancelling = asyncio.ensure_future(calls.cancel(scope.principal, "call-1", "conv-1"))
    await asyncio.sleep(0)
    release.set()
    assert ((await cancelling).status, (await ticket.answer()).is_problem) == ("done", False)
    assert order.count("logged") == 1
