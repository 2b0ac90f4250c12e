"""``/v1/spaces``: spaces, their members and their tokens."""

from datetime import UTC, datetime

from fastapi import APIRouter, Request, Response

from proofbox.contracts.gateway.spaces import (
    Space,
    SpaceChange,
    SpaceCreation,
    SpacePage,
    SpaceToken,
    SpaceTokenRequest,
)
from proofbox.service import errors, gateway_errors
from proofbox.service.access.space_tokens import SpaceGrant
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.openapi_responses import answer, header, json_answer, json_content, problems
from proofbox.service.api.parameters import IdempotencyKey
from proofbox.service.api.responses import JSON, NO_STORE, model_response
from proofbox.service.api.routes.gateway.actors import (
    ListingKey,
    ManagingKey,
    ReadingActor,
    build_actor,
    replayed,
    request_key,
)
from proofbox.service.api.routes.gateway.parameters import (
    BeforeInQuery,
    EntityIdInPath,
    LimitInQuery,
    SpaceIdInPath,
)
from proofbox.service.api.strict_json import read_model
from proofbox.service.calls.validation import invalid_value
from proofbox.service.gateway.compact_json import compact_json

ROUTE = "/v1/spaces"
SPACE_ROUTE = "/v1/spaces/{space_id}"
MEMBER_ROUTE = f"{SPACE_ROUTE}/members/{{entity_id}}"
METADATA_BYTES_MAX = 16 * 1024
_BODY_ERRORS = (errors.InvalidRequestError, errors.BodyTooLargeError, errors.RequestTimeoutError)
_STORE_ERRORS = (errors.StoreFailedError, errors.StoreFullError)
router = APIRouter(tags=["spaces"])


@router.post(
    ROUTE,
    operation_id="create_space",
    summary="Make a space",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(SpaceCreation)}},
    responses={
        201: json_answer(
            "The space.", Space, headers={"Idempotent-Replayed": header("`true` if the answer was stored before.")}
        ),
        **problems(gateway_errors.UnknownEntityError, errors.IdReusedError, *_BODY_ERRORS, *_STORE_ERRORS),
    },
)
async def create_space(
    request: Request,
    gateway: InjectedGateway,
    actor: ManagingKey,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """If the key's user is an entity, that becomes a member too."""
    creation = await read_model(request, SpaceCreation)
    _require_small(creation.metadata)
    key = request_key(f"POST {ROUTE}", idempotency_key, creation)
    made, is_replay = await gateway.spaces.create(actor, creation, key)
    return Response(made, 201, {**NO_STORE, **replayed(is_replay)}, JSON)


@router.get(
    ROUTE,
    operation_id="list_spaces",
    summary="List spaces",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", SpacePage),
        **problems(gateway_errors.UnknownSpaceError, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def list_spaces(
    gateway: InjectedGateway,
    actor: ListingKey,
    before: BeforeInQuery = None,
    limit: LimitInQuery = 50,
) -> Response:
    """Those that the caller's entity is a member of, the newest first; all of the project with `spaces:act_as`."""
    return model_response(await gateway.spaces.list(actor, before, limit), headers=NO_STORE)


@router.get(
    SPACE_ROUTE,
    operation_id="get_space",
    summary="Read a space",
    response_class=Response,
    responses={
        200: json_answer("The space, with its members.", Space),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_space(gateway: InjectedGateway, actor: ReadingActor, space_id: SpaceIdInPath) -> Response:
    """A space that the caller's entity is not a member of is unknown."""
    return model_response(await gateway.spaces.find(actor, space_id), headers=NO_STORE)


@router.patch(
    SPACE_ROUTE,
    operation_id="change_space",
    summary="Change name or metadata of a space",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(SpaceChange)}},
    responses={
        200: json_answer("The space as it is now.", Space),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.SpaceArchivedError,
            *_BODY_ERRORS,
            *_STORE_ERRORS,
        ),
    },
)
async def change_space(
    request: Request,
    gateway: InjectedGateway,
    actor: ManagingKey,
    space_id: SpaceIdInPath,
) -> Response:
    """What the body does not name stays as it is."""
    change = await read_model(request, SpaceChange)
    _require_small(change.metadata)
    return model_response(await gateway.spaces.change(actor, space_id, change), headers=NO_STORE)


@router.delete(
    SPACE_ROUTE,
    operation_id="archive_space",
    summary="Archive a space",
    status_code=204,
    response_class=Response,
    responses={
        204: answer("It is archived: it can be read only."),
        **problems(
            errors.UnsafeNameError, gateway_errors.UnknownSpaceError, errors.InvalidRequestError, *_STORE_ERRORS
        ),
    },
)
async def archive_space(gateway: InjectedGateway, actor: ManagingKey, space_id: SpaceIdInPath) -> Response:
    """Its messages stay readable; nothing is posted to it any more."""
    await gateway.spaces.archive(actor, space_id)
    return Response(status_code=204)


@router.put(
    MEMBER_ROUTE,
    operation_id="add_member",
    summary="Add a member to a space",
    response_class=Response,
    responses={
        200: json_answer("The space, with its members.", Space),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.UnknownEntityError,
            gateway_errors.SpaceArchivedError,
            errors.InvalidRequestError,
            *_STORE_ERRORS,
        ),
    },
)
async def add_member(
    gateway: InjectedGateway,
    actor: ManagingKey,
    space_id: SpaceIdInPath,
    entity_id: EntityIdInPath,
) -> Response:
    """Agents are added as `agent:<agent_id>`; one that is a member already stays."""
    return model_response(await gateway.spaces.add_member(actor, space_id, entity_id), headers=NO_STORE)


@router.delete(
    MEMBER_ROUTE,
    operation_id="remove_member",
    summary="Remove a member from a space",
    status_code=204,
    response_class=Response,
    responses={
        204: answer("It is not a member any more."),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.UnknownEntityError,
            gateway_errors.SpaceArchivedError,
            errors.InvalidRequestError,
            *_STORE_ERRORS,
        ),
    },
)
async def remove_member(
    gateway: InjectedGateway,
    actor: ManagingKey,
    space_id: SpaceIdInPath,
    entity_id: EntityIdInPath,
) -> Response:
    """The cards of an agent's calls that still run end with `left_space`, without output."""
    await gateway.spaces.remove_member(actor, space_id, entity_id)
    return Response(status_code=204)


@router.post(
    f"{SPACE_ROUTE}/tokens",
    operation_id="create_space_token",
    summary="Make a token that opens one space as one entity",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(SpaceTokenRequest)}},
    responses={
        201: json_answer("The token; it is not stored.", SpaceToken),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.UnknownEntityError,
            *_BODY_ERRORS,
            errors.StoreFailedError,
        ),
    },
)
async def create_space_token(
    request: Request,
    gateway: InjectedGateway,
    actor: ManagingKey,
    space_id: SpaceIdInPath,
) -> Response:
    """For a web page: it reads the space, posts and answers as that person, and can do nothing else.

    A key without `spaces:act_as` gets tokens for its own entity only.
    """
    wanted = await read_model(request, SpaceTokenRequest)
    space = await gateway.spaces.find(build_actor(request, wanted.entity_id), space_id)
    member = next(member for member in space.members if member.entity_id == wanted.entity_id)
    if member.type != "human":
        raise invalid_value("entity_id", "tokens are for persons; an agent acts through its runs")
    who = actor.principal
    expires = gateway.tokens.expiry(wanted.expires_s)
    grant = SpaceGrant(who.tenant, who.project, space_id, wanted.entity_id, expires)
    text = datetime.fromtimestamp(expires, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    token = SpaceToken(token=gateway.tokens.make(grant), expires=text)
    return model_response(token, status=201, headers=NO_STORE)


def _require_small(metadata: object) -> None:
    size = len(compact_json(metadata).encode())
    if size > METADATA_BYTES_MAX:
        raise invalid_value("metadata", f"it has {size:,} bytes as JSON (limit {METADATA_BYTES_MAX:,}); store less")
