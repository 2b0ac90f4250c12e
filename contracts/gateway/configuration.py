"""The configuration of an agent: its tools and MCP servers. Keys are camelCase, times are in milliseconds."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from proofbox.contracts.gateway.executions import (
    VARIANTS_BY_TYPE,
    Display,
    Execution,
    HeaderTemplates,
    SpaceExecution,
    SubAgentExecution,
    TimeoutMs,
    UrlTemplate,
    execution_variant,
)
from proofbox.contracts.gateway.names import Handle, ToolName
from proofbox.contracts.gateway.wire import ConfigurationModel, JsonObject

CONFIGURATION_BYTES_MAX = 1024 * 1024
TOOLS_MAX = 128
SERVERS_MAX = 16
DESCRIPTION_CHARACTERS_MAX = 4_096
ExecutionType = Literal["gateway", "external", "space", "internal"]
Visibility = Literal["visible", "hidden", "result-only"]


class ToolConfiguration(ConfigurationModel):
    """One tool of an agent."""

    name: ToolName
    """Its name for the model; ``gateway_tools.<name>`` is its ``tool_id``."""
    description: Annotated[str, Field(max_length=DESCRIPTION_CHARACTERS_MAX)] = ""
    """What it does, for the model."""
    input_schema: JsonObject | None = None
    """JSON Schema (2020-12) of the input; absent: any object, or the default of the variant."""
    execution_type: ExecutionType
    """Where it runs."""
    visibility: Visibility | None = None
    """What of a call the active space shows; absent: ``hidden`` for internal tools, else ``visible``."""
    execution: Execution | None = None
    """How it runs."""
    result_schema: JsonObject | None = None
    """JSON Schema (2020-12) of the answer of a person or service; space and external tools only."""
    requires_approval: bool = False
    """Whether a person has to approve each call before it runs."""
    display: Display | None = None
    """How a space shows its calls."""

    @model_validator(mode="after")
    def _fits_its_type(self) -> Self:
        variant = None if self.execution is None else execution_variant(self.execution)
        wrong = misfits(self.execution_type, self.visibility, variant)
        if self.execution_type == "space" and self.requires_approval:
            wrong.append(("requiresApproval", "a space tool asks a person by itself; leave it out"))
        if self.result_schema is not None and self.execution_type not in ("space", "external"):
            wrong.append(("resultSchema", f"a tool of type {self.execution_type} gets no answer; leave it out"))
        if wrong:
            # pydantic puts these errors below the place of the tool.
            raise ValidationError.from_exception_data(
                "tool",
                [
                    InitErrorDetails(
                        type=PydanticCustomError("invalid_value", "{message}", {"message": message}),
                        loc=(field,),
                        input=None,
                    )
                    for field, message in wrong
                ],
            )
        return self

    @property
    def effective_visibility(self) -> Visibility:
        """The visibility, or the default of its type."""
        return self.visibility or ("hidden" if self.execution_type == "internal" else "visible")

    @property
    def effective_display(self) -> Display:
        """The display of the tool, else the one inside a space tool's ``execution``, else the default."""
        if self.display is not None:
            return self.display
        inner = self.execution.display if isinstance(self.execution, SpaceExecution) else None
        return inner or Display()


def misfits(kind: ExecutionType, visibility: Visibility | None, variant: str | None) -> list[tuple[str, str]]:
    """What of a tool does not fit its type.

    Args:
        kind: its ``executionType``.
        visibility: as configured.
        variant: that of its ``execution``; None: it has none.

    Returns:
        Fields, as a configuration spells them, with their messages.
    """
    found: list[tuple[str, str]] = []
    if kind == "space" and visibility not in (None, "visible"):
        found.append(("visibility", f"a space tool is visible, not {visibility}: nobody could answer it"))
    if kind == "internal" and visibility not in (None, "hidden"):
        found.append(("visibility", f"an internal tool is hidden, not {visibility}; make it a gateway tool"))
    if variant is None:
        if kind in ("gateway", "external"):
            needed = "webhookUrl" if kind == "external" else "url, agentConfig, provider, operation, output or tool"
            found.append(("execution", f"a tool of type {kind} needs one; give {needed}"))
    elif variant not in VARIANTS_BY_TYPE[kind]:
        allowed = ", ".join(sorted(VARIANTS_BY_TYPE[kind]))
        found.append(("execution", f"a tool of type {kind} cannot run as {variant}; its variants are {allowed}"))
    return found


class McpServer(ConfigurationModel):
    """An MCP server whose tools the agent has."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,30}$")]
    """Its name, the prefix of its tools."""
    url: UrlTemplate
    """Its endpoint."""
    transport: Literal["http", "sse"]
    """Streamable HTTP, or the older server-sent events."""
    headers: HeaderTemplates = {}
    """Headers of each request."""
    allowed_tools: Annotated[list[str], Field(max_length=256)] | None = None
    """The only tools that may be called; absent: all, up to 64."""
    required: bool = False
    """Whether a run needs the server."""
    visibility: dict[str, Visibility] = {}
    """Of its tools, by name; the others are hidden."""
    requires_approval: Annotated[list[str], Field(max_length=256)] = []
    """Its tools whose calls a person has to approve."""
    pins: dict[str, Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]] = {}
    """SHA-256 of name, description and schema of its tools; one that differs is left out."""
    elicitation: Literal["decline", "space"] = "decline"
    """What happens when the server asks for input."""
    timeout: TimeoutMs = 30_000
    """For one request."""


class McpConfiguration(ConfigurationModel):
    """The MCP servers of an agent."""

    servers: Annotated[list[McpServer], Field(max_length=SERVERS_MAX)]
    """The servers."""


class AgentDescription(ConfigurationModel):
    """Who the agent is."""

    name: Handle
    """Its handle: others mention it by ``@name``; unique in the project, case ignored."""
    description: str | None = None
    """What it is for."""
    system: str | None = None
    """The system prompt of its loop; stored and given back."""
    instructions: Any = None
    """Instructions of its loop; stored and given back."""


class SubAgentDescription(ConfigurationModel):
    """Who a sub-agent is."""

    name: Handle | None = None
    """A name."""
    description: str | None = None
    """What it is for."""
    system: str | None = None
    """Its system prompt."""
    instructions: Any = None
    """What is added to its system prompt."""


class AgentConfiguration(ConfigurationModel):
    """The configuration of an agent, version 2."""

    version: Literal["2"]
    """The version of the format."""
    agent: AgentDescription
    """Who the agent is."""
    model: JsonObject | None = None
    """The model of its loop; stored and given back."""
    loop: JsonObject | None = None
    """The bounds of its loop; stored and given back."""
    tools: Annotated[list[ToolConfiguration], Field(max_length=TOOLS_MAX)]
    """Its tools."""
    mcp: McpConfiguration | None = None
    """Its MCP servers."""


class SubAgentConfiguration(ConfigurationModel):
    """The configuration of a sub-agent; every part is optional."""

    version: Literal["2"] | None = None
    """The version of the format."""
    agent: SubAgentDescription | None = None
    """Who it is."""
    model: JsonObject | None = None
    """``provider``: an endpoint of the operator; ``name``: one of its models."""
    loop: JsonObject | None = None
    """``maxSteps``: at most 10."""
    tools: Annotated[list[ToolConfiguration], Field(max_length=TOOLS_MAX)] = []
    """Its tools: none that waits, and no sub-agent."""
    mcp: McpConfiguration | None = None
    """Its MCP servers."""


SubAgentExecution.model_rebuild(_types_namespace={"SubAgentConfiguration": SubAgentConfiguration})
ToolConfiguration.model_rebuild()
SubAgentConfiguration.model_rebuild()
AgentConfiguration.model_rebuild()
