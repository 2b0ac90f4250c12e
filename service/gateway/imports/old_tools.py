"""Tools of version 1 as tools of version 2: one function per ``executionType``."""

import re
from collections.abc import Callable
from typing import Any

from proofbox.contracts.gateway.names import BUILT_IN_NAMES
from proofbox.service.gateway.imports.notes import PartNotes, drop_keys
from proofbox.service.gateway.imports.old_expressions import is_python, propose_python
from proofbox.service.gateway.imports.old_requests import convert_request
from proofbox.service.gateway.imports.old_sub_agents import convert_sub_agent
from proofbox.service.gateway.imports.old_templates import convert_template, escape_template, undeclared

_NO_TYPE = "basic"
_TOOL_KEYS = frozenset(
    {"name", "description", "inputSchema", "executionType", "execution", "displayTool", "display"}
)
_NOT_TAKEN = {"id": "version 2 has no ids of tools", "type": "version 2 has executionType only"}
_SIZES = {"square": "1024x1024", "landscape": "1792x1024", "portrait": "1024x1792"}
_OPERATOR = "requests go to the operator's endpoint of the name in provider"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REPLACED = {
    "sendspacemessage": "enter_space, then send_message",
    "readspacemessages": "read_messages",
    "delegatetoagent": "nothing: mention the agent in a message",
    "skipresponse": "nothing: an agent that has nothing to say sends no message",
}


def convert_tool(given: dict[str, Any], notes: PartNotes) -> dict[str, Any] | None:
    """Convert a tool of version 1.

    Args:
        given: the tool.
        notes: takes what became of it.

    Returns:
        The tool in version 2; None if it is dropped.
    """
    kind = given.get("executionType", _NO_TYPE)
    if kind == "waiting":
        notes.change("waiting is gone: send_message with wait waits for replies, and a plan runs later")
        return None
    if kind == "prebuilt":
        notes.change(f"every run has the built-in tools; in its place: {_replacement(given)}")
        return None
    notes.origin = str(kind)[:64]
    tool: dict[str, Any] = {key: given[key] for key in ("name", "description") if key in given}
    drop_keys(given, _TOOL_KEYS, _NOT_TAKEN, notes)
    if (schema := _schema(given, notes)) is not None:
        tool["inputSchema"] = schema
    convert = _CONVERTERS.get(kind) if isinstance(kind, str) else None
    if convert is None:
        notes.result = notes.origin
        notes.doubt(
            f"version 1 has no executionType {str(kind)[:64]!r}; it is basic, request or another of its types"
        )
        return {**tool, **{key: given[key] for key in ("executionType", "execution") if key in given}}
    execution = given.get("execution")
    if execution is None:
        execution = {}
    if not isinstance(execution, dict):
        notes.doubt("execution is not an object; correct it")
        execution = {}
    shown = _Shown(given, notes)
    tool |= convert(execution, schema, shown, notes)
    if shown.display:
        tool["display"] = shown.display
    return tool


class _Shown:
    """What version 1 shows of a tool.

    Attributes:
        visibility: the visibility in version 2; None: version 1 does not show it.
        is_hidden: whether it is hidden expressly.
        display: the ``display`` in version 2.
    """

    def __init__(self, given: dict[str, Any], notes: PartNotes) -> None:
        display = given.get("display")
        display = display if isinstance(display, dict) else {}
        mode = display.get("mode")
        self.display = {
            key: display[key] for key in ("customUI", "showInput", "showOutput") if display.get(key) is not None
        }
        known = frozenset({"mode", "customUI", "showInput", "showOutput"})
        for key in sorted(display.keys() - known):
            notes.change(f"display.{key[:64]} is dropped: a record has the call's data, not a text of it")
        self.visibility: str | None = {"full": "visible", "minimal": "result-only", "hidden": "hidden"}.get(
            str(mode)
        )
        if mode is not None and self.visibility is None:
            notes.doubt(f"display.mode {str(mode)[:64]!r} is not full, minimal or hidden")
        if self.visibility is None and given.get("displayTool") is True:
            self.visibility = "visible"
        self.is_hidden = self.visibility == "hidden"

    def type_and_visibility(self, notes: PartNotes) -> dict[str, Any]:
        """The fields of a tool that runs in the service."""
        if self.visibility is None:
            notes.change("version 1 shows it in no space, so it is hidden; visible shows its calls")
        return {"executionType": "gateway", "visibility": self.visibility or "hidden"}


def _convert_basic(
    execution: dict[str, Any], schema: dict[str, Any] | None, shown: _Shown, notes: PartNotes
) -> dict[str, Any]:
    mode = execution.get("mode") or "no-execution"
    notes.origin = f"basic {str(mode)[:64]}"
    drop_keys(execution, frozenset({"mode", "output", "template"}), {}, notes)
    if mode == "no-execution":
        notes.result = "space"
        if shown.visibility in ("hidden", "result-only"):
            notes.change("a space tool is always visible: somebody has to answer it")
        return {"executionType": "space"}
    if mode not in ("static", "pass-through"):
        notes.doubt(f"execution.mode {str(mode)[:64]!r} is not no-execution, static or pass-through")
    output: Any = "{{input}}"
    if mode != "pass-through":
        output = execution.get("output")
        if execution.get("template") is True:
            _note_variables([output], schema, notes)
            output = convert_template(output)
        else:
            output = escape_template(output)
    is_shown = shown.visibility in ("visible", "result-only") or (
        "customUI" in shown.display and not shown.is_hidden
    )
    kind = "gateway" if is_shown else "internal"
    notes.result = f"{kind} output"
    made: dict[str, Any] = {"executionType": kind, "execution": {"output": output}}
    if is_shown:
        made["visibility"] = shown.visibility or "visible"
    return made


def _convert_request(
    execution: dict[str, Any], schema: dict[str, Any] | None, shown: _Shown, notes: PartNotes
) -> dict[str, Any]:
    notes.result = "gateway http"
    templates = [execution.get(key) for key in ("url", "headers", "queryParams", "body")]
    _note_variables(templates, schema, notes)
    return {**shown.type_and_visibility(notes), "execution": convert_request(execution, notes)}


def _convert_ai_agent(
    execution: dict[str, Any], _schema: dict[str, Any] | None, shown: _Shown, notes: PartNotes
) -> dict[str, Any]:
    notes.result = "gateway sub-agent"
    made = convert_sub_agent(execution, notes, convert_tool)
    return {**shown.type_and_visibility(notes), "execution": made}


def _convert_image(
    execution: dict[str, Any], _schema: dict[str, Any] | None, shown: _Shown, notes: PartNotes
) -> dict[str, Any]:
    notes.result = "gateway image"
    known = frozenset({"provider", "model", "size", "quality", "style", "timeout"})
    dropped = {"apiKey": _OPERATOR, "baseURL": _OPERATOR, "includeContext": "the prompt is all that is sent"}
    drop_keys(execution, known, dropped, notes)
    made = {key: value for key, value in execution.items() if key in known and value is not None}
    if (size := _SIZES.get(str(made.get("size")))) is not None:
        notes.change(f"size {made['size']} is {size}")
        made["size"] = size
    if "provider" not in made:
        notes.doubt("execution.provider is missing; name an endpoint of the operator")
    return {**shown.type_and_visibility(notes), "execution": made}


def _convert_compute(
    execution: dict[str, Any], schema: dict[str, Any] | None, shown: _Shown, notes: PartNotes
) -> dict[str, Any]:
    kind = "internal" if shown.is_hidden else "gateway"
    notes.result = f"{kind} compute"
    drop_keys(execution, frozenset({"operation", "expression", "timeout"}), {}, notes)
    given = execution.get("expression")
    if not isinstance(given, str) or not given.strip():
        notes.doubt(
            "the expression was part of the input; now the model writes Python: say so in the description"
            if "expression" not in execution
            else "execution.expression is not a text"
        )
        given = "{{expression}}"
    expression = convert_template(given)
    if not is_python(expression):
        proposal = propose_python(expression)
        if proposal is None:
            notes.doubt(
                "execution.expression is not a Python expression, and there is no simple proposal; write it"
            )
        else:
            notes.doubt(f"execution.expression is not a Python expression; look at the proposal: {proposal[:500]}")
            expression = proposal
    _note_variables([given], schema, notes)
    made: dict[str, Any] = {"operation": "evaluate", "expression": expression}
    if "timeout" in execution:
        made["timeout"] = execution["timeout"]
    fields = {"executionType": kind} if kind == "internal" else shown.type_and_visibility(notes)
    return {**fields, "execution": made}


_Converter = Callable[[dict[str, Any], dict[str, Any] | None, _Shown, PartNotes], dict[str, Any]]
_CONVERTERS: dict[str, _Converter] = {
    "basic": _convert_basic,
    "request": _convert_request,
    "ai-agent": _convert_ai_agent,
    "image-generator": _convert_image,
    "compute": _convert_compute,
}


def _schema(given: dict[str, Any], notes: PartNotes) -> dict[str, Any] | None:
    """The input schema without the parameter that version 1 adds to tools that are shown."""
    schema = given.get("inputSchema")
    if schema is None:
        return None
    if not isinstance(schema, dict):
        notes.doubt("inputSchema is not an object; correct it")
        return None
    schema = {"type": "object", **schema}
    properties = schema.get("properties")
    if isinstance(properties, dict) and "targetSpaceId" in properties:
        notes.change("targetSpaceId is dropped: calls are shown in the active space of the run")
        schema["properties"] = {key: value for key, value in properties.items() if key != "targetSpaceId"}
        if isinstance(schema.get("required"), list):
            schema["required"] = [name for name in schema["required"] if name != "targetSpaceId"]
    return schema


def _note_variables(templates: list[Any], schema: dict[str, Any] | None, notes: PartNotes) -> None:
    properties = schema.get("properties") if schema is not None else None
    if isinstance(properties, dict) and "variables" in properties:
        notes.doubt("the object `variables` of the input is not merged any more; use {{input.variables.x}}")
    if missing := undeclared(templates, schema):
        listed = ", ".join("{{" + name + "}}" for name in missing[:5])
        notes.doubt(
            f"inputSchema has no {listed}: the object `variables` of the input is not merged any more; add the "
            "field to inputSchema, or use ${env.X} for a secret"
        )


def _replacement(given: dict[str, Any]) -> str:
    execution = given.get("execution")
    action = execution.get("action") if isinstance(execution, dict) else None
    name = str(action or given.get("name") or "")[:64]
    folded = re.sub(r"[^a-z]", "", name.lower())
    if folded in _REPLACED:
        return _REPLACED[folded]
    snake = _CAMEL.sub("_", name).replace("-", "_").lower()
    return snake if snake in BUILT_IN_NAMES else "nothing of that name"
