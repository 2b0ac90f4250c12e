"""``GET /v1/tool-calls/{id}/events``: the events of a call as a stream of server-sent events."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from proofbox.service.api.event_stream import EVENT_ID_MAX, EVENT_STREAM, HEADERS, event_lines
from proofbox.service.api.identity import ReadsCalls
from proofbox.service.api.openapi_responses import answer, problems
from proofbox.service.api.parameters import CallIdInPath, ConversationIdInQuery
from proofbox.service.api.responses import ClosingStream
from proofbox.service.api.services import InjectedServices
from proofbox.service.errors import (
    AmbiguousCallError,
    InvalidRequestError,
    StoreFailedError,
    UnknownCallError,
    UnsafeNameError,
)

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
    return ClosingStream(event_lines(events, services.heartbeat_s), 200, HEADERS)
