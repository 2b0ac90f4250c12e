"""Calls that no worker has and that would never end: the process that leads ends them."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from proofbox.service.calls.answer import build_problem_answer
from proofbox.service.calls.answer_writer import CallResult
from proofbox.service.calls.claim import ClaimLostError
from proofbox.service.calls.interruptions import SERVICE_STOPPED
from proofbox.service.calls.port import CallNotStoredError, CallState, CallStore, StoredCall
from proofbox.service.calls.stored_calls import StoredCalls, store_warning
from proofbox.service.dispatch.effects import EndQueued
from proofbox.service.dispatch.messages import LOOK
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.port import DispatchStore
from proofbox.service.errors import CallerError, OurError, QueueTimeoutError

log = logging.getLogger("proofbox.dispatch")

_SWEEP_S = 1.0
_ENDED_MAX = 500
_OVERDUE = QueueTimeoutError(
    "the call waited for a worker until its deadline; nothing was run, call again under a new tool_call_id"
)


class LeftCalls:
    """Ends queued calls whose deadline has passed, and open calls that were never queued.

    Args:
        dispatches: the dispatched calls.
        store: the calls.
        stored: prepares them.
        link: notifies those who follow a call.
    """

    def __init__(self, dispatches: DispatchStore, store: CallStore, stored: StoredCalls, link: NatsLink) -> None:
        self._dispatches = dispatches
        self._store = store
        self._stored = stored
        self._link = link

    async def end(self) -> None:
        """End those that are there.

        Raises:
            StoreFailedError: the store failed.
        """
        for left in await self._dispatches.left(_ENDED_MAX):
            try:
                await self._stored.end_lost(left, SERVICE_STOPPED)
            except CallNotStoredError:
                continue  # it was deleted meanwhile
            log.warning("call %s was left open by a service of one process", left.key.tool_call_id)
            await self._announce(left.number)
        for overdue in await self._dispatches.overdue(_ENDED_MAX):
            try:
                await self._end_overdue(overdue)
            except (ClaimLostError, CallNotStoredError):
                continue  # a worker has it, or it was deleted meanwhile
            await self._announce(overdue.number)

    async def _end_overdue(self, overdue: StoredCall) -> None:
        try:
            call = await self._stored.prepare(overdue)
        except CallerError:
            call = None
        parts = await self._stored.parts_of(overdue, call, [EndQueued()])
        ending = CallResult(CallState.FAILED, build_problem_answer(_OVERDUE, ""))
        await store_warning(self._store, overdue.key, ending, parts, CallState.OPEN)
        log.warning("call %s found no worker until its deadline", overdue.key.tool_call_id)

    async def _announce(self, number: int) -> None:
        await self._link.publish(self._link.subject("events", number), LOOK)


async def repeat_for_ever(work: Callable[[], Awaitable[None]], failed: str) -> None:
    """Do something each second; an error is logged, with what ``failed``."""
    while True:
        await asyncio.sleep(_SWEEP_S * random.uniform(0.8, 1.2))  # noqa: S311 - workers do not sweep together
        try:
            await work()
        except OurError as exc:
            log.warning("%s: %s", failed, exc)
        except Exception:
            log.exception(failed)
