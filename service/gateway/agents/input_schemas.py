"""The schema of a configured tool's input, and whether it can have the value of a placeholder."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from proofbox.contracts.gateway.configuration import ToolConfiguration
from proofbox.contracts.gateway.executions import (
    ComputeExecution,
    ImageExecution,
    OwnToolExecution,
    SubAgentExecution,
)
from proofbox.contracts.react_tools import TOOL_ALIASES
from proofbox.contracts.tools import IN_EVERY_IMAGE, Language, Tool, catalogue, exec_tool_id
from proofbox.service.gateway.compute.expression import is_own_expression
from proofbox.service.gateway.compute.program import FUNCTIONS
from proofbox.service.gateway.schema_walk import References
from proofbox.service.gateway.templates import TemplateError

ANY_OBJECT: dict[str, Any] = {"type": "object"}
"""The schema of an input that is not described."""
PROMPT: dict[str, Any] = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "minLength": 1}},
    "required": ["prompt"],
    "additionalProperties": False,
}
"""The schema of the input of a picture or sub-agent that is not described."""
EXPRESSION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "expression": {
            "type": "string",
            "minLength": 1,
            "maxLength": 20_000,
            "description": "A Python expression. It can name the other fields of the input, input, the module math "
            f"and {', '.join(FUNCTIONS)}",
        }
    },
    "required": ["expression"],
}
"""The schema of the input of a computation whose expression the model writes."""
_CODE = {"type": "string", "description": "The whole program, or the path of one (fi:…)"}
_DEPTH_MAX = 64
_STEPS_MAX = 10_000


@cache
def own_tools() -> dict[str, Tool]:
    """The tools of this service by their ids and aliases; a language needs an image that has it."""
    tools = {tool.tool_id: tool for tool in catalogue()}
    python = tools[exec_tool_id(Language.PYTHON)]
    for language in Language:
        if language not in IN_EVERY_IMAGE:
            tool_id = exec_tool_id(language)
            tools[tool_id] = python.model_copy(update={"tool_id": tool_id})
    return tools | {alias: tools[tool_id] for alias, tool_id in TOOL_ALIASES.items() if tool_id in tools}


def input_schema_of(tool: ToolConfiguration) -> dict[str, Any]:
    """The JSON Schema of a tool's input: as configured, or the default of its variant."""
    return tool.input_schema if tool.input_schema is not None else written_input_schema(tool.execution)


def default_input_schema(execution: Any, own_schema: dict[str, Any] | None) -> dict[str, Any]:
    """The JSON Schema of the input of a tool that has none of its own; without the program of one that takes code.

    Args:
        execution: its variant of ``execution``.
        own_schema: of a tool that runs one of this service: the schema of that one; None for others.
    """
    if isinstance(execution, ImageExecution | SubAgentExecution):
        return PROMPT
    if isinstance(execution, ComputeExecution) and _is_own(execution):
        return EXPRESSION
    if isinstance(execution, OwnToolExecution) and own_schema is not None and execution.params is None:
        return own_schema
    return ANY_OBJECT


def written_input_schema(execution: Any) -> dict[str, Any]:
    """The same as a model writes the input: with the property ``code`` of a tool that takes a program."""
    own = own_tools().get(execution.tool) if isinstance(execution, OwnToolExecution) else None
    schema = default_input_schema(execution, None if own is None else own.params_schema)
    if own is None or not own.takes_code or execution.code is not None or execution.params is not None:
        return schema
    return {
        **schema,
        "properties": {"code": _CODE, **schema.get("properties", {})},
        "required": ["code", *schema.get("required", [])],
    }


def _is_own(execution: ComputeExecution) -> bool:
    try:
        return is_own_expression(execution.expression)
    except TemplateError:  # refused where templates are checked
        return False


class InputPaths:
    """Whether a value that fits a schema may have something at a path.

    A schema that is met again for the same rest of a path is not walked again: while it is still being walked, it
    excludes nothing. So neither references in a circle nor many ways to one schema multiply the work. All paths
    together are walked for 10,000 steps; after these the schema excludes nothing.

    Args:
        schema: any JSON Schema.
    """

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._references = References(schema)
        self._steps = 0
        self._answers: dict[tuple[str | int, ...], bool] = {}
        self._known: dict[tuple[int, int], bool] = {}

    def can_have(self, path: Sequence[str | int]) -> bool:
        """Whether it may; False only where the schema excludes it.

        That is a key of a closed object, a step into a value of another type, a schema that nothing fits.
        """
        asked = tuple(path)
        if asked not in self._answers:
            if self._steps >= _STEPS_MAX:
                return True
            self._known = {}
            self._answers[asked] = self._fits(self._schema, asked, 0)
        return self._answers[asked]

    def _fits(self, schema: Any, path: tuple[str | int, ...], depth: int) -> bool:
        self._steps += 1
        if schema is False:
            return False
        if depth > _DEPTH_MAX or self._steps > _STEPS_MAX or not isinstance(schema, dict):
            return True
        key = (id(schema), len(path))
        if key not in self._known:
            self._known[key] = True
            self._known[key] = self._walk(schema, path, depth + 1)
        return self._known[key]

    def _walk(self, schema: dict[str, Any], path: tuple[str | int, ...], deeper: int) -> bool:
        if not all(self._fits(each, path, deeper) for each in self._references.targets(schema)):
            return False
        if not all(self._fits(each, path, deeper) for each in _listed(schema, "allOf")):
            return False
        for keyword in ("anyOf", "oneOf"):
            branches = _listed(schema, keyword)
            if branches and not any(self._fits(each, path, deeper) for each in branches):
                return False
        if not path:
            return True
        needed = "object" if isinstance(path[0], str) else "array"
        kinds = schema.get("type", needed)
        if needed not in ([kinds] if isinstance(kinds, str) else kinds):
            return False
        inside = _object_parts(schema, path[0]) if isinstance(path[0], str) else _array_parts(schema, path[0])
        return all(self._fits(each, path[1:], deeper) for each in inside)


def _object_parts(schema: dict[str, Any], key: str) -> list[Any]:
    """The schemas that the value of a key has to fit."""
    properties = schema.get("properties", {})
    if key in properties:
        return [properties[key]]
    if schema.get("patternProperties"):
        return []
    return [schema[keyword] for keyword in ("additionalProperties",) if keyword in schema]


def _array_parts(schema: dict[str, Any], index: int) -> list[Any]:
    """The schemas that the item at an index has to fit."""
    first = schema.get("prefixItems", [])
    if index < len(first):
        return [first[index]]
    return [schema["items"]] if "items" in schema else []


def _listed(schema: dict[str, Any], keyword: str) -> list[Any]:
    value = schema.get(keyword)
    return value if isinstance(value, list) else []
