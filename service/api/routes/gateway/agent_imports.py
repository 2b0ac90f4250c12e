"""``/v1/agent-imports``: configurations of version 1 become configurations of version 2."""

import asyncio

from fastapi import APIRouter, Request, Response

from proofbox.contracts.gateway.configuration import CONFIGURATION_BYTES_MAX
from proofbox.contracts.gateway.imports import AgentImport, AgentImported
from proofbox.service import errors, gateway_errors
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.identity import WritesAgents
from proofbox.service.api.openapi_responses import json_answer, json_content, problems
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.strict_json import read_model
from proofbox.service.gateway.agents.service import Agents, project_name
from proofbox.service.gateway.imports.importer import import_configuration

_ENVELOPE_BYTES = 1_024  # of the request around the configuration
router = APIRouter(tags=["agents"])


@router.post(
    "/v1/agent-imports",
    operation_id="import_agent",
    summary="Convert a configuration of version 1, and save it if asked to",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(AgentImport, "agent_import")}},
    responses={
        200: json_answer("The configuration in version 2, and a report.", AgentImported, "agent_imported"),
        **problems(
            gateway_errors.InvalidToolError,
            gateway_errors.NameTakenError,
            errors.InvalidRequestError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def import_agent(request: Request, gateway: InjectedGateway, principal: WritesAgents) -> Response:
    """One of version 2 stays as it is.

    Tools and servers with the status `needs_review` are in the answer and are not saved. Other mistakes are
    refused, each with its field.
    """
    given = await read_model(request, AgentImport, CONFIGURATION_BYTES_MAX + _ENVELOPE_BYTES)
    # In a thread: schemas are compiled, and a document may have 1 MiB.
    imported = await asyncio.to_thread(
        import_configuration, given.config, gateway.environment, project_name(principal)
    )
    saved = None
    if given.save_as is not None:
        agents = Agents(gateway.agents, gateway.environment)
        saved, _ = await agents.put(principal, given.save_as, imported.savable)
    answer = AgentImported(config=imported.config, report=imported.report, saved=saved)
    return model_response(answer, headers=NO_STORE)
