"""Which of the tools that an MCP server lists an agent gets: names, schemas, pins, descriptions."""

import hashlib
import json
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.gateway.codes import WarningCode
from proofbox.contracts.gateway.configuration import McpServer
from proofbox.contracts.gateway.names import MCP_PREFIX
from proofbox.service.gateway.mcp.pinned_tool import PinnedTool
from proofbox.service.gateway.mcp.port import ServerTool
from proofbox.service.gateway.response_body import clean_json
from proofbox.service.gateway.schema_check import SchemaRefusedError, check_schema, spell_field
from proofbox.service.visible_text import visible_line, visible_text
from proofbox.service.web.port import clean_text

TOOLS_MAX = 64
"""Tools of a server without ``allowedTools``."""
DESCRIPTION_CHARACTERS_MAX = 2_048
NAME_CHARACTERS_MAX = 64
_ID_CHARACTERS_MAX = 128
_ANNOTATIONS_BYTES_MAX = 4_096
_HASH_CHARACTERS = 6
_SHOWN_CHARACTERS = 100
_NOT_OF_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NOT_OF_ID = re.compile(r"[^A-Za-z0-9_.-]")


@dataclass(slots=True)
class Selection:
    """The tools of a server that an agent gets.

    Attributes:
        tools: them.
        warnings: what was left out, and why; each ``{code, message}``.
    """

    tools: list[PinnedTool] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)

    def warn(self, code: WarningCode, message: str) -> None:
        """Add why something was left out."""
        self.warnings.append({"code": code.value, "message": message})


def select_tools(server: McpServer, listed: Sequence[ServerTool], taken: Container[str]) -> Selection:
    """Choose the tools of a server. Compiles schemas, so it belongs into a thread.

    Args:
        server: the server as it is configured.
        listed: its tools.
        taken: the ids and names that other tools of the agent have.
    """
    selection = Selection()
    own: set[str] = set()
    allowed = server.allowed_tools
    by_name = {tool.name: tool for tool in reversed(listed)}
    if allowed is None:
        chosen = [by_name[name] for name in dict.fromkeys(tool.name for tool in listed)]
        for tool in chosen[TOOLS_MAX:]:
            message = f"it is beyond the first {TOOLS_MAX} tools; name it in allowedTools"
            selection.warn(WarningCode.MCP_TOOL_MISSING, f"{_shown(server, tool.name)}: {message}")
            break
        chosen = chosen[:TOOLS_MAX]
    else:
        chosen = [by_name[name] for name in dict.fromkeys(allowed) if name in by_name]
        for name in dict.fromkeys(allowed):
            if name not in by_name:
                message = f"{_shown(server, name)}: the server has no such tool; correct allowedTools"
                selection.warn(WarningCode.MCP_TOOL_MISSING, message)
    for tool in chosen:
        _add(selection, server, tool, taken, own)
    return selection


def _add(selection: Selection, server: McpServer, tool: ServerTool, taken: Container[str], own: set[str]) -> None:
    shown = _shown(server, tool.name)
    sha256 = pin_sha256(tool)
    if (pin := server.pins.get(tool.name)) not in (None, sha256):
        message = f"{shown}: its definition is not the pinned one (pinned {pin}, got {sha256}); review it"
        selection.warn(WarningCode.MCP_TOOL_CHANGED, message)
        return
    name, tool_id = model_name(server.name, tool.name), id_of(server.name, tool.name)
    if name in taken or tool_id in taken or name in own or tool_id in own:
        selection.warn(WarningCode.NAME_TAKEN, f"{shown}: another tool of the agent has the name {name}")
        return
    try:
        input_schema, output_schema = clean_json(tool.input_schema), clean_json(tool.output_schema)
        _check_schemas(input_schema, output_schema)
    except SchemaRefusedError as exc:
        where = spell_field("schema", exc.path)
        selection.warn(WarningCode.MCP_SCHEMA_REFUSED, f"{shown}: {where}: {exc.message}")
        return
    except ValueError as exc:
        selection.warn(WarningCode.MCP_SCHEMA_REFUSED, f"{shown}: its schema is {exc}")
        return
    own |= {name, tool_id}
    description = clean_text(tool.description)
    selection.tools.append(
        PinnedTool(
            server=server.name,
            remote_name=tool.name,
            tool_id=tool_id,
            name=name,
            description=visible_text(description)[:DESCRIPTION_CHARACTERS_MAX],
            input_schema=input_schema,
            output_schema=output_schema,
            annotations=_bounded_annotations(tool.annotations),
            sha256=sha256,
        )
    )


def _check_schemas(input_schema: dict[str, Any], output_schema: dict[str, Any] | None) -> None:
    if input_schema.get("type") != "object":
        raise SchemaRefusedError(("type",), 'an input is an object; its schema needs "type": "object"')
    check_schema(input_schema)
    if output_schema is not None:
        check_schema(output_schema)


def pin_sha256(tool: ServerTool) -> str:
    """The hash of a tool that ``pins`` compares, in hex.

    It is of the JSON ``{"description", "inputSchema", "name"}``: keys sorted, no spaces, in ASCII.
    """
    parts = {"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def model_name(server: str, tool: str) -> str:
    """The name of a server's tool for the model: ``<server>__<tool>``, at most 64 characters."""
    return _cut(_NOT_OF_NAME.sub("_", f"{server}__{tool}"), f"{server}__{tool}", NAME_CHARACTERS_MAX)


def id_of(server: str, tool: str) -> str:
    """The ``tool_id`` of a server's tool: ``mcp_tools.<server>.<tool>``."""
    whole = f"{MCP_PREFIX}{server}.{tool}"
    return _cut(_NOT_OF_ID.sub("_", whole), whole, _ID_CHARACTERS_MAX)


def _cut(name: str, whole: str, characters_max: int) -> str:
    """A name that is too long ends in the hash of the whole one, so that two of them stay apart."""
    if len(name) <= characters_max:
        return name
    digest = hashlib.sha256(whole.encode(errors="replace")).hexdigest()[:_HASH_CHARACTERS]
    return f"{name[: characters_max - _HASH_CHARACTERS - 1]}_{digest}"


def _bounded_annotations(annotations: dict[str, Any]) -> dict[str, Any]:
    """The hints of a server: booleans as they are, its title as one visible line."""
    found: dict[str, Any] = {name: value for name, value in annotations.items() if isinstance(value, bool)}
    if isinstance(title := annotations.get("title"), str):
        found["title"] = visible_line(clean_text(title))[:_SHOWN_CHARACTERS]
    return found if len(json.dumps(found)) <= _ANNOTATIONS_BYTES_MAX else {}


def _shown(server: McpServer, tool: str) -> str:
    """A tool as a warning names it."""
    return f"{server.name}.{visible_line(tool[:_SHOWN_CHARACTERS])}"
