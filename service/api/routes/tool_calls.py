"""``/v1/tool-calls``: making a call, asking how it stands, ending it."""

import asyncio
import re
import time
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote, urlencode

from fastapi import APIRouter, Header, Request, Response

from proofbox.contracts.gateway.names import BUILT_IN_PREFIX, CONFIGURED_PREFIX, MCP_PREFIX
from proofbox.contracts.gateway.runs import RUN_LEASE_HEADER
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import CallStatus, ToolCallResponse
from proofbox.service import errors, gateway_errors
from proofbox.service.api.connected_work import disconnected
from proofbox.service.api.identity import ReadsCalls, RunsCalls
from proofbox.service.api.middleware.access_log import CLIENT_GONE
from proofbox.service.api.middleware.authentication import caller_of, check_storage_quota
from proofbox.service.api.openapi_responses import header, json_answer, json_content, link, problems
from proofbox.service.api.parameters import CallIdInPath, ConversationIdInQuery, IdempotencyKey
from proofbox.service.api.responses import (
    JSON,
    NO_STORE,
    PROBLEM_JSON,
    model_response,
    note_subject,
    request_id_of,
    retry_after,
)
from proofbox.service.api.routes.download_links import relative_link
from proofbox.service.api.services import InjectedServices, Services, Ticket
from proofbox.service.api.strict_json import read_model
from proofbox.service.calls.function_calls import canonical_call
from proofbox.service.calls.service import Answer
from proofbox.service.calls.validation import invalid_value

RESPOND_ASYNC = "respond-async"
WAIT_S_MAX = 60.0
"""How long `Prefer: wait` holds a request whose call waits for an answer from outside."""
_WAIT = re.compile(r"wait\s*=\s*\"?(?P<seconds>[0-9]{1,9})\"?")
_ACCEPTED = 202
REPLAYED = {"Idempotent-Replayed": "true"}
_REPLAYED_HEADER = {
    "Idempotent-Replayed": header(
        "`true` if the answer was stored before this request.", type="string", enum=["true"]
    )
}
_OF_THE_CALL = {
    "tool_call_id": "$request.body#/tool_call_id",
    "conversation_id": "$request.body#/conversation_id",
}
_LINKS = {
    "status": link("get_tool_call", **_OF_THE_CALL),
    "events": link("watch_tool_call", **_OF_THE_CALL),
    "cancel": link("cancel_tool_call", **_OF_THE_CALL),
}
_SAME_ERRORS = (errors.UnsafeNameError, errors.UnknownCallError, errors.AmbiguousCallError)
LEASE_MAX = 2**31 - 1
_OF_RUNS = (CONFIGURED_PREFIX, BUILT_IN_PREFIX, MCP_PREFIX)
router = APIRouter(prefix="/v1/tool-calls", tags=["tool calls"])


@router.post(
    "",
    operation_id="make_tool_call",
    summary="Call a tool",
    response_class=Response,
    openapi_extra={
        "requestBody": {"required": True, "content": json_content(ToolCallRequest, "tool_call_request")}
    },
    responses={
        200: json_answer(
            "The result, also of a program that failed or of a call that the model has to write differently.",
            ToolCallResponse,
            "tool_call_response",
            _REPLAYED_HEADER,
            _LINKS,
        ),
        202: json_answer(
            "Accepted, for `Prefer: respond-async`; or it waits for an answer from outside (`status: waiting`).",
            CallStatus,
            headers={
                "Location": header("Where the call stands; relative to the request."),
                "Preference-Applied": header("`respond-async`, if it was asked for."),
                **_REPLAYED_HEADER,
            },
            links=_LINKS,
        ),
        **problems(
            errors.UnknownToolError,
            gateway_errors.UnknownRunError,
            gateway_errors.WrongConversationError,
            gateway_errors.LeaseLostError,
            gateway_errors.RunNotRunningError,
            gateway_errors.RunEndedError,
            errors.IdReusedError,
            errors.SidConflictError,
            errors.CallCancelledError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StorageQuotaError,
            errors.InvalidRequestError,
            errors.LimitNotAllowedError,
            errors.NetworkNotAllowedError,
            errors.PackagesNotAllowedError,
            errors.AssetRefusedError,
            errors.QueueFullError,
            errors.QueueTimeoutError,
            errors.ShuttingDownError,
            errors.CallSetAsideError,
            errors.EngineUnavailableError,
            errors.PackageIndexError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def make_tool_call(
    request: Request,
    services: InjectedServices,
    principal: RunsCalls,
    prefer: Annotated[
        list[str] | None,
        Header(
            alias="Prefer",
            description="`respond-async`: answer 202 at once and let the call run. `wait=<seconds>` (at most 60): "
            "hold the request so long if the call waits for an answer from outside.",
        ),
    ] = None,
    idempotency_key: IdempotencyKey = None,
    run_lease: Annotated[
        int | None,
        Header(
            alias=RUN_LEASE_HEADER,
            ge=1,
            le=LEASE_MAX,
            description="The number of the sender's lease of the run; required with `run_id`.",
        ),
    ] = None,
) -> Response:
    """Runs a call and answers its result, or joins the same call, or answers what is stored of it.

    When the connection is lost, the call goes on for a grace time: the same body joins it, or gets its answer. A
    call that no client asks for in that time is cancelled, unless it was made with `Prefer: respond-async`.
    """
    detached = prefers_async(prefer or [])
    await check_storage_quota(request, services)
    find_more = partial(services.calls.find_mistakes, principal)
    call = named_call(await read_model(request, ToolCallRequest, find_more=find_more), run_lease)
    note_subject(request, call_id=call.tool_call_id, conversation_id=call.conversation_id)
    ticket = await services.calls.submit(
        principal,
        call,
        idempotency_key=idempotency_key,
        request_id=request_id_of(request),
        detached=detached,
        run_lease=None if call.run_id is None else run_lease,
    )
    replayed = REPLAYED if ticket.replayed else {}
    if ticket.replayed:
        await services.provenance.link_replay(ticket.key)
    if detached:
        return await _accept(request, services, call, replayed)
    ends = time.monotonic() + preferred_wait_s(prefer or [])
    answer = await answer_or_leave(request, ticket)
    if answer is not None and answer.http_status == _ACCEPTED and (left_s := ends - time.monotonic()) > 0:
        answer = await answer_or_leave(request, ticket, ticket.ended(), left_s)
    if answer is None:
        return Response(status_code=CLIENT_GONE)
    where = {"Location": _location(request, call)} if answer.http_status == _ACCEPTED else {}
    return Response(
        answer.body,
        answer.http_status,
        {**retry_after(answer.retry_after_s), **replayed, **where},
        PROBLEM_JSON if answer.is_problem else JSON,
    )


@router.get(
    "/{tool_call_id}",
    operation_id="get_tool_call",
    summary="Ask how a call stands",
    response_class=Response,
    responses={
        200: json_answer("How it stands; with the answer if there is one.", CallStatus, "call_status"),
        **problems(*_SAME_ERRORS, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def get_tool_call(
    services: InjectedServices,
    principal: ReadsCalls,
    tool_call_id: CallIdInPath,
    conversation_id: ConversationIdInQuery = None,
) -> Response:
    """Whether a call waits, runs or has ended, and its answer; of one that was cancelled also what it had done."""
    status = await services.calls.status(principal, tool_call_id, conversation_id)
    return model_response(status, headers=NO_STORE)


@router.delete(
    "/{tool_call_id}",
    operation_id="cancel_tool_call",
    summary="Cancel a call",
    response_class=Response,
    responses={
        200: json_answer("How it stands now.", CallStatus, "call_status"),
        **problems(*_SAME_ERRORS, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def cancel_tool_call(
    services: InjectedServices,
    principal: RunsCalls,
    tool_call_id: CallIdInPath,
    conversation_id: ConversationIdInQuery = None,
) -> Response:
    """Ends a call that waits or runs; one that has ended stays as it is, so asking twice changes nothing.

    The call leaves its blocks on the timeline, with what its program had printed.
    """
    status = await services.calls.cancel(principal, tool_call_id, conversation_id)
    return model_response(status, headers=NO_STORE)


def named_call(call: ToolCallRequest, run_lease: int | None) -> ToolCallRequest:
    """The call with the id of its tool; the names of a run's tools are found with the run.

    Raises:
        InvalidRequestError: a run without a lease, or a tool of runs without a run.
    """
    if call.run_id is None:
        if call.tool_id.startswith(_OF_RUNS):
            raise invalid_value("run_id", f"{call.tool_id[:80]} is a tool of runs; give the run")
        return canonical_call(call)
    if run_lease is None:
        raise invalid_value(RUN_LEASE_HEADER, "a call of a run needs the lease that POST /v1/runs or a claim gave")
    return call


def prefers_async(values: list[str]) -> bool:
    """Whether the ``Prefer`` headers (RFC 7240) ask for ``respond-async``."""
    preferences = (preference for value in values for preference in value.split(","))
    return any(preference.partition(";")[0].strip().lower() == RESPOND_ASYNC for preference in preferences)


def preferred_wait_s(values: list[str]) -> float:
    """The seconds of ``wait`` (RFC 7240) in the ``Prefer`` headers, at most `WAIT_S_MAX`; 0 without one."""
    preferences = (preference for value in values for preference in value.split(","))
    found = (_WAIT.fullmatch(preference.partition(";")[0].strip().lower()) for preference in preferences)
    return max((min(float(match["seconds"]), WAIT_S_MAX) for match in found if match), default=0.0)


async def answer_or_leave(
    request: Request, ticket: Ticket, answered: asyncio.Future[Answer] | None = None, wait_s: float | None = None
) -> Answer | None:
    """The answer of a call, or None if the client went away first: then its place at the call is given up.

    Args:
        request: the request.
        ticket: its hold on the call.
        answered: what is waited for; the ticket's answer if it is not given.
        wait_s: how long; then it is the ticket's answer, which shows that the call waits.
    """
    answered = ticket.answered() if answered is None else answered
    leaving = asyncio.create_task(disconnected(request))
    either: set[asyncio.Future[Any]] = {answered, leaving}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED, timeout=wait_s)
        if answered.done():
            return answered.result()
        if not leaving.done():
            return ticket.answered().result()
        # Not when this request is cancelled: then the service stops, and the call ends with that reason.
        await ticket.leave()
        return None
    finally:
        leaving.cancel()


async def _accept(request: Request, services: Services, call: ToolCallRequest, headers: dict[str, str]) -> Response:
    status = await services.calls.status(
        caller_of(request.scope["state"]).principal, call.tool_call_id, call.conversation_id
    )
    location = {"Location": _location(request, call), "Preference-Applied": RESPOND_ASYNC}
    return model_response(status, status=_ACCEPTED, headers={**location, **headers})


def _location(request: Request, call: ToolCallRequest) -> str:
    query = urlencode({"conversation_id": call.conversation_id})
    return relative_link(request, f"/v1/tool-calls/{quote(call.tool_call_id, safe='')}?{query}")
