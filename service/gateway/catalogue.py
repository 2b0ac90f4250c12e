"""The tools of a run: configured ones, built-ins and the service's own, by the names that a call may give."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from proofbox.contracts.function_names import function_name, function_parameters
from proofbox.contracts.gateway.catalogue import RunTool as ListedTool
from proofbox.contracts.gateway.catalogue import ToolDisplay
from proofbox.contracts.gateway.configuration import AgentConfiguration, ToolConfiguration
from proofbox.contracts.gateway.executions import OwnToolExecution
from proofbox.contracts.gateway.names import CONFIGURED_PREFIX
from proofbox.contracts.react_tools import TOOL_ALIASES
from proofbox.contracts.tools import Tool
from proofbox.service.gateway.agents.input_schemas import ANY_OBJECT, default_input_schema
from proofbox.service.gateway.built_ins.built_in import BuiltIn
from proofbox.service.gateway.tool_call import RunTool
from proofbox.service.identity import Principal

_CACHED_MAX = 256


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
    """

    tools: Sequence[RunTool]
    by_name: Mapping[str, RunTool] = field(default_factory=dict)

    @classmethod
    def of(cls, tools: Sequence[RunTool]) -> "ToolSet":
        """The set of some tools; an earlier one keeps its name."""
        by_name: dict[str, RunTool] = {}
        for tool in tools:
            for name in (tool.tool_id, tool.name):
                by_name.setdefault(name, tool)
        for alias, tool_id in TOOL_ALIASES.items():
            if tool_id in by_name:
                by_name.setdefault(alias, by_name[tool_id])
                by_name.setdefault(function_name(alias), by_name[tool_id])
        return cls(tools, by_name)

    def find(self, name: str) -> RunTool | None:
        """The tool of an id or name; None if there is none."""
        return self.by_name.get(name)


class ToolCatalogue:
    """The tools of agents.

    Args:
        configurations: the versions of agents.
        built_ins: the tools that every run has.
        own_tools: the tools of the service in any image.
    """

    def __init__(
        self,
        configurations: Configurations,
        built_ins: Sequence[BuiltIn],
        own_tools: Sequence[Tool],
    ) -> None:
        self._configurations = configurations
        self._built_ins = built_ins
        self._own_tools = {tool.tool_id: own_run_tool(tool) for tool in own_tools}
        self._cached: OrderedDict[tuple[str, str, str, int], ToolSet] = OrderedDict()

    async def tools_of(self, principal: Principal, agent_id: str, version: int | None) -> ToolSet:
        """The tools of an agent's version; None: the current one.

        Raises:
            UnknownAgentError: there is no such agent or version.
        """
        if version is None:
            return self._build(await self._configurations.find_version(principal, agent_id, None))
        key = (principal.tenant, principal.project, agent_id, version)
        if key not in self._cached:
            configuration = await self._configurations.find_version(principal, agent_id, version)
            self._cached[key] = self._build(configuration)
            while len(self._cached) > _CACHED_MAX:
                self._cached.popitem(last=False)
        self._cached.move_to_end(key)
        return self._cached[key]

    def _build(self, configuration: AgentConfiguration) -> ToolSet:
        own = self._own_tools
        configured = [configured_run_tool(tool, own) for tool in configuration.tools]
        return ToolSet.of([*configured, *(built_in.tool for built_in in self._built_ins), *own.values()])


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
    default, inner, takes_code = ANY_OBJECT, None, False
    if not isinstance(execution, OwnToolExecution):
        default = default_input_schema(execution)
    if isinstance(execution, OwnToolExecution) and (inner := own.get(execution.tool)) is not None:
        default = inner.input_schema if execution.params is None else ANY_OBJECT
        takes_code = inner.takes_code and execution.code is None
    return RunTool(
        tool_id=CONFIGURED_PREFIX + tool.name,
        name=tool.name,
        source="configured",
        description=tool.description or (inner.description if inner is not None else ""),
        input_schema=default if tool.input_schema is None else tool.input_schema,
        execution_type=tool.execution_type,
        visibility=tool.effective_visibility,
        configuration=tool,
        own_tool_id=execution.tool if isinstance(execution, OwnToolExecution) else None,
        takes_code=takes_code,
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
        result_schema=shown.result_schema,
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
