"""Stores the answers of calls, each once, however long the store is away."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.answer import Answer, build_problem_answer, restore_answer
from proofbox.service.calls.port import (
    AuditDraft,
    AuditedLine,
    CallKey,
    CallNotStoredError,
    CallState,
    CallStore,
)
from proofbox.service.errors import OurError, StoreFailedError, StoreFullError
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
        audit_of: Callable[[CallResult], Awaitable[AuditDraft]],
        on_delay: Callable[[Answer], None],
        request_id: str,
    ) -> CallResult:
        """Stores an answer, its blocks and its audit line; what is stored now, which may be an earlier answer.

        An answer for which there is no space is replaced by a problem, which is small. Each time that the store has
        failed, ``on_delay`` gets a problem for the waiting clients: they may ask again.

        Raises:
            StoreFailedError: the call itself is no longer stored, or the service ends.
            StoreFullError: the service ends.
        """
        pause_s = _PAUSE_S
        while True:
            try:
                return await self._write_once(key, ending, await audit_of(ending))
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
            except CallNotStoredError:
                raise
            except OurError as exc:
                if self._is_closing():
                    raise
                log.warning("the answer of call %s cannot be stored yet: %s", key.tool_call_id, exc)
                on_delay(build_problem_answer(_later(exc), request_id))
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    async def _write_once(self, key: CallKey, ending: CallResult, audit: AuditDraft) -> CallResult:
        response = ending.response
        blocks = response.blocks if response is not None else ()
        partial = response.model_dump_json() if response is not None and ending.answer.is_problem else None
        with span("finish"):
            stored = await self._store.finish(
                key, ending.state, ending.answer.body, blocks, audit, partial_response=partial
            )
        if stored.answer is not None and stored.answer != ending.answer.body:
            # Cancelled while its answer was being stored: what is stored is the one answer.
            return CallResult(stored.state, restore_answer(stored.state, stored.answer), audited=stored.audited)
        return replace(ending, audited=stored.audited)


def _later(exc: OurError) -> StoreFailedError:
    return StoreFailedError(
        f"{exc.message}; the call has ended and its answer waits to be stored: ask for it again under its id",
        retry_after_s=_PAUSE_S_MAX,
    )


def _no_space(exc: StoreFullError) -> StoreFullError:
    return StoreFullError(f"{exc.message}; the call has ended and its answer is lost: call again under a new id")
