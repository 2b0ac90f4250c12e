"""The tools of a run or agent, as the catalogue lists them."""

from typing import Any, Literal

from proofbox.contracts.gateway.configuration import ExecutionType, Visibility
from proofbox.contracts.gateway.wire import JsonObject
from proofbox.contracts.tools import Tool
from proofbox.contracts.wire_model import WireModel

ToolSource = Literal["configured", "built_in", "mcp", "own"]


class ToolDisplay(WireModel):
    """How a space shows the calls of a tool."""

    custom_ui: str
    """The component that shows them."""
    show_input: bool = True
    """Whether the record has the input."""
    show_output: bool = True
    """Whether the record has the output."""


class RunTool(Tool):
    """One tool of a run or agent."""

    name: str
    """Its name for the model; with a ``run_id`` a call may give it as ``tool_id``."""
    source: ToolSource
    """Where it comes from."""
    execution_type: ExecutionType
    """Where it runs."""
    visibility: Visibility
    """What of a call the active space shows."""
    display: ToolDisplay
    """How the active space shows it."""
    annotations: JsonObject = {}
    """Hints of an MCP server, not to be relied on."""
    pin: str | None = None
    """Of an MCP server's tool: what ``pins`` of a configuration takes."""
    result_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) of the answer of a person or service."""
