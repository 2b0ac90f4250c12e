"""The claims that a worker holds, and the watch over them: renewed in time, or given up before they expire."""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from typing_extensions import override

from proofbox.service.calls.admission import Admission
from proofbox.service.calls.audit.audit_record import AuditedCall
from proofbox.service.calls.claim import ClaimLostError, ShareTakenError
from proofbox.service.calls.port import CallKey, Effect
from proofbox.service.calls.running import RunningCall
from proofbox.service.concurrency import RepeatedJob
from proofbox.service.dispatch.effects import EndClaimed, SuspendClaimed
from proofbox.service.dispatch.port import DispatchStore, GivenBack, StopReason
from proofbox.service.errors import (
    CallAbandonedError,
    CallCancelledError,
    EngineUnavailableError,
    OurError,
    ServiceError,
)

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("proofbox.dispatch")

_RENEWALS = 3
_MISSED_MAX = 2
_AGAIN_S = 1.0
_GIVEN_UP_AFTER = 2 / 3  # of the lease: the rest is for killing the containers


class HeldClaim:
    """The `Claim` of one call of this worker.

    Args:
        store: the dispatched calls.
        number: the call.
        claim: the number of the claim.
        worker: this process.
        lease_s: for how long the claim is valid, or renewed.
        renewed_at: when the claim was asked for, on the steady clock of this process.
    """

    def __init__(
        self, store: DispatchStore, number: int, claim: int, worker: str, lease_s: float, *, renewed_at: float
    ) -> None:
        self._store = store
        self._worker = worker
        self._lease_s = lease_s
        self.number = number
        self.claim = claim
        self.is_lost = False
        self.is_released = False
        self.failure_counts = True
        """Whether a failure of the engine counts as an attempt; not if it failed for calls before this one."""
        self.given_back_for: ServiceError | None = None
        """The reason of its release."""
        self.renewed_at = renewed_at
        """The time when the last successful renewal began, or the claim itself."""
        self._starting: asyncio.Task[bool] | None = None
        self.has_started = False
        """Whether its program may have begun."""

    @property
    def is_ours(self) -> bool:
        """Whether this worker has neither lost it nor given it back."""
        return not self.is_lost and not self.is_released

    def prepare_start(self) -> None:
        """See `Claim.prepare_start`."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(_note_failure)

    async def _start(self) -> bool:
        began = time.monotonic()
        is_valid = await self._store.start(self.number, self.claim, self._worker, self._lease_s)
        if is_valid:
            self.renewed_at = max(self.renewed_at, began)
        return is_valid

    async def start(self) -> None:
        """See `Claim.start`."""
        if self.has_started:
            return
        self.prepare_start()
        if self._starting is None:
            raise AssertionError("it was prepared")
        is_valid = await asyncio.shield(self._starting)
        # This process may have been stopped since, or the database away: then the claim may have expired.
        if not is_valid or time.monotonic() - self.renewed_at >= self._lease_s * _GIVEN_UP_AFTER:
            self.is_lost = True
        if self.is_lost:
            raise ClaimLostError("another worker has the call, or may have it by now; nothing was run")
        self.has_started = True

    def end_effects(self) -> Sequence[Effect]:
        """See `Claim.end_effects`."""
        return (EndClaimed(self.claim, self._worker),)

    def suspend_effects(self, events: int) -> Sequence[Effect]:
        """See `Claim.suspend_effects`."""
        return (SuspendClaimed(self.claim, self._worker, events),)

    async def release(self, why: ServiceError) -> bool:
        """See `Claim.release`; a worker that cannot run calls uses up one of the attempts of each."""
        if self.has_started or self.is_lost:
            return False
        self.given_back_for = why
        given = GivenBack(isinstance(why, EngineUnavailableError) and self.failure_counts, _AGAIN_S)
        try:
            if self._starting is not None:
                await asyncio.wait([self._starting])
            self.is_released = await self._store.release(self.number, self.claim, self._worker, given)
        except OurError as exc:
            log.warning("call %d is given back when its claim expires: %s", self.number, exc)
            self.is_lost = True
            return True
        return self.is_released


class WorkerCall(RunningCall):
    """A call of a worker; given back instead of waiting for another call of its caller to end.

    Args:
        key: its name.
        asked: what was asked.
        admission: the slots of this worker.
        claim: its claim.
    """

    __slots__ = ("_admission",)

    def __init__(self, key: CallKey, asked: AuditedCall, admission: Admission, claim: HeldClaim) -> None:
        super().__init__(key, asked, grace_s=0, claim=claim)
        self._admission = admission

    @override
    def on_queued(self, position: int) -> None:
        if not self.has_started and not self._admission.has_share(self.owner):
            raise ShareTakenError("its caller runs as many calls on this worker as it may")
        super().on_queued(position)


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
        """The count of renewals in a row that did not find the claim; one that has just ended misses one."""

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
        self.claims: dict[int, HeldClaim] = {}
        """The claims that are renewed, by their calls: those of `held`, and of calls that are prepared."""
        self.held: dict[int, HeldCall] = {}
        """The calls that run, by their numbers."""
        self._answered_at = time.monotonic()
        """The time of the newest request that the database has answered."""
        self._renewing = RepeatedJob(self.renew, lease_s / _RENEWALS, "the claims of this worker are not renewed")
        self._watching: asyncio.Task[None] | None = None

    @property
    def is_valid(self) -> bool:
        """Whether the database has answered lately, so that more calls may be claimed."""
        return time.monotonic() - self._answered_at < self._lease_s * _GIVEN_UP_AFTER

    def start(self) -> None:
        """Begin."""
        self._answered_at = time.monotonic()
        self._renewing.start(at_once=True)
        self._watching = asyncio.create_task(self._watch_for_ever())

    async def stop(self) -> None:
        """End."""
        await self._renewing.stop()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def note_answer(self, asked_at: float) -> None:
        """Note that the database answers, which something else has asked: a worker without claims asks nothing.

        Args:
            asked_at: when it was asked, on the steady clock.
        """
        self._answered_at = max(self._answered_at, asked_at)

    async def renew(self) -> None:
        """Renew the claims that were not given up; give up those that are lost, end calls that are to be ended.

        Without claims nothing is asked.

        Raises:
            StoreFailedError: the store failed.
        """
        began, asked = time.monotonic(), [claim for claim in self.claims.values() if claim.is_ours]
        if not asked:
            return
        valid = await self._store.renew(
            self._worker, self._lease_s, [(claim.number, claim.claim) for claim in asked]
        )
        self.note_answer(began)
        for claim in asked:
            number, stop = claim.number, valid.get(claim.number, (0, None))[1]
            if number in valid:
                claim.renewed_at = began
            held = self.held.get(number)
            if held is None or held.claim is not claim or held.running.answer.done():
                continue
            held.missed = 0 if number in valid else held.missed + 1
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
            ours = [claim.renewed_at for claim in self.claims.values() if claim.is_ours]
            await asyncio.sleep(max(0.01, min(ours, default=time.monotonic()) + limit_s - time.monotonic()))
            now = time.monotonic()
            old = [claim for claim in self.claims.values() if claim.is_ours and now - claim.renewed_at >= limit_s]
            if old:
                log.error(
                    "%d claims of this worker were not renewed for %.3g s; it kills their calls", len(old), limit_s
                )
            for claim in old:
                if (held := self.held.get(claim.number)) is not None and held.claim is claim:
                    held.lose()
                claim.is_lost = True
