"""Runs calls in this process: each to its answer, which is stored once, or until it waits."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from proofbox.contracts.problems import Problem
from proofbox.contracts.provenance import AuditService
from proofbox.contracts.tool_call_response import ToolCallResponse
from proofbox.service.calls.answer import Answer, build_problem_answer, build_shutdown_error
from proofbox.service.calls.answer_writer import AnswerWriter, CallResult
from proofbox.service.calls.audit.audit_record import log_audit_line, outcome_code, span_attributes
from proofbox.service.calls.claim import ClaimLostError, ShareTakenError
from proofbox.service.calls.events import EndedCalls, EventLog
from proofbox.service.calls.observer import CallRecord
from proofbox.service.calls.port import CallKey, CallState, CallStore, EffectRefusedError, StoredCall
from proofbox.service.calls.running import RunningCall
from proofbox.service.calls.stored_calls import CallParts, asked_of, build_done
from proofbox.service.calls.suspension import CallRun, Closing, RunOutcome, Suspension
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.calls.waiting import WaitingCall, WaitingCalls
from proofbox.service.concurrency import wait_to_end
from proofbox.service.errors import (
    CallAbandonedError,
    CallCancelledError,
    EngineUnavailableError,
    OurError,
    ServiceError,
    ShuttingDownError,
    StoreFailedError,
)
from proofbox.service.observability.log_context import about
from proofbox.service.observability.metrics_port import EndedCall, Meter, NoMeter
from proofbox.service.observability.tracing import span

log = logging.getLogger("proofbox.calls")

_AGAIN_S = (1, 2, 5, 10, 20)
"""The pauses after which a call that nobody waits for is run again."""
_OF_A_WORKER = (EngineUnavailableError, ShuttingDownError, ShareTakenError, StoreFailedError)
_STOPS = ShuttingDownError("the service is shutting down and the call goes on; ask for it again under its id")


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


class CallRunner:
    """The calls that this process runs, or follows while another one runs them.

    Args:
        store: the calls.
        settings: of calls.
        meter: counts those that ended here.
        is_closing: whether the service shuts down.
    """

    def __init__(
        self, store: CallStore, settings: CallSettings, meter: Meter | None, is_closing: Callable[[], bool]
    ) -> None:
        self._store = store
        self._settings = settings
        self._service = AuditService(version=settings.version, boot_id=settings.boot_id)
        self._meter = meter or NoMeter()
        self.running: dict[CallKey, RunningCall] = {}
        """The calls that have a task here."""
        self.ended = EndedCalls(settings.event_log_bytes_max)
        """The events of those that ended here, by key and time of acceptance: an id may be used again."""
        self.waiting: WaitingCalls | None = None
        """Those that wait; None in a worker, where nobody follows them."""
        self._writer = AnswerWriter(store, is_closing)
        self._late: set[asyncio.Task[None]] = set()

    def is_running(self, key: CallKey) -> bool:
        """Whether a call runs in this process, or is followed here."""
        return key in self.running

    async def close(self, grace_s: float) -> None:
        """Give those that run ``grace_s`` seconds, then cancel them."""
        tasks = [running.task for running in self.running.values() if running.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=grace_s)
        for running in list(self.running.values()):
            running.cancel(build_shutdown_error(may_have_run=not running.only_waited))
        if tasks:
            await asyncio.wait(tasks)

    def start(self, running: RunningCall, call: PreparedCall, run: CallRun) -> None:
        """Begin to run a call here."""
        self.running[running.key] = running
        running.task = asyncio.create_task(self._run(running, call, run))
        # A task that is cancelled before its first step never enters _run; its call needs an answer too.
        running.task.add_done_callback(lambda _: self._answer_unentered(running, call))

    def carry(self, running: RunningCall, follow: Coroutine[Any, Any, None]) -> None:
        """Begin a task that follows a call while another process runs it."""
        self.running[running.key] = running
        running.task = asyncio.create_task(follow)
        running.task.add_done_callback(lambda _: self._let_go(running))

    def _let_go(self, running: RunningCall) -> None:
        """Answers those who wait for a call that is not followed any more and runs on."""
        if self.running.get(running.key) is running:
            del self.running[running.key]
        if not running.is_parked and not running.answer.done():
            running.events.stop()
            running.answer.set_result(build_problem_answer(_STOPS, running.request_id))

    async def _run(self, running: RunningCall, call: PreparedCall, run: CallRun) -> None:
        key = running.key
        names = {"call_id": key.tool_call_id, "conversation_id": key.scope.conversation_id}
        with about(**names), span("call", {"proofbox.tool": running.tool_id}) as running.span:
            await self._run_and_finish(running, call, run)

    async def _run_and_finish(self, running: RunningCall, call: PreparedCall, run: CallRun) -> None:
        try:
            response = await self._respond(running, run)
            running.clients.disarm()  # it has ended: nothing is left to be abandoned
            if isinstance(response, Suspension):
                suspended = await self._suspend(running, response)
                if suspended is None:
                    return
                response = suspended
            if isinstance(response, ToolCallResponse):
                await self._finish(running, call, await build_done(response))
            else:
                await self._finish(running, call, response)
        except asyncio.CancelledError:
            await self._finish_cancelled(running, call)
        except Exception as exc:
            if not isinstance(exc, ServiceError):
                log.exception("call %s failed in an unforeseen way", running.key.tool_call_id)
            await self._fail(running, call, exc)

    async def _respond(self, running: RunningCall, run: CallRun) -> RunOutcome:
        """Runs a call; one that nobody waits for, and of which nothing ran, again while a server is away."""
        for pause_s in _AGAIN_S:
            try:
                return await run(running)
            except (StoreFailedError, EngineUnavailableError) as exc:
                if not running.detached or running.has_started or running.queue_mark is None:
                    raise
                log.warning("call %s cannot run yet: %s", running.key.tool_call_id, exc)
            running.record = CallRecord()
            await asyncio.sleep(pause_s)
        return await run(running)

    async def _suspend(self, running: RunningCall, suspension: Suspension) -> ToolCallResponse | None:
        """Lets a call wait; its response, if an effect refused."""
        claim, key = running.claim, running.key
        also = () if claim is None else claim.suspend_effects(running.events.last_id + 1)
        running.is_suspending = True
        try:
            stored = await self._writer.suspend(
                key, [*suspension.effects, *also], lambda: self.running.get(key) is running
            )
        except EffectRefusedError as exc:
            return suspension.refuse(exc.code, exc.message)
        finally:
            running.is_suspending = False
        if self.running.get(key) is running:
            del self.running[key]
        if self.waiting is None:
            running.emit("waiting", stored.wait or "{}")
            running.answer.cancel()
            return None
        waiting = self.waiting.begin(stored, running.events)
        running.park(waiting)
        await self.waiting.look_again(key)
        return None

    def run_on(self, stored: StoredCall, call: PreparedCall, run: CallRun, waiting: WaitingCall | None) -> None:
        """Runs a call that waited and is open again; nobody has to be connected for it to end."""
        running = RunningCall(stored.key, asked_of(stored), grace_s=self._settings.lost_connection_grace_s)
        running.detach()
        running.take_over(waiting)
        self.start(running, call, run)

    def count_end(self, stored: StoredCall, ending: CallResult) -> None:
        """Logs and counts a call that ended in its wait."""
        tool_id = str(json.loads(stored.request).get("tool_id", ""))
        self._record_end(tool_id, 0.0, ending)

    def remember(self, stored: StoredCall, events: EventLog) -> None:
        """Keeps the events of an ended call, for those who ask for them later."""
        self.ended.add((stored.key, stored.created), events)

    def _answer_unentered(self, running: RunningCall, call: PreparedCall) -> None:
        if not running.is_parked and not running.answer.done():
            task = asyncio.create_task(self._finish_cancelled(running, call))
            self._late.add(task)
            task.add_done_callback(self._late.discard)

    async def _finish_cancelled(self, running: RunningCall, call: PreparedCall) -> None:
        reason = running.cancel_reason or build_shutdown_error(may_have_run=not running.only_waited)
        is_untouched = running.only_waited if running.claim is None else not running.has_started
        if is_untouched and isinstance(reason, ShuttingDownError) and await self._stays_queued(running):
            self._let_go(running)
            return
        if is_untouched and isinstance(reason, (ShuttingDownError, CallAbandonedError)):
            await self._fail(running, call, reason)
            return
        answer = build_problem_answer(reason, running.request_id)
        if isinstance(reason, CallCancelledError):
            left = call.interrupt(running.interruption())
            await self._finish(running, call, CallResult(CallState.CANCELLED, answer, left))
        else:
            await self._finish(running, call, CallResult(CallState.FAILED, answer))

    async def _stays_queued(self, running: RunningCall) -> bool:
        """Whether a call of which nothing ran is stored as waiting, for the next start."""
        if running.queue_mark is None:
            return False
        try:
            await running.queue_mark.store()
        except OurError as exc:
            log.warning("call %s cannot be queued for the next start: %s", running.key.tool_call_id, exc)
            return False
        return True

    async def _fail(self, running: RunningCall, call: PreparedCall, exc: Exception) -> None:
        """Answers a call that the service or its caller failed; one of which nothing ran may come again."""
        running.clients.disarm()
        if await self._gives_back(running, exc):
            self._drop(running)
            return
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

    async def _gives_back(self, running: RunningCall, exc: Exception) -> bool:
        """Whether another worker has the call, or gets it, because this one cannot begin it."""
        claim = running.claim
        if claim is None:
            return False
        if claim.is_lost or isinstance(exc, ClaimLostError):
            return True
        if running.has_started or not isinstance(exc, _OF_A_WORKER):
            return False
        return await claim.release(exc)

    def _drop(self, running: RunningCall) -> None:
        """Forget a claimed call without an end: another worker has it, or whoever finds its claim expired."""
        running.events.on_event = None
        if self.running.get(running.key) is running:
            del self.running[running.key]
        running.answer.cancel()

    async def _finish(self, running: RunningCall, call: PreparedCall, ending: CallResult | Closing) -> None:
        running.clients.disarm()
        running.is_finishing = True
        claim, request_id = running.claim, running.request_id
        if claim is not None and claim.is_lost:
            if isinstance(ending, Closing):
                await ending.save.discard()
            self._drop(running)
            return
        asked = replace(running.asked, traceparent=running.span.traceparent)
        effects = () if claim is None else claim.end_effects()
        parts = CallParts(call.conclude, asked, running.record, self._service, effects)
        try:
            writing = self._writer.write(running.key, ending, parts, running.delay, request_id)
            result = await wait_to_end(asyncio.ensure_future(writing))
        except ServiceError as exc:
            if isinstance(exc, ClaimLostError):
                log.warning("the answer of call %s is not stored: %s", running.key.tool_call_id, exc)
            else:
                log.exception("the answer of call %s could not be stored", running.key.tool_call_id)
            if claim is not None:
                claim.is_lost = True  # it is renewed no more, and ended by whoever finds it expired
                self._drop(running)
                return
            result = CallResult(CallState.FAILED, build_problem_answer(exc, request_id))
        self._end(running, result)

    def _end(self, running: RunningCall, ending: CallResult) -> None:
        running.emit("result" if ending.state is CallState.DONE else "error", ending.answer.body)
        if running.span.traceparent:  # it ends before the rest is counted
            running.span.set(span_attributes(outcome_code(ending.answer.body, ending.response), ending.response))
        self.end_followed(running, ending.answer)
        self._record_end(running.tool_id, time.perf_counter() - running.began, ending)

    def end_followed(self, running: RunningCall, answer: Answer) -> None:
        """Answer those who wait for a call whose terminal event is there."""
        running.clients.disarm()
        if self.running.get(running.key) is running:
            del self.running[running.key]
        self.ended.add((running.key, running.asked.created), running.events)
        if not running.answer.done():
            running.answer.set_result(answer)

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
