"""``GET /v1/runs/{run_id}/events``: the events of a run as a stream of server-sent events."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from proofbox.service import errors, gateway_errors
from proofbox.service.api.event_stream import EVENT_ID_MAX, EVENT_STREAM, HEADERS, event_lines
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.identity import ReadsRuns
from proofbox.service.api.openapi_responses import answer, problems
from proofbox.service.api.responses import ClosingStream
from proofbox.service.api.routes.gateway.parameters import RunIdInPath
from proofbox.service.api.routes.gateway.runs import RUN_ROUTE
from proofbox.service.api.services import InjectedServices

router = APIRouter(tags=["runs"])


@router.get(
    f"{RUN_ROUTE}/events",
    operation_id="watch_run",
    summary="Watch a run",
    response_class=Response,
    responses={
        200: answer(
            "Server-sent events `run.queued`, `run.started`, `run.waiting_tool`, `run.waiting_reply`, "
            "`run.resumed`, `run.completed`, `run.failed`, `run.cancelled` (each with a RunEvent as JSON) and "
            "`call.answered` (with a CallAnsweredEvent).",
            {EVENT_STREAM: {"schema": {"type": "string"}}},
        ),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownRunError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def watch_run(
    services: InjectedServices,
    gateway: InjectedGateway,
    principal: ReadsRuns,
    run_id: RunIdInPath,
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
    """The events from the first one or after a known one; the stream ends after those of a run that has ended."""
    begin = after if last_event_id is None else last_event_id
    events = await gateway.runs.events(principal, run_id, begin)
    return ClosingStream(event_lines(events, services.heartbeat_s), 200, HEADERS)
