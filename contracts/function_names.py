"""Names of tools as functions of model APIs, which allow ``^[a-zA-Z0-9_-]{1,64}$``: no dots."""

from typing import Any

from proofbox.contracts.react_tools import REACT_TOOLS, TOOL_ALIASES
from proofbox.contracts.render_tools import RENDER_TOOL_PREFIX, OutputFormat
from proofbox.contracts.tools import Language, Tool, exec_tool_id

_DOT = "__"


def function_name(tool_id: str) -> str:
    """The function name of a tool: ``exec_tools.execute_code_python`` is ``exec_tools__execute_code_python``."""
    return tool_id.replace(".", _DOT)


_TOOL_IDS = {
    function_name(tool_id): tool_id
    for tool_id in (
        *map(exec_tool_id, Language),
        *(RENDER_TOOL_PREFIX + output for output in OutputFormat),
        *REACT_TOOLS,
        *TOOL_ALIASES,
    )
}


def tool_id_of(name: str) -> str:
    """The id of the tool with that function name; any other text stays as it is."""
    return _TOOL_IDS.get(name, name)


def function_parameters(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of all arguments of a tool's function: its params, and its code first if it takes code."""
    schema = tool.params_schema
    if not tool.takes_code:
        return schema
    return {
        **schema,
        "properties": {
            "code": {"type": "string", "description": "The whole program, or the path of one (fi:…)"},
            **schema["properties"],
        },
        "required": ["code", *schema.get("required", [])],
    }


def openai_function(tool: Tool) -> dict[str, Any]:
    """An entry of ``tools`` of OpenAI's Chat Completions API and of those that are compatible with it."""
    function = {
        "name": function_name(tool.tool_id),
        "description": tool.description,
        "parameters": function_parameters(tool),
    }
    return {"type": "function", "function": function}


def anthropic_tool(tool: Tool) -> dict[str, Any]:
    """An entry of ``tools`` of Anthropic's Messages API."""
    return {
        "name": function_name(tool.tool_id),
        "description": tool.description,
        "input_schema": function_parameters(tool),
    }
