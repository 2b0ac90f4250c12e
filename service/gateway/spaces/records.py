"""The messages of a space as JSON objects: texts, and the records of calls at each of their states."""

from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.messages import VALUE_BYTES_MAX
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.posting import (
    OPEN_STATES,
    RecordedCall,
    RecordEnding,
    RecordError,
    WaitCard,
)

Json = dict[str, Any]
"""A JSON object."""
_APPROVED = {"approved": True}


@dataclass(frozen=True, slots=True)
class Sender:
    """The entity that sends a message, as the message names it.

    Attributes:
        entity_id: its id.
        type: ``human`` or ``agent``.
        handle: its handle at that time; None if its agent was deleted.
        display_name: its name at that time.
    """

    entity_id: str
    type: str
    handle: str | None
    display_name: str

    def to_json(self) -> Json:
        """Return it as the field ``sender`` of a message."""
        return {
            "entity_id": self.entity_id,
            "type": self.type,
            "handle": self.handle,
            "display_name": self.display_name,
        }


@dataclass(frozen=True, slots=True)
class MessageHead:
    """The fields that every message has.

    Attributes:
        message_id: its id.
        space_id: its space.
        seq: its number in the space: 1, 2, 3 …
        sender: the entity that sent it.
        run_id: the run that sent it; None for a person.
        ts: when: UTC, RFC 3339, ``Z``.
        origin: trigger and space of the run, if the run began elsewhere.
    """

    message_id: str
    space_id: str
    seq: int
    sender: Sender
    run_id: str | None
    ts: str
    origin: Json | None = None

    def to_json(self, kind: str) -> Json:
        """Return the common fields of a new message."""
        return {
            "message_id": self.message_id,
            "space_id": self.space_id,
            "seq": self.seq,
            "revision": 1,
            "kind": kind,
            "sender": self.sender.to_json(),
            "run_id": self.run_id,
            "ts": self.ts,
            "updated": self.ts,
            "origin": self.origin,
            "replyable": kind == "text",
        }


def build_text(head: MessageHead, text: str, mentions: list[str], reply_to: str | None) -> Json:
    """Return a text message; ``mentions`` are the ids of entities."""
    message = head.to_json("text")
    return {**message, "text": text, "mentions": mentions, "reply_to": reply_to, "tool": None}


def build_streaming(head: MessageHead, call: RecordedCall) -> Json:
    """Return the record of a call whose input is still written."""
    return _record(head, call, "streaming", None)


def build_running(head: MessageHead, call: RecordedCall) -> Json:
    """Return the record of a call that starts, with its whole input."""
    return {**with_input(_record(head, call, "running", None), call, head.ts), "revision": 1}


def with_input(message: Json, call: RecordedCall, now: str) -> Json:
    """Return a record with the whole input of its call, in the state ``running``."""
    value, cut = _bounded(call.input, call.artifact_path) if call.tool.shows_input else (None, None)
    tool = {**message["tool"], "state": "running", "input": value}
    return _changed(message, _mark_cut(tool, "input", cut), now)


def waiting(message: Json, card: WaitCard, call: RecordedCall, now: str) -> Json:
    """Return a record whose call waits for a person; the input is shown whatever the tool's display is."""
    value, cut = _bounded(call.input, call.artifact_path)
    tool = {**message["tool"], "state": "waiting", "input": value, "expires": card.expires}
    if card.custom_ui is not None:
        tool["custom_ui"] = card.custom_ui
    if card.result_schema is not None:
        tool["result_schema"] = card.result_schema
    return _changed(message, _mark_cut(tool, "input", cut), now)


def resumed(message: Json, answered_by: str | None, now: str, *, shows_input: bool = True) -> Json:
    """Return a record whose call runs again after a wait; without the input, if the tool does not show it."""
    tool = {**message["tool"], "state": "running", "expires": None, "answered_by": answered_by}
    if not shows_input:
        tool = _without_input(tool)
    return _changed(message, tool, now)


def ended(message: Json, ending: RecordEnding, call: RecordedCall | None, now: str) -> Json:
    """Return a record whose call has ended.

    The record of a hidden tool has neither input nor output: it was shown for its approval only.
    """
    tool = {**message["tool"], "state": ending.state, "expires": None, "error": _error(ending.error)}
    tool["answered_by"] = ending.answered_by or tool["answered_by"]
    visibility, output, cut = tool["visibility"], None, None
    if visibility == "hidden":
        output = _APPROVED if ending.was_approved and ending.state in {"done", "failed"} else None
    elif ending.output is not None and (call is None or call.tool.shows_output):
        output, cut = _bounded(ending.output, ending.artifact_path)
    if visibility != "visible" or not (call is None or call.tool.shows_input):
        tool = _without_input(tool)
    elif call is not None and call.artifact_path is not None and (shown := tool["truncated"].get("input")):
        # Its start was recorded before the file was stored.
        tool = _mark_cut(tool, "input", {**shown, "artifact_path": call.artifact_path})
    tool["output"] = output
    tool = _mark_cut(tool, "output", cut)
    if call is not None:
        tool["custom_ui"], tool["result_schema"] = call.tool.custom_ui, call.tool.result_schema
    return _changed(message, tool, now)


def build_ended(head: MessageHead, call: RecordedCall, ending: RecordEnding) -> Json:
    """Return the record of a ``result-only`` call, which appears at the end and has no input."""
    record = _record(head, call, "running", None)
    return {**ended(record, ending, call, head.ts), "revision": 1}


def is_open(message: Json) -> bool:
    """Whether a message is the record of a call that has not ended."""
    return message["kind"] == "tool_call" and message["tool"]["state"] in OPEN_STATES


def end_event(message: Json) -> str:
    """Return the event of an ended record: ``tool-call.complete`` or ``tool-call.error``."""
    return "tool-call.complete" if message["tool"]["state"] == "done" else "tool-call.error"


def listed_artifacts(message: Json) -> set[str]:
    """Return the logical paths of the artifacts that a message names; only these can be read through it."""
    found = value_artifacts(message)
    if message["kind"] != "tool_call":
        return found
    open_values: list[Any] = [message["tool"].get("output")]
    while open_values:
        value = open_values.pop()
        if isinstance(value, dict):
            if isinstance(path := value.get("artifact_path"), str):
                found.add(path)
            open_values += value.values()
        elif isinstance(value, list):
            open_values += value
    return found


def value_artifacts(message: Json) -> set[str]:
    """Return the logical paths of the artifacts that have the whole input or output of a record."""
    if message["kind"] != "tool_call":
        return set()
    return {cut["artifact_path"] for cut in message["tool"]["truncated"].values() if cut["artifact_path"]}


def _record(head: MessageHead, call: RecordedCall, state: str, value: Json | None) -> Json:
    tool = call.tool
    message = head.to_json("tool_call")
    shown = {
        "name": tool.name,
        "tool_id": tool.tool_id,
        "execution_type": tool.execution_type,
        "visibility": tool.visibility,
        "custom_ui": tool.custom_ui,
        "input": value,
        "output": None,
        "error": None,
        "state": state,
        "result_schema": tool.result_schema,
        "expires": None,
        "answered_by": None,
        "tool_call_id": call.tool_call_id,
        "truncated": {},
    }
    return {**message, "text": None, "mentions": [], "reply_to": None, "tool": shown}


def _changed(message: Json, tool: Json, now: str) -> Json:
    return {**message, "tool": tool, "revision": message["revision"] + 1, "updated": now}


def _bounded(value: Any, artifact_path: str | None) -> tuple[Any, Json | None]:
    """Return a value that fits a record and None; else None and what the record has in its place."""
    size = len(compact_json(value).encode(errors="replace"))
    if size <= VALUE_BYTES_MAX:
        return value, None
    return None, {"size_bytes": size, "artifact_path": artifact_path}


def _without_input(tool: Json) -> Json:
    """Return the tool part without the input, which only a wait had shown."""
    cut = {name: value for name, value in tool["truncated"].items() if name != "input"}
    return {**tool, "input": None, "truncated": cut}


def _mark_cut(tool: Json, name: str, cut: Json | None) -> Json:
    """Return the tool part with an entry of ``truncated`` for a value that is too large."""
    return tool if cut is None else {**tool, "truncated": {**tool["truncated"], name: cut}}


def _error(error: RecordError | None) -> Json | None:
    return None if error is None else {"code": error.code, "message": error.message}
