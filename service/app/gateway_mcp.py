"""Builds what the tools of MCP servers need; the SDK is imported when the first server is asked."""

from dataclasses import dataclass

from proofbox.service.app.gateway_settings import GatewaySettings
from proofbox.service.gateway.agents.port import AgentStore
from proofbox.service.gateway.catalogue import ToolCatalogue
from proofbox.service.gateway.http_tool import HttpParts
from proofbox.service.gateway.mcp.port import McpClient
from proofbox.service.gateway.mcp.run_pins import McpPins
from proofbox.service.gateway.mcp.sources import McpSources
from proofbox.service.gateway.mcp.tool import McpParts, McpTool
from proofbox.service.gateway.waits.policy import WaitPolicy
from proofbox.service.mcp_sources.client import Reach, SdkMcpClient
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.tls import Tls


@dataclass(frozen=True, slots=True)
class McpTools:
    """The tools of MCP servers.

    Attributes:
        sources: what servers offer.
        pins: what a run gets of them when it begins.
        execution: runs their calls.
    """

    sources: McpSources
    pins: McpPins
    execution: McpTool


def build_mcp_client(settings: GatewaySettings, network: CheckedNetwork, tls: Tls) -> McpClient:
    """Build the client of MCP servers."""
    ports = frozenset(settings.gateway_ports)
    return SdkMcpClient(Reach(network, tls, ports, settings.gateway_response_bytes_max))


def build_mcp_tools(
    client: McpClient, http: HttpParts, agents: AgentStore, catalogue: ToolCatalogue, policy: WaitPolicy
) -> McpTools:
    """Build the tools of MCP servers; their calls share the places of HTTP tools."""
    sources = McpSources(client, http.environment)
    parts = McpParts(client, http.files, http.environment, http.admission, http.bytes_max, http.queue_s)
    return McpTools(sources, McpPins(agents, catalogue, sources), McpTool(parts, policy))
