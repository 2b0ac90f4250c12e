"""Calls that are stored and that nothing runs: prepared again, and answered if their process is gone."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tool_call_request import Limits, ToolCallRequest
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.access.known_callers import learn_nothing
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.calls.answer import build_problem_answer, build_shutdown_error
from proofbox.service.calls.answer_writer import (
    AnswerParts,
    CallResult,
    StoredWith,
    done,
    end_save,
    store_end,
    warn,
)
from proofbox.service.calls.audit.audit_record import AuditedCall, build_draft, log_audit_line
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.observer import CallObserver, CallRecord
from proofbox.service.calls.port import CallKey, CallState, CallStore, Effect, EffectRefusedError, StoredCall
from proofbox.service.calls.suspension import (
    KEY_OF_WAIT,
    CallEnd,
    CallResponse,
    CallRun,
    Closing,
    RunOutcome,
    WaitOutcome,
    no_effects,
)
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.errors import (
    CallerError,
    InvalidRequestError,
    LimitNotAllowedError,
    NetworkNotAllowedError,
    PackagesNotAllowedError,
)
from proofbox.service.identity import ConversationKey, Principal

log = logging.getLogger("proofbox.calls")

_PARSED_AT_ONCE_CHARS = 64 * 1024  # a thread would take longer
UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
"""What reading JSON raises that does not have the fields of this release."""
_UNREADABLE_WAIT = "what its wait stored does not fit this release; call again"
Prepare = Callable[[ConversationKey, ToolCallRequest], Awaitable[PreparedCall]]
Conclude = Callable[[CallEnd], Sequence[Effect]]


class StoredCalls:
    """Calls as the store has them.

    Args:
        prepare: finds the tool of a request and parses its parameters.
        store: the calls.
        service: which service answers, for audit lines.
        conclude_lost: what is stored with the answer of a call that cannot be prepared again.
    """

    def __init__(
        self, prepare: Prepare, store: CallStore, service: AuditService, conclude_lost: Conclude = no_effects
    ) -> None:
        self.learn: Callable[[Principal], Awaitable[None]] = learn_nothing
        """Reads the limits of a caller, before its call is prepared again; set before the first call."""
        self._conclude_lost = conclude_lost
        self._prepare = prepare
        self._store = store
        self._service = service

    async def end_lost(self, left: StoredCall, why: Interruption, effects: Sequence[Effect] = ()) -> None:
        """Answers an open call whose process was lost while it ran. Raises what `CallStore.finish` does.

        Args:
            left: the call.
            why: what happened.
            effects: what is stored with the answer, before the effects of the call's own end.
        """
        ending, parts = await self._end_interrupted(left, why)
        parts.record.is_lost = True
        parts = replace(parts, effects=effects)
        stored, _ = await store_warning(self._store, left.key, ending, parts, CallState.OPEN)
        if stored.audited is not None:
            log_audit_line(stored.audited)

    async def _end_interrupted(self, left: StoredCall, why: Interruption) -> tuple[CallResult, "CallParts"]:
        try:
            call = await self.prepare(left)
        except CallerError:
            # An earlier release accepted a request that this one refuses; the service starts all the same.
            problem = build_problem_answer(build_shutdown_error(may_have_run=not left.is_queued), left.boot_id)
            return CallResult(CallState.FAILED, problem), await self.parts_of(left, None)
        response = call.interrupt(why)
        return await build_done(response), await self.parts_of(left, call)

    async def prepare(self, stored: StoredCall) -> PreparedCall:
        """Prepares a stored call again; with our own limits, if the operator allows less than when it came.

        One that asked for hosts or packages that it does not get any more is refused as it would run.

        Raises:
            CallerError: this release refuses a request that an earlier one accepted, or cannot read its wait.
            StoreFailedError: the keys cannot be read.
        """
        return (await self.read(stored))[1]

    async def read(self, stored: StoredCall) -> tuple[ToolCallRequest, PreparedCall]:
        """The request of a stored call, and the call as `prepare` makes it; raises as that does."""
        try:
            request = await _parse(stored.request)
        except ValidationError as exc:
            raise InvalidRequestError("the stored request does not fit this release; call again") from exc
        spec = _read_spec(stored)
        scope = _asking_scope(stored.key.scope, spec)
        await self.learn(scope.principal)
        call = await self._prepare_allowed(scope, request)
        if spec is not None:
            try:
                call.restore(spec)
            except UNREADABLE as exc:
                raise InvalidRequestError(_UNREADABLE_WAIT) from exc
        return request, call

    async def _prepare_allowed(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        try:
            try:
                return await self._prepare(scope, request)
            except LimitNotAllowedError:
                request = request.model_copy(update={"limits": Limits()})
                return await self._prepare(scope, request)
        except (NetworkNotAllowedError, PackagesNotAllowedError) as exc:
            less: dict[str, Any] = {"limits": Limits(), "network": None, "packages": []}
            return _refuse_run(await self._prepare(scope, request.model_copy(update=less)), exc)

    async def parts_of(
        self, stored: StoredCall, call: PreparedCall | None, effects: Sequence[Effect] = ()
    ) -> "CallParts":
        """What is stored with the answer of a stored call.

        Args:
            stored: the call.
            call: the same, prepared again; None if it cannot be.
            effects: those before its own.
        """
        try:
            asked = await asyncio.to_thread(asked_of, stored)
        except ValidationError:  # an audit line is about what was asked, which nobody can read any more
            log.warning(
                "call %s gets no audit line: its request does not fit this release", stored.key.tool_call_id
            )
            asked = None
        record = CallRecord() if call is None else call.record
        conclude = self._conclude_lost if call is None else call.conclude
        return CallParts(conclude, asked, record, self._service, effects)


@dataclass(frozen=True, slots=True)
class CallParts:
    """Builds what is stored with the answer of a call; see `AnswerParts`.

    Attributes:
        conclude: the changes that the call stores with its answer.
        asked: what was asked; None if this release cannot read it: then there is no audit line.
        record: what it ran with.
        service: which service answers.
        effects: those before the call's own.
    """

    conclude: Conclude
    asked: AuditedCall | None
    record: CallRecord
    service: AuditService
    effects: Sequence[Effect] = ()

    def build(self, ending: CallResult, files: Sequence[StoredArtifact] = ()) -> StoredWith:
        """See `AnswerParts.build`."""
        draft = None
        if self.asked is not None:
            record = replace(self.record, stored=[*self.record.stored, *files])
            draft = build_draft(self.asked, record, self.service, ending.state, ending.answer.body, ending.response)
        return StoredWith(draft, [*self.effects, *self.conclude(ending.end)])


def _read_spec(stored: StoredCall) -> dict[str, Any] | None:
    """What the newest wait of a call stored; None if it never waited.

    Raises:
        InvalidRequestError: this release cannot read it.
    """
    if stored.wait_spec is None:
        return None
    try:
        spec = json.loads(stored.wait_spec)
    except ValueError as exc:
        raise InvalidRequestError(_UNREADABLE_WAIT) from exc
    if not isinstance(spec, dict):
        raise InvalidRequestError(_UNREADABLE_WAIT)
    return spec


def _asking_scope(scope: ConversationKey, spec: dict[str, Any] | None) -> ConversationKey:
    """The scope of a call with the API key that asked for it, if its wait has stored that."""
    key_id = None if spec is None else spec.get(KEY_OF_WAIT)
    if scope.principal.key_id is not None or not isinstance(key_id, str):
        return scope
    return replace(scope, principal=replace(scope.principal, key_id=key_id))


def _refuse_run(call: PreparedCall, refusal: CallerError) -> PreparedCall:
    """A call that fails with a refusal as soon as it would run; it may be cancelled, and its approval denied."""

    async def run(observer: CallObserver) -> RunOutcome:
        observer.record.gateway = call.record.gateway
        raise refusal

    async def resume(outcome: WaitOutcome) -> CallResponse | CallRun:
        resumed = await call.resume(outcome)
        return resumed if isinstance(resumed, ToolCallResponse | Closing) else run

    return replace(call, run=run, resume=resume, announces_start=True)


async def _parse(text: str) -> ToolCallRequest:
    if len(text) < _PARSED_AT_ONCE_CHARS:
        return ToolCallRequest.model_validate_json(text)
    return await asyncio.to_thread(ToolCallRequest.model_validate_json, text)


async def build_done(response: ToolCallResponse) -> CallResult:
    """The result of a call that has a response."""
    return await asyncio.to_thread(done, response)


async def store_warning(
    store: CallStore, key: CallKey, ending: CallResult | Closing, parts: AnswerParts, was: CallState
) -> tuple[StoredCall, CallResult | None]:
    """Stores how a call ended, with a warning if an effect refuses. Raises and returns as `store_end`."""
    result = None
    try:
        try:
            stored, result = await store_end(store, key, ending, parts, was)
        except EffectRefusedError as exc:
            stored, result = await store_end(store, key, warn(ending, exc), parts, was)
    finally:
        await end_save(ending, result)
    return stored, result


def asked_of(stored: StoredCall) -> AuditedCall:
    """What was asked of a stored call; the API key that asked, and the HTTP request, are not known any more.

    Raises:
        ValidationError: the request does not fit this release.
    """
    request = ToolCallRequest.model_validate_json(stored.request)
    return AuditedCall(stored.key, request, stored.payload_sha256, stored.created)
