"""The client of MCP servers; the SDK is imported at the first use, since it costs a second and 55 MB."""

import asyncio
import importlib
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.gateway.http_exchange import FILE_FACTOR
from proofbox.service.gateway.mcp.port import (
    AskedInput,
    McpClient,
    McpFailedError,
    OnEffect,
    ReachedServer,
    ServerAnswer,
    ToolListing,
    ToolRequest,
)
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.urls import WebUrl


@dataclass(frozen=True, slots=True)
class Reach:
    """What may be reached, and how much may come back.

    Attributes:
        network: checks addresses.
        tls: how certificates are checked.
        ports: the ports that are asked.
        bytes_max: the largest list, and the largest result without its files.
    """

    network: CheckedNetwork
    tls: Tls
    ports: frozenset[int]
    bytes_max: int

    @property
    def result_bytes_max(self) -> int:
        """The largest result with its files."""
        return FILE_FACTOR * self.bytes_max


class SdkMcpClient(McpClient):
    """The McpClient of the official SDK.

    Args:
        reach: what may be reached.
    """

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    @override
    async def list_tools(self, server: ReachedServer) -> ToolListing:
        operations = await self._load(server)
        listing: ToolListing = await operations.list_tools(self._reach, server)
        return listing

    @override
    async def call_tool(
        self, server: ReachedServer, request: ToolRequest, on_effect: OnEffect
    ) -> ServerAnswer | AskedInput:
        operations = await self._load(server)
        answer: ServerAnswer | AskedInput = await operations.call_tool(self._reach, server, request, on_effect)
        return answer

    async def _load(self, server: ReachedServer) -> Any:
        url = WebUrl.parse(server.url)
        if url.port not in self._reach.ports:
            allowed = ", ".join(map(str, sorted(self._reach.ports)[:10]))
            raise McpFailedError(
                GatewayCode.MCP_UNAVAILABLE, f"port {url.port} of {url.host} is not allowed (allowed: {allowed})"
            )
        return await asyncio.to_thread(importlib.import_module, "proofbox.service.mcp_sources.operations")
