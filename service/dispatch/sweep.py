"""Rounds of the processes that lead: calls that were left are ended or published, streams get their replicas."""

import time

from proofbox.service.dispatch.left import LeftCalls
from proofbox.service.dispatch.membership import Membership
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.port import DispatchStore, QueueFigures
from proofbox.service.dispatch.publishing import publish_calls
from proofbox.service.dispatch.turns import Turns

_PUBLISHED_AGAIN_S = 30.0
_SWEPT_MAX = 500
_BUSY_PAUSE_S, _IDLE_PAUSE_S_MAX = 1.0, 5.0
_RARELY_S = 60.0


class QueueSweep:
    """The rounds of care for the queue; a process that leads nothing does nothing.

    One process reads the figures and ends calls, one whose link to the NATS servers is up publishes; mostly it is
    the same one.

    Args:
        dispatches: the dispatched calls.
        left: ends calls.
        link: the NATS servers.
        membership: what this process leads.
        lease_s: how long a claim is valid, in seconds.
        turns: publishes calls that wait for the turn of their caller.
    """

    def __init__(
        self,
        dispatches: DispatchStore,
        left: LeftCalls,
        link: NatsLink,
        membership: Membership,
        lease_s: float,
        turns: Turns,
    ) -> None:
        self._turns = turns
        self._dispatches = dispatches
        self._left = left
        self._link = link
        self._membership = membership
        self._idle_pause_s = min(lease_s / 3, _IDLE_PAUSE_S_MAX)
        self._figures: QueueFigures | None = None
        self._unqueued_checked_at: float | None = None
        self._replicas_checked_at: float | None = None

    @property
    def figures(self) -> QueueFigures | None:
        """The figures of the last round; None if another process leads."""
        return self._figures if self._membership.leads else None

    def pause_s(self) -> float:
        """The time until the next round, in seconds: a second while there are calls, longer without.

        It is shorter than a lease, so a claim is seen before it can expire.
        """
        found = self.figures
        is_busy = found is not None and bool(found.waiting or found.held)
        return min(_BUSY_PAUSE_S, self._idle_pause_s) if is_busy else self._idle_pause_s

    async def sweep(self) -> None:
        """Do one round.

        Raises:
            StoreFailedError: the store failed.
        """
        found = None
        if self._membership.leads:
            found = self._figures = await self._dispatches.read_figures()
            await self._end(found)
        else:
            self._figures = self._unqueued_checked_at = None
        if self._membership.leads_queue:
            if found is None or found.due or found.expired:
                await self.publish_due()
            if found is None or found.waiting:
                await self._turns.sweep()
            await self._check_replicas()

    async def _end(self, found: QueueFigures) -> None:
        if found.expired:
            await self._left.end_expired()
        if found.overdue:
            await self._left.end_overdue()
        if _is_due(self._unqueued_checked_at):
            await self._left.end_unqueued()
            self._unqueued_checked_at = time.monotonic()

    async def _check_replicas(self) -> None:
        if _is_due(self._replicas_checked_at) and self._link.is_up:
            self._replicas_checked_at = time.monotonic()
            await self._link.raise_replicas()

    async def publish_due(self) -> None:
        """Publish queued calls whose messages may have been lost.

        Raises:
            StoreFailedError: the store failed.
        """
        due = await self._dispatches.due(_PUBLISHED_AGAIN_S, _SWEPT_MAX)
        await publish_calls(self._link, self._dispatches, [call.number for call in due])


def _is_due(done_at: float | None) -> bool:
    return done_at is None or time.monotonic() - done_at >= _RARELY_S
