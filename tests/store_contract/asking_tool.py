"""A tool that waits for an answer, and the calls of it; for the tests of calls that wait."""

from contextlib import asynccontextmanager

from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import EnvelopeError, ToolCallResponse
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls, CallSettings
from proofbox.service.calls.suspension import Suspension, WaitOutcome
from proofbox.service.calls.tool import PreparedCall


def response(report, *, ok=True):
    error = None if ok else EnvelopeError(code="failed", message=report, where="run", managed=True)
    return ToolCallResponse(ok=ok, error=error, report=report, blocks=[])


def outcome(value):
    return WaitOutcome("space", "result", value, "human:ann", {})


class AskingTool:
    """A tool that waits for an answer; the answer ``go`` lets it run on."""

    def __init__(self, effects=()):
        self.runs = []
        self._effects = effects

    def prepare(self, _scope, _request):
        async def run(_observer):
            self.runs.append("asked")
            return Suspension(self._effects, lambda code, message: response(f"{code}: {message}", ok=False))

        async def run_on(_observer):
            self.runs.append("ran on")
            return response("ran on")

        async def resume(ended):
            return run_on if ended.value == "go" else response(f"answered {ended.value}")

        return PreparedCall(run, lambda why: response(why.message, ok=False), resume=resume)


def build_calls(call_store, tool, boot_id="boot-1"):
    admission = Admission(running_max=4, queue_max=4)
    return Calls({"a.tool": tool}, admission, call_store, CallSettings(10_000, boot_id))


@asynccontextmanager
async def opened_calls(call_store, tool):
    """The same, closed at the end: a call that never ends fails its test, and holds nothing up."""
    calls = build_calls(call_store, tool)
    try:
        yield calls
    finally:
        await calls.close(0)


async def submit(calls, scope, tool_call_id="call-1"):
    request = ToolCallRequest(tool_id="a.tool", tool_call_id=tool_call_id, conversation_id="conv-1", params={})
    return await calls.submit(scope.principal, request, idempotency_key=None, request_id="r", detached=False)


async def stored_call(call_store, scope, tool_call_id="call-1"):
    [found] = await call_store.find(scope.principal, tool_call_id)
    return found


async def events_of(calls, scope, after=0):
    followed = await calls.events(scope.principal, "call-1", None, after=after)
    return [event async for event in followed]
