"""What a built-in tool is made of."""

from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.names import BUILT_IN_PREFIX
from proofbox.service.gateway.tool_call import RunTool, ToolExecution


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A tool that every run has; it is internal, hidden and not configurable.

    Attributes:
        name: its name for the model; ``space_tools.<name>`` is its id.
        description: what it does, for the model.
        input_schema: the JSON Schema of its parameters.
        execution: runs its calls, whose parameters fit the schema.
    """

    name: str
    description: str
    input_schema: dict[str, Any]
    execution: ToolExecution

    @property
    def tool(self) -> RunTool:
        """The same, as a tool of a run."""
        return RunTool(
            tool_id=BUILT_IN_PREFIX + self.name,
            name=self.name,
            source="built_in",
            description=self.description,
            input_schema=self.input_schema,
            execution_type="internal",
            visibility="hidden",
        )
