"""``/v1/status``, ``/v1/tool-calls`` (the list), ``/v1/caller`` and ``/v1/keys``: what a running service does."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from proofbox.contracts.operations import (
    CALLS_MINUTES_MAX,
    PAGE_CALLS_MAX,
    CallerInfo,
    CallPage,
    KeyList,
    ServiceStatus,
)
from proofbox.service import errors
from proofbox.service.api.identity import AnyCaller, ReadsCalls, ReadsKeys, ReadsMetrics
from proofbox.service.api.listed_calls import list_call
from proofbox.service.api.listed_keys import describe_limits, list_keys
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.api.openapi_responses import json_answer, problems
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.services import InjectedServices

router = APIRouter(prefix="/v1", tags=["operations"])


@router.get(
    "/status",
    operation_id="get_status",
    summary="Ask for slots, queue and pool",
    response_class=Response,
    responses={200: json_answer("The state of this process.", ServiceStatus, "service_status"), **problems()},
)
async def get_status(services: InjectedServices, _caller: ReadsMetrics) -> Response:
    """What `/metrics` has of the same, as JSON and without history; it covers all tenants."""
    return model_response(await services.operations.status(), headers=NO_STORE)


@router.get(
    "/tool-calls",
    operation_id="list_tool_calls",
    summary="List the recent calls of the user",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", CallPage, "call_page"),
        **problems(errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def list_tool_calls(
    services: InjectedServices,
    principal: ReadsCalls,
    minutes: Annotated[int, Query(ge=1, le=CALLS_MINUTES_MAX, description="How far the list reaches back.")] = 60,
    before: Annotated[
        int | None, Query(ge=1, le=2**62, description="`next` of the page before; none for the first page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_CALLS_MAX, description="Calls of a page.")] = 100,
) -> Response:
    """The newest first, with the code of those that ended; calls of other users are not among them."""
    since = (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
    found = await services.recent_calls.recent(principal, since.replace("+00:00", "Z"), before, limit + 1)
    page = found[:limit]
    listed = [list_call(call) for call in page]
    return model_response(
        CallPage(calls=listed, next=page[-1].number if len(found) > limit else None), headers=NO_STORE
    )


@router.get(
    "/caller",
    operation_id="get_caller",
    summary="Ask who the service takes you for",
    response_class=Response,
    responses={
        200: json_answer("Identity, scopes and limits.", CallerInfo, "caller_info"),
        **problems(errors.StoreFailedError),
    },
)
async def get_caller(request: Request, services: InjectedServices, principal: AnyCaller) -> Response:
    """Any key may ask for itself."""
    state = request.scope["state"]
    caller = caller_of(state)
    info = CallerInfo(
        tenant=principal.tenant,
        project=principal.project,
        user_type=principal.user_type,
        user=principal.user,
        key_id=principal.key_id,
        scopes=sorted(caller.permissions),
        limits=await describe_limits(services, principal, state["meter"]),
        network=services.network_of(principal),
        packages=services.packages_of(principal),
    )
    return model_response(info, headers=NO_STORE)


@router.get(
    "/keys",
    operation_id="list_keys",
    summary="List the API keys",
    response_class=Response,
    responses={200: json_answer("The keys.", KeyList, "key_list"), **problems(errors.StoreFailedError)},
)
async def get_keys(services: InjectedServices, principal: ReadsKeys) -> Response:
    """Those of the caller's tenant; a key of one project lists the keys of that project only.

    Secrets and their hashes are never among the fields. `proofbox keys` makes, rotates and revokes keys.
    """
    return model_response(KeyList(keys=list_keys(await services.operations.keys(), principal)), headers=NO_STORE)
