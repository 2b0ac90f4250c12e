"""Answers from outside to calls that wait: who may give one, what fits, and that each wait takes one."""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, Protocol
from weakref import WeakValueDictionary

from proofbox.contracts.gateway.waits import ANSWER_BYTES_MAX, ResultSubmission
from proofbox.contracts.problems import FieldError
from proofbox.service.calls.audit.audit_record import canonical_json, sha256_of
from proofbox.service.calls.lookup import find_call
from proofbox.service.calls.port import CallKey, CallState, CallStore, Effect, StoredCall
from proofbox.service.calls.registration import order_json
from proofbox.service.calls.suspension import WaitOutcome
from proofbox.service.calls.validation import invalid_value
from proofbox.service.errors import ServiceError
from proofbox.service.gateway.posting import ResumeRecord
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.waits.port import (
    SHOWS_INPUT,
    CloseWait,
    StoredWait,
    WaitMovedError,
    WaitState,
    WaitStore,
)
from proofbox.service.gateway.waits.replies import REPLY, TakenReplies
from proofbox.service.gateway_errors import (
    AlreadyAnsweredError,
    InvalidResultError,
    MayNotAnswerError,
    NotWaitingError,
    WaitCancelledError,
    WaitExpiredError,
)
from proofbox.service.identity import Principal

log = logging.getLogger("proofbox.gateway")

_EXPIRED_AT_ONCE = 100
_SETTLED_AT_ONCE = 20  # of the waits that one message answers, within its request
_WAIT_ID_BYTES = 12
APPROVAL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string", "maxLength": 4_096}},
    "required": ["approved"],
    "additionalProperties": False,
}
"""What answers an approval."""
CheckResult = Callable[[dict[str, Any], Any], Sequence[FieldError]]
"""The mistakes of a value by a JSON Schema; fields begin with ``result``."""


class WaitedCalls(Protocol):
    """The waiting calls; see `proofbox.service.calls.waiting.WaitingCalls`."""

    async def resolve(self, stored: StoredCall, outcome: WaitOutcome, effects: Sequence[Effect]) -> bool:
        """End the wait of a call."""


@dataclass(frozen=True, slots=True)
class Answerer:
    """Who answers a wait.

    Attributes:
        name: the id of the entity; ``callback`` for a service; ``key:<id>`` for a program with a key.
        kind: ``human`` or ``agent`` for an entity; ``callback``; ``key``.
    """

    name: str
    kind: Literal["human", "agent", "callback", "key"]


@dataclass(frozen=True, slots=True)
class Submitted:
    """What became of an answer.

    Attributes:
        call: the call as it is stored now.
        was_known: whether the same answer was stored before.
    """

    call: StoredCall
    was_known: bool


class WaitAnswers:
    """Takes answers, and ends the waits that nobody answered in time.

    Args:
        waits: the waits.
        store: the calls.
        calls: ends the wait of a call.
        check_result: finds the mistakes of a result.
        lease_s: how long the holder of a run has to go on after its last wait.
    """

    def __init__(
        self, waits: WaitStore, store: CallStore, calls: WaitedCalls, check_result: CheckResult, lease_s: float
    ) -> None:
        self._waits = waits
        self._store = store
        self._calls = calls
        self._check_result = check_result
        self._lease_s = lease_s
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def submit(self, wait: StoredWait, given: ResultSubmission, by: Answerer) -> Submitted:
        """Answers a wait: the call gets its answer, or runs on.

        Raises:
            MayNotAnswerError: not this entity.
            InvalidResultError: the result does not fit; the call still waits.
            AlreadyAnsweredError: another answer came before.
            WaitExpiredError, WaitCancelledError: nobody waits any more.
            StoreFailedError: the answer could not be stored; the call still waits.
            StoreFullError: no space is left.
        """
        _require_answerer(wait, by)
        answer = _canonical(given)
        sha256 = sha256_of(answer)
        # One at a time, so that the files of a long result are those of the answer that is taken.
        async with self._locks.setdefault(wait.wait_id, asyncio.Lock()):
            return await self._submit_alone(wait.wait_id, given, by, (answer, sha256))

    async def _submit_alone(
        self, wait_id: str, given: ResultSubmission, by: Answerer, answer: tuple[str, str]
    ) -> Submitted:
        text, sha256 = answer
        while True:
            wait = await self._require(wait_id)
            call = await self.call_of(wait.call)
            if wait.state is not WaitState.PENDING or wait.expires <= _now():
                return _known_outcome(wait, call, by, sha256)
            await self._require_valid(wait, given)
            closing = CloseWait(wait_id, WaitState.ANSWERED, _now(), text, sha256, by.name, self._lease_s)
            value = given.error.message if given.error is not None else given.result
            outcome = WaitOutcome(wait.kind, _how(given), value, by.name, wait.spec)
            effects: list[Effect] = [closing]
            if wait.run_id and _goes_on(wait, outcome):
                shows_input = wait.spec.get(SHOWS_INPUT, True)
                effects.append(ResumeRecord(wait.run_id, wait.call.tool_call_id, by.name, shows_input))
            try:
                if await self._calls.resolve(call, outcome, effects):
                    return Submitted(await self.call_of(wait.call), was_known=False)
            except WaitMovedError:
                continue
            if call.state is not CallState.WAITING:
                # The call was ended by something that did not know of this wait.
                raise WaitCancelledError(f"wait '{wait_id}': its call has ended")

    async def _require_valid(self, wait: StoredWait, given: ResultSubmission) -> None:
        if _how(given) != "result":
            return
        size = len(json.dumps(given.result, ensure_ascii=False).encode(errors="replace"))
        if size > ANSWER_BYTES_MAX:
            raise InvalidResultError(f"result: too large (limit {ANSWER_BYTES_MAX} bytes, got {size}); send less")
        schema = wait.spec.get("result_schema")
        if schema is None:
            return
        errors = await asyncio.to_thread(self._check_result, schema, given.result)
        if errors:
            raise InvalidResultError(
                f"result: does not fit the tool's schema ({len(errors)} mistakes); correct it and send it again",
                errors=list(errors),
            )

    async def _require(self, wait_id: str) -> StoredWait:
        wait = await self._waits.get(wait_id)
        if wait is None:
            raise NotWaitingError(f"wait '{wait_id}' is not known any more; its conversation was deleted")
        return wait

    async def find_of_call(
        self, principal: Principal, tool_call_id: str, conversation_id: str | None
    ) -> StoredWait:
        """The newest wait of a call.

        Raises:
            UnknownCallError: the principal has no such call.
            AmbiguousCallError: several conversations have one.
            NotWaitingError: it never waited.
        """
        call = await find_call(self._store, principal, tool_call_id, conversation_id)
        wait = await self._waits.of_call(call.key)
        if wait is None:
            raise NotWaitingError(f"the call '{tool_call_id[:128]}' waits for nothing")
        return wait

    async def find_of_message(self, actor: Actor, space_id: str, message_id: str) -> tuple[StoredWait, Answerer]:
        """The wait that a record in a space asks an answer for, and who answers.

        Raises:
            UnknownSpaceError, UnknownMessageError, UnknownEntityError, MissingPermissionError: see `WaitStore`.
            InvalidRequestError: it is not known who answers.
            NotWaitingError: the record asks for no answer.
        """
        asked = await self._waits.of_message(actor, space_id, message_id)
        if asked.wait is None:
            raise NotWaitingError(f"message '{message_id}' asks for no answer")
        if asked.entity_id is None:
            raise invalid_value("entity_id", "is missing; say who answers, or use a key whose user is an entity")
        return asked.wait, Answerer(asked.entity_id, "human" if asked.entity_type == "human" else "agent")

    async def call_of(self, key: CallKey) -> StoredCall:
        """The call of a wait.

        Raises:
            UnknownCallError: it was deleted.
        """
        return await find_call(self._store, key.scope.principal, key.tool_call_id, key.scope.conversation_id)

    async def expire_overdue(self) -> int:
        """Ends the waits whose time has passed, in the order in which it did; how many.

        Raises:
            StoreFailedError: the store failed; what is left is ended the next time.
        """
        count = 0
        while overdue := await self._waits.overdue(_now(), _EXPIRED_AT_ONCE):
            ended = [await self._expire(wait) for wait in overdue]
            count += sum(ended)
            if not any(ended):
                break  # they are tried again later, not in a loop
        return count

    async def settle(self, wait_ids: Iterable[str]) -> None:
        """Ends the first waits for replies that have all of them; the timer ends the others, and what fails now."""
        for wait_id in islice(wait_ids, _SETTLED_AT_ONCE):
            try:
                await self._end_replies(wait_id)
            except ServiceError as exc:
                log.warning("wait %s has its replies and cannot be ended yet: %s", wait_id, exc)
            except Exception:
                log.exception("wait %s has its replies and cannot be ended yet", wait_id)

    async def _end_replies(self, wait_id: str) -> bool:
        """Ends a wait for replies that is complete or overdue; false if it has to be tried again later."""
        async with self._locks.setdefault(wait_id, asyncio.Lock()):
            while True:
                wait = await self._waits.get(wait_id)
                if wait is None or wait.state is not WaitState.PENDING:
                    return True
                taken = await self._waits.replies(wait_id)
                if not taken.is_complete and wait.expires > _now():
                    return True
                try:
                    return await self._close(wait, *_close_replies(wait, taken, self._lease_s))
                except WaitMovedError:
                    continue  # one more reply, or it has ended
                except WaitCancelledError:
                    return False  # its run has ended, which cancels the call

    async def _expire(self, wait: StoredWait) -> bool:
        """Ends a wait whose time has passed; false if it has to be tried again later, whatever it failed of."""
        try:
            return await self._expire_alone(wait)
        except ServiceError as exc:
            log.warning("wait %s has expired and cannot be ended yet: %s", wait.wait_id, exc)
        except Exception:
            log.exception("wait %s has expired and cannot be ended yet", wait.wait_id)
        return False

    async def _expire_alone(self, wait: StoredWait) -> bool:
        if wait.kind == REPLY:
            return await self._end_replies(wait.wait_id)
        closing = CloseWait(wait.wait_id, WaitState.EXPIRED, _now(), lease_s=self._lease_s)
        outcome = WaitOutcome(wait.kind, "expired", None, None, wait.spec)
        try:
            return await self._close(wait, closing, outcome)
        except WaitMovedError:
            return True  # answered or cancelled meanwhile

    async def _close(self, wait: StoredWait, closing: CloseWait, outcome: WaitOutcome) -> bool:
        ended = await self._calls.resolve(await self.call_of(wait.call), outcome, [closing])
        if not ended:
            log.error("wait %s has expired, but its call does not wait; it is closed", wait.wait_id)
            return await self._waits.drop(wait.wait_id)
        return True


def _close_replies(wait: StoredWait, taken: TakenReplies, lease_s: float) -> tuple[CloseWait, WaitOutcome]:
    """How a wait for replies ends: with all of them, or with those that it has."""
    replies, by = taken.replies, taken.replies[-1].entity_id if taken.is_complete else None
    state = WaitState.ANSWERED if taken.is_complete else WaitState.EXPIRED
    closing = CloseWait(wait.wait_id, state, _now(), answered_by=by, lease_s=lease_s, replies=len(replies))
    how: Literal["result", "expired"] = "result" if taken.is_complete else "expired"
    return closing, WaitOutcome(REPLY, how, [reply.to_json() for reply in replies], by, wait.spec)


def new_wait_id() -> str:
    """A new id of a wait."""
    return f"wait_{secrets.token_hex(_WAIT_ID_BYTES)}"


def expiry(timeout_s: float) -> str:
    """When a wait that begins now expires."""
    moment = datetime.now(UTC) + timedelta(seconds=timeout_s)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _now() -> str:
    return expiry(0)


def _how(given: ResultSubmission) -> Literal["result", "error", "cancelled"]:
    if given.error is not None:
        return "error"
    return "cancelled" if given.cancelled else "result"


def _goes_on(wait: StoredWait, outcome: WaitOutcome) -> bool:
    """Whether the call runs on with the answer: what was approved, or an MCP server that gets what it asked for."""
    value = outcome.value
    is_approved = wait.kind == "approval" and isinstance(value, dict) and bool(value.get("approved"))
    return is_approved or (wait.kind == "elicitation" and outcome.how == "result")


def _canonical(given: ResultSubmission) -> str:
    value = given.error.message if given.error is not None else given.result
    return canonical_json(order_json({_how(given): value}))


def _require_answerer(wait: StoredWait, by: Answerer) -> None:
    """Requires that somebody may answer a wait.

    Raises:
        MayNotAnswerError: not this one.
    """
    if by.kind == "callback":
        allowed = wait.kind == "external"
    elif by.kind == "key":
        allowed = wait.kind in {"external", "space"}
    elif wait.kind == REPLY:
        raise NotWaitingError("the call waits for replies; post a message to the space, with reply_to")
    elif wait.kind == "external":
        raise NotWaitingError("the call waits for a service, not for a person; its card shows the result later")
    else:
        answer_by = wait.spec.get("answer_by", "humans")
        if isinstance(answer_by, list):
            allowed = by.name in answer_by
        else:
            allowed = by.kind == "human" or answer_by == "members"
        allowed = allowed and (by.kind == "human" or wait.kind != "approval")
    if not allowed:
        who = wait.spec.get("answer_by", "humans")
        shown = ", ".join(who) if isinstance(who, list) else who
        raise MayNotAnswerError(f"'{by.name}' may not answer this call (allowed: {shown}); ask one of those")


def _known_outcome(wait: StoredWait, call: StoredCall, by: Answerer, sha256: str) -> Submitted:
    """What an answer gets that comes after the end of a wait."""
    if wait.state is WaitState.ANSWERED:
        if (wait.answer_sha256, wait.answered_by) == (sha256, by.name):
            return Submitted(call, was_known=True)
        raise AlreadyAnsweredError(
            f"'{wait.answered_by}' has answered the call before; only the same answer by the same one is repeated"
        )
    if wait.state is WaitState.CANCELLED:
        raise WaitCancelledError("the call that waited was cancelled; nobody waits for this answer")
    raise WaitExpiredError(f"the time for an answer passed at {wait.expires}; the agent went on without one")
