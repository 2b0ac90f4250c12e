"""The calls in memory: no sandbox behind them, every answer set by the test."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.events import TERMINAL_EVENTS, EventName
from proofbox.contracts.problems import FieldError, Problem
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse
from proofbox.contracts.tools import catalogue
from proofbox.service.calls.events import CallEvent
from proofbox.service.calls.port import CallKey
from proofbox.service.calls.problem import problem_of
from proofbox.service.calls.registration import payload_sha256
from proofbox.service.calls.service import Answer
from proofbox.service.errors import (
    AmbiguousCallError,
    CallCancelledError,
    IdReusedError,
    ServiceError,
    UnknownCallError,
    UnknownToolError,
)
from proofbox.service.identity import ConversationKey, Principal

CREATED = "2026-07-04T13:18:14Z"


@dataclass(eq=False)
class MemoryCall:
    """One call: what was asked, who waits for it, what was answered, what was told on the way."""

    request: ToolCallRequest
    payload: str
    detached: bool
    waiting: int = 0
    answered: asyncio.Future[Answer] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    events: list[CallEvent] = field(default_factory=list)

    @property
    def answer(self) -> Answer | None:
        return self.answered.result() if self.answered.done() else None

    @property
    def status(self) -> str:
        if self.answer is None:
            return "running"
        if not self.answer.is_problem:
            return "done"
        cancelled = Problem.model_validate_json(self.answer.body).code is ProblemCode.CANCELLED
        return "cancelled" if cancelled else "failed"


class MemoryTicket:
    """The place of one request at a call."""

    def __init__(self, calls: "MemoryCalls", call: MemoryCall, *, replayed: bool) -> None:
        self._calls = calls
        self._call = call
        self.replayed = replayed
        self.key = CallKey(ConversationKey(Principal("", "", "", ""), ""), call.request.tool_call_id)

    def answered(self) -> asyncio.Future[Answer]:
        return self._call.answered

    async def leave(self) -> None:
        self._call.waiting -= 1
        await self._calls.changed()
        if self._call.waiting == 0 and not self._call.detached:
            await self._calls.end(self._call, CallCancelledError("the only client went away"))


class MemoryCalls:
    """All calls, each seen by its own principal only.

    A call whose id starts with ``held`` goes on until the test ends it; any other is answered at once, with the
    error of ``refused`` or the answer of ``answers`` if there is one, else with what it was asked as ``ret``.
    """

    def __init__(self) -> None:
        self.refused: dict[str, ServiceError] = {}
        self.answers: dict[str, Answer] = {}
        self._calls: dict[tuple[Principal, str, str], MemoryCall] = {}
        self._changes = asyncio.Condition()
        self.followers = 0

    def find_mistakes(self, *_request: Any) -> list[FieldError]:
        return []

    async def submit(
        self,
        principal: Principal,
        request: ToolCallRequest,
        *,
        idempotency_key: str | None,
        request_id: str,
        detached: bool,
        run_lease: int | None = None,
    ) -> MemoryTicket:
        del run_lease
        if request.tool_id not in {tool.tool_id for tool in catalogue()}:
            raise UnknownToolError(f"no tool '{request.tool_id!a}'; GET /v1/tools lists them")
        if request.tool_call_id in self.refused:
            raise self.refused[request.tool_call_id]
        payload = payload_sha256(request)
        key = (principal, request.conversation_id, request.tool_call_id)
        if key in self._calls:
            call = self._calls[key]
            if call.payload != payload:
                raise IdReusedError(f"tool_call_id {request.tool_call_id} came with another payload")
            call.waiting += 1
            await self.changed()
            return MemoryTicket(self, call, replayed=call.answer is not None)
        call = self._calls[key] = MemoryCall(request, payload, detached, waiting=1)
        if not request.tool_call_id.startswith("held"):
            asked = {
                "principal": principal.user,
                "request": request.model_dump(mode="json", exclude_unset=True),
                "idempotency_key": idempotency_key,
                "request_id": request_id,
            }
            call.answered.set_result(self.answers.get(request.tool_call_id) or result(asked))
        await self.changed()
        return MemoryTicket(self, call, replayed=False)

    async def status(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        return self._shown(self._find(principal, tool_call_id, conversation_id))

    async def cancel(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> CallStatus:
        call = self._find(principal, tool_call_id, conversation_id)
        if call.answer is None:
            await self.end(call, CallCancelledError("the call was cancelled"))
        return self._shown(call)

    async def events(
        self, principal: Principal, tool_call_id: str, conversation_id: str | None, *, after: int
    ) -> AsyncIterator[CallEvent]:
        return self._follow(self._find(principal, tool_call_id, conversation_id), after)

    async def is_busy(self, scope: ConversationKey) -> bool:
        own = (scope.principal, scope.conversation_id)
        return any(call.answer is None for (*key, _), call in self._calls.items() if tuple(key) == own)

    def forget_conversation(self, scope: ConversationKey) -> None:
        own = (scope.principal, scope.conversation_id)
        self._calls = {key: call for key, call in self._calls.items() if key[:2] != own}

    # ---- what tests do ----

    async def changed(self) -> None:
        async with self._changes:
            self._changes.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Waits until something is true of the calls."""
        async with self._changes:
            await self._changes.wait_for(holds)

    async def made(self, tool_call_id: str) -> MemoryCall:
        """Waits for a call to be made."""
        await self.until(lambda: any(call_id == tool_call_id for _, _, call_id in self._calls))
        [call] = [call for (_, _, call_id), call in self._calls.items() if call_id == tool_call_id]
        return call

    async def tell(self, call: MemoryCall, name: EventName, data: str) -> None:
        call.events.append(CallEvent(len(call.events) + 1, name, data))
        await self.changed()

    async def end(self, call: MemoryCall, how: Answer | ServiceError) -> None:
        answer = problem(how) if isinstance(how, ServiceError) else how
        call.answered.set_result(answer)
        await self.tell(call, "error" if answer.is_problem else "result", answer.body)

    # ----

    def _find(self, principal: Principal, tool_call_id: str, conversation_id: str | None) -> MemoryCall:
        found = [
            call
            for (owner, conversation, call_id), call in self._calls.items()
            if (owner, call_id) == (principal, tool_call_id) and conversation_id in {None, conversation}
        ]
        if not found:
            raise UnknownCallError(f"no call {tool_call_id}")
        if len(found) > 1:
            raise AmbiguousCallError(f"{len(found)} conversations have a call {tool_call_id}")
        return found[0]

    async def _follow(self, call: MemoryCall, after: int) -> AsyncIterator[CallEvent]:
        at = after
        self.followers += 1
        try:
            while not call.events[:at] or call.events[at - 1].name not in TERMINAL_EVENTS:
                await self.until(partial(_is_longer, call.events, at))
                yield call.events[at]
                at += 1
        finally:
            self.followers -= 1
            await self.changed()

    @staticmethod
    def _shown(call: MemoryCall) -> CallStatus:
        answer = call.answer
        return CallStatus.model_validate(
            {
                "tool_call_id": call.request.tool_call_id,
                "conversation_id": call.request.conversation_id,
                "status": call.status,
                "created": CREATED,
                "response": ToolCallResponse.model_validate_json(answer.body)
                if answer is not None and not answer.is_problem
                else None,
                "problem": Problem.model_validate_json(answer.body)
                if answer is not None and answer.is_problem
                else None,
            }
        )


def _is_longer(events: list[CallEvent], count: int) -> bool:
    return len(events) > count


def result(ret: Any) -> Answer:
    """An answer with a result."""
    response = ToolCallResponse(ok=True, ret=ret, report="Produced files:\n", blocks=[])
    return Answer(http_status=200, body=response.model_dump_json(), is_problem=False)


def problem(exc: ServiceError) -> Answer:
    """An answer with a problem."""
    told = problem_of(exc, "the-first-request")
    return Answer(
        told.status, told.model_dump_json(exclude_none=True), is_problem=True, retry_after_s=exc.retry_after_s
    )
