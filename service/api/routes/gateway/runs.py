"""``/v1/runs``: runs of agents are made, claimed, kept alive, released and ended."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response

from proofbox.contracts.gateway.names import AgentId, RunId
from proofbox.contracts.gateway.runs import (
    RUN_LEASE_HEADER,
    Run,
    RunClaim,
    RunContext,
    RunCreation,
    RunFinish,
    RunHeartbeat,
    RunPage,
    RunStatus,
)
from proofbox.service import errors, gateway_errors
from proofbox.service.access.api_keys import Permission
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.identity import ReadsRuns, WritesRuns
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.api.openapi_responses import answer, header, json_answer, json_content, problems
from proofbox.service.api.parameters import IdempotencyKey
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.routes.download_links import relative_link
from proofbox.service.api.routes.gateway.actors import build_actor, replayed, request_key
from proofbox.service.api.routes.gateway.parameters import RunIdInPath
from proofbox.service.api.strict_json import read_model
from proofbox.service.calls.validation import invalid_value
from proofbox.service.gateway.runs_port import RunFilter, StoredRun, run_json
from proofbox.service.gateway.runs_port import RunStatus as Status

ROUTE = "/v1/runs"
RUN_ROUTE = f"{ROUTE}/{{run_id}}"
LEASE_MAX = 2**31 - 1
PAYLOAD_BYTES_MAX = 256 * 1024
METADATA_BYTES_MAX = 16 * 1024
_BODY_BYTES_MAX = 512 * 1024
_PAGE_MAX = 100
router = APIRouter(tags=["runs"])
LeaseInHeader = Annotated[
    int,
    Header(alias=RUN_LEASE_HEADER, ge=1, le=LEASE_MAX, description="The number of the sender's lease of the run."),
]
_LEASE = {RUN_LEASE_HEADER: header("The number of the lease; absent if the run is queued.", type="integer")}
_HELD = (
    gateway_errors.UnknownRunError,
    gateway_errors.LeaseLostError,
    gateway_errors.RunNotRunningError,
    gateway_errors.RunEndedError,
    errors.InvalidRequestError,
    errors.StoreFailedError,
    errors.StoreFullError,
)


def _takes(model: Any) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": json_content(model)}}


@router.post(
    ROUTE,
    operation_id="create_run",
    summary="Make a run of an agent",
    status_code=201,
    response_class=Response,
    openapi_extra=_takes(RunCreation),
    responses={
        201: json_answer("The run.", Run, headers=_LEASE),
        **problems(
            gateway_errors.UnknownAgentError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.McpUnavailableError,
            errors.IdReusedError,
            errors.BodyTooLargeError,
            errors.InvalidRequestError,
            errors.QueueFullError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def create_run(
    request: Request, gateway: InjectedGateway, _principal: WritesRuns, idempotency_key: IdempotencyKey = None
) -> Response:
    """Its creator holds the first lease, unless it is queued.

    It is queued if that is asked for, or while as many runs of the agent run as may. Its space is one that the
    caller's entity is a member of; with `spaces:act_as` any of the project.
    """
    creation = await read_model(request, RunCreation, _BODY_BYTES_MAX)
    _require_size("trigger.payload", creation.trigger.model_dump_json().encode(), PAYLOAD_BYTES_MAX)
    _require_size("metadata", creation.model_dump_json(include={"metadata"}).encode(), METADATA_BYTES_MAX)
    key = request_key(f"POST {ROUTE}", idempotency_key, creation)
    run, was_known = await gateway.runs.create(build_actor(request), creation, key)
    where = relative_link(request, f"{ROUTE}/{run.run_id}")
    return _response(run, status=201, headers={"Location": where, **replayed(was_known)})


@router.post(
    f"{ROUTE}/claim",
    operation_id="claim_run",
    summary="Ask for a queued run",
    response_class=Response,
    openapi_extra=_takes(RunClaim),
    responses={
        200: json_answer("The run, under a new lease.", Run, headers=_LEASE),
        204: answer("No run is queued."),
        **problems(errors.InvalidRequestError, errors.StoreFailedError, errors.StoreFullError),
    },
)
async def claim_run(request: Request, gateway: InjectedGateway, principal: WritesRuns) -> Response:
    """The oldest one, of the agents that are named; waits for one if that is asked for.

    The first one who claims a run gives it its conversation: afterwards only keys of the same user get it.
    """
    claim = await read_model(request, RunClaim, _BODY_BYTES_MAX)
    run = await gateway.runs.claim(principal, claim)
    return Response(status_code=204) if run is None else _response(run)


@router.get(
    ROUTE,
    operation_id="list_runs",
    summary="List the runs of the project",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", RunPage),
        **problems(gateway_errors.UnknownRunError, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def list_runs(
    gateway: InjectedGateway,
    principal: ReadsRuns,
    agent_id: Annotated[AgentId | None, Query(description="Only runs of this agent.")] = None,
    status: Annotated[RunStatus | None, Query(description="Only runs that stand so.")] = None,
    before: Annotated[RunId | None, Query(description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=_PAGE_MAX, description="Runs of a page.")] = 50,
) -> Response:
    """The newest first."""
    wanted = RunFilter(agent_id, None if status is None else Status(status), before, limit + 1)
    found = await gateway.runs.list(principal, wanted)
    following = found[limit - 1].run_id if len(found) > limit else None
    page = RunPage(items=[_model(run) for run in found[:limit]], next=following)
    return model_response(page, headers=NO_STORE)


@router.get(
    RUN_ROUTE,
    operation_id="get_run",
    summary="Ask how a run stands",
    response_class=Response,
    responses={
        200: json_answer("The run.", Run),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownRunError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_run(gateway: InjectedGateway, principal: ReadsRuns, run_id: RunIdInPath) -> Response:
    """Its status, lease, active space and open waits."""
    return _response(await gateway.runs.find(principal, run_id), headers=NO_STORE, with_lease=False)


@router.get(
    f"{RUN_ROUTE}/context",
    operation_id="get_run_context",
    summary="Get what a loop needs to know",
    response_class=Response,
    responses={
        200: json_answer("The facts.", RunContext),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownRunError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_run_context(
    request: Request, gateway: InjectedGateway, principal: ReadsRuns, run_id: RunIdInPath
) -> Response:
    """The agent, why the run exists, its spaces with the newest messages, its runs and its calls: no prompt.

    A key without `spaces:read` gets no spaces and no messages.
    """
    with_spaces = Permission.SPACES_READ in caller_of(request.scope["state"]).permissions
    context = await gateway.runs.context(principal, run_id, with_spaces=with_spaces)
    return model_response(context, headers=NO_STORE)


@router.post(
    f"{RUN_ROUTE}/heartbeat",
    operation_id="extend_run_lease",
    summary="Extend the lease of a run",
    response_class=Response,
    openapi_extra=_takes(RunHeartbeat),
    responses={200: json_answer("The run.", Run, headers=_LEASE), **problems(errors.UnsafeNameError, *_HELD)},
)
async def extend_run_lease(
    request: Request,
    gateway: InjectedGateway,
    principal: WritesRuns,
    run_id: RunIdInPath,
    run_lease: LeaseInHeader,
) -> Response:
    """A holder that neither calls a tool nor does this in time loses the run; a run that waits keeps its lease."""
    heartbeat = await read_model(request, RunHeartbeat, _BODY_BYTES_MAX)
    return _response(await gateway.runs.heartbeat(principal, run_id, run_lease, heartbeat.lease_s))


@router.post(
    f"{RUN_ROUTE}/release",
    operation_id="release_run",
    summary="Give a run back",
    response_class=Response,
    responses={200: json_answer("The run.", Run), **problems(errors.UnsafeNameError, *_HELD)},
)
async def release_run(
    gateway: InjectedGateway, principal: WritesRuns, run_id: RunIdInPath, run_lease: LeaseInHeader
) -> Response:
    """It is queued at once; a run that waits is queued when its last wait has ended.

    The same request again answers the run as it is, until somebody claims it.
    """
    return _response(await gateway.runs.release(principal, run_id, run_lease))


@router.post(
    f"{RUN_ROUTE}/finish",
    operation_id="finish_run",
    summary="End a run",
    response_class=Response,
    openapi_extra=_takes(RunFinish),
    responses={
        200: json_answer("The run.", Run),
        **problems(errors.UnsafeNameError, *_HELD, gateway_errors.RunWaitingError, errors.BodyTooLargeError),
    },
)
async def finish_run(
    request: Request,
    gateway: InjectedGateway,
    principal: WritesRuns,
    run_id: RunIdInPath,
    run_lease: LeaseInHeader,
) -> Response:
    """The same request again answers the same run."""
    finish = await read_model(request, RunFinish, _BODY_BYTES_MAX)
    return _response(await gateway.runs.finish(principal, run_id, run_lease, finish))


@router.delete(
    RUN_ROUTE,
    operation_id="cancel_run",
    summary="Cancel a run",
    response_class=Response,
    responses={
        200: json_answer("The run.", Run),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownRunError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def cancel_run(gateway: InjectedGateway, principal: WritesRuns, run_id: RunIdInPath) -> Response:
    """Its calls and waits are cancelled with it. A run that has ended stays as it is."""
    return _response(await gateway.runs.cancel(principal, run_id), with_lease=False)


def _response(
    run: StoredRun, *, status: int = 200, headers: dict[str, str] | None = None, with_lease: bool = True
) -> Response:
    lease = {RUN_LEASE_HEADER: str(run.lease)} if with_lease and run.is_held else {}
    return model_response(_model(run), status=status, headers={**lease, **(headers or {})})


def _model(run: StoredRun) -> Run:
    return Run.model_validate(run_json(run))


def _require_size(field: Literal["trigger.payload", "metadata"], content: bytes, bytes_max: int) -> None:
    if len(content) > bytes_max:
        raise invalid_value(field, f"too large (limit {bytes_max} bytes, got {len(content)}); send less")
