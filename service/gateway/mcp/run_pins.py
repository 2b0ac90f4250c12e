"""What a run gets of MCP servers when it begins."""

import time
from collections.abc import Callable
from typing import Protocol

from proofbox.service.gateway.agents.port import AgentStore
from proofbox.service.gateway.agents.service import project_name
from proofbox.service.gateway.catalogue import ToolCatalogue
from proofbox.service.gateway.mcp.pinned_tool import PinnedTools
from proofbox.service.gateway.mcp.sources import McpSources
from proofbox.service.gateway_errors import McpUnavailableError, UnknownAgentError
from proofbox.service.identity import Principal

UNAVAILABLE_S = 10.0
"""How long claims pass by the runs of a version whose required server did not answer."""


class RunPins(Protocol):
    """Makes what is pinned to a run that begins."""

    async def pin(self, principal: Principal, agent_id: str, version: int | None = None) -> PinnedTools | None:
        """The tools of the MCP servers of an agent's version (None: the current one); None: there is no such agent.

        Raises:
            McpUnavailableError: a server that is ``required`` does not answer.
        """

    async def pin_queued(self, principal: Principal, agent_id: str, version: int) -> PinnedTools | None:
        """As `pin`, for a queued run; a failure is repeated for a while without asking again."""


class McpPins(RunPins):
    """The `RunPins` of agents with MCP servers.

    Args:
        agents: the agents.
        catalogue: their other tools.
        sources: the tools of servers.
        clock: the time in seconds, from any beginning.
    """

    def __init__(
        self,
        agents: AgentStore,
        catalogue: ToolCatalogue,
        sources: McpSources,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agents = agents
        self._catalogue = catalogue
        self._sources = sources
        self._clock = clock
        self._failed: dict[tuple[str, str, int], tuple[float, str]] = {}

    async def pin(self, principal: Principal, agent_id: str, version: int | None = None) -> PinnedTools | None:
        """See `RunPins.pin`."""
        try:
            if version is None:
                version = (await self._agents.find(principal, agent_id)).version
            tools = await self._catalogue.tools_of(principal, agent_id, version)
        except UnknownAgentError:
            return None  # whoever makes the run reports it
        if not tools.servers:
            return PinnedTools(version)
        offered = await self._sources.offer(tools.servers, project_name(principal), list(tools.by_name))
        return PinnedTools(version, has_servers=True, tools=offered.tools, warnings=offered.warnings)

    async def pin_queued(self, principal: Principal, agent_id: str, version: int) -> PinnedTools | None:
        """See `RunPins.pin_queued`."""
        key = (project_name(principal), agent_id, version)
        now = self._clock()
        self._failed = {each: failed for each, failed in self._failed.items() if failed[0] > now}
        if key in self._failed:
            raise McpUnavailableError(self._failed[key][1])
        try:
            return await self.pin(principal, agent_id, version)
        except McpUnavailableError as exc:
            self._failed[key] = (self._clock() + UNAVAILABLE_S, str(exc))
            raise
