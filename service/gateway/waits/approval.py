"""Approval: a person agrees before a tool runs."""

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.audit.audit_record import canonical_json, sha256_of
from proofbox.service.calls.suspension import CallResponse, CallRun, Suspension, WaitOutcome
from proofbox.service.gateway.posting import WaitCard
from proofbox.service.gateway.tool_call import GatewayCall
from proofbox.service.gateway.waits.answers import APPROVAL_SCHEMA, expiry, new_wait_id
from proofbox.service.gateway.waits.policy import WaitPolicy, fail_expired, fail_without_space, restore, spec_of
from proofbox.service.gateway.waits.port import OpenWait

KIND = "approval"
TIMEOUT_MS = 600_000
"""How long an approval may take."""


def needs_approval(call: GatewayCall) -> bool:
    """Whether a person has to approve a call before it runs."""
    return call.tool.needs_approval and not call.was_approved


def ask_for_approval(call: GatewayCall, policy: WaitPolicy) -> ToolCallResponse | Suspension:
    """Lets a call wait for a yes; its card shows the tool and its input, also of a hidden tool."""
    if call.posting.space_id is None:
        return fail_without_space(call)
    wait_id, expires = new_wait_id(), expiry(policy.seconds(TIMEOUT_MS))
    opened = OpenWait(
        wait_id,
        KIND,
        call.recorded,
        call.posting,
        expires,
        WaitCard(wait_id, expires, KIND, APPROVAL_SCHEMA),
        spec_of(call, answer_by="humans", result_schema=APPROVAL_SCHEMA, approved_sha256=_sha256(call)),
        policy.lease_s,
    )
    return Suspension([opened], call.fail)


def decide(call: GatewayCall, outcome: WaitOutcome, run: CallRun) -> CallResponse | CallRun:
    """Takes the answer to `ask_for_approval`.

    Args:
        call: the call, prepared again.
        outcome: how the wait ended.
        run: runs the call once it is approved.

    Returns:
        ``run``, if it was approved; else the response.
    """
    restore(call, outcome)
    if outcome.how == "error":
        return call.fail(GatewayCode.USER_ERROR, str(outcome.value))
    if outcome.how == "cancelled":
        return call.fail(GatewayCode.USER_CANCELLED, "the person who was asked gave no answer on purpose")
    if outcome.how == "expired":
        return fail_expired(call, "nobody approved the call in time, and it did not run")
    if not outcome.value["approved"]:
        reason = outcome.value.get("reason") or ""
        why = f": {reason}" if reason else ""
        return call.fail(GatewayCode.DENIED, f"a person denied the call, and it did not run{why}", reason=reason)
    if outcome.spec.get("approved_sha256") != _sha256(call):
        return call.fail(
            GatewayCode.TOOL_INTERRUPTED, "the tool is not the one that was approved any more; call it again"
        )
    call.was_approved = True
    return run


def _sha256(call: GatewayCall) -> str:
    """The hash of what is approved: the pinned definition of the tool, and the parameters."""
    configuration = call.tool.configuration
    definition = None if configuration is None else configuration.model_dump(mode="json")
    request, mcp = call.request, call.tool.mcp
    pinned = [] if mcp is None else [mcp.tool.sha256, mcp.server.model_dump(mode="json")]
    return sha256_of(canonical_json([call.tool.tool_id, definition, request.params, request.code, *pinned]))
