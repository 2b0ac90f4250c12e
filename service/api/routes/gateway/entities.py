"""``/v1/entities``: the persons and agents of a project."""

from fastapi import APIRouter, Request, Response

from proofbox.contracts.gateway.spaces import Entity, EntityDefinition, EntityPage
from proofbox.service import errors, gateway_errors
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.identity import ReadsSpaces
from proofbox.service.api.openapi_responses import json_answer, json_content, problems
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.routes.gateway.actors import ManagingKey
from proofbox.service.api.routes.gateway.parameters import BeforeInQuery, EntityIdInPath, LimitInQuery
from proofbox.service.api.strict_json import read_model

BODY_BYTES_MAX = 64 * 1024
router = APIRouter(prefix="/v1/entities", tags=["spaces"])


@router.put(
    "/{entity_id}",
    operation_id="put_entity",
    summary="Make or change a person",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(EntityDefinition)}},
    responses={
        200: json_answer("It was changed.", Entity),
        201: json_answer("It is new.", Entity),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.NameTakenError,
            errors.InvalidRequestError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def put_entity(
    request: Request,
    gateway: InjectedGateway,
    actor: ManagingKey,
    entity_id: EntityIdInPath,
) -> Response:
    """Keys with the same `user` act as this person; a key without `spaces:act_as` may only name its own.

    Agents are entities by themselves, as `agent:<agent_id>`.
    """
    definition = await read_model(request, EntityDefinition, BODY_BYTES_MAX)
    entity, is_new = await gateway.spaces.put_entity(actor, entity_id, definition)
    return model_response(entity, status=201 if is_new else 200, headers=NO_STORE)


@router.get(
    "/{entity_id}",
    operation_id="get_entity",
    summary="Read an entity",
    response_class=Response,
    responses={
        200: json_answer("The person or agent.", Entity),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownEntityError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_entity(gateway: InjectedGateway, principal: ReadsSpaces, entity_id: EntityIdInPath) -> Response:
    """Its handle, its name and the user that acts as it."""
    return model_response(await gateway.spaces.find_entity(principal, entity_id), headers=NO_STORE)


@router.get(
    "",
    operation_id="list_entities",
    summary="List the entities of the project",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", EntityPage),
        **problems(gateway_errors.UnknownEntityError, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def list_entities(
    gateway: InjectedGateway, principal: ReadsSpaces, before: BeforeInQuery = None, limit: LimitInQuery = 50
) -> Response:
    """Persons and agents, the newest first."""
    return model_response(await gateway.spaces.list_entities(principal, before, limit), headers=NO_STORE)
