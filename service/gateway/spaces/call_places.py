"""Where the record of a call belongs, and which tool of a run a streamed call has."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from proofbox.service.errors import UnknownToolError
from proofbox.service.gateway.catalogue import ToolCatalogue
from proofbox.service.gateway.posting import Posting, ShownTool
from proofbox.service.gateway.runs_port import RunStore
from proofbox.service.gateway.spaces.tool_inputs import MOVING_TOOL, RunTools, ToolInputs
from proofbox.service.identity import Principal


class BoundRecords(Protocol):
    """The records of calls, as far as their places need them."""

    async def bind(self, run_id: str, tool_call_id: str, tool: ShownTool) -> Posting:
        """Return the place of a call that is accepted now."""


class SpacePlaces:
    """The places of the records of calls.

    Args:
        records: the records.
        inputs: the arguments that are being written.
    """

    def __init__(self, records: BoundRecords, inputs: ToolInputs) -> None:
        self._records = records
        self._inputs = inputs

    async def bind(self, run_id: str, tool_call_id: str, tool: ShownTool) -> Posting:
        """Return the place of a call: where its arguments stream, else the active space of its run."""
        return await self._records.bind(run_id, tool_call_id, tool)

    def begin(self, run_id: str, tool_call_id: str, params: dict[str, Any]) -> None:
        """See `CallPlaces.begin`."""
        self._inputs.finish(run_id, tool_call_id, params)

    @contextmanager
    def running(self, run_id: str, tool: ShownTool) -> Iterator[None]:
        """See `CallPlaces.running`."""
        if tool.tool_id != MOVING_TOOL:
            yield
            return
        self._inputs.begin_move(run_id)
        try:
            yield
        finally:
            self._inputs.end_move(run_id)


class ToolsOfRuns(RunTools):
    """The tools of runs, for their streamed calls.

    Args:
        runs: the runs.
        catalogue: the tools of agents.
    """

    def __init__(self, runs: RunStore, catalogue: ToolCatalogue) -> None:
        self._runs = runs
        self._catalogue = catalogue

    async def find_shown(self, principal: Principal, run_id: str, lease: int, name: str) -> ShownTool:
        """See `RunTools.find_shown`."""
        run = await self._runs.require(principal, run_id, lease)
        tool = (await self._catalogue.tools_of_run(principal, run)).find(name)
        if tool is None:
            raise UnknownToolError(
                f"run '{run_id}' has no tool '{name[:80]}'; GET /v1/tools?run_id={run_id} lists them"
            )
        return tool.shown
