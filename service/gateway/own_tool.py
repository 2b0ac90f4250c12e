"""The tools of this service in a run: called by their names, or configured under a name of their own."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from proofbox.contracts.gateway.executions import OwnToolExecution
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.function_calls import canonical_call
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.invalid_params import prepare_call
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import RunOutcome
from proofbox.service.calls.tool import PreparedCall, Tools
from proofbox.service.errors import UnknownToolError
from proofbox.service.gateway.filling import MISSING, RefusedInputError, TemplateFiller
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution


class OwnTool(ToolExecution):
    """Runs the calls of this service's own tools; blocks, verdicts and limits are those of a call without run.

    Args:
        tools: the tools of the service.
        refuse_if_full: raises QueueFullError while the queue of sandboxes is full.
    """

    def __init__(self, tools: Tools, refuse_if_full: Callable[[str], None]) -> None:
        self._tools = tools
        self._refuse_if_full = refuse_if_full

    def admit(self, call: GatewayCall) -> None:
        """See `ToolExecution.admit`."""
        self._refuse_if_full(call.principal.caller)

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        try:
            prepared = call.inner or await self._prepare(call)
        except RefusedInputError as exc:
            return call.refuse_input(exc.listed)
        return await prepared.run(observer)

    def interrupt(self, call: GatewayCall, why: Interruption) -> ToolCallResponse:
        """See `ToolExecution.interrupt`."""
        # Without one its input was refused, and it was never run.
        return call.interrupt(why) if call.inner is None else call.inner.interrupt(why)

    async def check(self, call: GatewayCall) -> None:
        """See `ToolExecution.check`."""
        with suppress(RefusedInputError):  # the model's mistake: the call is accepted, and answers it
            call.inner = await self._prepare(call)

    async def _prepare(self, call: GatewayCall) -> PreparedCall:
        # In a thread: values of several MiB may be put in.
        request = await asyncio.to_thread(inner_request, call)
        prepared = prepare_call(self._tools, call.scope, request)
        if prepared is None:
            raise UnknownToolError(f"there is no tool '{request.tool_id[:80]}'; GET /v1/tools lists them")
        return prepared


def inner_request(call: GatewayCall) -> ToolCallRequest:
    """The request of the service's own tool that a call makes.

    Raises:
        RefusedInputError: the input is too large for the templates.
    """
    request = call.request
    update: dict[str, Any] = {"tool_id": call.tool.own_tool_id or request.tool_id, "run_id": None}
    configuration = call.tool.configuration
    if configuration is not None and isinstance(configuration.execution, OwnToolExecution):
        filler = TemplateFiller(call.input, call.tool_call_id)
        execution = configuration.execution
        if execution.params is not None:
            update["params"] = filler.fill_json(execution.params)
        if execution.code is not None:
            code = filler.fill_json(execution.code)
            update["code"] = None if code is MISSING else str(code)
            update["params"] = {k: v for k, v in update.get("params", request.params).items() if k != "code"}
    # Code among the params is the program, as in calls by a function's name.
    return canonical_call(request.model_copy(update=update))
