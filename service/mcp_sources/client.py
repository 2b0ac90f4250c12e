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
from proofbox.service.mcp_sources.limits import LIST_BYTES_MAX, LISTS_MAX
from proofbox.service.mcp_sources.own_loop import run_apart
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
        bytes_max: the largest result without its files.
    """

    network: CheckedNetwork
    tls: Tls
    ports: frozenset[int]
    bytes_max: int

    @property
    def list_bytes_max(self) -> int:
        """The largest list of tools."""
        return min(self.bytes_max, LIST_BYTES_MAX)

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
        self._lists = asyncio.Semaphore(LISTS_MAX)

    @override
    async def list_tools(self, server: ReachedServer) -> ToolListing:
        self._require_port(server)

        async def work() -> ToolListing:
            listing: ToolListing = await _operations().list_tools(self._reach, server)
            return listing

        async with self._lists:
            return await run_apart(work)

    @override
    async def call_tool(
        self, server: ReachedServer, request: ToolRequest, on_effect: OnEffect
    ) -> ServerAnswer | AskedInput:
        self._require_port(server)

        async def work() -> ServerAnswer | AskedInput:
            answer: ServerAnswer | AskedInput
            answer = await _operations().call_tool(self._reach, server, request, on_effect)
            return answer

        return await run_apart(work)

    def _require_port(self, server: ReachedServer) -> None:
        url = WebUrl.parse(server.url)
        if url.port not in self._reach.ports:
            allowed = ", ".join(map(str, sorted(self._reach.ports)[:10]))
            raise McpFailedError(
                GatewayCode.MCP_UNAVAILABLE, f"port {url.port} of {url.host} is not allowed (allowed: {allowed})"
            )


def _operations() -> Any:
    """The module that imports the SDK; in the thread of an operation, which it may hold up."""
    return importlib.import_module("proofbox.service.mcp_sources.operations")
