"""Stores the answers of calls, each once, however long the store is away."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from contracts.blocks import Block
from service.core.call_answers import Answer, problem_answer, stored_answer
from service.core.errors import OurError, StoreFailedError, StoreFullError
from service.core.store_ports import CallKey, CallNotStoredError, CallState, CallStore

log = logging.getLogger("proofbox.calls")

_PAUSE_S, _PAUSE_S_MAX = 0.25, 5.0


class AnswerKeeping:
    """Stores answers; tries again until the store has taken one, or the service ends.

    Args:
        store: the calls.
        is_closing: whether the service ends: then a store that fails is not waited for, and the next life answers.
    """

    def __init__(self, store: CallStore, is_closing: Callable[[], bool]) -> None:
        self._store = store
        self._is_closing = is_closing

    async def keep(
        self,
        key: CallKey,
        kept: tuple[CallState, Answer, Sequence[Block]],
        request_id: str,
        on_delay: Callable[[Answer], None],
    ) -> tuple[CallState, Answer]:
        """Stores an answer and its blocks; what is stored now, which is another answer if there was one before.

        An answer for which there is no space is given up for the problem that says so, which is small. ``on_delay``
        gets a problem for those who wait, each time that the store has failed: they may ask again.

        Raises:
            StoreFailedError: the call itself is no longer stored, or the service ends.
            StoreFullError: the service ends.
        """
        state, answer, blocks = kept
        pause_s = _PAUSE_S
        while True:
            try:
                stored = await self._store.finish(key, state, answer.body, blocks)
            except StoreFullError as exc:
                if not answer.is_problem:
                    log.exception("there is no space for the answer of call %s", key.tool_call_id)
                    state, answer, blocks = CallState.FAILED, problem_answer(_no_space(exc), request_id), ()
                    continue
                if self._is_closing():
                    raise
                on_delay(answer)
            except CallNotStoredError:
                raise
            except OurError as exc:
                if self._is_closing():
                    raise
                log.warning("the answer of call %s cannot be stored yet: %s", key.tool_call_id, exc)
                on_delay(problem_answer(_later(exc), request_id))
            else:
                if stored.answer is not None and stored.answer != answer.body:
                    # Cancelled while its answer was being stored: what is stored is the one answer.
                    return stored.state, stored_answer(stored.state, stored.answer)
                return state, answer
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)


def _later(exc: OurError) -> StoreFailedError:
    return StoreFailedError(
        f"{exc.message}; the call has ended and its answer waits to be stored: ask for it again under its id",
        retry_after_s=_PAUSE_S_MAX,
    )


def _no_space(exc: StoreFullError) -> StoreFullError:
    return StoreFullError(f"{exc.message}; the call has ended and its answer is lost: call again under a new id")
