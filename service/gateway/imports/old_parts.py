"""The parts of a configuration of version 1 beside its tools: agent, model and MCP servers."""

import re
from typing import Any

from proofbox.service.gateway.imports.notes import PartNotes, drop_keys
from proofbox.service.gateway.imports.old_templates import convert_secrets

_OPERATOR = "a sub-agent uses the operator's endpoint of the name in model.provider"
_NO_HANDLE = re.compile(r"[^A-Za-z0-9_-]+")
_NO_SERVER_NAME = re.compile(r"[^a-z0-9-]+")
_HANDLE_CHARACTERS_MAX = 64
_SERVER_CHARACTERS_MAX = 31
_SERVER_KEYS = frozenset({"name", "url", "transport", "headers", "allowedTools", "timeout"})
_CREDENTIAL = re.compile(r"authorization|api-?key|token|secret|password|credential", re.IGNORECASE)


def handle_for(name: str) -> str:
    """The handle that is nearest to a name; empty if there is none."""
    handle = _NO_HANDLE.sub("-", name).strip("-_")
    if handle and not handle[0].isalpha():
        handle = f"agent-{handle}"
    return handle[:_HANDLE_CHARACTERS_MAX]


def convert_model(model: Any, notes: PartNotes) -> Any:
    """A model without the credentials and addresses that version 1 lets stand in it."""
    if not isinstance(model, dict):
        return model
    for key in ("apiKey", "baseURL"):
        if key in model:
            notes.change(f"model.{key} is dropped: {_OPERATOR}")
    return {key: value for key, value in model.items() if key not in ("apiKey", "baseURL")}


def convert_servers(mcp: Any) -> tuple[dict[str, Any], list[PartNotes]]:
    """MCP servers, with the notes on each."""
    listed = mcp.get("servers") if isinstance(mcp, dict) else None
    servers, all_notes = [], []
    for number, given in enumerate(listed if isinstance(listed, list) else []):
        notes = PartNotes(None, f"mcp.servers[{number}]", f"mcp.servers[{number}]")
        if isinstance(given, dict):
            servers.append(_convert_server(given, notes))
        else:
            servers.append({})
            notes.doubt("it is not an object; correct it")
        all_notes.append(notes)
    return {"servers": servers}, all_notes


def _convert_server(given: dict[str, Any], notes: PartNotes) -> dict[str, Any]:
    drop_keys(given, _SERVER_KEYS, {}, notes)
    made = {key: value for key, value in given.items() if key in _SERVER_KEYS and value is not None}
    name = str(given.get("name") or "")
    made["name"] = _NO_SERVER_NAME.sub("-", name.lower()).strip("-")[:_SERVER_CHARACTERS_MAX]
    if made["name"] != name:
        notes.change(f"its name {name[:64]!r} is {made['name']!r}, the prefix of its tools")
    if "transport" not in made:
        made["transport"] = "http"
        notes.change("transport is http")
    elif made["transport"] not in ("http", "sse"):
        notes.doubt(
            f"transport {str(made['transport'])[:64]!r} is not http or sse; nothing is started beside the service"
        )
    if isinstance(made.get("url"), str):
        made["url"] = convert_secrets(made["url"])
    if isinstance(made.get("headers"), dict):
        made["headers"] = {key: _convert_header(key, value, notes) for key, value in made["headers"].items()}
    return made


def _convert_header(name: str, value: Any, notes: PartNotes) -> Any:
    if not isinstance(value, str):
        return value
    converted = convert_secrets(value)
    if converted != value:
        notes.change(f"headers.{name[:64]}: ${{X}} is ${{env.X}}")
    elif value and "${env." not in value and _CREDENTIAL.search(name):
        notes.doubt(f"headers.{name[:64]} looks like a literal credential; use ${{env.X}}")
    return converted
