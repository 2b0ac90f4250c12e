"""A running call, and the ticket that a request has for it."""

import asyncio
import codecs
import time
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from proofbox.contracts.events import EventName, OutputEvent, QueuedEvent, StartedEvent
from proofbox.contracts.network import ListedConnections, NetworkConnection
from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.calls.answer import Answer
from proofbox.service.calls.audit.audit_record import AuditedCall
from proofbox.service.calls.claim import Claim
from proofbox.service.calls.clients import CallClients
from proofbox.service.calls.events import CallEvent, EventLog
from proofbox.service.calls.interruptions import Interruption, cancelled
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.port import CallKey
from proofbox.service.calls.waiting import WaitingCall
from proofbox.service.errors import CallAbandonedError, ServiceError
from proofbox.service.observability.tracing import NO_SPAN, Span
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.port import StreamName

_UTF_8 = codecs.getincrementaldecoder("utf-8")


class MarkQueued(Protocol):
    """Stores whether a call waits for a slot."""

    async def __call__(self, *, is_queued: bool) -> None:
        """Store it. Raises StoreFailedError."""


class QueueMark:
    """Records of a call whether it waits for a slot: if the service ends meanwhile, the next start runs it.

    Args:
        mark: stores it.
        is_stored: whether it is stored as waiting.
    """

    def __init__(self, mark: "MarkQueued", *, is_stored: bool) -> None:
        self._mark = mark
        self._is_stored = is_stored
        self._storing: asyncio.Task[None] | None = None

    def wait(self) -> None:
        """It waits."""
        if not self._is_stored and self._storing is None:
            self._storing = asyncio.create_task(self.store())
            self._storing.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def store(self) -> None:
        """Record that it waits. Raises StoreFailedError."""
        if not self._is_stored:
            await self._mark(is_queued=True)
            self._is_stored = True

    async def clear(self) -> None:
        """Record that its program is about to begin. Raises StoreFailedError: it may not."""
        if self._storing is not None:
            await asyncio.wait([self._storing])
        if self._is_stored:
            await self._mark(is_queued=False)
            self._is_stored = False


class RunningCall(CallObserver):
    """A running call of this process: its task, its events and its clients."""

    __slots__ = (
        "_connections",
        "_decoders",
        "answer",
        "asked",
        "began",
        "cancel_reason",
        "claim",
        "clients",
        "detached",
        "events",
        "has_started",
        "is_finishing",
        "is_suspending",
        "key",
        "on_cancel",
        "queue_mark",
        "request_id",
        "span",
        "task",
        "tool_id",
        "waiting",
    )

    def __init__(self, key: CallKey, asked: AuditedCall, *, grace_s: float, claim: Claim | None = None) -> None:
        super().__init__(key.scope.principal.caller)
        self.key = key
        self.asked = asked
        self.claim = claim
        self.span: Span = NO_SPAN
        self.tool_id = asked.request.tool_id
        self.began = time.perf_counter()
        self.request_id = asked.request_id or ""
        self.detached = False
        loop = asyncio.get_running_loop()
        self.clients = CallClients(grace_s, self._abandon, loop.call_later)
        self.has_started = False
        self.is_suspending = False
        self.is_finishing = False
        self.waiting: WaitingCall | None = None
        self.events = EventLog()
        self.answer: asyncio.Future[Answer] = loop.create_future()
        self.task: asyncio.Task[None] | None = None
        self.cancel_reason: ServiceError | None = None
        self.on_cancel: Callable[[ServiceError], bool] | None = None
        """Of a call that another process runs: has that end it, unless it returns False."""
        self.queue_mark: QueueMark | None = None
        """Of a call that this process runs, and that may wait for a slot."""
        self._connections = ListedConnections()
        # Pieces end anywhere: a character that is cut is completed by the next piece.
        self._decoders: dict[StreamName, codecs.IncrementalDecoder] = {}

    def emit(self, name: EventName, data: str) -> None:
        """Adds an event for those who follow."""
        self.events.append(name, data)

    @property
    def only_waited(self) -> bool:
        """Whether it came as far as the queue or the engine, so that no program of it can have run."""
        return self.events.last_id > 0 and not self.has_started

    def on_queued(self, position: int) -> None:
        """See `CallObserver.on_queued`."""
        if position and self.queue_mark is not None:
            self.queue_mark.wait()
        self.emit("queued", QueuedEvent(position=position).model_dump_json())

    async def before_start(self) -> None:
        """See `CallObserver.before_start`."""
        if self.queue_mark is not None:
            await self.queue_mark.clear()
        if self.claim is not None:
            await self.claim.start()
            self.has_started = True

    def on_limits(self, limits: CallLimits) -> None:
        """See `CallObserver.on_limits`."""
        super().on_limits(limits)
        if self.claim is not None:
            self.claim.prepare_start()

    def on_running(self) -> None:
        """See `CallObserver.on_running`."""
        self.has_started = True

    def on_started(self, sandbox: SandboxInfo) -> None:
        """See `CallObserver.on_started`."""
        super().on_started(sandbox)
        self.has_started = True
        self.emit("started", StartedEvent(acquired=sandbox.acquired).model_dump_json())

    def on_output(self, stream: StreamName, piece: bytes, truncated: bool) -> None:
        """See `CallObserver.on_output`."""
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = _UTF_8("replace")
        text = decoder.decode(piece)
        if text or truncated:
            self.emit(stream, OutputEvent(text=text, truncated=truncated).model_dump_json())

    def on_connection(self, connection: NetworkConnection) -> None:
        """See `CallObserver.on_connection`."""
        if self._connections.take(connection):
            self.emit("connection", connection.model_dump_json())

    def detach(self) -> None:
        """Lets it run on without clients: it was made, or is asked for, with ``Prefer: respond-async``."""
        self.detached = True
        self.clients.disarm()

    async def follow(self, after: int) -> AsyncIterator[CallEvent]:
        """Yields its events with an id above ``after`` as they come; a follower counts as a client."""
        self.clients.join()
        try:
            async for event in self.events.follow(after):
                yield event
        finally:
            self.clients.leave()

    def interruption(self) -> Interruption:
        """What is known of it when it is cancelled."""
        return cancelled(self.events.printed(), self.record.sandbox, only_waited=self.only_waited)

    def _abandon(self) -> None:
        way_out = "nothing was run, call again" if self.only_waited else "call again under a new id"
        why = "its connection was lost and nobody asked for it again"
        self.cancel(CallAbandonedError(f"the call was cancelled: {why}; {way_out}"))

    def delay(self, problem: Answer) -> None:
        """Answers the waiting clients that the answer cannot be stored yet; later ones wait for the next try."""
        self.answer.set_result(problem)
        self.answer = asyncio.get_running_loop().create_future()

    @property
    def is_parked(self) -> bool:
        """Whether it does not run any more, but waits."""
        return self.waiting is not None

    def park(self, waiting: WaitingCall) -> None:
        """It begins to wait: its clients learn what for, and may wait for its end."""
        self.waiting = waiting
        self.answer.set_result(waiting.answer)

    def take_over(self, waiting: WaitingCall | None) -> None:
        """Goes on for those who follow the call since it waited."""
        self.has_started = True  # it may have had effects before
        if waiting is not None:
            self.events, self.answer = waiting.events, waiting.ended

    def cancel(self, reason: ServiceError) -> None:
        """Ends it, once; ``reason`` is what it will be answered with."""
        if self.is_suspending:
            return  # it waits in a moment, and is cancelled as a waiting call then
        if self.is_finishing:
            return  # it has ended, and its answer is being stored
        if self.on_cancel is not None and self.on_cancel(reason):
            return
        if self.task is not None and self.cancel_reason is None and not self.answer.done():
            self.cancel_reason = reason
            self.task.cancel()


class CallTicket:
    """One request's hold on a call."""

    def __init__(self, key: CallKey, answer: Answer | None, running: RunningCall | WaitingCall | None) -> None:
        self.key = key
        self.replayed = answer is not None
        """Whether the answer was stored before this request."""
        self._answer = answer
        self._running = running if isinstance(running, RunningCall) else None
        self._waiting = running if isinstance(running, WaitingCall) else None
        if self._running is not None:
            self._running.clients.join()

    def answered(self) -> asyncio.Future[Answer]:
        """The call's answer when there is one, to be waited for and never to be cancelled: others wait for it too.

        A ServiceError has become a problem. Of a call that waits for an answer from outside it is the 202
        that shows it; `ended` is then the next one.
        """
        if self._running is not None:
            return self._running.answer
        if self._waiting is not None:
            return _ended_future(self._waiting.answer)
        if self._answer is None:
            raise AssertionError("a ticket has an answer or a running call")
        return _ended_future(self._answer)

    def ended(self) -> asyncio.Future[Answer]:
        """As `answered`, but what comes after the wait of a call that waits."""
        waiting = self._waiting if self._running is None else self._running.waiting
        return self.answered() if waiting is None else waiting.ended

    async def answer(self) -> Answer:
        """Waits for the answer."""
        return await asyncio.shield(self.answered())

    async def leave(self) -> None:
        """The client of a synchronous request went away; when the last one has left, a grace time begins."""
        if self._running is not None:
            self._running.clients.leave()


def _ended_future(answer: Answer) -> asyncio.Future[Answer]:
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    future.set_result(answer)
    return future
