"""The status of a call, as the wire has it."""

from proofbox.contracts.gateway.waits import Wait
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse
from proofbox.service.calls.port import CallState, StoredCall

_STATUS = {
    CallState.OPEN: "running",
    CallState.WAITING: "waiting",
    CallState.DONE: "done",
    CallState.FAILED: "failed",
    CallState.CANCELLED: "cancelled",
}


def build_status(stored: StoredCall, *, is_queued: bool = False) -> CallStatus:
    """Builds the status of a stored call; ``is_queued``: it is open and has not started."""
    answer = stored.answer
    is_done = stored.state is CallState.DONE
    response = answer if is_done else stored.partial_response
    return CallStatus(
        tool_call_id=stored.key.tool_call_id,
        conversation_id=stored.key.scope.conversation_id,
        status="queued" if is_queued else _STATUS[stored.state],
        created=stored.created,
        response=ToolCallResponse.model_validate_json(response) if response else None,
        problem=Problem.model_validate_json(answer) if answer and not is_done else None,
        wait=Wait.model_validate_json(stored.wait) if stored.wait else None,
    )
