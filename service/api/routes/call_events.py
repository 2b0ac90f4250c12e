"""``GET /v1/tool-calls/{id}/events``: the events of a call as a stream of server-sent events."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from proofbox.service.api.identity import ReadsCalls
from proofbox.service.api.openapi_responses import answer, problems
from proofbox.service.api.parameters import CallIdInPath, ConversationIdInQuery
from proofbox.service.api.responses import NO_STORE, ClosingStream
from proofbox.service.api.services import InjectedServices
from proofbox.service.calls.events import CallEvent
from proofbox.service.errors import (
    AmbiguousCallError,
    InvalidRequestError,
    StoreFailedError,
    UnknownCallError,
    UnsafeNameError,
)

EVENT_STREAM = "text/event-stream"
EVENT_ID_MAX = 2**63 - 1
HEARTBEAT = b": keep-alive\n\n"
# X-Accel-Buffering: nginx would otherwise hold small events back.
EVENT_HEADERS = {**NO_STORE, "Content-Type": EVENT_STREAM, "X-Accel-Buffering": "no"}
LINE_END = re.compile(r"\r\n|\r|\n")
router = APIRouter(tags=["tool calls"])


@router.get(
    "/v1/tool-calls/{tool_call_id}/events",
    operation_id="watch_tool_call",
    summary="Watch a call as it runs",
    response_class=Response,
    responses={
        200: answer(
            "Server-sent events `queued`, `started`, `stdout`, `stderr`, and at the end `result` or `error`. Their "
            "data are QueuedEvent, StartedEvent, OutputEvent (both outputs), ToolCallResponse and Problem as JSON.",
            {EVENT_STREAM: {"schema": {"type": "string"}}},
        ),
        **problems(UnsafeNameError, UnknownCallError, AmbiguousCallError, InvalidRequestError, StoreFailedError),
    },
)
async def watch_tool_call(
    services: InjectedServices,
    principal: ReadsCalls,
    tool_call_id: CallIdInPath,
    conversation_id: ConversationIdInQuery = None,
    after: Annotated[int, Query(ge=0, le=EVENT_ID_MAX, description="Only events with a greater id.")] = 0,
    last_event_id: Annotated[
        int | None,
        Header(
            alias="Last-Event-ID",
            ge=0,
            le=EVENT_ID_MAX,
            description="As `after`, as clients send it that connect again; it wins.",
        ),
    ] = None,
) -> Response:
    """The events from the first one or after a known one; the stream ends after the terminal event."""
    events = await services.calls.events(
        principal, tool_call_id, conversation_id, after=after if last_event_id is None else last_event_id
    )
    return ClosingStream(_lines(events, services.heartbeat_s), 200, EVENT_HEADERS)


async def _lines(events: AsyncIterator[CallEvent], heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """Yield the events as server-sent events, and heartbeats between them."""
    upcoming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            # Waiting, not cancelling: an iterator that is cancelled in its wait is at its end.
            done, _ = await asyncio.wait({upcoming}, timeout=heartbeat_s)
            if not done:
                yield HEARTBEAT
                continue
            event = upcoming.result()
            if event is None:
                return
            yield _line(event)
            upcoming = asyncio.ensure_future(anext(events, None))
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _line(event: CallEvent) -> bytes:
    data = "".join(f"data: {line}\n" for line in LINE_END.split(event.data))
    return f"id: {event.id}\nevent: {event.name}\n{data}\n".encode()
