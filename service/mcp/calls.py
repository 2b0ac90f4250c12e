"""Calls of MCP clients: started, waited for with progress, cancelled when the client closes the stream."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from proofbox.contracts.paths import is_call_id
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse
from proofbox.service.access.api_keys import Permission
from proofbox.service.api.services import Services, Ticket
from proofbox.service.calls.service import Answer
from proofbox.service.errors import ServiceError, UnknownCallError
from proofbox.service.mcp.arguments import GivenFile
from proofbox.service.mcp.exchange import Exchange, ReportProgress, new_call_id
from proofbox.service.mcp.options import TURN_ID

StoreFiles = Callable[[Exchange, str, Sequence[GivenFile]], Awaitable[object]]
"""Stores files of arguments as attachments of a conversation."""
_CLEANUP_S = 10.0
_PROGRESS_EVERY_S = 1.0
_ALIVE_EVERY_S = 10.0
_MESSAGE_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Handle:
    """Names a call across requests: ``<conversation>/<call id>``."""

    conversation: str
    call_id: str

    def __str__(self) -> str:
        """The handle as results have it."""
        return f"{self.conversation}/{self.call_id}"

    @classmethod
    def parse(cls, text: str) -> "Handle":
        """Read a handle.

        Raises:
            UnknownCallError: it has another form.
        """
        conversation, _, call_id = text.strip().partition("/")
        if not conversation or not is_call_id(call_id):
            raise UnknownCallError(f"handle: '{text[:80]}' is not a handle; give the one of a result")
        return cls(conversation, call_id)


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What is known of a call when its request is answered.

    Attributes:
        handle: the call.
        status: ``queued``, ``running``, ``done``, ``failed`` or ``cancelled``.
        response: the answer, or of a cancelled call what it had done.
        problem: why a call has no answer.
    """

    handle: Handle
    status: str
    response: ToolCallResponse | None = None
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class CallSpec:
    """A call to make.

    Attributes:
        tool_id: the tool.
        params: its parameters.
        conversation: the conversation.
        code: the program.
        files: files of the arguments, stored before the call.
    """

    tool_id: str
    params: dict[str, Any]
    conversation: str
    code: str | None = None
    files: Sequence[GivenFile] = ()

    def request(self) -> ToolCallRequest:
        """Build the request, under a new id."""
        return ToolCallRequest(
            tool_id=self.tool_id,
            tool_call_id=new_call_id(),
            conversation_id=self.conversation,
            turn_id=TURN_ID,
            params=self.params,
            code=self.code,
        )


class McpCalls:
    """Makes calls for MCP clients.

    Args:
        services: the services of the routes.
        store_files: stores the files of a call's arguments.
    """

    def __init__(self, services: Services, store_files: StoreFiles) -> None:
        self._services = services
        self._store_files = store_files

    async def run(self, exchange: Exchange, spec: CallSpec, wait_s: float) -> CallOutcome:
        """Make a call and wait for it; one that takes longer goes on without a client.

        Raises:
            ServiceError: it is refused; nothing was run.
        """
        exchange.caller.require(Permission.CALLS_RUN)
        exchange.meter.take_call()
        who = exchange.principal
        await self._services.quotas.check_storage_quota(exchange.meter.allowed, who.tenant, who.project)
        # After the limits: a call that they refuse stores nothing.
        await self._store_files(exchange, spec.conversation, spec.files)
        request = spec.request()
        handle = Handle(request.conversation_id, request.tool_call_id)
        # Shielded: a request that is cancelled here would leave a call that nobody knows.
        with anyio.CancelScope(shield=True):
            ticket = await self._submit(exchange, request, detached=not wait_s)
        answer = await self._wait(exchange, ticket, handle, wait_s)
        if answer is None:
            with anyio.CancelScope(shield=True):
                await self._detach(exchange, request, ticket)
            return await self._outcome(exchange, handle)
        return await asyncio.to_thread(_ended, handle, answer)

    async def result(self, exchange: Exchange, handle: Handle, wait_s: float) -> CallOutcome:
        """Return the state of a call, after waiting for its end.

        Raises:
            UnknownCallError: no call of the caller has that handle.
        """
        exchange.caller.require(Permission.CALLS_READ)
        outcome = await self._outcome(exchange, handle)
        if outcome.status not in {"queued", "running"} or not wait_s:
            return outcome
        log = _ProgressLog()
        reporting = self._start_reports(exchange, log)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._follow(exchange, handle, log)
        finally:
            await _stop(reporting)
        return await self._outcome(exchange, handle)

    async def cancel(self, exchange: Exchange, handle: Handle) -> CallOutcome:
        """Cancel a call; one that has ended stays as it is. Raises as `result` does."""
        exchange.caller.require(Permission.CALLS_RUN)
        status = await self._services.calls.cancel(exchange.principal, handle.call_id, handle.conversation)
        return _of_status(handle, status)

    async def _submit(self, exchange: Exchange, request: ToolCallRequest, *, detached: bool) -> Ticket:
        return await self._services.calls.submit(
            exchange.principal,
            request,
            idempotency_key=None,
            request_id=exchange.request_id,
            detached=detached,
        )

    async def _wait(self, exchange: Exchange, ticket: Ticket, handle: Handle, wait_s: float) -> Answer | None:
        answered = ticket.answered()
        log = _ProgressLog()
        tasks = [self._start_reports(exchange, log)]
        if tasks[0] is not None:
            tasks.append(asyncio.create_task(self._follow(exchange, handle, log)))
        try:
            # Not wait_for: others wait for the same answer, which must not be cancelled.
            await asyncio.wait({answered}, timeout=wait_s)
        except asyncio.CancelledError:
            with anyio.move_on_after(_CLEANUP_S, shield=True):
                await self._leave(exchange, ticket, handle)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                for task in tasks:
                    await _stop(task)
        return answered.result() if answered.done() else None

    async def _leave(self, exchange: Exchange, ticket: Ticket, handle: Handle) -> None:
        """Give a call up whose client closed the stream: cancel it, or begin its grace time."""
        if exchange.is_cancelled_by_closing:
            await self._services.calls.cancel(exchange.principal, handle.call_id, handle.conversation)
        else:
            await ticket.leave()

    async def _detach(self, exchange: Exchange, request: ToolCallRequest, ticket: Ticket) -> None:
        """Let a call go on although no client waits for it."""
        with suppress(ServiceError):  # the service is stopping: then the call ends with it
            joined = await self._submit(exchange, request, detached=True)
            await joined.leave()
        await ticket.leave()

    async def _outcome(self, exchange: Exchange, handle: Handle) -> CallOutcome:
        status = await self._services.calls.status(exchange.principal, handle.call_id, handle.conversation)
        return _of_status(handle, status)

    async def _follow(self, exchange: Exchange, handle: Handle, log: "_ProgressLog") -> None:
        """Read the events of a call to its end."""
        events = await self._services.calls.events(exchange.principal, handle.call_id, handle.conversation, after=0)
        async with aclosing(events) as followed:  # type: ignore[type-var]  # it is a generator
            async for event in followed:
                log.add(event.name, event.data)

    def _start_reports(self, exchange: Exchange, log: "_ProgressLog") -> asyncio.Task[None] | None:
        if exchange.report_progress is None:
            return None
        return asyncio.create_task(_report(exchange.report_progress, log))


@dataclass(slots=True)
class _ProgressLog:
    """The last event of a call, in words."""

    message: str = "accepted"
    began: float = field(default_factory=time.monotonic)

    def add(self, name: str, data: str) -> None:
        """Read an event."""
        if name == "queued":
            self.message = f"queued: {json.loads(data)['position']} calls before this one"
        elif name == "started":
            self.message = "running"
        elif name in {"stdout", "stderr"}:
            lines = [line for line in str(json.loads(data)["text"]).splitlines() if line.strip()]
            if lines:
                self.message = lines[-1][:_MESSAGE_CHARS_MAX]


async def _report(report_progress: ReportProgress, log: _ProgressLog) -> None:
    """Send progress: each new message, at most once a second, and every 10 s although nothing changed."""
    sent, sent_at = "", float("-inf")
    while True:
        now = time.monotonic()
        if log.message != sent or now - sent_at >= _ALIVE_EVERY_S:
            sent, sent_at = log.message, now
            await report_progress(round(now - log.began, 3), None, sent)
        await asyncio.sleep(_PROGRESS_EVERY_S)


async def _stop(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _ended(handle: Handle, answer: Answer) -> CallOutcome:
    if answer.is_problem:
        return CallOutcome(handle, "failed", problem=Problem.model_validate_json(answer.body))
    return CallOutcome(handle, "done", response=ToolCallResponse.model_validate_json(answer.body))


def _of_status(handle: Handle, status: CallStatus) -> CallOutcome:
    return CallOutcome(handle, status.status, status.response, status.problem)
