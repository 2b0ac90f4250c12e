"""Calls that no worker has any more, or never had, and that would never end: they are ended here."""

import logging

from proofbox.service.calls.answer import build_problem_answer
from proofbox.service.calls.answer_writer import CallResult
from proofbox.service.calls.claim import ClaimLostError
from proofbox.service.calls.interruptions import SERVICE_STOPPED, WORKER_LOST
from proofbox.service.calls.port import CallNotStoredError, CallState, CallStore, StoredCall
from proofbox.service.calls.stored_calls import StoredCalls, store_warning
from proofbox.service.dispatch.effects import EndExpired, EndQueued
from proofbox.service.dispatch.figures import QueueCounts
from proofbox.service.dispatch.messages import LOOK
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.port import DispatchStore
from proofbox.service.errors import CallerError, QueueTimeoutError

log = logging.getLogger("proofbox.dispatch")

_ENDED_MAX = 500
_OVERDUE = QueueTimeoutError(
    "the call waited for a worker until its deadline; nothing was run, call again under a new tool_call_id"
)


class LeftCalls:
    """Ends calls whose worker was lost, queued calls whose deadline has passed, and open calls never queued.

    Args:
        dispatches: the dispatched calls.
        store: the calls.
        stored: prepares them.
        link: notifies those who follow a call.
        counts: counts the calls that were lost.
    """

    def __init__(
        self,
        dispatches: DispatchStore,
        store: CallStore,
        stored: StoredCalls,
        link: NatsLink,
        counts: QueueCounts,
    ) -> None:
        self._dispatches = dispatches
        self._store = store
        self._stored = stored
        self._link = link
        self._counts = counts

    async def end_lost(self, stored: StoredCall, claim: int) -> None:
        """End a call whose worker was lost while it ran: nobody knows its outcome.

        Raises:
            StoreFailedError: the store failed.
        """
        try:
            await self._stored.end_lost(stored, WORKER_LOST, [EndExpired(claim)])
        except ClaimLostError:
            return  # another process ended it, or its own worker is heard of again
        self._counts.lost_begun += 1
        log.warning("call %s lost its worker while it ran; its outcome is unknown", stored.key.tool_call_id)
        await self._announce(stored.number)

    async def end_expired(self) -> None:
        """End the calls that lost workers had begun, and queue the others.

        Raises:
            StoreFailedError: the store failed.
        """
        for lost in await self._dispatches.lost(_ENDED_MAX):
            stored = await self._dispatches.expire(lost.number, lost.claim)
            if stored is not None:
                await self.end_lost(stored, lost.claim)
            else:
                self._counts.lost_waiting += 1

    async def end_unqueued(self) -> None:
        """End open calls that a service of one process left.

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

    async def end_overdue(self) -> None:
        """End queued calls whose deadline has passed.

        Raises:
            StoreFailedError: the store failed.
        """
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
