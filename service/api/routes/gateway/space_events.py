"""``GET /v1/spaces/{space_id}/events``: the events of a space as a stream of server-sent events."""

import asyncio
import time
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from proofbox.service import errors, gateway_errors
from proofbox.service.api.event_stream import EVENT_ID_MAX, EVENT_STREAM, HEADERS, HEARTBEAT, LINE_END
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.api.openapi_responses import answer, problems
from proofbox.service.api.responses import ClosingStream
from proofbox.service.api.routes.gateway.actors import ReadingActor
from proofbox.service.api.routes.gateway.parameters import SpaceIdInPath
from proofbox.service.api.services import InjectedServices, require_gateway
from proofbox.service.gateway.spaces.feed import FeedEvent

router = APIRouter(tags=["spaces"])


@router.get(
    "/v1/spaces/{space_id}/events",
    operation_id="watch_space",
    summary="Watch a space",
    response_class=Response,
    responses={
        200: answer(
            "Server-sent events `message.created`, `message.delta`, `tool-call.start`, `tool-input-delta`, "
            "`tool-call.waiting`, `tool-call.complete`, `tool-call.error`, `run.status`, `member.joined`, "
            "`member.left` and `reset`. Their data are MessageCreatedEvent, MessageDeltaEvent, ToolCallEvent, "
            "ToolInputDeltaEvent, RunStatusEvent, MemberEvent and ResetEvent as JSON. Deltas have no id.",
            {EVENT_STREAM: {"schema": {"type": "string"}}},
        ),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def watch_space(
    request: Request,
    services: InjectedServices,
    actor: ReadingActor,
    space_id: SpaceIdInPath,
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
    """The events from the first one or after a known one, without an end.

    10,000 events or 7 days are kept: a client that asks for older ones, or that reads too slowly, gets `reset` with
    the id `last`. It reads the messages again; the stream goes on after `last`.
    """
    position = after if last_event_id is None else last_event_id
    gateway = require_gateway(services)
    events = await gateway.feed.follow(actor, space_id, position, services.heartbeat_s)
    grant = caller_of(request.scope["state"]).grant
    left_s = None if grant is None else gateway.tokens.left_s(grant)
    return ClosingStream(_lines(events, left_s), 200, HEADERS)


async def _lines(
    events: AsyncGenerator[FeedEvent | None, None], left_s: float | None
) -> AsyncGenerator[bytes, None]:
    """Yield the events as server-sent events, and heartbeats; end when the token of the request expires."""
    ends = None if left_s is None else time.monotonic() + left_s
    try:
        # At once, so that the client has the head of the answer before the first event.
        yield HEARTBEAT
        while True:
            try:
                async with asyncio.timeout(None if ends is None else max(0.0, ends - time.monotonic())):
                    event = await anext(events, _END)
            except TimeoutError:
                return
            if event is _END:
                return
            yield HEARTBEAT if not isinstance(event, FeedEvent) else _line(event)
    finally:
        await events.aclose()


_END = object()


def _line(event: FeedEvent) -> bytes:
    number = "" if event.id is None else f"id: {event.id}\n"
    data = "".join(f"data: {line}\n" for line in LINE_END.split(event.data))
    return f"{number}event: {event.name}\n{data}\n".encode()
