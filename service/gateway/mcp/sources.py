"""The tools that the MCP servers of a configuration offer now; lists are stored for as long as a server allows."""

import asyncio
import hashlib
import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from proofbox.contracts.gateway.codes import WarningCode
from proofbox.contracts.gateway.configuration import McpServer
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool
from proofbox.service.gateway.mcp.port import McpClient, McpFailedError, ReachedServer, ServerTool, ToolListing
from proofbox.service.gateway.mcp.reaching import reach_server
from proofbox.service.gateway.mcp.results import shown_reason
from proofbox.service.gateway.mcp.selection import Selection, select_tools
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway_errors import McpUnavailableError

LISTED_S = 300.0
"""How long a list is stored if its server sets no time."""
LISTED_S_MAX = 3_600.0
LISTED_BYTES_MAX = 8 * 1024 * 1024
"""Of all lists that are stored, as they came; in memory they take several times as much."""
PINNED_BYTES_MAX = 4 * 1024 * 1024
"""Of all tools of one run as JSON."""
_log = logging.getLogger("proofbox.mcp")


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What the servers of a configuration offer.

    Attributes:
        tools: the tools.
        warnings: what was left out, and why; each ``{code, message}``.
    """

    tools: Sequence[PinnedTool]
    warnings: Sequence[dict[str, str]]


@dataclass(frozen=True, slots=True)
class _StoredList:
    listing: ToolListing
    until: float


class McpSources:
    """The tools of MCP servers.

    Args:
        client: asks servers.
        environment: the operator's secrets.
        clock: the time in seconds, from any beginning.
    """

    def __init__(
        self, client: McpClient, environment: Environment, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._environment = environment
        self._clock = clock
        self._stored: OrderedDict[str, _StoredList] = OrderedDict()
        self._asked: dict[str, asyncio.Task[ToolListing]] = {}

    async def offer(self, servers: Sequence[McpServer], project: str, taken: Sequence[str]) -> OfferedTools:
        """Ask the servers of a configuration for their tools, and choose those that the agent gets.

        Args:
            servers: the servers.
            project: ``tenant/project``, for which secrets are resolved.
            taken: the ids and names that other tools of the agent have; the others keep them.

        Raises:
            McpUnavailableError: a server that is ``required`` does not answer.
        """
        found = await asyncio.gather(*(self._select(server, project, taken) for server in servers))
        tools = [tool for selection in found for tool in selection.tools]
        warnings = [warning for selection in found for warning in selection.warnings]
        return _bounded(tools, warnings)

    async def _select(self, server: McpServer, project: str, taken: Sequence[str]) -> Selection:
        if server.allowed_tools == [] and not server.required:
            return Selection()
        redactor = Redactor()
        try:
            reached, redactor = reach_server(server, self._environment, project)
            listing = await self._list(reached, project)
        except McpFailedError as exc:
            message = f"{server.name}: {shown_reason(exc.message, redactor)}"
            _log.warning("mcp server is not available", extra={"server": server.name, "reason": message})
            if server.required:
                raise McpUnavailableError(f"the agent requires the MCP server {message}") from exc
            selection = Selection()
            selection.warn(WarningCode.MCP_UNAVAILABLE, f"{message}; the run has none of its tools")
            return selection
        return await asyncio.to_thread(_choose, server, listing.tools, redactor, frozenset(taken))

    async def _list(self, reached: ReachedServer, project: str) -> ToolListing:
        """The tools of a server; those who ask at the same time share one request.

        Raises:
            McpFailedError: it does not answer.
        """
        key = _key_of(reached, project)
        stored = self._stored.get(key)
        if stored is not None and stored.until > self._clock():
            self._stored.move_to_end(key)
            return stored.listing
        asking = self._asked.get(key)
        if asking is None:
            asking = self._asked[key] = asyncio.create_task(self._ask(key, reached))
            asking.add_done_callback(partial(self._forget, key))
        return await asyncio.shield(asking)  # one that hangs up leaves the others their list

    async def _ask(self, key: str, reached: ReachedServer) -> ToolListing:
        listing = await self._client.list_tools(reached)
        ttl_s = LISTED_S if listing.ttl_s is None else min(listing.ttl_s, LISTED_S_MAX)
        self._stored.pop(key, None)
        if ttl_s > 0 and listing.size_bytes <= LISTED_BYTES_MAX:
            self._stored[key] = _StoredList(listing, self._clock() + ttl_s)
        while sum(stored.listing.size_bytes for stored in self._stored.values()) > LISTED_BYTES_MAX:
            self._stored.popitem(last=False)
        return listing

    def _forget(self, key: str, asked: asyncio.Task[ToolListing]) -> None:
        self._asked.pop(key, None)
        if not asked.cancelled():
            asked.exception()  # seen, also if all who asked have hung up


def _key_of(reached: ReachedServer, project: str) -> str:
    """What a list is stored under: secrets may decide what it lists, and a project gets its own only."""
    parts = [project, reached.url, reached.transport, [list(header) for header in reached.headers]]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _choose(
    server: McpServer, listed: Sequence[ServerTool], redactor: Redactor, taken: frozenset[str]
) -> Selection:
    clean = [_redacted(tool, redactor) for tool in listed if redactor.redact_text(tool.name) == tool.name]
    return select_tools(server, clean, taken)


def _redacted(tool: ServerTool, redactor: Redactor) -> ServerTool:
    return replace(
        tool,
        description=redactor.redact_text(tool.description),
        input_schema=redactor.redact_json(tool.input_schema),
        output_schema=redactor.redact_json(tool.output_schema),
        annotations=redactor.redact_json(tool.annotations),
    )


def _bounded(tools: Sequence[PinnedTool], warnings: list[dict[str, str]]) -> OfferedTools:
    """The tools that a run has room for, the first ones first."""
    fitting, size = [], 0
    for tool in tools:
        size += len(json.dumps(tool.to_json()))
        if size > PINNED_BYTES_MAX:
            message = f"the definitions of all tools are too large (limit {PINNED_BYTES_MAX:,} bytes)"
            code = WarningCode.MCP_SCHEMA_REFUSED.value
            warnings.append({"code": code, "message": f"{tool.server}.{tool.name}: {message}"})
            break
        fitting.append(tool)
    return OfferedTools(fitting, warnings)
