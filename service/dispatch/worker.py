"""A worker: claims queued calls, and runs them on the usual path."""

import asyncio
import json
import logging
import math
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.answer import build_problem_answer
from proofbox.service.calls.answer_writer import CallResult
from proofbox.service.calls.audit.audit_record import AuditedCall
from proofbox.service.calls.call_runner import CallRunner
from proofbox.service.calls.claim import CURRENT_CLAIM, ClaimId, ClaimLostError, ShareTakenError
from proofbox.service.calls.events import EventLog
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.port import CallState, CallStore, StoredCall
from proofbox.service.calls.stored_calls import StoredCalls, store_warning
from proofbox.service.calls.suspension import CallRun, Closing, RunOutcome, WaitOutcome
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.dispatch.figures import QueueCounts
from proofbox.service.dispatch.held import ClaimKeeper, HeldCall, HeldClaim, WorkerCall
from proofbox.service.dispatch.inbox import QueueInbox
from proofbox.service.dispatch.left import LeftCalls
from proofbox.service.dispatch.messages import LOOK
from proofbox.service.dispatch.nats_link import DispatchUnavailableError, NatsLink
from proofbox.service.dispatch.port import ClaimedCall, DispatchStore, Refusal, Refused
from proofbox.service.dispatch.published import PublishedEvents
from proofbox.service.dispatch.pull import CallPuller
from proofbox.service.dispatch.turns import Turns
from proofbox.service.errors import CallerError, EngineUnavailableError, OurError, ShuttingDownError

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("proofbox.dispatch")

_AGAIN_S = 1.0
_LATE_S = 0.05
_ROOM_S = 0.5
_CANCELLED_EVERY_S = 0.1
_PAUSE_S, _PAUSE_S_MAX = 1.0, 60.0
_SHARE_S, _SHARE_S_MAX = 0.25, 4.0
_STOPS = ShuttingDownError("this worker stops; another one runs the call")


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Settings of a worker.

    Attributes:
        worker: this process.
        lease_s: how long a claim is valid without a renewal.
        attempts_max: how often a call may be claimed before it is set aside.
        running_max: how many calls run at a time.
    """

    worker: str
    lease_s: float
    attempts_max: int
    running_max: int


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The parts of a worker.

    Attributes:
        link: the NATS servers.
        dispatches: the dispatched calls.
        store: the calls.
        stored: prepares them.
        runner: runs them.
        admission: gives them slots.
        can_run: whether the sandbox engine answers.
        turns: publishes the next calls of a caller when one has begun or ended.
        left: ends calls whose worker was lost.
        counts: counts what is delivered.
        preparing: how many calls wait for their packages, before they wait for a slot.
    """

    link: NatsLink
    dispatches: DispatchStore
    store: CallStore
    stored: StoredCalls
    runner: CallRunner
    admission: Admission
    can_run: Callable[[], bool]
    turns: Turns
    left: LeftCalls
    counts: QueueCounts
    preparing: Callable[[], int] = lambda: 0


class Worker:
    """Runs calls that any process accepted, as many as there are slots.

    Args:
        parts: what it needs.
        settings: its settings.
    """

    def __init__(self, parts: WorkerParts, settings: WorkerSettings) -> None:
        self._parts = parts
        self._settings = settings
        self.keeper = ClaimKeeper(parts.dispatches, settings.worker, settings.lease_s)
        self._inbox = QueueInbox(parts.link, parts.dispatches, self._handle)
        self._handling: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._failures = 0
        """The count of calls in a row that the sandbox engine could not begin."""
        self._paused_until = -math.inf
        self._has_room = asyncio.Event()
        self._pulling: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to pull calls."""
        self.keeper.start()
        puller = CallPuller(self._parts.link, self._room, self._take)
        self._pulling = asyncio.create_task(puller.pull_for_ever())

    async def stop(self, grace_s: float) -> None:
        """Pull no more, give the calls that run ``grace_s`` seconds, and give those back that have not begun."""
        self._is_stopping = True
        if self._pulling is not None:
            self._pulling.cancel()
            await asyncio.gather(self._pulling, return_exceptions=True)
        await self._parts.runner.close(grace_s)
        while self._handling:
            # A call that was prepared meanwhile may have begun.
            await asyncio.wait(self._handling, timeout=_CANCELLED_EVERY_S)
            await self._parts.runner.close(0)
        await self.keeper.stop()

    def require_engine(self) -> None:
        """Check that this worker pulls calls, as far as its sandbox engine is concerned.

        Raises:
            EngineUnavailableError: it pauses, because the engine could not begin calls.
        """
        if (left_s := self._paused_until - time.monotonic()) > 0:
            raise EngineUnavailableError(
                f"engine: {self._failures} calls in a row could not begin; this worker pulls no calls for "
                f"{left_s:.0f} s, check its sandbox engine"
            )

    async def _room(self) -> int:
        """Waits for free slots; a worker that could not begin a call tries one at a time, after a pause.

        Calls that wait for their packages take none, up to as many again.
        """
        parts = self._parts
        while True:
            self._has_room.clear()
            waiting = min(parts.preparing(), len(self._handling), self._settings.running_max)
            free = self._settings.running_max - (len(self._handling) - waiting)
            if self._failures:
                free = min(free, 1 - len(self._handling))
            may_pull = parts.can_run() and self.keeper.is_valid and time.monotonic() >= self._paused_until
            if free > 0 and may_pull:
                return free
            with suppress(TimeoutError):
                async with asyncio.timeout(_ROOM_S):
                    await self._has_room.wait()

    def _take(self, message: "Msg") -> None:
        self._parts.counts.note_delivery(again=(message.metadata.num_delivered or 1) > 1)
        task = asyncio.create_task(self._inbox.handle(message))
        self._handling.add(task)
        task.add_done_callback(self._handled)

    def _handled(self, task: asyncio.Task[None]) -> None:
        self._handling.discard(task)
        self._has_room.set()
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("a call of the queue could not be handled", exc_info=exc)

    async def _handle(self, number: int, message: "Msg") -> None:
        settings = self._settings
        try:
            began = time.monotonic()
            found = await self._parts.dispatches.claim(
                number, settings.worker, settings.lease_s, settings.attempts_max
            )
            if isinstance(found, ClaimedCall):
                again_s = await self._hold(found, began, message)
            else:
                again_s = await self._refuse(number, found)
        except OurError as exc:
            log.warning("call %d cannot be claimed yet: %s", number, exc)
            again_s = _AGAIN_S
        except Exception:
            log.exception("call %d cannot be run", number)
            again_s = _AGAIN_S
        with suppress(Exception):  # what is delivered again finds the call claimed or gone
            if again_s is None:
                await message.ack()
            else:
                await message.nak(delay=again_s)

    async def _refuse(self, number: int, found: Refused) -> float | None:
        """Handle a refused call; return the seconds until its message comes again, None for never."""
        if found.why is Refusal.TAKEN:
            return found.again_in_s + _LATE_S
        if found.why is Refusal.LOST and found.stored is not None:
            await self._parts.left.end_lost(found.stored, found.claim)
        if found.why is Refusal.DEAD:
            log.error("call %d is set aside: proofbox dispatch dead show %d", number, number)
            with suppress(DispatchUnavailableError):
                await self._parts.link.set_aside(number, {"call": number, "claims": found.claim})
        return None

    async def _hold(self, claimed: ClaimedCall, began: float, message: "Msg") -> float | None:
        """Run a claimed call, whose claim is renewed meanwhile; see `_refuse` for the result."""
        number, settings = claimed.stored.number, self._settings
        claim = HeldClaim(
            self._parts.dispatches, number, claimed.claim, settings.worker, settings.lease_s, renewed_at=began
        )
        claim.failure_counts = not self._failures
        self.keeper.claims[number] = claim
        if claimed.makes_room:
            self._parts.turns.note(claimed.caller)  # in the queue
        try:
            if self._is_stopping:
                await claim.release(_STOPS)
                return 0
            await self._run(claimed, claim, message)
        except OurError as exc:
            await claim.release(exc)
            raise
        finally:
            if self.keeper.claims.get(number) is claim:
                del self.keeper.claims[number]
            if claimed.makes_room:
                self._parts.turns.note(claimed.caller)
        if isinstance(claim.given_back_for, ShareTakenError):
            return _delay_s(message)
        self._note_engine(claim)
        return _AGAIN_S if claim.is_released or claim.is_lost else None

    def _note_engine(self, claim: HeldClaim) -> None:
        """Pause after a call that the engine could not begin, each time for longer; until it begins one."""
        if claim.has_started:
            self._failures, self._paused_until = 0, -math.inf
        elif isinstance(claim.given_back_for, EngineUnavailableError) and time.monotonic() >= self._paused_until:
            pause_s = min(_PAUSE_S_MAX, _PAUSE_S * 2 ** min(self._failures, 16))
            self._failures += 1
            self._paused_until = time.monotonic() + pause_s
            log.error("the sandbox engine could not begin a call; this worker pulls none for %.3g s", pause_s)

    async def _run(self, claimed: ClaimedCall, claim: HeldClaim, message: "Msg") -> None:
        """Run a claimed call to its end."""
        parts, stored = self._parts, claimed.stored
        CURRENT_CLAIM.set(ClaimId(stored.number, claimed.claim, self._settings.worker))
        try:
            request, call = await parts.stored.read(stored)
        except CallerError as exc:
            await self._end_unprepared(stored, claim, exc)
            return
        asked = AuditedCall(stored.key, request, stored.payload_sha256, stored.created, claimed.request_id)
        running = WorkerCall(stored.key, asked, parts.admission, claim)
        running.detach()
        running.events = EventLog(before=claimed.events)
        held = HeldCall(running, claim, message)
        self.keeper.held[stored.number] = held
        try:
            async with PublishedEvents(parts.link, held):
                parts.runner.start(running, call, _marking(call, claimed.outcome))
                if claimed.stop is not None:
                    held.stop(claimed.stop)
                while parts.runner.running.get(stored.key) is running:
                    await asyncio.wait([running.answer])
        finally:
            if parts.runner.running.get(stored.key) is running:
                held.lose()  # an unforeseen error: its claim is not renewed any more
            if self.keeper.held.get(stored.number) is held:
                del self.keeper.held[stored.number]

    async def _end_unprepared(self, stored: StoredCall, claim: HeldClaim, exc: CallerError) -> None:
        """Ends a call that this release refuses, although another process accepted it."""
        ending = CallResult(CallState.FAILED, build_problem_answer(exc, ""))
        parts = await self._parts.stored.parts_of(stored, None, claim.end_effects())
        with suppress(ClaimLostError):
            await store_warning(self._parts.store, stored.key, ending, parts, CallState.OPEN)
        await self._announce(stored.number)

    async def _announce(self, number: int) -> None:
        await self._parts.link.publish(self._parts.link.subject("events", number), LOOK)


def _delay_s(message: "Msg") -> float:
    """The pause before a call whose caller has its share comes again: longer each time."""
    delivered = min(message.metadata.num_delivered or 1, 16)
    return min(_SHARE_S_MAX, _SHARE_S * 2.0 ** (delivered - 1)) * random.uniform(0.8, 1.2)  # noqa: S311 - not at once


def _marking(call: PreparedCall, outcome: str | None) -> CallRun:
    """Runs a call, or runs it on after a wait, once it is recorded that it may have effects."""
    if call.announces_start and outcome is None:
        return call.run

    async def run(observer: CallObserver) -> RunOutcome:
        await observer.before_start()
        if outcome is None:
            return await call.run(observer)
        resumed = await call.resume(WaitOutcome(**json.loads(outcome)))
        return resumed if isinstance(resumed, ToolCallResponse | Closing) else await resumed(observer)

    return run
