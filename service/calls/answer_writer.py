"""Stores the answers of calls, each once, however long the store is away."""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from proofbox.contracts.gateway.codes import WarningCode
from proofbox.contracts.gateway.wire import GatewayWarning
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.artifacts.port import SaveLostError, StoredArtifact
from proofbox.service.calls.answer import Answer, build_problem_answer, make_final, restore_answer
from proofbox.service.calls.claim import ClaimLostError
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
    StoredEnd,
)
from proofbox.service.calls.suspension import CallEnd, Closing
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
        has_files: its files were stored with it.
    """

    state: CallState
    answer: Answer
    response: ToolCallResponse | None = None
    audited: AuditedLine | None = None
    has_files: bool = False

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

    def build(self, ending: CallResult, files: Sequence[StoredArtifact] = ()) -> StoredWith:
        """Builds the audit line and the effects of an ending; blocking.

        Args:
            ending: the ending.
            files: what is stored with it.
        """


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
        ending: CallResult | Closing,
        parts: AnswerParts,
        on_delay: Callable[[Answer], None],
        request_id: str,
    ) -> CallResult:
        """Stores an answer, its blocks, its files and what goes with it; what is stored now.

        That may be an earlier answer. One for which there is no space is replaced by a problem, which is small,
        without files. Each time that the store has failed, ``on_delay`` gets a problem for the waiting clients:
        they may ask again.

        Raises:
            StoreFailedError: the call itself is no longer stored, or the service ends.
            StoreFullError: the service ends.
        """
        result = None
        try:
            result = await self._write(key, ending, parts, on_delay, request_id)
        finally:
            await end_save(ending, result)
        return result

    async def _write(
        self,
        key: CallKey,
        ending: CallResult | Closing,
        parts: AnswerParts,
        on_delay: Callable[[Answer], None],
        request_id: str,
    ) -> CallResult:
        pause_s = _PAUSE_S
        while True:
            try:
                with span("finish"):
                    stored, result = await store_end(self._store, key, ending, parts, CallState.OPEN)
                return _earlier(stored) if result is None else result
            except StoreFullError as exc:
                smaller = _shrink(key, ending, exc, request_id)
                if smaller is not ending:
                    ending = smaller
                    continue
                self._delay(exc, on_delay, smaller.answer)
            except EffectRefusedError as exc:
                ending = warn(ending, exc)
                continue
            except SaveLostError as exc:
                raise ClaimLostError(exc.message) from exc  # whoever took this process for lost ends its calls
            except CallNotStoredError:
                raise
            except OurError as exc:
                self._delay(exc, on_delay, build_problem_answer(_later(exc), request_id))
                log.warning("the answer of call %s cannot be stored yet: %s", key.tool_call_id, exc)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    def _delay(self, exc: OurError, on_delay: Callable[[Answer], None], answer: Answer) -> None:
        if self._is_closing():
            raise exc
        on_delay(answer)

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


def _earlier(stored: StoredCall) -> CallResult:
    """The answer of a call that was cancelled while its answer was being stored: the stored one counts."""
    if stored.answer is None:
        raise AssertionError("a call that is not open has an answer, or waits")
    return CallResult(stored.state, restore_answer(stored.state, stored.answer), audited=stored.audited)


def done(response: ToolCallResponse) -> CallResult:
    """The result of a call that has a response; blocking."""
    return CallResult(CallState.DONE, Answer(200, response.model_dump_json(), is_problem=False), response)


def _shrink(key: CallKey, ending: CallResult | Closing, exc: StoreFullError, request_id: str) -> CallResult:
    """What takes less space in place of an ending; the same if there is nothing smaller."""
    if isinstance(ending, Closing) or not ending.answer.is_problem:
        log.error("there is no space for the answer of call %s", key.tool_call_id, exc_info=exc)
        return CallResult(CallState.FAILED, build_problem_answer(_no_space(exc), request_id))
    return ending if ending.response is None else replace(ending, response=None)  # the problem alone is small


E = TypeVar("E", CallResult, CallResult | Closing)


def warn(ending: E, refused: EffectRefusedError) -> E:
    """The same ending with a warning in its response, after an effect refused because of it.

    Raises:
        EffectRefusedError: the ending has no response, or has that warning.
    """
    if isinstance(ending, Closing):
        return replace(ending, build=lambda stored: _add_warning(ending.build(stored), refused))
    response = _add_warning(ending.response, refused)
    if ending.answer.is_problem:
        return replace(ending, response=response)
    return replace(ending, response=response, answer=replace(ending.answer, body=response.model_dump_json()))


def _add_warning(response: ToolCallResponse | None, refused: EffectRefusedError) -> ToolCallResponse:
    if response is None or any(warning.code == refused.code for warning in response.warnings):
        raise refused
    warning = GatewayWarning(code=WarningCode(refused.code), message=refused.message)
    return response.model_copy(update={"warnings": [*response.warnings, warning]})


async def store_end(
    store: CallStore, key: CallKey, ending: CallResult | Closing, parts: AnswerParts, was: CallState
) -> tuple[StoredCall, CallResult | None]:
    """Stores how a call ended that was in that state. Raises what `CallStore.finish` does.

    Returns:
        The call as it is stored now; its end, None if it was in another state.
    """
    if isinstance(ending, CallResult):
        final = replace(ending, answer=make_final(ending.answer))
        end = await asyncio.to_thread(lambda: _stored_end(final, parts.build(final), was))
        stored = await store.finish(key, end.state, end.answer, end.blocks, end.audit, end.also)
        is_own = stored.answer == end.answer
        return stored, replace(final, audited=stored.audited) if is_own else None
    built: list[CallResult] = []  # of each attempt at the transaction

    def build(files: Sequence[StoredArtifact]) -> StoredEnd:
        built.append(replace(done(ending.build(files)), has_files=True))
        return _stored_end(built[-1], parts.build(built[-1], files), was)

    stored = await store.finish_with_files(key, ending.save, build, was)
    # The text itself: an answer that another process has stored may be the same.
    is_own = bool(built) and stored.answer is built[-1].answer.body
    return stored, replace(built[-1], audited=stored.audited) if is_own else None


async def end_save(ending: CallResult | Closing, result: CallResult | None) -> None:
    """Ends the save of files after the last attempt to store them; ``result`` is what was stored, if anything."""
    if isinstance(ending, Closing):
        await (ending.save.settle() if result is not None and result.has_files else ending.save.discard())


def _stored_end(ending: CallResult, parts: StoredWith, was: CallState) -> StoredEnd:
    response = ending.response
    partial = None
    if response is not None and ending.answer.is_problem:
        partial = response.model_dump_json()
    elif response is not None and response.printed is not None:
        partial = json.dumps({"output": {"combined": response.printed}}, ensure_ascii=False)
    return StoredEnd(
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
