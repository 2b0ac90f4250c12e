"""Accepted calls: each runs once and has one answer, whichever clients join, leave or cancel."""

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from proofbox.contracts.problems import Problem
from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import CallStatus, ProgramOutput, ToolCallResponse
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.answer import Answer, build_problem_answer, build_shutdown_error, restore_answer
from proofbox.service.calls.answer_writer import AnswerWriter, CallResult
from proofbox.service.calls.audit_record import AuditedCall, log_audit_line, outcome_code, span_attributes
from proofbox.service.calls.call_status import build_status
from proofbox.service.calls.events import CallEvent, EndedCalls, EventLog
from proofbox.service.calls.interruptions import cancelled
from proofbox.service.calls.invalid_params import prepare_call
from proofbox.service.calls.lookup import find_call
from proofbox.service.calls.port import CallKey, CallState, CallStore, EffectRefusedError, StoredCall
from proofbox.service.calls.registration import CallRegistry, new_call
from proofbox.service.calls.running import CallTicket, RunningCall
from proofbox.service.calls.stored_calls import CallParts, StoredCalls, asked_of, build_done
from proofbox.service.calls.suspension import CallRun, Suspension, no_effects
from proofbox.service.calls.tool import PreparedCall, RunTools, Tools
from proofbox.service.calls.waiting import WaitingCall, WaitingCalls
from proofbox.service.errors import (
    CallAbandonedError,
    CallCancelledError,
    OurError,
    ServiceError,
    ShuttingDownError,
    UnknownToolError,
)
from proofbox.service.identity import ConversationKey, Principal
from proofbox.service.observability.log_context import about
from proofbox.service.observability.metrics_port import EndedCall, Meter, NoMeter
from proofbox.service.observability.tracing import open_span, span

__all__ = ["Answer", "CallEvent", "CallSettings", "CallTicket", "Calls"]

log = logging.getLogger("proofbox.calls")

_CANCELS_WITHIN_S = 5.0
_CANCELLED = "the call was cancelled; call again under a new id"


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Settings of calls.

    Attributes:
        event_log_bytes_max: how much of the output of ended calls can still be followed.
        boot_id: this process of the service.
        version: the release, as audit lines name it.
        lost_connection_grace_s: how long a call runs on after its last connection was lost.
    """

    event_log_bytes_max: int
    boot_id: str
    version: str = "0"
    lost_connection_grace_s: float = 120.0


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
        self._service = AuditService(version=settings.version, boot_id=settings.boot_id)
        self._meter = meter or NoMeter()
        self._running: dict[CallKey, RunningCall] = {}
        self._ended = EndedCalls(settings.event_log_bytes_max)
        self._is_closing = False
        self._writer = AnswerWriter(store, lambda: self._is_closing)
        self._stored = StoredCalls(
            self._prepare, store, self._service, no_effects if runs is None else runs.conclude_lost
        )
        self.waiting = WaitingCalls(store, self._stored, self, settings.boot_id)
        self._registry = CallRegistry(store, settings.boot_id, self.waiting.goes_on)
        self._late: set[asyncio.Task[None]] = set()

    async def recover(self) -> int:
        """Answers the calls that an earlier process left open, and returns how many.

        A store has one process at a time, so every other boot id in it is of one that has ended. Those that
        wait for an answer from outside wait on.
        """
        return await self._stored.recover(self._settings.boot_id)

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
        await self._registry.admit(key, call.admit)
        new = await new_call(key, request, self._settings.boot_id, idempotency_key, call.on_accept)
        async with self._registry.register(new) as (stored, is_new):
            if not is_new:
                return await self._known(stored, detached=detached)
            try:
                if call.may_be_forgotten:  # others wait until their deadline, and are answered then
                    self._admission.refuse_if_full(principal.caller)
            except ServiceError:
                await self._store.forget(key)
                raise
            asked = AuditedCall(key, request, new.payload_sha256, stored.created, request_id)
            running = RunningCall(key, asked, grace_s=self._settings.lost_connection_grace_s)
            if detached:
                running.detach()
            self._start(running, call, call.run)
            return CallTicket(key, None, running)

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
        if stored.state is CallState.WAITING:
            events = (await self.waiting.follow(stored)).events
            return events.follow(min(after, len(events)))
        # Open, but not ours: it has ended since we asked.
        fresh = await find_call(self._store, principal, tool_call_id, stored.key.scope.conversation_id)
        if fresh.answer is None:
            raise ShuttingDownError("another process of the service runs this call; ask for its status instead")
        return self._replay(fresh, fresh.answer, after)

    def _replay(self, stored: StoredCall, answer: str, after: int) -> AsyncIterator[CallEvent]:
        """What is remembered of an ended call, and its terminal event, even if ``after`` is beyond it."""
        log = EventLog(self._ended.events_of(stored.key))
        log.append("result" if stored.state is CallState.DONE else "error", answer)
        return log.follow(min(after, len(log) - 1))

    def is_busy(self, scope: ConversationKey) -> bool:
        """Whether a call of a conversation runs, waits, or is about to be accepted."""
        return self._registry.is_claiming(scope) or any(key.scope == scope for key in self._running)

    def is_running(self, key: CallKey) -> bool:
        """Whether a call runs in this process."""
        return key in self._running

    def _is_left(self, stored: StoredCall) -> bool:
        """Whether a call of this process is open and nothing runs it: the store failed where it was to go on."""
        is_ours = stored.state is CallState.OPEN and stored.boot_id == self._settings.boot_id
        return is_ours and not self.waiting.goes_on(stored.key) and not self._registry.is_claiming(stored.key.scope)

    def forget_conversation(self, scope: ConversationKey) -> None:
        """Forgets the events of the ended calls of a conversation that was deleted."""
        self._ended.forget_those(lambda key: isinstance(key, CallKey) and key.scope == scope)

    async def close(self, grace_s: float) -> None:
        """Takes no new calls, gives those that run ``grace_s`` seconds, then cancels them."""
        self._is_closing = True
        tasks = [running.task for running in self._running.values() if running.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)
        for running in list(self._running.values()):
            running.cancel(build_shutdown_error(may_have_run=not running.only_waited))
        if tasks:
            await asyncio.wait(tasks)
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
        if running is None:
            raise ShuttingDownError("another process of the service runs this call; ask for its status instead")
        if detached:
            running.detach()
        open_span().link(running.span.traceparent)
        return CallTicket(stored.key, None, running)

    def _start(self, running: RunningCall, call: PreparedCall, run: CallRun) -> None:
        self._running[running.key] = running
        running.task = asyncio.create_task(self._run(running, call, run))
        # A task that is cancelled before its first step never enters _run; its call needs an answer too.
        running.task.add_done_callback(lambda _: self._answer_unentered(running, call))

    async def _run(self, running: RunningCall, call: PreparedCall, run: CallRun) -> None:
        key = running.key
        names = {"call_id": key.tool_call_id, "conversation_id": key.scope.conversation_id}
        with about(**names), span("call", {"proofbox.tool": running.tool_id}) as running.span:
            await self._run_and_finish(running, call, run)

    async def _run_and_finish(self, running: RunningCall, call: PreparedCall, run: CallRun) -> None:
        try:
            response = await run(running)
            running.clients.disarm()  # it has ended: nothing is left to be abandoned
            if isinstance(response, Suspension):
                suspended = await self._suspend(running, response)
                if suspended is None:
                    return
                response = suspended
            await self._finish(running, call, await build_done(response))
        except asyncio.CancelledError:
            await self._finish_cancelled(running, call)
        except Exception as exc:
            if not isinstance(exc, ServiceError):
                log.exception("call %s failed in an unforeseen way", running.key.tool_call_id)
            await self._fail(running, call, exc)

    async def _suspend(self, running: RunningCall, suspension: Suspension) -> ToolCallResponse | None:
        """Lets a call wait; its response, if an effect refused."""
        running.is_suspending = True
        try:
            stored = await self._writer.suspend(
                running.key, suspension.effects, lambda: self._running.get(running.key) is running
            )
        except EffectRefusedError as exc:
            return suspension.refuse(exc.code, exc.message)
        finally:
            running.is_suspending = False
        if self._running.get(running.key) is running:
            del self._running[running.key]
        waiting = self.waiting.begin(stored, running.events)
        running.park(waiting)
        await self.waiting.look_again(running.key)
        return None

    def run_on(self, stored: StoredCall, call: PreparedCall, run: CallRun, waiting: WaitingCall | None) -> None:
        """Runs a call that waited and is open again; nobody has to be connected for it to end."""
        running = RunningCall(stored.key, asked_of(stored), grace_s=self._settings.lost_connection_grace_s)
        running.detach()
        running.take_over(waiting)
        self._start(running, call, run)

    def count_end(self, stored: StoredCall, ending: CallResult) -> None:
        """Logs and counts a call that ended in its wait."""
        tool_id = str(json.loads(stored.request).get("tool_id", ""))
        self._record_end(tool_id, 0.0, ending)

    def remember(self, key: CallKey, events: EventLog) -> None:
        """Keeps the events of an ended call, for those who ask for them later."""
        self._ended.add(key, events)

    def _answer_unentered(self, running: RunningCall, call: PreparedCall) -> None:
        if not running.is_parked and not running.answer.done():
            task = asyncio.create_task(self._finish_cancelled(running, call))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _finish_cancelled(self, running: RunningCall, call: PreparedCall) -> None:
        reason = running.cancel_reason or build_shutdown_error(may_have_run=not running.only_waited)
        if running.only_waited and isinstance(reason, (ShuttingDownError, CallAbandonedError)):
            await self._fail(running, call, reason)
            return
        answer = build_problem_answer(reason, running.request_id)
        if isinstance(reason, CallCancelledError):
            left = call.interrupt(running.interruption())
            await self._finish(running, call, CallResult(CallState.CANCELLED, answer, left))
        else:
            await self._finish(running, call, CallResult(CallState.FAILED, answer))

    async def _fail(self, running: RunningCall, call: PreparedCall, exc: Exception) -> None:
        """Answers a call that the service or its caller failed; one of which nothing ran may come again."""
        running.clients.disarm()
        ending = CallResult(CallState.FAILED, build_problem_answer(exc, running.request_id))
        is_stored = running.has_started or running.detached or not call.may_be_forgotten
        if is_stored or not isinstance(exc, ServiceError):
            await self._finish(running, call, ending)
            return
        try:
            await self._store.forget(running.key)
        except OurError:
            log.exception("call %s could not be forgotten", running.key.tool_call_id)
        self._end(running, ending)

    async def _finish(self, running: RunningCall, call: PreparedCall, ending: CallResult) -> None:
        running.clients.disarm()
        asked = replace(running.asked, traceparent=running.span.traceparent)
        parts, request_id = CallParts(call.conclude, asked, running.record, self._service), running.request_id
        try:
            ending = await self._writer.write(running.key, ending, parts, running.delay, request_id)
        except ServiceError as exc:
            log.exception("the answer of call %s could not be stored", running.key.tool_call_id)
            ending = CallResult(CallState.FAILED, build_problem_answer(exc, request_id))
        self._end(running, ending)

    def _end(self, running: RunningCall, ending: CallResult) -> None:
        running.emit("result" if ending.state is CallState.DONE else "error", ending.answer.body)
        if running.span.traceparent:  # it ends before the rest is counted
            running.span.set(span_attributes(outcome_code(ending.answer.body, ending.response), ending.response))
        del self._running[running.key]
        self._ended.add(running.key, running.events)
        running.answer.set_result(ending.answer)
        self._record_end(running.tool_id, time.perf_counter() - running.began, ending)

    def _record_end(self, tool_id: str, seconds: float, ending: CallResult) -> None:
        """Logs and counts a call that has ended."""
        if ending.audited is not None:
            log_audit_line(ending.audited)
        answer, response = ending.answer, ending.response
        if answer.is_problem:
            code, response = str(Problem.model_validate_json(answer.body).code), None
        else:
            response = response or ToolCallResponse.model_validate_json(answer.body)
            code = "ok" if response.error is None else response.error.code
        self._meter.call_ended(EndedCall(tool_id, code, seconds, response))

    def _status(self, stored: StoredCall) -> CallStatus:
        running = self._running.get(stored.key)
        return build_status(stored, is_queued=running is not None and not running.has_started)
