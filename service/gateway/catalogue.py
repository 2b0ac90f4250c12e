"""The tools of a run: configured ones, built-ins and the service's own, by the names that a call may give."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from proofbox.contracts.function_names import function_name, function_parameters
from proofbox.contracts.gateway.catalogue import RunTool as ListedTool
from proofbox.contracts.gateway.catalogue import ToolDisplay
from proofbox.contracts.gateway.configuration import AgentConfiguration, McpServer, ToolConfiguration
from proofbox.contracts.gateway.executions import OwnToolExecution
from proofbox.contracts.gateway.names import CONFIGURED_PREFIX
from proofbox.contracts.react_tools import TOOL_ALIASES
from proofbox.contracts.tools import Tool
from proofbox.service.gateway.agents.input_schemas import default_input_schema
from proofbox.service.gateway.bounded_cache import BoundedCache
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.mcp.pinned_tool import McpBinding, PinnedTool
from proofbox.service.gateway.runs_port import StoredRun
from proofbox.service.gateway.tool_call import RunTool
from proofbox.service.identity import Principal

_CACHED_MAX = 256
_CACHED_RUNS_MAX = 64
CACHED_BYTES_MAX = 8 * 1024 * 1024
"""Of all definitions as JSON, of versions and of runs each; in memory they take about six times as much."""


class Configurations(Protocol):
    """The versions of agents; a version never changes."""

    async def find_version(self, principal: Principal, agent_id: str, version: int | None) -> AgentConfiguration:
        """A version of an agent's configuration; None: the current one.

        Raises:
            UnknownAgentError: there is no such agent or version.
        """


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of one version of an agent.

    Attributes:
        tools: all of them, in the order of the catalogue.
        by_name: the same, by their ids and their names for the model.
        servers: the MCP servers whose tools come on top when a run begins.
    """

    tools: Sequence[RunTool]
    by_name: Mapping[str, RunTool] = field(default_factory=dict)
    servers: Sequence[McpServer] = ()

    @classmethod
    def of(cls, tools: Sequence[RunTool], servers: Sequence[McpServer] = ()) -> "ToolSet":
        """The set of some tools; an earlier one keeps its name."""
        by_name: dict[str, RunTool] = {}
        for tool in tools:
            for name in (tool.tool_id, tool.name):
                by_name.setdefault(name, tool)
        for alias, tool_id in TOOL_ALIASES.items():
            if tool_id in by_name:
                by_name.setdefault(alias, by_name[tool_id])
                by_name.setdefault(function_name(alias), by_name[tool_id])
        return cls(tools, by_name, servers)

    def find(self, name: str) -> RunTool | None:
        """The tool of an id or name; None if there is none."""
        return self.by_name.get(name)


class RunPins(Protocol):
    """What is pinned to runs; `RunStore` has it."""

    async def tools_of(self, run_id: str) -> Sequence[PinnedTool] | None:
        """The tools of MCP servers that are pinned to a run; None until it has begun, or without servers."""


class ToolCatalogue:
    """The tools of agents.

    Args:
        configurations: the versions of agents.
        built_ins: the tools that every run has.
        own_tools: the tools of the service in any image.
        pins: what is pinned to runs.
    """

    def __init__(
        self,
        configurations: Configurations,
        built_ins: Sequence[BuiltIn],
        own_tools: Sequence[Tool],
        pins: RunPins,
    ) -> None:
        self._configurations = configurations
        self._pins = pins
        self._of_runs = BoundedCache[str, ToolSet](_CACHED_RUNS_MAX, CACHED_BYTES_MAX)
        self._built_ins = built_ins
        self._own_tools = {tool.tool_id: own_run_tool(tool) for tool in own_tools}
        self._cached = BoundedCache[tuple[str, str, str, int], ToolSet](_CACHED_MAX, CACHED_BYTES_MAX)

    async def tools_of(self, principal: Principal, agent_id: str, version: int | None) -> ToolSet:
        """The tools of an agent's version; None: the current one.

        Raises:
            UnknownAgentError: there is no such agent or version.
        """
        if version is None:
            return self._build(await self._configurations.find_version(principal, agent_id, None))
        key = (principal.tenant, principal.project, agent_id, version)
        if (cached := self._cached.find(key)) is not None:
            return cached
        configuration = await self._configurations.find_version(principal, agent_id, version)
        tools = self._build(configuration)
        size_bytes = await asyncio.to_thread(lambda: len(configuration.model_dump_json()))
        self._cached.add(key, tools, size_bytes)
        return tools

    async def tools_of_run(self, principal: Principal, run: StoredRun) -> ToolSet:
        """The tools of a run: those of its agent's version, and those of MCP servers that are pinned to it.

        Raises:
            UnknownAgentError: there is no such agent or version.
        """
        tools = await self.tools_of(principal, run.agent_id, run.agent_version)
        if not tools.servers:
            return tools
        if (cached := self._of_runs.find(run.run_id)) is not None:
            return cached
        pinned = await self._pins.tools_of(run.run_id)
        if pinned is None:
            return tools
        found = with_servers(tools, pinned)
        self._of_runs.add(run.run_id, found, await asyncio.to_thread(_size_bytes, pinned))
        return found

    def _build(self, configuration: AgentConfiguration) -> ToolSet:
        own = self._own_tools
        configured = [configured_run_tool(tool, own) for tool in configuration.tools]
        tools = [*configured, *(built_in.tool for built_in in self._built_ins), *own.values()]
        return ToolSet.of(tools, () if configuration.mcp is None else configuration.mcp.servers)


def _size_bytes(pinned: Sequence[PinnedTool]) -> int:
    """The size of definitions as JSON, without their names."""
    parts = ([tool.description, tool.input_schema, tool.output_schema, tool.annotations] for tool in pinned)
    return sum(len(compact_json(part)) for part in parts)


def with_servers(tools: ToolSet, pinned: Sequence[PinnedTool]) -> ToolSet:
    """The tools of a version with those of its MCP servers, behind the configured ones."""
    servers = {server.name: server for server in tools.servers}
    found = [mcp_run_tool(McpBinding(servers[tool.server], tool)) for tool in pinned if tool.server in servers]
    configured = [tool for tool in tools.tools if tool.source == "configured"]
    others = [tool for tool in tools.tools if tool.source != "configured"]
    return ToolSet.of([*configured, *found, *others], tools.servers)


def mcp_run_tool(binding: McpBinding) -> RunTool:
    """A tool of an MCP server as a tool of a run; hidden, unless its configuration shows it."""
    tool = binding.tool
    return RunTool(
        tool_id=tool.tool_id,
        name=tool.name,
        source="mcp",
        description=tool.description,
        input_schema=tool.input_schema,
        execution_type="gateway",
        visibility=binding.server.visibility.get(tool.remote_name, "hidden"),
        mcp=binding,
    )


def own_run_tool(tool: Tool) -> RunTool:
    """A tool of the service as a tool of a run: it can be called in every run, and is hidden."""
    return RunTool(
        tool_id=tool.tool_id,
        name=function_name(tool.tool_id),
        source="own",
        description=tool.description,
        input_schema=tool.params_schema,
        execution_type="gateway",
        visibility="hidden",
        own_tool_id=tool.tool_id,
        takes_code=tool.takes_code,
    )


def configured_run_tool(tool: ToolConfiguration, own: Mapping[str, RunTool]) -> RunTool:
    """A configured tool as a tool of a run."""
    execution = tool.execution
    own_id = execution.tool if isinstance(execution, OwnToolExecution) else None
    inner = None if own_id is None else own.get(own_id)
    default = default_input_schema(execution, None if inner is None else inner.input_schema)
    has_code = isinstance(execution, OwnToolExecution) and execution.code is not None
    return RunTool(
        tool_id=CONFIGURED_PREFIX + tool.name,
        name=tool.name,
        source="configured",
        description=tool.description or (inner.description if inner is not None else ""),
        input_schema=default if tool.input_schema is None else tool.input_schema,
        execution_type=tool.execution_type,
        visibility=tool.effective_visibility,
        configuration=tool,
        own_tool_id=own_id,
        takes_code=inner is not None and inner.takes_code and not has_code,
    )


def in_image(tools: Sequence[RunTool], listed: Sequence[Tool]) -> list[RunTool]:
    """The tools of a run with those of the service as a sandbox image has them; what it cannot run is left out."""
    known = {tool.tool_id: tool for tool in listed}
    return [
        own_run_tool(known[tool.tool_id]) if tool.source == "own" else tool
        for tool in tools
        if tool.source != "own" or tool.tool_id in known
    ]


def listed_tool(tool: RunTool) -> ListedTool:
    """A tool as the catalogue lists it."""
    shown = tool.shown
    return ListedTool(
        tool_id=tool.tool_id,
        description=tool.description,
        params_schema=tool.input_schema,
        takes_code=tool.takes_code,
        name=tool.name,
        source=tool.source,
        execution_type=tool.execution_type,
        visibility=tool.visibility,
        display=ToolDisplay(
            custom_ui=shown.custom_ui, show_input=shown.shows_input, show_output=shown.shows_output
        ),
        annotations={} if tool.mcp is None else tool.mcp.tool.annotations,
        result_schema=shown.result_schema,
        pin=None if tool.mcp is None else tool.mcp.tool.sha256,
    )


def openai_tool(tool: RunTool) -> dict[str, Any]:
    """A tool as an entry of ``tools`` of OpenAI's Chat Completions API and of those that are compatible with it."""
    parameters = function_parameters(listed_tool(tool))
    function = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": function}


def anthropic_run_tool(tool: RunTool) -> dict[str, Any]:
    """A tool as an entry of ``tools`` of Anthropic's Messages API."""
    parameters = function_parameters(listed_tool(tool))
    return {"name": tool.name, "description": tool.description, "input_schema": parameters}
