"""Calls that are stored and that nothing runs: prepared again, and answered if their process is gone."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from pydantic import ValidationError

from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tool_call_request import Limits, ToolCallRequest
from proofbox.service.calls.answer import Answer, build_problem_answer, build_shutdown_error
from proofbox.service.calls.answer_writer import CallResult, StoredWith, store_result
from proofbox.service.calls.audit_record import AuditedCall, build_draft, log_audit_line
from proofbox.service.calls.interruptions import SERVICE_STOPPED
from proofbox.service.calls.observer import CallRecord
from proofbox.service.calls.port import AuditDraft, CallState, CallStore, Effect, StoredCall
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.errors import CallerError, InvalidRequestError, LimitNotAllowedError
from proofbox.service.identity import ConversationKey

Prepare = Callable[[ConversationKey, ToolCallRequest], Awaitable[PreparedCall]]


class StoredCalls:
    """Calls as the store has them.

    Args:
        prepare: finds the tool of a request and parses its parameters.
        store: the calls.
        service: which service answers, for audit lines.
    """

    def __init__(self, prepare: Prepare, store: CallStore, service: AuditService) -> None:
        self._prepare = prepare
        self._store = store
        self._service = service

    async def recover(self, boot_id: str) -> int:
        """Answers the calls that earlier processes left open, and returns how many; waiting calls wait on."""
        left_open = await self._store.left_open(boot_id)
        for left in left_open:
            ending, parts = await self._end_interrupted(left)
            stored = await store_result(self._store, left.key, ending, parts, CallState.OPEN)
            if stored.audited is not None:
                log_audit_line(stored.audited)
        return len(left_open)

    async def _end_interrupted(self, left: StoredCall) -> tuple[CallResult, StoredWith]:
        try:
            call = await self.prepare(left)
        except CallerError:
            # An earlier release accepted a request that this one refuses; the service starts all the same.
            problem = build_problem_answer(build_shutdown_error(may_have_run=True), left.boot_id)
            return CallResult(CallState.FAILED, problem), StoredWith(None)
        response = call.interrupt(SERVICE_STOPPED)
        ending = CallResult(CallState.DONE, Answer(200, response.model_dump_json(), is_problem=False), response)
        return ending, await self.parts_of(left, ending, call.conclude(ending.end), call.record)

    async def prepare(self, stored: StoredCall) -> PreparedCall:
        """Prepares a stored call again; with our own limits, if the operator allows less than when it came.

        Raises:
            CallerError: this release refuses a request that an earlier one accepted.
        """
        try:
            request = await asyncio.to_thread(ToolCallRequest.model_validate_json, stored.request)
        except ValidationError as exc:
            raise InvalidRequestError("the stored request does not fit this release; call again") from exc
        try:
            return await self._prepare(stored.key.scope, request)
        except LimitNotAllowedError:
            return await self._prepare(stored.key.scope, request.model_copy(update={"limits": Limits()}))

    async def parts_of(
        self, stored: StoredCall, ending: CallResult, effects: Sequence[Effect], record: CallRecord | None = None
    ) -> StoredWith:
        """Builds what is stored with the answer of a stored call: its audit line, beside the effects."""
        asked = await asyncio.to_thread(asked_of, stored)
        return StoredWith(build_draft_of(asked, record or CallRecord(), self._service, ending), effects)


def asked_of(stored: StoredCall) -> AuditedCall:
    """What was asked of a stored call; the API key that asked, and the HTTP request, are not known any more."""
    request = ToolCallRequest.model_validate_json(stored.request)
    return AuditedCall(stored.key, request, stored.payload_sha256, stored.created)


def build_draft_of(asked: AuditedCall, record: CallRecord, service: AuditService, ending: CallResult) -> AuditDraft:
    """Builds the audit line of an ending."""
    return build_draft(asked, record, service, ending.state, ending.answer.body, ending.response)
