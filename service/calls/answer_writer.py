"""Stores the answers of calls, each once, however long the store is away."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from proofbox.contracts.gateway.codes import WarningCode
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.answer import Answer, build_problem_answer, restore_answer
from proofbox.service.calls.port import (
    Alongside,
    AuditDraft,
    AuditedLine,
    CallKey,
    CallNotStoredError,
    CallState,
    CallStore,
    Effect,
    EffectRefusedError,
    StoredCall,
)
from proofbox.service.calls.suspension import CallEnd
from proofbox.service.errors import OurError, StoreDefectError, StoreFailedError, StoreFullError
from proofbox.service.observability.tracing import span

log = logging.getLogger("proofbox.calls")

_PAUSE_S, _PAUSE_S_MAX = 0.25, 5.0


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a call ended.

    Attributes:
        state: the state that is stored with the answer.
        answer: the answer that every client gets.
        response: the response in the answer, if that is not a problem; of a cancelled call its partial response,
            which is stored beside the answer.
        audited: its audit line, once that is stored and until it is in the log.
    """

    state: CallState
    answer: Answer
    response: ToolCallResponse | None = None
    audited: AuditedLine | None = None

    @property
    def end(self) -> CallEnd:
        """The same, for the effects that are stored with it."""
        if self.answer.is_problem:
            problem = json.loads(self.answer.body)
            return CallEnd(self.state, str(problem["code"]), str(problem["detail"]), self.response)
        error = None if self.response is None else self.response.error
        code, message = ("ok", "") if error is None else (error.code, error.message)
        return CallEnd(self.state, code, message, self.response)


@dataclass(frozen=True, slots=True)
class StoredWith:
    """What is stored in the transaction of an answer.

    Attributes:
        audit: its audit line.
        effects: changes of other records.
    """

    audit: AuditDraft | None
    effects: Sequence[Effect] = ()


class AnswerParts(Protocol):
    """What is stored with an answer, built from it."""

    async def build(self, ending: CallResult) -> StoredWith:
        """Builds the audit line and the effects of an ending."""


class AnswerWriter:
    """Stores answers; tries again until the store has taken one, or the service ends.

    Args:
        store: the calls.
        is_closing: whether the service shuts down: then nothing is retried, and the next process answers.
    """

    def __init__(self, store: CallStore, is_closing: Callable[[], bool]) -> None:
        self._store = store
        self._is_closing = is_closing

    async def write(
        self,
        key: CallKey,
        ending: CallResult,
        parts: AnswerParts,
        on_delay: Callable[[Answer], None],
        request_id: str,
    ) -> CallResult:
        """Stores an answer, its blocks and what goes with it; what is stored now, which may be an earlier answer.

        An answer for which there is no space is replaced by a problem, which is small. Each time that the store has
        failed, ``on_delay`` gets a problem for the waiting clients: they may ask again.

        Raises:
            StoreFailedError: the call itself is no longer stored, or the service ends.
            StoreFullError: the service ends.
        """
        pause_s = _PAUSE_S
        while True:
            try:
                return await self._write_once(key, ending, await parts.build(ending))
            except StoreFullError as exc:
                if ending.answer.is_problem and ending.response is not None:
                    ending = replace(ending, response=None)  # the problem alone is small
                    continue
                if not ending.answer.is_problem:
                    log.exception("there is no space for the answer of call %s", key.tool_call_id)
                    ending = CallResult(CallState.FAILED, build_problem_answer(_no_space(exc), request_id))
                    continue
                if self._is_closing():
                    raise
                on_delay(ending.answer)
            except EffectRefusedError as exc:
                ending = warn(ending, exc)
                continue
            except CallNotStoredError:
                raise
            except OurError as exc:
                if self._is_closing():
                    raise
                log.warning("the answer of call %s cannot be stored yet: %s", key.tool_call_id, exc)
                on_delay(build_problem_answer(_later(exc), request_id))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    async def suspend(
        self, key: CallKey, effects: Sequence[Effect], is_ours: Callable[[], bool] = lambda: True
    ) -> StoredCall:
        """Lets a call wait; tries again until the store has taken it, or the service ends.

        Args:
            key: the call.
            effects: what is stored with its new state.
            is_ours: whether nothing else runs the call: false once it waited, although the store reported a
                failure, and runs on.

        Returns:
            What is stored now; a call that went on meanwhile may be open or have ended.

        Raises:
            EffectRefusedError: an effect refused.
            StoreFullError: no space is left.
            StoreDefectError: it cannot be stored, however often it is tried.
            StoreFailedError: the call itself is no longer stored, or the service ends.
        """
        pause_s = _PAUSE_S
        while True:
            try:
                if not is_ours():
                    return await self._stored(key)
                # None: an attempt before this one was stored, although it failed.
                return await self._store.suspend(key, effects) or await self._stored(key)
            except (StoreFullError, CallNotStoredError, StoreDefectError):
                raise
            except OurError as exc:
                if self._is_closing():
                    raise
                log.warning("that call %s waits cannot be stored yet: %s", key.tool_call_id, exc)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    async def _stored(self, key: CallKey) -> StoredCall:
        found = await self._store.find(key.scope.principal, key.tool_call_id)
        return next(call for call in found if call.key.scope == key.scope)

    async def _write_once(self, key: CallKey, ending: CallResult, parts: StoredWith) -> CallResult:
        with span("finish"):
            stored = await store_result(self._store, key, ending, parts, CallState.OPEN)
        if stored.answer is not None and stored.answer != ending.answer.body:
            # Cancelled while its answer was being stored: what is stored is the one answer.
            return CallResult(stored.state, restore_answer(stored.state, stored.answer), audited=stored.audited)
        return replace(ending, audited=stored.audited)


def warn(ending: CallResult, refused: EffectRefusedError) -> CallResult:
    """The same ending with a warning in its response, after an effect refused because of it.

    Raises:
        EffectRefusedError: the ending has no response, or has that warning.
    """
    response = ending.response
    if response is None or any(warning.code == refused.code for warning in response.warnings):
        raise refused
    warning = GatewayWarning(code=WarningCode(refused.code), message=refused.message)
    response = response.model_copy(update={"warnings": [*response.warnings, warning]})
    if ending.answer.is_problem:
        return replace(ending, response=response)
    return replace(ending, response=response, answer=replace(ending.answer, body=response.model_dump_json()))


async def store_result(
    store: CallStore, key: CallKey, ending: CallResult, parts: StoredWith, was: CallState
) -> StoredCall:
    """Stores how a call ended that was in that state. Raises what `CallStore.finish` does."""
    response = ending.response
    partial = None
    if response is not None and ending.answer.is_problem:
        partial = response.model_dump_json()
    elif response is not None and response.printed is not None:
        partial = json.dumps({"output": {"combined": response.printed}}, ensure_ascii=False)
    return await store.finish(
        key,
        ending.state,
        ending.answer.body,
        response.blocks if response is not None else (),
        parts.audit,
        Alongside(
            was,
            partial,
            is_refusal=response is not None and response.is_refusal and not ending.answer.is_problem,
            effects=parts.effects,
        ),
    )


def _later(exc: OurError) -> StoreFailedError:
    return StoreFailedError(
        f"{exc.message}; the call has ended and its answer waits to be stored: ask for it again under its id",
        retry_after_s=_PAUSE_S_MAX,
    )


def _no_space(exc: StoreFullError) -> StoreFullError:
    return StoreFullError(f"{exc.message}; the call has ended and its answer is lost: call again under a new id")
