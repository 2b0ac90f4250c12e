"""``/v1/spaces/{space_id}/messages``: the messages of a space."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from proofbox.contracts.gateway.messages import Message, MessagePage, MessageSent, NewMessage
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.service import errors, gateway_errors
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.openapi_responses import answer, header, json_answer, json_content, problems
from proofbox.service.api.parameters import IdempotencyKey
from proofbox.service.api.responses import JSON, NO_STORE, model_response
from proofbox.service.api.routes.artifacts import link_response
from proofbox.service.api.routes.gateway.actors import (
    ReadingActor,
    WritingActor,
    build_actor,
    replayed,
    request_key,
)
from proofbox.service.api.routes.gateway.parameters import LimitInQuery, MessageIdInPath, SpaceIdInPath
from proofbox.service.api.services import InjectedServices, Services, require_gateway
from proofbox.service.api.strict_json import read_model
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.gateway.spaces.port import ListedArtifact

ROUTE = "/v1/spaces/{space_id}/messages"
_SEQ_MAX = 2**53
_VERSIONS_MAX = 200  # of a file, in which that of a call is searched
_SeqInQuery = Annotated[int | None, Query(ge=0, le=_SEQ_MAX)]
router = APIRouter(tags=["spaces"])


@router.get(
    ROUTE,
    operation_id="list_messages",
    summary="List the messages of a space",
    response_class=Response,
    responses={
        200: json_answer("A page, the oldest message first.", MessagePage),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def list_messages(
    gateway: InjectedGateway,
    actor: ReadingActor,
    space_id: SpaceIdInPath,
    before: Annotated[_SeqInQuery, Query(description="Only messages with a smaller `seq`.")] = None,
    after: Annotated[_SeqInQuery, Query(description="Only messages with a greater `seq`.")] = None,
    limit: LimitInQuery = 50,
) -> Response:
    """Without `after` the newest messages, or the newest before a number; with it the oldest after that number."""
    page = await gateway.messages.list(actor, space_id, before=before, after=after, limit=limit)
    return model_response(page, headers=NO_STORE)


@router.get(
    f"{ROUTE}/{{message_id}}",
    operation_id="get_message",
    summary="Read a message",
    response_class=Response,
    responses={
        200: json_answer("The message as it is now.", Message),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.UnknownMessageError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_message(
    gateway: InjectedGateway,
    actor: ReadingActor,
    space_id: SpaceIdInPath,
    message_id: MessageIdInPath,
) -> Response:
    """A text, or the record of a tool call."""
    return model_response(await gateway.messages.find(actor, space_id, message_id), headers=NO_STORE)


@router.post(
    ROUTE,
    operation_id="post_message",
    summary="Post a text to a space",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(NewMessage)}},
    responses={
        201: json_answer(
            "The message, and what it led to.",
            MessageSent,
            headers={"Idempotent-Replayed": header("`true` if the answer was stored before.")},
        ),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.UnknownMessageError,
            gateway_errors.UnknownEntityError,
            gateway_errors.NotReplyableError,
            gateway_errors.SpaceArchivedError,
            errors.IdReusedError,
            errors.QueueFullError,
            errors.InvalidRequestError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def post_message(
    request: Request,
    gateway: InjectedGateway,
    _actor: WritingActor,
    space_id: SpaceIdInPath,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """`@handle` mentions a member; handles of nobody come back as `unknown_mentions`.

    A run that waits for a reply of the sender, or of anyone, goes on with the text; with `reply_to` only one that
    waits on that message. Every other agent that is mentioned gets a queued run.
    """
    message = await read_model(request, NewMessage)
    key = request_key(f"POST {ROUTE.format(space_id=space_id)}", idempotency_key, message)
    posted = await gateway.messages.post(build_actor(request, message.entity_id), space_id, message, key)
    await gateway.waits.answers.settle(posted.due)
    return Response(posted.answer, 201, {**NO_STORE, **replayed(posted.was_known)}, JSON)


async def find_own_to(
    request: Request,
    own_link: Annotated[
        bool,
        Query(
            description="A link to this service, also if an object store has the file. It is relative to the "
            "request, so that it works under any name of the service."
        ),
    ] = False,
) -> Request | None:
    """Return the request to which a link has to be relative; None: any link."""
    return request if own_link else None


@router.get(
    f"{ROUTE}/{{message_id}}/artifacts/{{logical_path:path}}",
    operation_id="get_message_artifact",
    summary="Read an artifact that a message lists",
    status_code=303,
    response_class=Response,
    responses={
        303: answer("To a download link.", headers={"Location": header("The link; it works for a while.")}),
        **problems(
            gateway_errors.UnknownSpaceError,
            gateway_errors.UnknownMessageError,
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
        ),
    },
)
async def get_message_artifact(
    services: InjectedServices,
    actor: ReadingActor,
    space_id: SpaceIdInPath,
    message_id: MessageIdInPath,
    logical_path: Annotated[str, Path(description="An `artifact_path` of the message.")],
    own_to: Annotated[Request | None, Depends(find_own_to)],
) -> Response:
    """Files of the message's own call only: those that are external, and its input or output if it is too large."""
    listed = await require_gateway(services).messages.find_artifact(actor, space_id, message_id, logical_path)
    unknown = gateway_errors.UnknownMessageError(
        f"artifact: the message '{message_id}' has no file '{logical_path[:200]}'; use a path that it lists"
    )
    try:
        path = FilePath.from_logical(logical_path)
    except UnsafePathError as exc:
        raise unknown from exc
    stored = await _find_version(services, listed, path)
    if stored is None:
        raise unknown
    if stored.visibility != "external" and not listed.is_value:
        raise unknown
    return await link_response(services, listed.scope, stored, own_to)


async def _find_version(services: Services, listed: ListedArtifact, path: FilePath) -> StoredArtifact | None:
    """Return the version of a file that the message's own call made; later calls may have made newer ones.

    A remote service may have named any path in its result: versions of other calls are not handed out.
    """
    latest = await services.artifacts.latest(listed.scope, path)
    if latest is None or latest.tool_call_id == listed.tool_call_id:
        return latest
    for earlier in await services.history.versions(listed.scope, path, latest.version, _VERSIONS_MAX):
        if earlier.tool_call_id == listed.tool_call_id:
            return await services.artifacts.version(listed.scope, path, earlier.version)
    return None
