"""The waiting calls: those who follow them, and how an answer from outside ends them or lets them run on."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.answer import Answer, build_problem_answer, restore_answer
from proofbox.service.calls.answer_writer import CallResult
from proofbox.service.calls.call_status import build_status
from proofbox.service.calls.events import EventLog
from proofbox.service.calls.interruptions import Interruption
from proofbox.service.calls.port import CallKey, CallState, CallStore, Effect, StoredCall
from proofbox.service.calls.stored_calls import UNREADABLE, StoredCalls, build_done, store_warning
from proofbox.service.calls.suspension import CallRun, Closing, WaitOutcome
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.errors import CallerError, InvalidRequestError, OurError, ServiceError

log = logging.getLogger("proofbox.calls")

_ACCEPTED = 202


@dataclass(slots=True)
class WaitingCall:
    """A waiting call that somebody in this process follows, or asked for.

    Attributes:
        answer: the 202 that shows what it waits for.
        events: its events so far.
        number: `StoredCall.number`.
        ended: the next answer: the call's own, or another 202 if it waits once more.
    """

    answer: Answer
    events: EventLog
    number: int
    ended: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class RunningCalls(Protocol):
    """The calls that run, as far as the waiting ones need them."""

    def run_on(self, stored: StoredCall, call: PreparedCall, run: CallRun, waiting: WaitingCall | None) -> None:
        """Run a call that waited and is open again."""

    def is_running(self, key: CallKey) -> bool:
        """Whether a call runs in this process."""

    def count_end(self, stored: StoredCall, ending: CallResult) -> None:
        """Log and count a call that has ended without running on."""

    def remember(self, stored: StoredCall, events: EventLog) -> None:
        """Keep the events of an ended call."""


class Elsewhere(Protocol):
    """The workers of other processes, as far as waiting calls need them."""

    def resumed_with(self, outcome: WaitOutcome) -> Sequence[Effect]:
        """The changes that are stored when a call runs on."""

    def go_on(self, stored: StoredCall, waiting: WaitingCall | None, *, is_new: bool) -> None:
        """Follow a call that waited and runs on; ``is_new``: it has to be queued."""

    def end_effects(self) -> Sequence[Effect]:
        """The changes that are stored when a call ends in its wait."""


class WaitingCalls:
    """The waiting calls of the service.

    Args:
        store: the calls.
        stored: prepares them again.
        running: the calls that run.
        boot_id: this process of the service.
    """

    def __init__(self, store: CallStore, stored: StoredCalls, running: RunningCalls, boot_id: str) -> None:
        self._store = store
        self._stored = stored
        self._running = running
        self._boot_id = boot_id
        self._known: dict[CallKey, WaitingCall] = {}
        self._resuming: list[CallKey] = []
        self._is_closed = False
        self.elsewhere: Elsewhere | None = None
        """Who runs calls on; None: this process."""

    def begin(self, stored: StoredCall, events: EventLog) -> WaitingCall:
        """A call of this process begins to wait; those who follow its events learn what for."""
        if (other := self._known.get(stored.key)) is not None:
            self._let_go(other)
        waiting = self._known[stored.key] = WaitingCall(_accepted(stored), events, stored.number)
        if stored.state is CallState.WAITING:
            events.append("waiting", stored.wait or "{}")
        if self._is_closed:
            self._let_go(waiting)
        return waiting

    async def follow(self, stored: StoredCall) -> WaitingCall:
        """A call that waited when it was read, also one that an earlier process left, or one that `has` names."""
        known = self._known.get(stored.key)
        if known is not None and stored.state is CallState.WAITING:
            return known
        waiting = known or self.begin(stored, EventLog())
        await self.look_again(stored.key)
        return waiting

    async def look_again(self, key: CallKey) -> None:
        """Settles a call that went on or ended before those who follow it were known here; nobody else would."""
        try:
            stored = await self._find(key)
        except OurError as exc:
            log.warning("call %s may have ended before it was followed: %s", key.tool_call_id, exc)
            return
        if (stored is not None and stored.state is CallState.WAITING) or key in self._resuming:
            return
        if stored is not None:
            self.settle(stored)
        if (left := self._known.pop(key, None)) is None:
            return
        if self.elsewhere is not None and stored is not None and stored.state is CallState.OPEN:
            self.elsewhere.go_on(stored, left, is_new=False)
        else:
            self._let_go(left)  # it runs, or was deleted

    def has(self, key: CallKey) -> bool:
        """Whether those who follow a call do that here: it waits, or is about to run on."""
        return key in self._known or key in self._resuming

    def followed(self) -> dict[int, CallKey]:
        """The calls that are followed here, by their numbers."""
        return {waiting.number: key for key, waiting in self._known.items()}

    def goes_on(self, key: CallKey) -> bool:
        """Whether a call runs in this process, or is about to run on after a wait."""
        return self._running.is_running(key) or key in self._resuming

    async def _find(self, key: CallKey) -> StoredCall | None:
        found = await self._store.find(key.scope.principal, key.tool_call_id)
        return next((call for call in found if call.key.scope == key.scope), None)

    async def resolve(self, stored: StoredCall, outcome: WaitOutcome, effects: Sequence[Effect]) -> bool:
        """Ends the wait of a call: with its answer, or by letting it run on.

        Args:
            stored: the call, which waits.
            outcome: how the wait ended.
            effects: what is stored in the same transaction, before the effects of the call's own end.

        Returns:
            Whether it waited and this ended its wait.

        Raises:
            ServiceError: an effect refused, or the store failed: nothing is stored.
        """
        try:
            call = await self._stored.prepare(stored)
        except CallerError as exc:
            ending = CallResult(CallState.FAILED, build_problem_answer(exc, ""))
            return await self._end(stored, ending, effects)
        try:
            resumed = await call.resume(outcome)
        except UNREADABLE:  # it would fail again: the call ends, so that its run goes on
            log.exception("call %s cannot take what its wait stored", stored.key.tool_call_id)
            problem = InvalidRequestError("what its wait stored does not fit this release; call again")
            ending = CallResult(CallState.FAILED, build_problem_answer(problem, ""))
            return await self._end(stored, ending, effects)
        if isinstance(resumed, ToolCallResponse | Closing):
            end = resumed if isinstance(resumed, Closing) else await build_done(resumed)
            return await self._end(stored, end, effects, call)
        if self.elsewhere is not None:
            also = self.elsewhere.resumed_with(outcome)
            new = await self._store.resume(stored.key, self._boot_id, [*effects, *also])
            if new is not None:
                self.elsewhere.go_on(new, self._known.pop(new.key, None), is_new=True)
            return new is not None
        self._resuming.append(stored.key)
        try:
            new = await self._resume(stored.key, effects)
            if new is not None:
                self._running.run_on(new, call, resumed, self._known.pop(new.key, None))
        finally:
            self._resuming.remove(stored.key)
        return new is not None

    async def _resume(self, key: CallKey, effects: Sequence[Effect]) -> StoredCall | None:
        try:
            return await self._store.resume(key, self._boot_id, effects)
        except OurError:
            new = await self._find(key)
            is_ours = new is not None and new.state is CallState.OPEN and new.boot_id == self._boot_id
            if not is_ours or self._running.is_running(key) or self._resuming.count(key) > 1:
                raise
            return new  # it was stored, although the store reported a failure

    async def cancel(
        self, stored: StoredCall, why: Interruption, reason: ServiceError, effects: Sequence[Effect] = ()
    ) -> bool:
        """Cancels a waiting call, or an open one that nobody runs; one that has gone on since stays as it is.

        ``effects`` are stored with its end. Raises what `CallStore.finish` does.
        """
        answer = build_problem_answer(reason, "")
        try:
            call = await self._stored.prepare(stored)
        except CallerError:
            return await self._end(stored, CallResult(CallState.CANCELLED, answer), effects, was=stored.state)
        ending = CallResult(CallState.CANCELLED, answer, call.interrupt(why))
        return await self._end(stored, ending, effects, call, was=stored.state)

    async def _end(
        self,
        stored: StoredCall,
        ending: CallResult | Closing,
        effects: Sequence[Effect],
        call: PreparedCall | None = None,
        was: CallState = CallState.WAITING,
    ) -> bool:
        if self.elsewhere is not None:
            effects = [*effects, *self.elsewhere.end_effects()]
        parts = await self._stored.parts_of(stored, call, effects)
        new, result = await store_warning(self._store, stored.key, ending, parts, was)
        if result is None:
            return False
        self.settle(new)
        self._running.count_end(new, result)
        return True

    def settle(self, stored: StoredCall) -> None:
        """Sends those who follow a call its answer, if it has one that they have not received."""
        if stored.answer is None or (waiting := self._known.pop(stored.key, None)) is None:
            return
        answer = restore_answer(stored.state, stored.answer)
        waiting.events.append("error" if answer.is_problem else "result", answer.body)
        self._running.remember(stored, waiting.events)
        if not waiting.ended.done():
            waiting.ended.set_result(answer)

    def close(self) -> None:
        """Lets go those who follow: the service stops, and the calls wait on."""
        self._is_closed = True
        for waiting in self._known.values():
            self._let_go(waiting)
        self._known.clear()

    @staticmethod
    def _let_go(waiting: WaitingCall) -> None:
        waiting.events.stop()
        if not waiting.ended.done():
            waiting.ended.set_result(waiting.answer)


def _accepted(stored: StoredCall) -> Answer:
    status = build_status(stored)
    return Answer(_ACCEPTED, status.model_dump_json(), is_problem=False)
