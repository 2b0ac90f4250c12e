"""The `Dispatch` over NATS: a call is stored, queued, and followed until a worker has ended it."""

import asyncio
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from proofbox.contracts.events import TERMINAL_EVENTS
from proofbox.contracts.tool_call_response import ProgramOutput
from proofbox.service.calls.admission import Departures
from proofbox.service.calls.answer import Answer, build_problem_answer, restore_answer
from proofbox.service.calls.call_runner import CallRunner
from proofbox.service.calls.claim import ClaimLostError
from proofbox.service.calls.dispatch import Accepted
from proofbox.service.calls.events import CallEvent
from proofbox.service.calls.interruptions import cancelled
from proofbox.service.calls.port import CallKey, CallState, CallStore, Effect, StoredCall
from proofbox.service.calls.running import RunningCall
from proofbox.service.calls.stored_calls import asked_of
from proofbox.service.calls.suspension import WaitOutcome
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.calls.waiting import WaitingCall, WaitingCalls
from proofbox.service.concurrency import RepeatedJob
from proofbox.service.dispatch.effects import EndQueued, ForgetDispatch, QueueCall, QueuePlace, ResumeDispatch
from proofbox.service.dispatch.messages import decode_event, decode_replay
from proofbox.service.dispatch.nats_link import DispatchUnavailableError, NatsLink
from proofbox.service.dispatch.port import DispatchState, DispatchStore, StopReason
from proofbox.service.dispatch.turns import Turns
from proofbox.service.errors import (
    CallAbandonedError,
    CallCancelledError,
    CallSetAsideError,
    OurError,
    ServiceError,
    UnknownCallError,
)

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("proofbox.dispatch")

_POLL_S = 1.0
_REPLAY_S = 1.0
_AT_ONCE = 1000
"""Calls of one statement that looks for those that ended."""


@dataclass(frozen=True, slots=True)
class _Look:
    """The request to look into the database, which knows more of the call."""

    is_dead: bool = False


@dataclass(frozen=True, slots=True)
class _Publish:
    """The request to put the call into the queue."""


@dataclass(frozen=True, slots=True)
class _Stop:
    """The request to have the call ended."""

    reason: CallCancelledError


@dataclass(frozen=True, slots=True)
class _Join:
    """The request to fetch earlier events."""


_Item = CallEvent | _Look | _Publish | _Stop | _Join
_LAST = frozenset({"waiting", *TERMINAL_EVENTS})
"""Events after which the database has the rest."""


@dataclass(frozen=True, slots=True)
class RemoteParts:
    """The parts of the dispatch.

    Attributes:
        link: the NATS servers.
        dispatches: the dispatched calls.
        store: the calls.
        runner: follows them.
        waiting: the calls that wait for an answer from outside.
        place_of: what one caller may have of the queue.
        turns: publishes calls that wait for the turn of their caller.
        queue_s: how long a call may wait for a worker.
        departures: how fast accepted calls of this process get workers.
    """

    link: NatsLink
    dispatches: DispatchStore
    store: CallStore
    runner: CallRunner
    waiting: WaitingCalls
    place_of: Callable[[str], QueuePlace]
    turns: Turns
    queue_s: float
    departures: Departures = field(default_factory=Departures)


class RemoteDispatch:
    """Has workers run the calls that this process accepts, and follows them.

    Events come as messages. One that is lost is noticed by the next one, or by a poll of the database each second.

    Args:
        parts: what it needs.
    """

    is_local = False

    def __init__(self, parts: RemoteParts) -> None:
        self._parts = parts
        self._link = parts.link
        self._followed: dict[int, asyncio.Queue[_Item]] = {}
        self._deferred: set[int] = set()
        """New calls of this process that wait in the database for their turn, until they are followed."""
        self._polling = RepeatedJob(self._poll_all, _POLL_S, "calls that ended cannot be looked for")

    def start(self) -> None:
        """Begin to look for calls that ended although no message came."""
        self._polling.start()

    async def stop(self) -> None:
        """Stop looking for them."""
        await self._polling.stop()

    def admit(self, caller: str) -> None:
        """See `Dispatch.admit`; the calls of all processes are counted when this one is stored."""

    def stored_with(self, accepted: Accepted) -> Sequence[Effect]:
        """See `Dispatch.stored_with`."""
        principal, queue_s = accepted.principal, self._parts.queue_s
        caller = principal.caller
        # Of the calls of this process: the other ones refuse clients of their own, who get the other places.
        next_s = self._parts.departures.next_s(caller), self._parts.departures.next_s()
        place = replace(self._parts.place_of(caller), next_s=next_s, on_deferred=self._deferred.add)
        return (QueueCall(principal.key_id, accepted.request_id, accepted.detached, queue_s, place),)

    def begin(self, runner: CallRunner, running: RunningCall, call: PreparedCall, stored: StoredCall) -> None:  # noqa: ARG002
        """See `Dispatch.begin`."""
        is_deferred = stored.number in self._deferred
        self._deferred.discard(stored.number)
        if is_deferred:  # what was before it may have got workers meanwhile, which did not know of it
            self._parts.turns.note(running.owner)
        self._parts.departures.join(running.owner)
        on_left = partial(self._parts.departures.leave, running.owner)
        self._carry(runner, running, stored, None if is_deferred else _Publish(), on_left)

    async def join(self, stored: StoredCall) -> None:
        """See `Dispatch.join`."""
        await self._parts.dispatches.keep(stored.number)

    def follow(self, runner: CallRunner, running: RunningCall, stored: StoredCall) -> None:
        """See `Dispatch.follow`."""
        self._carry(runner, running, stored, _Join())

    def resumed_with(self, outcome: WaitOutcome) -> Sequence[Effect]:
        """See `Elsewhere.resumed_with`."""
        return (ResumeDispatch(json.dumps(asdict(outcome))),)

    def end_effects(self) -> Sequence[Effect]:
        """See `Elsewhere.end_effects`."""
        return (ForgetDispatch(),)

    def go_on(self, stored: StoredCall, waiting: WaitingCall | None, *, is_new: bool) -> None:
        """See `Elsewhere.go_on`."""
        running = RunningCall(stored.key, asked_of(stored), grace_s=0)
        running.detach()
        running.take_over(waiting)
        self._carry(self._parts.runner, running, stored, _Publish() if is_new else _Join())

    def _carry(
        self,
        runner: CallRunner,
        running: RunningCall,
        stored: StoredCall,
        first: _Item | None,
        on_left: Callable[[], None] | None = None,
    ) -> None:
        followed = _FollowedCall(self._parts, runner, running, stored)
        followed.on_left = on_left
        running.on_cancel = followed.request_stop
        runner.carry(running, self._see_to_end(followed, running, stored.number, first))

    async def _see_to_end(
        self, followed: "_FollowedCall", running: RunningCall, number: int, first: _Item | None
    ) -> None:
        inbox = followed.inbox

        async def on_message(message: "Msg") -> None:
            inbox.put_nowait(decode_event(message.data) or _Look())

        self._followed[number] = inbox
        try:
            async with self._link.listening(self._link.subject("events", number), on_message):
                if first is not None:
                    inbox.put_nowait(first)
                await followed.follow()
        except DispatchUnavailableError as exc:
            log.info("call %s is not followed any more: %s", running.key.tool_call_id, exc)
        finally:
            self._followed.pop(number, None)
            followed.note_left()

    async def _poll_all(self) -> None:
        waiting = self._parts.waiting.followed()
        numbers = [*self._followed, *waiting]
        for at in range(0, len(numbers), _AT_ONCE):
            await self._poll(numbers[at : at + _AT_ONCE], waiting)

    async def _poll(self, numbers: Sequence[int], waiting: Mapping[int, CallKey]) -> None:
        states = await self._parts.dispatches.states(numbers)
        for number in numbers:
            if number in waiting and (number not in states or states[number][0] is not CallState.WAITING):
                await self._parts.waiting.look_again(waiting[number])
            if (inbox := self._followed.get(number)) is None:
                continue
            if number not in states or states[number][0] is CallState.WAITING:
                inbox.put_nowait(_Look())
            elif states[number][1] is DispatchState.DEAD:
                inbox.put_nowait(_Look(is_dead=True))


class _FollowedCall:
    """One call that another process runs."""

    def __init__(self, parts: RemoteParts, runner: CallRunner, running: RunningCall, stored: StoredCall) -> None:
        self._parts = parts
        self._runner = runner
        self._running = running
        self._stored = stored
        self._is_dead = False
        self._publishing: asyncio.Task[None] | None = None
        self.inbox = asyncio.Queue[_Item]()
        """Its events, and what else is to be done about it."""
        self.on_left: Callable[[], None] | None = None
        """Called once, when it waits for a worker no more."""

    def request_stop(self, reason: ServiceError) -> bool:
        """See `RunningCall.on_cancel`; the end of this process does not end a call that another one runs."""
        if not isinstance(reason, CallCancelledError):
            return False
        self.inbox.put_nowait(_Stop(reason))
        return True

    def note_left(self) -> None:
        """Note that it waits for a worker no more."""
        on_left, self.on_left = self.on_left, None
        if on_left is not None:
            on_left()

    async def follow(self) -> None:
        """Pass its events on until it has ended, or waits."""
        try:
            while not await self._take(await self.inbox.get()):
                pass
        finally:
            if self._publishing is not None:
                self._publishing.cancel()

    async def _take(self, event: _Item) -> bool:
        """Pass one event on; whether it was the last one."""
        if isinstance(event, _Publish):
            self._publishing = asyncio.create_task(self._publish())
            return False
        if isinstance(event, _Stop):
            return await self._stop(event.reason) or await self._look()
        if isinstance(event, _Join):
            await self._replay(sys.maxsize)
            return await self._look()
        if isinstance(event, _Look):
            return await self._look(is_dead=event.is_dead)
        events = self._running.events
        if event.id > events.last_id + 1:
            await self._replay(event.id)
        if event.name == "waiting" or (event.name in TERMINAL_EVENTS and not event.data):
            return await self._look()
        if event.id <= events.last_id:
            return False
        self._put(event)
        if event.name not in TERMINAL_EVENTS:
            return False
        state = CallState.DONE if event.name == "result" else CallState.FAILED
        self._runner.end_followed(self._running, restore_answer(state, event.data))
        return True

    async def _publish(self) -> None:
        try:
            await self._parts.link.queue(self._stored.number)
        except DispatchUnavailableError as exc:
            log.warning("call %s is published by another process: %s", self._running.key.tool_call_id, exc)

    async def _replay(self, before: int) -> None:
        """Fetch events that were missed from the worker, as far as it has them."""
        link, events = self._parts.link, self._running.events
        while events.last_id + 1 < before:
            ask = json.dumps({"after": events.last_id}).encode()
            body = await link.ask(link.subject("to", self._stored.number), ask, _REPLAY_S)
            missed = [event for event in decode_replay(body or b"[]") if event.id < before]
            missed = [event for event in missed if event.name not in _LAST]
            if not missed:
                return
            for event in missed:
                self._put(event)

    def _put(self, event: CallEvent) -> None:
        if event.name != "queued":
            self._running.has_started = True
            self.note_left()
        self._running.events.put(event)

    async def _look(self, *, is_dead: bool = False) -> bool:
        """Read the call from the database; whether it is not followed any more."""
        running, key = self._running, self._running.key
        try:
            found = await self._parts.store.find(key.scope.principal, key.tool_call_id)
        except OurError as exc:
            log.info("call %s cannot be read yet: %s", key.tool_call_id, exc)
            return False
        stored = next((call for call in found if call.number == self._stored.number), None)
        if stored is None:
            self._end(
                build_problem_answer(UnknownCallError("the call was deleted while it ran"), running.request_id)
            )
            return True
        if stored.answer is not None:
            await self._replay(sys.maxsize)  # or the last event would get the id of one that was missed
            self._end(restore_answer(stored.state, stored.answer))
            return True
        if stored.state is CallState.WAITING:
            if self._runner.running.get(key) is running:
                del self._runner.running[key]
            running.park(self._parts.waiting.begin(stored, running.events))
            await self._parts.waiting.look_again(key)
            return True
        if is_dead and not self._is_dead:
            self._is_dead = True
            running.delay(build_problem_answer(_SET_ASIDE, running.request_id))
        return False

    def _end(self, answer: Answer) -> None:
        self._running.emit("error" if answer.is_problem else "result", answer.body)
        self._runner.end_followed(self._running, answer)

    async def _stop(self, reason: CallCancelledError) -> bool:
        """Have the call ended; whether it has ended already, here."""
        running, number = self._running, self._stored.number
        is_abandoned = isinstance(reason, CallAbandonedError)
        try:
            why = StopReason.ABANDONED if is_abandoned else StopReason.CANCELLED
            found = await self._parts.dispatches.request_stop(number, why)
            if found is None:
                return False
            if found.worker is not None:
                link = self._parts.link
                await link.publish(link.subject("to", number), json.dumps({"stop": why}).encode())
                return False
            if is_abandoned and await self._parts.dispatches.withdraw(number):
                self._end(build_problem_answer(reason, running.request_id))
                return True
            left = cancelled(ProgramOutput(), None, only_waited=True)
            await self._parts.waiting.cancel(self._stored, left, reason, [EndQueued()])
        except ClaimLostError:
            log.debug("call %s got a worker as it was cancelled, which ends it", running.key.tool_call_id)
        except ServiceError as exc:
            log.warning("call %s cannot be cancelled yet: %s", running.key.tool_call_id, exc)
        return False


_SET_ASIDE = CallSetAsideError(
    "the call was set aside, because no worker could begin it; its operator releases it (proofbox dispatch dead), "
    "ask for it later, or cancel it"
)
