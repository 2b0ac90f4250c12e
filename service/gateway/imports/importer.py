"""The import of a configuration: a document of version 1 becomes one of version 2, and a report."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.codes import ConfigurationCode
from proofbox.contracts.gateway.imports import ImportedPart
from proofbox.contracts.problems import FieldError
from proofbox.service.gateway.agents.checker import check_configuration
from proofbox.service.gateway.environment import Environment
from proofbox.service.gateway.imports.notes import NOTES_MAX, PartNotes
from proofbox.service.gateway.imports.old_parts import convert_model, convert_servers, handle_for
from proofbox.service.gateway.imports.old_tools import convert_tool
from proofbox.service.gateway_errors import InvalidToolError

OLD_TOOLS_MAX = 256
"""The tools of a configuration of version 1, with those that are dropped."""
_ERRORS_SHOWN_MAX = 5
_OLD_AGENT = frozenset({"name", "description", "system", "instructions"})
_OLD_KEYS = frozenset({"version", "agent", "model", "loop", "tools", "mcp"})
_NO_PART = {"tools": [], "version": "2", "agent": {"name": "imported"}}


@dataclass(frozen=True, slots=True)
class ImportedConfiguration:
    """A configuration in version 2.

    Attributes:
        config: with the tools and servers that need review.
        savable: without them; it was checked.
        report: what became of each part.
    """

    config: dict[str, Any]
    savable: dict[str, Any]
    report: list[ImportedPart]


def import_configuration(document: dict[str, Any], environment: Environment, project: str) -> ImportedConfiguration:
    """Convert a configuration of version 1; one of version 2 stays as it is.

    Args:
        document: the configuration, any JSON object.
        environment: the operator's secrets.
        project: ``tenant/project``, for which they are resolved.

    Raises:
        InvalidToolError: it is of another version, or has mistakes beyond single tools and servers; ``errors``
            lists them.
    """
    version = document.get("version")
    if version == "2":
        check_configuration(document, environment, project)
        return ImportedConfiguration(document, document, [_unchanged(tool) for tool in document["tools"]])
    _refuse(document)
    check = _PartCheck(environment, project)
    config, others = _convert_others(document)
    tools, tool_notes = _convert_tools(document.get("tools") or [], check)
    config["tools"] = tools
    servers: list[PartNotes] = []
    if document.get("mcp") is not None:
        config["mcp"], servers = convert_servers(document["mcp"])
        for server, notes in zip(config["mcp"]["servers"], servers, strict=True):
            check.check_server(server, notes)
    savable = copy.copy(config)
    converted = [notes for notes in tool_notes if notes.result is not None]
    savable["tools"] = _without_doubts(tools, converted)
    if "mcp" in config:
        savable["mcp"] = {"servers": _without_doubts(config["mcp"]["servers"], servers)}
    check_configuration(savable, environment, project)
    changed = [notes for notes in [*others, *servers] if notes.changes or notes.doubts]
    return ImportedConfiguration(config, savable, [notes.report() for notes in [*tool_notes, *changed]])


class _PartCheck:
    """Checks each tool and server by itself, so that one mistake does not hide another."""

    def __init__(self, environment: Environment, project: str) -> None:
        self._environment = environment
        self._project = project
        self._names: set[str] = set()

    def check_tool(self, tool: dict[str, Any], notes: PartNotes) -> None:
        """Add the mistakes of a tool to its notes."""
        name = tool.get("name")
        if isinstance(name, str):
            if name in self._names:
                notes.doubt(f"another tool has the name {name[:64]}; choose another")
            self._names.add(name)
        self._check({**_NO_PART, "tools": [tool]}, "tools[0].", notes)

    def check_server(self, server: dict[str, Any], notes: PartNotes) -> None:
        """Add the mistakes of a server to its notes."""
        name = f"mcp {server.get('name')}"
        if name in self._names:
            notes.doubt("another server has its name; choose another")
        self._names.add(name)
        self._check({**_NO_PART, "mcp": {"servers": [server]}}, "mcp.servers[0].", notes)

    def _check(self, document: dict[str, Any], prefix: str, notes: PartNotes) -> None:
        try:
            check_configuration(document, self._environment, self._project)
        except InvalidToolError as exc:
            for error in (exc.errors or [])[:_ERRORS_SHOWN_MAX]:
                notes.doubt(f"{error.field.removeprefix(prefix)}: {error.message}")


def _convert_tools(given: Sequence[Any], check: _PartCheck) -> tuple[list[dict[str, Any]], list[PartNotes]]:
    tools, all_notes = [], []
    for old in given:
        name = old.get("name")
        notes = PartNotes(name if isinstance(name, str) else "", str(old.get("executionType", "basic"))[:64])
        tool = convert_tool(old, notes)
        if tool is not None:
            check.check_tool(tool, notes)
            tools.append(tool)
        all_notes.append(notes)
    return tools, all_notes


def _convert_others(document: dict[str, Any]) -> tuple[dict[str, Any], list[PartNotes]]:
    """The configuration without tools and servers, and the notes on its parts."""
    agent, model = document["agent"], PartNotes(None, "model", "model")
    handle = PartNotes(None, "agent", "agent")
    config: dict[str, Any] = {"version": "2", "agent": {key: agent[key] for key in agent if key in _OLD_AGENT}}
    config["agent"]["name"] = handle_for(agent["name"])
    if config["agent"]["name"] != agent["name"]:
        handle.change(f"the name {agent['name'][:64]!r} is the handle {config['agent']['name']!r}")
    for key in sorted(agent.keys() - _OLD_AGENT):
        handle.change(f"agent.{key[:64]} is dropped: version 2 has no such key")
    if document.get("model") is not None:
        config["model"] = convert_model(document["model"], model)
    if document.get("loop") is not None:
        config["loop"] = document["loop"]
    unknown = [str(key)[:64] for key in document if key not in _OLD_KEYS]
    dropped = [PartNotes(None, key) for key in unknown[:NOTES_MAX]]
    for notes in dropped:
        notes.change("version 2 has no such key")
    if len(unknown) > NOTES_MAX:
        dropped[-1].change(f"it has no {len(unknown) - NOTES_MAX:,} other keys of the document either")
    return config, [handle, model, *dropped]


def _without_doubts(parts: Sequence[dict[str, Any]], notes: Sequence[PartNotes]) -> list[dict[str, Any]]:
    return [part for part, of in zip(parts, notes, strict=True) if not of.needs_review]


def _unchanged(tool: dict[str, Any]) -> ImportedPart:
    kind = tool["executionType"]
    return ImportedPart(tool=tool["name"], from_=kind, to=kind, status="unchanged", message="")


def _refuse(document: dict[str, Any]) -> None:
    """Refuse what is not a configuration of version 1.

    Raises:
        InvalidToolError: see `import_configuration`.
    """
    errors = []

    def refuse(field: str, message: str, code: ConfigurationCode = ConfigurationCode.INVALID_VALUE) -> None:
        errors.append(FieldError(field=field, code=code, message=message))

    version = document.get("version", "1")
    is_number = isinstance(version, int | float) and not isinstance(version, bool)
    text = str(version) if is_number or isinstance(version, str) else ""
    if text != "1" and not text.startswith("1."):
        refuse("version", f'give a configuration of version "1.0" or "2" (got {str(version)[:20]!r})')
    agent, tools = document.get("agent"), document.get("tools")
    if not isinstance(agent, dict) or not isinstance(agent.get("name"), str):
        refuse("agent.name", "the agent has no name; give one")
    elif not handle_for(agent["name"]):
        refuse("agent.name", "the name has no letter or digit of a handle; give one of A-Z a-z 0-9 _ -")
    if tools is not None and (not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools)):
        refuse("tools", "it is not a list of objects; give the tools")
    elif tools is not None and len(tools) > OLD_TOOLS_MAX:
        message = f"there are too many tools (limit {OLD_TOOLS_MAX}, got {len(tools)}); remove some"
        refuse("tools", message, ConfigurationCode.TOO_LARGE)
    mcp = document.get("mcp")
    if mcp is not None and (not isinstance(mcp, dict) or not isinstance(mcp.get("servers"), list)):
        refuse("mcp.servers", "it is not a list of servers; give them, or leave out mcp")
    elif mcp is not None and len(mcp["servers"]) > OLD_TOOLS_MAX:
        message = f"there are too many servers (limit {OLD_TOOLS_MAX}, got {len(mcp['servers'])}); remove some"
        refuse("mcp.servers", message, ConfigurationCode.TOO_LARGE)
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise InvalidToolError(f"{errors[0].field}: {errors[0].message}{more}", errors=errors)
