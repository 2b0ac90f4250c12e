"""Recent calls as they are listed: what their audit line, or their request, has of them."""

import json
from typing import Any

from proofbox.contracts.operations import ListedCall
from proofbox.service.calls.port import RecentCall


def list_call(call: RecentCall) -> ListedCall:
    """Build the entry of a call."""
    fields = _of_line(call.audit_line) if call.audit_line is not None else _of_request(call.request)
    return ListedCall(
        tool_call_id=call.tool_call_id,
        conversation_id=call.conversation_id,
        status=call.state.value,
        created=call.created,
        **fields,
    )


def _of_line(text: str) -> dict[str, Any]:
    line = json.loads(text)
    outcome = line["outcome"]
    return {
        "turn_id": line["call"].get("turn_id"),
        "tool_id": line["call"]["tool_id"],
        "code": outcome["code"],
        "ended": outcome["ended"],
        "files": sum(output.get("version") is not None for output in line.get("outputs", [])),
    }


def _of_request(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    request = json.loads(text)
    return {"turn_id": request.get("turn_id"), "tool_id": request.get("tool_id")}
