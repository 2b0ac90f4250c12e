"""What ``send_message`` and ``send_reply`` share: a text is sent, and its call may wait for replies."""

from dataclasses import replace
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.messages import TEXT_CHARACTERS_MAX
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.port import EffectRefusedError
from proofbox.service.calls.suspension import (
    CallResponse,
    CallRun,
    RunOutcome,
    Suspension,
    WaitOutcome,
    change_response,
)
from proofbox.service.gateway.spaces.outbox import Outbox, OutgoingText, SentText
from proofbox.service.gateway.tool_call import GatewayCall, ToolExecution
from proofbox.service.gateway.waits.answers import expiry, new_wait_id
from proofbox.service.gateway.waits.policy import WaitPolicy, restore, spec_of
from proofbox.service.gateway.waits.replies import OpenReplyWait, ret_of_wait

TIMEOUT_S = 300
TIMEOUT_S_MAX = 366 * 86_400  # the operator's limit is far below, and shortens longer ones
TEXT_SCHEMA: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": TEXT_CHARACTERS_MAX,
    "description": "Markdown. @handle mentions a member of the space; code mentions nobody.",
}
WAIT_SCHEMAS: dict[str, Any] = {
    "wait": {
        "type": "boolean",
        "default": False,
        "description": "Wait for a reply of everybody who is mentioned; if nobody is, for the first one of anyone.",
    },
    "timeout_s": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": TIMEOUT_S_MAX,
        "default": TIMEOUT_S,
        "description": "How long to wait, in seconds.",
    },
}
"""The parameters of both tools."""


class SendingTool(ToolExecution):
    """Runs the calls of both tools.

    Args:
        outbox: sends texts.
        policy: the operator's limits of waits.
    """

    def __init__(self, outbox: Outbox, policy: WaitPolicy) -> None:
        self._outbox = outbox
        self._policy = policy

    async def run(self, call: GatewayCall, _observer: CallObserver) -> RunOutcome:
        """Sends the text, at once or with the wait of the call."""
        space_id = call.posting.space_id
        if space_id is None:
            return call.fail(
                GatewayCode.NO_ACTIVE_SPACE, "the run has no active space to send it to; call enter_space first"
            )
        given = call.input
        text = OutgoingText(call.run.run_id, call.tool_call_id, space_id, given["text"], given.get("reply_to"))
        if given.get("wait", False):
            return self._wait(call, text, float(given.get("timeout_s", TIMEOUT_S)))
        try:
            sent = await self._outbox.send(call.principal, text)
        except EffectRefusedError as exc:
            return call.fail(exc.code, exc.message)
        call.posting = replace(call.posting, message_id=sent.message_id)
        return await self._answer(call, sent, sent.ret)

    async def resume(self, call: GatewayCall, outcome: WaitOutcome) -> CallResponse | CallRun:
        """Adds the replies to the result."""
        restore(call, outcome)
        sent = SentText.from_json(outcome.spec["sent"])
        return await self._answer(call, sent, {**sent.ret, **ret_of_wait(outcome)})

    def _wait(self, call: GatewayCall, text: OutgoingText, timeout_s: float) -> Suspension:
        opened = OpenReplyWait(
            new_wait_id(),
            call.posting,
            expiry(self._policy.seconds(timeout_s * 1000)),
            text,
            spec_of(call, answer_by="members"),
            self._policy.lease_s,
        )
        return Suspension([opened], call.fail)

    async def _answer(self, call: GatewayCall, sent: SentText, ret: dict[str, Any]) -> CallResponse:
        def warn(response: ToolCallResponse) -> ToolCallResponse:
            return response.model_copy(update={"warnings": [*response.warnings, *sent.warnings]})

        return change_response(await self._policy.succeed(call, ret), warn)
