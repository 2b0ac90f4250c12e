"""The tools of a sub-agent: the ones that its configuration lists, and those of its MCP servers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from proofbox.contracts.gateway.configuration import SubAgentConfiguration
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.service.gateway.agents.service import project_name
from proofbox.service.gateway.catalogue import configured_run_tool, mcp_run_tool
from proofbox.service.gateway.mcp.pinned_tool import McpBinding
from proofbox.service.gateway.mcp.sources import McpSources
from proofbox.service.gateway.tool_call import RunTool
from proofbox.service.identity import Principal


@dataclass(frozen=True, slots=True)
class InnerTools:
    """The tools of one sub-agent.

    Attributes:
        by_name: by their names for the model.
        warnings: what of its MCP servers was left out, and why.
    """

    by_name: Mapping[str, RunTool]
    warnings: Sequence[GatewayWarning] = ()


async def list_inner_tools(
    configuration: SubAgentConfiguration, own: Mapping[str, RunTool], sources: McpSources, principal: Principal
) -> InnerTools:
    """List the tools of a sub-agent; no space shows their calls.

    Args:
        configuration: of the sub-agent.
        own: the tools of the service, as tools of a run.
        sources: the tools of MCP servers, as they are when the call begins.
        principal: on whose behalf.

    Raises:
        McpUnavailableError: a server that is ``required`` does not answer.
    """
    tools = [configured_run_tool(tool, own) for tool in configuration.tools]
    warnings: list[GatewayWarning] = []
    servers = {server.name: server for server in configuration.mcp.servers} if configuration.mcp else {}
    if servers:
        taken = [name for tool in tools for name in (tool.tool_id, tool.name)]
        offered = await sources.offer(list(servers.values()), project_name(principal), taken)
        tools += [mcp_run_tool(McpBinding(servers[tool.server], tool)) for tool in offered.tools]
        warnings = [GatewayWarning.model_validate(warning) for warning in offered.warnings]
    return InnerTools({tool.name: replace(tool, visibility="hidden") for tool in tools}, warnings)
