"""The claims that a worker holds, and the watch over them: renewed in time, or given up before they expire."""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from proofbox.service.calls.claim import ClaimLostError
from proofbox.service.calls.port import Effect
from proofbox.service.calls.running import RunningCall
from proofbox.service.dispatch.effects import EndClaimed, SuspendClaimed
from proofbox.service.dispatch.port import DispatchStore, StopReason
from proofbox.service.errors import CallAbandonedError, CallCancelledError, OurError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("proofbox.dispatch")

_RENEWALS = 3
_MISSED_MAX = 2
_GIVEN_UP_AFTER = 2 / 3  # of the lease: the rest is for killing the containers


class HeldClaim:
    """The `Claim` of one call of this worker.

    Args:
        store: the dispatched calls.
        number: the call.
        claim: the number of the claim.
        worker: this process.
        lease_s: for how long the claim is valid, or renewed.
    """

    def __init__(self, store: DispatchStore, number: int, claim: int, worker: str, lease_s: float) -> None:
        self._store = store
        self._worker = worker
        self._lease_s = lease_s
        self.number = number
        self.claim = claim
        self.is_lost = False
        self.is_released = False
        self._starting: asyncio.Task[bool] | None = None
        self._has_started = False

    def prepare_start(self) -> None:
        """See `Claim.prepare_start`."""
        if self._starting is None:
            start = self._store.start(self.number, self.claim, self._worker, self._lease_s)
            self._starting = asyncio.create_task(start)
            self._starting.add_done_callback(_note_failure)

    async def start(self) -> None:
        """See `Claim.start`."""
        if self._has_started:
            return
        self.prepare_start()
        if self._starting is None:
            raise AssertionError("it was prepared")
        if not await asyncio.shield(self._starting):
            self.is_lost = True
        if self.is_lost:
            raise ClaimLostError("another worker has the call, or may have it by now; nothing was run")
        self._has_started = True

    def end_effects(self) -> Sequence[Effect]:
        """See `Claim.end_effects`."""
        return (EndClaimed(self.claim, self._worker),)

    def suspend_effects(self, events: int) -> Sequence[Effect]:
        """See `Claim.suspend_effects`."""
        return (SuspendClaimed(self.claim, self._worker, events),)

    async def release(self) -> bool:
        """See `Claim.release`."""
        if self._has_started or self.is_lost:
            return False
        try:
            if self._starting is not None:
                await asyncio.wait([self._starting])
            self.is_released = await self._store.release(self.number, self.claim, self._worker)
        except OurError as exc:
            log.warning("call %d is given back when its claim expires: %s", self.number, exc)
            self.is_lost = True
            return True
        return self.is_released


def _note_failure(starting: asyncio.Task[bool]) -> None:
    """Reads the error of a start that nobody waits for: its call was cancelled meanwhile."""
    if not starting.cancelled() and (exc := starting.exception()) is not None:
        log.info("the start of a call could not be recorded: %s", exc)


class HeldCall:
    """A call that this worker runs.

    Args:
        running: the call.
        claim: its claim.
        message: the message that delivered it.
    """

    def __init__(self, running: RunningCall, claim: HeldClaim, message: "Msg | None") -> None:
        self.running = running
        self.claim = claim
        self.message = message
        self.missed = 0
        """How many renewals in a row did not find the claim; one that has just ended misses one."""

    def lose(self) -> None:
        """End it here without an end in the store; its container is killed."""
        if self.claim.is_lost:
            return
        self.claim.is_lost = True
        if self.running.task is not None:
            self.running.task.cancel()

    def stop(self, reason: StopReason) -> None:
        """End it because its clients want that, or are gone."""
        cancel = CallCancelledError if reason is StopReason.CANCELLED else CallAbandonedError
        self.running.cancel(cancel(f"the call was {reason}; call again under a new id"))


class ClaimKeeper:
    """Renews the claims of a worker, three times in each lease.

    A worker that cannot renew gives its calls up after two thirds of the lease and kills their containers: before
    another one can have them. The time is that of its own steady clock, from before the last successful renewal.

    Args:
        store: the dispatched calls.
        worker: this process.
        lease_s: how long a claim is valid.
    """

    def __init__(self, store: DispatchStore, worker: str, lease_s: float) -> None:
        self._store = store
        self._worker = worker
        self._lease_s = lease_s
        self.held: dict[int, HeldCall] = {}
        """The calls by their numbers."""
        self._renewed_at = time.monotonic()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def is_valid(self) -> bool:
        """Whether the last renewal is young enough to claim more calls."""
        return time.monotonic() - self._renewed_at < self._lease_s * _GIVEN_UP_AFTER

    def start(self) -> None:
        """Begin."""
        self._renewed_at = time.monotonic()
        self._tasks = [asyncio.create_task(self._renew_for_ever()), asyncio.create_task(self._watch_for_ever())]

    async def stop(self) -> None:
        """End."""
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _renew_for_ever(self) -> None:
        while True:
            try:
                await self.renew()
            except OurError as exc:
                log.warning("the claims of this worker are not renewed: %s", exc)
            except Exception:
                log.exception("the claims of this worker are not renewed")
            await asyncio.sleep(self._lease_s / _RENEWALS)

    async def renew(self) -> None:
        """Renew all claims; give up those that this worker has no longer, and end those that are to be ended.

        Raises:
            StoreFailedError: the store failed.
        """
        began, asked = time.monotonic(), dict(self.held)
        valid = await self._store.renew(self._worker, self._lease_s)
        self._renewed_at = began
        for number, held in asked.items():
            if self.held.get(number) is not held or held.running.answer.done():
                continue
            claim, stop = valid.get(number, (0, None))
            held.missed = held.missed + 1 if claim != held.claim.claim else 0
            if held.missed >= _MISSED_MAX:
                log.error("call %s was lost to another worker; it is ended here", held.running.key.tool_call_id)
                held.lose()
            elif stop is not None:
                held.stop(stop)
            if held.message is not None:
                with suppress(Exception):  # a message that is delivered again finds the claim
                    await held.message.in_progress()

    async def _watch_for_ever(self) -> None:
        limit_s = self._lease_s * _GIVEN_UP_AFTER
        while True:
            await asyncio.sleep(max(0.01, self._renewed_at + limit_s - time.monotonic()))
            if time.monotonic() - self._renewed_at < limit_s:
                continue
            if self.held:
                log.error(
                    "this worker could not renew its claims for %.3g s; it kills its %d calls",
                    limit_s,
                    len(self.held),
                )
            for held in list(self.held.values()):
                held.lose()
            await asyncio.sleep(self._lease_s / _RENEWALS)
