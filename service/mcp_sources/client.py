"""The client of MCP servers; the SDK is imported at the first use, since it costs a second and 55 MB."""

import importlib
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from typing_extensions import override

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.access.quotas import Share
from proofbox.service.calls.admission import Admission
from proofbox.service.errors import QueueFullError, QueueTimeoutError
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
from proofbox.service.mcp_sources.limits import (
    LIST_BYTES_MAX,
    LISTS_MAX,
    LISTS_OF_PROJECT_MAX,
    LISTS_OF_PROJECT_QUEUED_MAX,
    LISTS_QUEUED_MAX,
)
from proofbox.service.mcp_sources.own_loop import NotStartedError, run_apart
from proofbox.service.web.client.pinned_network import CheckedNetwork
from proofbox.service.web.client.tls import Tls
from proofbox.service.web.urls import WebUrl

T = TypeVar("T")


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
        share = Share(LISTS_OF_PROJECT_MAX, LISTS_OF_PROJECT_QUEUED_MAX)
        self._lists = Admission(running_max=LISTS_MAX, queue_max=LISTS_QUEUED_MAX, share_of=lambda _project: share)

    @override
    async def list_tools(self, server: ReachedServer) -> ToolListing:
        url = self._require_port(server)
        asked, has_slot = server, self._lists.has_slot(server.project)
        deadline = time.monotonic() + server.timeout_s

        async def work() -> ToolListing:
            listing: ToolListing = await _operations().list_tools(self._reach, asked)
            return listing

        try:
            with await self._lists.enter(deadline, lambda _before: None, server.project):
                if not has_slot:
                    asked = replace(server, timeout_s=max(0.001, round(deadline - time.monotonic(), 3)))
                return await _run(work, url.host)
        except (QueueFullError, QueueTimeoutError) as exc:
            message = f"{url.host} was not asked within {server.timeout_s:g} s: too many lists are read now"
            raise McpFailedError(GatewayCode.MCP_UNAVAILABLE, message) from exc

    @override
    async def call_tool(
        self, server: ReachedServer, request: ToolRequest, on_effect: OnEffect
    ) -> ServerAnswer | AskedInput:
        url = self._require_port(server)

        async def work() -> ServerAnswer | AskedInput:
            answer: ServerAnswer | AskedInput
            answer = await _operations().call_tool(self._reach, server, request, on_effect)
            return answer

        return await _run(work, url.host)

    def _require_port(self, server: ReachedServer) -> WebUrl:
        url = WebUrl.parse(server.url)
        if url.port not in self._reach.ports:
            allowed = ", ".join(map(str, sorted(self._reach.ports)[:10]))
            raise McpFailedError(
                GatewayCode.MCP_UNAVAILABLE, f"port {url.port} of {url.host} is not allowed (allowed: {allowed})"
            )
        return url


async def _run(work: Callable[[], Coroutine[Any, Any, T]], host: str) -> T:
    try:
        return await run_apart(work)
    except NotStartedError as exc:
        message = f"{host} was not asked: the service has too many threads or open files"
        raise McpFailedError(GatewayCode.MCP_UNAVAILABLE, message) from exc


def _operations() -> Any:
    """The module that imports the SDK; in the thread of an operation, which it may hold up."""
    return importlib.import_module("proofbox.service.mcp_sources.operations")
