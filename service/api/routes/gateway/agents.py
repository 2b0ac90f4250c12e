"""``/v1/agents``: the configurations of agents."""

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Request, Response
from pydantic import RootModel

from proofbox.contracts.gateway.agents import AgentPage, AgentVersion, AgentWritten
from proofbox.contracts.gateway.configuration import CONFIGURATION_BYTES_MAX, AgentConfiguration
from proofbox.contracts.gateway.names import AgentId
from proofbox.contracts.gateway.records import AgentState
from proofbox.service import errors, gateway_errors
from proofbox.service.api.gateway_services import GatewayServices, InjectedGateway
from proofbox.service.api.identity import ReadsAgents, WritesAgents
from proofbox.service.api.openapi_responses import answer, header, json_answer, json_content, problems
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.routes.download_links import relative_link
from proofbox.service.api.routes.gateway.parameters import LimitInQuery
from proofbox.service.api.strict_json import read_model
from proofbox.service.calls.validation import invalid_value
from proofbox.service.gateway.agents.service import Agents

ROUTE = "/v1/agents"
AGENT_ROUTE = "/v1/agents/{agent_id}"
STATE_ROUTE = "/v1/agents/{agent_id}/state"
_VERSION = re.compile(r'"([1-9][0-9]{0,8})"')
_ETAG = {"ETag": header('The version in quotes, for `If-Match`: `"3"`.')}
AgentIdInPath = Annotated[AgentId, Path(description="The agent.")]
router = APIRouter(tags=["agents"])


class AgentDocument(RootModel[dict[str, Any]]):
    """A configuration as it was sent; its own check reports all mistakes at once."""


_LOCATION = {"Location": header("The agent; relative to the request.")}


@router.put(
    AGENT_ROUTE,
    operation_id="put_agent",
    summary="Write the configuration of an agent",
    response_class=Response,
    openapi_extra={
        "requestBody": {"required": True, "content": json_content(AgentConfiguration, "agent_configuration")}
    },
    responses={
        200: json_answer("The agent existed; its newest version is this one.", AgentWritten, headers=_ETAG),
        201: json_answer("The agent is new.", AgentWritten, "agent_written", headers={**_ETAG, **_LOCATION}),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.InvalidToolError,
            gateway_errors.VersionMovedError,
            gateway_errors.GatewayNotInstalledError,
            gateway_errors.NameTakenError,
            errors.InvalidRequestError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def put_agent(
    request: Request,
    gateway: InjectedGateway,
    principal: WritesAgents,
    agent_id: AgentIdInPath,
    if_match: Annotated[
        str | None,
        Header(alias="If-Match", description='Write only over this version: `"3"`; `"0"`: only if it is new.'),
    ] = None,
) -> Response:
    """All mistakes are reported at once, each with its field.

    A configuration that differs is a new version. Runs use the version with which they began; versions that no run
    uses are removed. The same configuration again changes nothing.
    """
    document = await read_model(request, AgentDocument, CONFIGURATION_BYTES_MAX)
    written, is_new = await _agents(gateway).put(principal, agent_id, document.root, _version_of(if_match))
    headers = {**NO_STORE, "ETag": f'"{written.version}"'}
    if is_new:
        headers["Location"] = relative_link(request, f"{ROUTE}/{agent_id}")
    return model_response(written, status=201 if is_new else 200, headers=headers)


@router.get(
    ROUTE,
    operation_id="list_agents",
    summary="List the agents of the project",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", AgentPage, "agent_page"),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownAgentError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def list_agents(
    gateway: InjectedGateway,
    principal: ReadsAgents,
    before: Annotated[
        AgentId | None, Query(description="`next` of the page before; none for the first page.")
    ] = None,
    limit: LimitInQuery = 50,
) -> Response:
    """The newest first, by the time when they were first written."""
    return model_response(await _agents(gateway).page(principal, before, limit), headers=NO_STORE)


@router.get(
    AGENT_ROUTE,
    operation_id="get_agent",
    summary="Read the configuration of an agent",
    response_class=Response,
    responses={
        200: json_answer("The configuration.", AgentVersion, "agent_version", headers=_ETAG),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownAgentError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_agent(
    gateway: InjectedGateway,
    principal: ReadsAgents,
    agent_id: AgentIdInPath,
    version: Annotated[
        int | None, Query(ge=1, le=2**31 - 1, description="A version that a run uses; absent: the newest.")
    ] = None,
) -> Response:
    """As it was written: secrets are named in it and were never part of it."""
    found = await _agents(gateway).find(principal, agent_id, version)
    return model_response(found, headers={**NO_STORE, "ETag": f'"{found.version}"'})


@router.get(
    STATE_ROUTE,
    operation_id="get_agent_state",
    summary="Read the goals, memories and plans of an agent",
    response_class=Response,
    responses={
        200: json_answer("What the agent has noted.", AgentState, "agent_state"),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownAgentError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_agent_state(gateway: InjectedGateway, principal: ReadsAgents, agent_id: AgentIdInPath) -> Response:
    """As the agent's runs have set them; they are removed with the agent."""
    return model_response(await gateway.states.state(principal, agent_id), headers=NO_STORE)


@router.delete(
    AGENT_ROUTE,
    operation_id="delete_agent",
    summary="Delete an agent",
    status_code=204,
    response_class=Response,
    responses={
        204: answer("It is deleted."),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownAgentError,
            gateway_errors.AgentInUseError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def delete_agent(
    gateway: InjectedGateway,
    principal: WritesAgents,
    agent_id: AgentIdInPath,
    cancel_runs: Annotated[
        bool, Query(description="Cancel its runs; without it, runs that have not ended are a reason to refuse.")
    ] = False,
) -> Response:
    """Its ended runs and its messages stay. It leaves its spaces, and its handle is free.

    Its goals, memories and plans are removed.
    """
    await _agents(gateway).delete(principal, agent_id, gateway.runs if cancel_runs else None)
    return Response(status_code=204)


def _agents(gateway: GatewayServices) -> Agents:
    return Agents(gateway.agents, gateway.environment, gateway.endpoints)


def _version_of(if_match: str | None) -> int | None:
    if if_match is None:
        return None
    if if_match.strip() == '"0"':
        return 0
    if (found := _VERSION.fullmatch(if_match.strip())) is None:
        raise invalid_value("If-Match", 'give one version in quotes, such as "3", or "0" for a new agent')
    return int(found[1])
