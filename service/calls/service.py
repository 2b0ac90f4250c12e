"""Accepted calls: each runs once and has one answer, whichever clients join, leave or cancel."""

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from pydantic import ValidationError

from proofbox.contracts.problems import FieldError
from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import CallStatus, ProgramOutput
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.answer import Answer, restore_answer
from proofbox.service.calls.audit.audit_record import AuditedCall
from proofbox.service.calls.call_runner import CallRunner, CallSettings
from proofbox.service.calls.call_status import build_status
from proofbox.service.calls.dispatch import Accepted, Dispatch, LocalDispatch
from proofbox.service.calls.events import CallEvent, EventLog
from proofbox.service.calls.interruptions import SERVICE_STOPPED, cancelled
from proofbox.service.calls.invalid_params import find_mistakes, prepare_call
from proofbox.service.calls.lookup import find_call
from proofbox.service.calls.port import CallKey, CallState, CallStore, StoredCall
from proofbox.service.calls.registration import CallRegistry, new_call
from proofbox.service.calls.running import CallTicket, QueueMark, RunningCall
from proofbox.service.calls.stored_calls import StoredCalls, asked_of
from proofbox.service.calls.suspension import no_effects
from proofbox.service.calls.tool import PreparedCall, RunTools, Tools
from proofbox.service.calls.waiting import WaitingCalls
from proofbox.service.errors import (
    CallCancelledError,
    CallerError,
    ServiceError,
    ShuttingDownError,
    UnknownToolError,
)
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.observability.metrics_port import Meter
from proofbox.service.observability.tracing import open_span

__all__ = ["Answer", "CallEvent", "CallSettings", "CallTicket", "Calls"]

log = logging.getLogger("proofbox.calls")

_CANCELS_WITHIN_S = 5.0
_ENDS_WITHIN_S = 5.0  # of a call whose answer is stored: its files are being hosted
_CANCELLED = "the call was cancelled; call again under a new id"


class Calls:
    """The calls of this process of the service."""

    def __init__(
        self,
        tools: Tools,
        admission: Admission,
        store: CallStore,
        settings: CallSettings,
        meter: Meter | None = None,
        runs: RunTools | None = None,
    ) -> None:
        self._tools = tools
        self._runs = runs
        self._admission = admission
        self._store = store
        self._settings = settings
        self.dispatch: Dispatch = LocalDispatch()
        """Which process runs accepted calls; set before the first one."""
        self._is_closing = False
        self.runner = CallRunner(store, settings, meter, lambda: self._is_closing)
        self._running = self.runner.running
        service = AuditService(version=settings.version, boot_id=settings.boot_id)
        self.stored = StoredCalls(self._prepare, store, service, no_effects if runs is None else runs.conclude_lost)
        self.waiting = WaitingCalls(store, self.stored, self.runner, settings.boot_id)
        self.runner.waiting = self.waiting
        self._registry = CallRegistry(store, settings.boot_id, self._goes_on)

    async def recover(self) -> int:
        """Answers the calls that an earlier process left open while they ran, and returns how many.

        A store has one process at a time, so every other boot id in it is of one that has ended. Those that waited
        for a slot are queued again, in their order; those that wait for an answer from outside wait on. Of many
        processes, each looks for what a lost one left.
        """
        if not self.dispatch.is_local:
            return 0
        left_open = await self._store.left_open(self._settings.boot_id)
        ran = [left for left in left_open if not left.is_queued or not await self._queue_again(left)]
        for left in ran:
            await self.stored.end_lost(left, SERVICE_STOPPED)
        return len(ran)

    async def _queue_again(self, left: StoredCall) -> bool:
        """Queues a call that waited for a slot when its process ended; False if this release refuses it."""
        try:
            call = await self.stored.prepare(left)
        except CallerError:
            return False
        await self._store.mark_queued(left.key, self._settings.boot_id, is_queued=True)
        running = RunningCall(left.key, asked_of(left), grace_s=self._settings.lost_connection_grace_s)
        running.detach()
        running.queue_mark = self._queue_mark(left.key, is_stored=True)
        self.runner.start(running, call, call.run)
        return True

    def _queue_mark(self, key: CallKey, *, is_stored: bool) -> QueueMark:
        mark = partial(self._store.mark_queued, key, self._settings.boot_id)
        return QueueMark(mark, is_stored=is_stored)

    async def submit(
        self,
        principal: Principal,
        request: ToolCallRequest,
        *,
        idempotency_key: str | None,
        request_id: str,
        detached: bool,
        run_lease: int | None = None,
    ) -> CallTicket:
        """Accepts a call, joins the one that is running, or finds the answer of one that has ended.

        ``run_lease`` is the sender's lease of the run that the request names.

        Raises:
            UnknownToolError, InvalidRequestError, LimitNotAllowedError: the request is wrong.
            IdReusedError: the id or the key is taken by another payload.
            QueueFullError, ShuttingDownError: not now; nothing was run.
            StoreFailedError, StoreFullError: the call could not be registered; nothing was run.
        """
        if self._is_closing:
            raise ShuttingDownError("the service is shutting down; call again in a moment", retry_after_s=5)
        scope = ConversationKey(principal, request.conversation_id)
        request, call = await self._find_tool(scope, request, run_lease)
        key = CallKey(scope, request.tool_call_id)
        await self._registry.admit(key, partial(self._admit, principal, call))
        also = self.dispatch.stored_with(Accepted(principal, request_id, detached))
        effects = [*call.on_accept, *also]
        may_wait = call.announces_start and self.dispatch.is_local
        is_queued = may_wait and not self._admission.has_slot(principal.caller)
        boot_id = self._settings.boot_id
        new = await new_call(key, request, boot_id, idempotency_key, effects, is_queued=is_queued)
        async with self._registry.register(new) as (stored, is_new):
            if not is_new:
                return await self._known(stored, detached=detached)
            try:
                # Others wait until their deadline, and are answered then.
                if call.may_be_forgotten and self.dispatch.is_local:
                    self._admission.refuse_if_full(principal.caller)
            except ServiceError:
                await self._store.forget(key)
                raise
            asked = AuditedCall(key, request, new.payload_sha256, stored.created, request_id)
            running = RunningCall(key, asked, grace_s=self._settings.lost_connection_grace_s)
            if detached:
                running.detach()
            if may_wait:
                running.queue_mark = self._queue_mark(key, is_stored=is_queued)
            self.dispatch.begin(self.runner, running, call, stored)
            return CallTicket(key, None, running)

    def find_mistakes(self, principal: Principal, body: Any, refused: ValidationError) -> list[FieldError]:
        """What is wrong with a request of which the envelope was refused, beyond that; see `find_mistakes`."""
        return find_mistakes(self._tools, ConversationKey(principal, "any"), body, refused)

    def _admit(self, principal: Principal, call: PreparedCall) -> None:
        call.admit()
        self.dispatch.admit(principal.caller)

    async def status(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        """Returns the status of a call, and restarts the grace time of a lost connection.

        Raises:
            UnknownCallError: no call of that id.
            AmbiguousCallError: several conversations have one; ``conversation_id`` selects one.
        """
        stored = await find_call(self._store, principal, tool_call_id, conversation_id)
        running = self._running.get(stored.key)
        if running is not None:
            running.clients.restart_grace()
        self.waiting.settle(stored)
        return self._status(stored)

    async def cancel(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        """Cancels a call; one that has ended stays as it is. Raises as `status` does."""
        stored = await find_call(self._store, principal, tool_call_id, conversation_id)
        running = self._running.get(stored.key)
        if running is None and stored.state is CallState.OPEN and not self.dispatch.is_local:
            running = await self._follow(stored)
        if running is not None:
            running.cancel(CallCancelledError(_CANCELLED))
            # A store that does not answer delays the end of a call, not the client that cancels it.
            await asyncio.wait([running.answer], timeout=_CANCELS_WITHIN_S)
            stored = await find_call(self._store, principal, tool_call_id, stored.key.scope.conversation_id)
        if stored.state is CallState.WAITING or self._is_left(stored):
            why = cancelled(ProgramOutput(), None, only_waited=False)
            await self.waiting.cancel(stored, why, CallCancelledError(_CANCELLED))
        return self._status(await find_call(self._store, principal, tool_call_id, stored.key.scope.conversation_id))

    async def events(
        self, principal: Principal, tool_call_id: str, conversation_id: str | None, *, after: int
    ) -> AsyncIterator[CallEvent]:
        """The events of a call with an id above ``after``, ending with the terminal one.

        Of a call that ended long ago, or in an earlier process, only the terminal one is left.
        Raises as `status` does.
        """
        stored = await find_call(self._store, principal, tool_call_id, conversation_id)
        running = self._running.get(stored.key)
        if running is not None:
            return running.follow(after)
        self.waiting.settle(stored)
        if stored.answer is not None:
            return self._replay(stored, stored.answer, after)
        if stored.state is CallState.WAITING or self.waiting.has(stored.key):
            events = (await self.waiting.follow(stored)).events
            return events.follow(min(after, events.last_id))
        if not self.dispatch.is_local:
            return (await self._follow(stored)).follow(after)
        # Open, but not ours: it has ended since we asked.
        fresh = await find_call(self._store, principal, tool_call_id, stored.key.scope.conversation_id)
        if fresh.answer is None:
            raise ShuttingDownError("another process of the service runs this call; ask for its status instead")
        return self._replay(fresh, fresh.answer, after)

    def _replay(self, stored: StoredCall, answer: str, after: int) -> AsyncIterator[CallEvent]:
        """What is remembered of an ended call, and its terminal event, even if ``after`` is beyond it."""
        log = EventLog(self.runner.ended.events_of((stored.key, stored.created)))
        log.append("result" if stored.state is CallState.DONE else "error", answer)
        return log.follow(min(after, log.last_id - 1))

    def _goes_on(self, key: CallKey) -> bool:
        """Whether an open call of this process runs, or will; that of many processes is found by its claim."""
        return not self.dispatch.is_local or self.waiting.goes_on(key)

    async def is_busy(self, scope: ConversationKey) -> bool:
        """Whether a call of a conversation runs, waits, or is about to be accepted.

        One whose answer is stored has ended for its clients: what it still does here is waited for.

        Raises:
            StoreFailedError: the store failed.
        """
        for key, running in list(self._running.items()):
            if key.scope == scope:
                found = await self._store.find(scope.principal, key.tool_call_id)
                if any(call.key == key and call.answer is not None for call in found):
                    await asyncio.wait([running.answer], timeout=_ENDS_WITHIN_S)
        return self._registry.is_claiming(scope) or any(key.scope == scope for key in self._running)

    def _is_left(self, stored: StoredCall) -> bool:
        """Whether a call of this process is open and nothing runs it: the store failed where it was to go on."""
        is_ours = stored.state is CallState.OPEN and stored.boot_id == self._settings.boot_id
        is_ours = is_ours and self.dispatch.is_local
        return is_ours and not self.waiting.goes_on(stored.key) and not self._registry.is_claiming(stored.key.scope)

    def forget_conversation(self, scope: ConversationKey) -> None:
        """Forgets the events of the ended calls of a conversation that was deleted."""
        self.runner.ended.forget_those(lambda named: isinstance(named, tuple) and named[0].scope == scope)

    async def close(self, grace_s: float) -> None:
        """Takes no new calls, gives those that run ``grace_s`` seconds, then cancels them."""
        self._is_closing = True
        await self.runner.close(grace_s)
        self.waiting.close()

    @property
    def is_closing(self) -> bool:
        """Whether no new calls are taken any more."""
        return self._is_closing

    async def _prepare(self, scope: ConversationKey, request: ToolCallRequest) -> PreparedCall:
        return (await self._find_tool(scope, request, None))[1]

    async def _find_tool(
        self, scope: ConversationKey, request: ToolCallRequest, run_lease: int | None
    ) -> tuple[ToolCallRequest, PreparedCall]:
        if request.run_id is not None and self._runs is not None:
            return await self._runs.prepare(scope, request, run_lease)
        if (call := prepare_call(self._tools, scope, request)) is not None:
            return request, call
        raise UnknownToolError(f"there is no tool '{request.tool_id[:80]}'; GET /v1/tools lists them")

    async def _known(self, stored: StoredCall, *, detached: bool) -> CallTicket:
        if stored.answer is not None:
            self.waiting.settle(stored)
            return CallTicket(stored.key, restore_answer(stored.state, stored.answer), None)
        if stored.state is CallState.WAITING:
            return CallTicket(stored.key, None, await self.waiting.follow(stored))
        running = self._running.get(stored.key)
        if running is None and self.dispatch.is_local:
            if self.waiting.has(stored.key):
                return CallTicket(stored.key, None, await self.waiting.follow(stored))
            raise ShuttingDownError("another process of the service runs this call; ask for its status instead")
        if running is None:
            running = await self._follow(stored)
        if detached:
            running.detach()
        open_span().link(running.span.traceparent)
        return CallTicket(stored.key, None, running)

    async def _follow(self, stored: StoredCall) -> RunningCall:
        """Follows an open call that another process accepted; its clients here do not decide whether it goes on."""
        await self.dispatch.join(stored)
        if self.waiting.has(stored.key):  # another process has let it run on: its events go on
            await self.waiting.look_again(stored.key)
        asked = await asyncio.to_thread(asked_of, stored)
        if (known := self._running.get(stored.key)) is not None:
            return known
        running = RunningCall(stored.key, asked, grace_s=self._settings.lost_connection_grace_s)
        # It may have ended since it was read.
        running.events = EventLog(self.runner.ended.events_of((stored.key, stored.created)))
        running.detach()
        self.dispatch.follow(self.runner, running, stored)
        return running

    def _status(self, stored: StoredCall) -> CallStatus:
        running = self._running.get(stored.key)
        # Another process may have ended it, of which this one has not heard yet.
        is_open = stored.state is CallState.OPEN
        return build_status(stored, is_queued=is_open and running is not None and not running.has_started)
