"""The variants without a request: a static or templated output, and none at all."""

import asyncio

from proofbox.contracts.gateway.executions import OutputExecution
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import RunOutcome
from proofbox.service.gateway.filling import MISSING, RefusedInputError, TemplateFiller
from proofbox.service.gateway.result_files import ResultFiles
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution


class OutputTool(ToolExecution):
    """Runs the calls of the variant ``output``: its result is the template, filled in.

    Args:
        files: stores a result that is too large for a block.
    """

    def __init__(self, files: ResultFiles) -> None:
        self._files = files

    async def run(self, call: GatewayCall, _observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        output = call.execution_as(OutputExecution).output
        try:
            # In a thread: values of several MiB may be put in.
            filled = await asyncio.to_thread(TemplateFiller(call.input, call.tool_call_id).fill_json, output)
        except RefusedInputError as exc:
            return call.refuse_input(exc.listed)
        return await self._files.succeed(call, None if filled is MISSING else filled)


class NothingTool(ToolExecution):
    """Runs the calls of internal tools without ``execution``: the result is only that they were called."""

    async def run(self, call: GatewayCall, _observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        return call.succeed({"status": "ok"})
