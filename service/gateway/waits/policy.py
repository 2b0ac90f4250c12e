"""The limits of waits, and the parts that all waiting tools share."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.suspension import KEY_OF_WAIT, CallResponse, WaitOutcome
from proofbox.service.gateway.posting import Posting
from proofbox.service.gateway.tool_call import Effected, GatewayCall

Succeed = Callable[[GatewayCall, Any], Awaitable[CallResponse]]
"""Builds the response of a call from its result, and stores a result that is too large for a block."""


@dataclass(frozen=True, slots=True)
class WaitPolicy:
    """The operator's decisions about waits.

    Attributes:
        wait_s_max: how long a call may wait.
        lease_s: how long the holder of a run has to go on after its last wait.
        succeed: builds the response of a call that was answered.
    """

    wait_s_max: float
    lease_s: float
    succeed: Succeed

    def seconds(self, timeout_ms: float) -> float:
        """A timeout of a configuration in seconds, within the operator's limit."""
        return min(timeout_ms / 1000, self.wait_s_max)


def spec_of(call: GatewayCall, *, answer_by: str | Sequence[str], **more: Any) -> dict[str, Any]:
    """What a wait stores for its end.

    Args:
        call: the call.
        answer_by: who may answer: ``humans``, ``members`` or entity ids.
        more: further fields.
    """
    entities = [] if isinstance(answer_by, str) else [{"entity_id": name} for name in answer_by]
    return {
        "tool_call_id": call.tool_call_id,
        "name": call.tool.name,
        "answer_by": answer_by if isinstance(answer_by, str) else list(answer_by),
        "waiting_for": entities,
        "effects": [effect.to_json() for effect in call.effects],
        KEY_OF_WAIT: call.principal.key_id,
        **more,
    }


def restore(call: GatewayCall, outcome: WaitOutcome) -> None:
    """Gives a call that was prepared again what it had when it began to wait, and who ended the wait."""
    call.answered_by = outcome.answered_by
    restore_place(call, outcome.spec)


def restore_place(call: GatewayCall, spec: dict[str, Any]) -> None:
    """Gives a call that was prepared again its place and its effects, as its wait stored them."""
    call.posting = Posting.from_json(spec["posting"])
    call.effects = [Effected.from_json(effect) for effect in spec.get("effects", [])]


def fail_without_space(call: GatewayCall) -> ToolCallResponse:
    """The response of a call that nobody could answer."""
    return call.fail(
        GatewayCode.NO_ACTIVE_SPACE,
        "the run has no active space where somebody could answer; call enter_space first",
    )


def fail_expired(call: GatewayCall, why: str) -> ToolCallResponse:
    """The response of a call that was not answered in time."""
    return call.fail(GatewayCode.WAIT_EXPIRED, f"{why}; go on without the answer, or ask again")
