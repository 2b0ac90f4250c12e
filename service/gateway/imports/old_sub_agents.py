"""Nested agents of version 1 as the variant *sub-agent*."""

from collections.abc import Callable
from typing import Any

from proofbox.service.gateway.imports.notes import PartNotes, drop_keys
from proofbox.service.gateway.imports.old_parts import convert_model, convert_servers, handle_for

ConvertTool = Callable[[dict[str, Any], PartNotes], dict[str, Any] | None]
INNER_PARTS_MAX = 256
"""The tools of a nested agent, and its servers; those of one with more are left out."""
_KNOWN = frozenset({"agentConfig", "includeContext", "timeout"})
_DROPPED = {"stream": "the result comes as a whole"}
_FULL = frozenset({"version", "agent", "model", "loop", "tools", "mcp"})
_NEW_NAMES = {
    "name": "name",
    "description": "description",
    "systemPrompt": "system",
    "system": "system",
    "instructions": "instructions",
}
"""The fields of an agent, as a short configuration names them and as version 2 does."""
_SHORT = frozenset(_NEW_NAMES) | {"temperature"}
_NOT_TAKEN = {"runtime": "version 2 has no runtime"}


def convert_sub_agent(execution: dict[str, Any], notes: PartNotes, convert_tool: ConvertTool) -> dict[str, Any]:
    """Convert the ``execution`` of a nested agent.

    Args:
        execution: as version 1 has it.
        notes: takes what became of it, also of its tools.
        convert_tool: converts a tool.
    """
    drop_keys(execution, _KNOWN, _DROPPED, notes)
    made: dict[str, Any] = {key: execution[key] for key in ("includeContext", "timeout") if key in execution}
    inner = execution.get("agentConfig")
    if not isinstance(inner, dict):
        notes.doubt("execution.agentConfig is missing; write the agent's configuration into the tool")
        return {"agentConfig": {}, **made}
    return {"agentConfig": _convert_agent(inner, notes, convert_tool), **made}


def _convert_agent(inner: dict[str, Any], notes: PartNotes, convert_tool: ConvertTool) -> dict[str, Any]:
    drop_keys(inner, _FULL | _SHORT, _NOT_TAKEN, notes)
    made: dict[str, Any] = {"version": "2"}
    if agent := _convert_description(inner, notes):
        made["agent"] = agent
    model = inner.get("model")
    if isinstance(model, str):
        model = {"name": model, **({"temperature": inner["temperature"]} if "temperature" in inner else {})}
    if model is not None:
        made["model"] = convert_model(model, notes)
    if inner.get("loop") is not None:
        made["loop"] = inner["loop"]
    made["tools"] = _convert_tools(inner.get("tools"), notes, convert_tool)
    listed = inner["mcp"].get("servers") if isinstance(inner.get("mcp"), dict) else None
    if isinstance(listed, list) and len(listed) > INNER_PARTS_MAX:
        notes.doubt(f"the agent has too many servers (limit {INNER_PARTS_MAX}, got {len(listed):,}); remove some")
    elif inner.get("mcp") is not None:
        made["mcp"], servers = convert_servers(inner["mcp"])
        for server in servers:
            notes.take_over(server, server.origin)
    return made


def _convert_description(inner: dict[str, Any], notes: PartNotes) -> dict[str, Any]:
    """The ``agent`` of a sub-agent, whose fields may stand beside the others in version 1."""
    short = {_NEW_NAMES[key]: inner[key] for key in _NEW_NAMES if key in inner}
    full = inner.get("agent")
    agent = short | (full if isinstance(full, dict) else {})
    drop_keys(agent, frozenset(_NEW_NAMES.values()), {}, notes)
    agent = {key: value for key, value in agent.items() if key in _NEW_NAMES.values()}
    if isinstance(agent.get("name"), str):
        agent["name"] = handle_for(agent["name"])
    return agent


def _convert_tools(tools: Any, notes: PartNotes, convert_tool: ConvertTool) -> list[dict[str, Any]]:
    made = []
    listed = tools if isinstance(tools, list) else []
    if len(listed) > INNER_PARTS_MAX:
        notes.doubt(f"the agent has too many tools (limit {INNER_PARTS_MAX}, got {len(listed):,}); remove some")
        return []
    for number, given in enumerate(listed):
        if not isinstance(given, dict):
            notes.doubt(f"tool {number + 1} of the agent is a name; write the tool's configuration")
            continue
        name = str(given.get("name"))[:64]
        inner = PartNotes(name, "basic")
        tool = convert_tool(given, inner)
        notes.take_over(inner, name)
        if tool is not None:
            made.append(tool)
    return made
