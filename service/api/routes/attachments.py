"""``PUT /v1/conversations/{c}/turns/{t}/attachments/{name}``: handing a file of the user over."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Request, Response

from proofbox.contracts.media_types import is_mime
from proofbox.contracts.tool_call_request import TurnId
from proofbox.contracts.tool_call_response import Attachment
from proofbox.service import errors
from proofbox.service.api.error_handlers import NoRouteError, invalid_field
from proofbox.service.api.identity import WritesArtifacts
from proofbox.service.api.middleware.authentication import check_storage_quota
from proofbox.service.api.openapi_responses import header, json_answer, link, problems
from proofbox.service.api.responses import model_response
from proofbox.service.api.routes.download_links import relative_link
from proofbox.service.api.services import InjectedServices

# Defaults of clients (the second is curl's); the media type comes from the file's name then.
_DEFAULT_TYPES = {"", "application/octet-stream", "application/x-www-form-urlencoded"}
# The conversation is read by the dependency that its routes share; :path, so that an encoded slash is seen.
ROUTE = "/v1/conversations/{conversation_id}/turns/{turn_id}/attachments/{name:path}"
_LINKS = {
    "read": link(
        "get_artifact",
        conversation_id="$request.path.conversation_id",
        logical_path="$response.body#/logical_path",
    )
}
router = APIRouter(tags=["files"])


@router.put(
    ROUTE,
    operation_id="put_attachment",
    summary="Store an attachment of a turn",
    response_class=Response,
    openapi_extra={
        "requestBody": {
            "required": False,
            "description": "The file's bytes as they are, no multipart form; `Content-Type` is the file's own. "
            "Without a body the file is an empty one.",
            "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    responses={
        200: json_answer(
            "Its latest version has the very same bytes already.", Attachment, "attachment", links=_LINKS
        ),
        201: json_answer(
            "A new attachment, or a new version of it.",
            Attachment,
            "attachment",
            {"Location": header("Where it can be read; relative to the request.")},
            _LINKS,
        ),
        **problems(
            errors.UnsafeNameError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StorageQuotaError,
            errors.InvalidRequestError,
            NoRouteError,  # a path of two lines
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def put_attachment(
    request: Request,
    services: InjectedServices,
    scope: WritesArtifacts,
    turn_id: Annotated[TurnId, Path(description="Which turn.")],
    name: Annotated[str, Path(description="The file's name, without a slash.")],
) -> Response:
    """Stores the bytes, gives them a source id, and from then on every call of the conversation can read them."""
    await check_storage_quota(request, services)
    stored = await services.attachments.store(scope, turn_id, name, request.stream(), media_type_of(request))
    if not stored.created:
        return model_response(stored.attachment)
    conversation = quote(scope.conversation_id, safe="")
    location = f"/v1/conversations/{conversation}/artifacts/{quote(stored.attachment.logical_path)}"
    return model_response(stored.attachment, status=201, headers={"Location": relative_link(request, location)})


def media_type_of(request: Request) -> str | None:
    """Return the media type that the client sent, without parameters; None for a default."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in _DEFAULT_TYPES:
        return None
    if not is_mime(given) or given.startswith("multipart/"):
        raise invalid_field(
            "Content-Type",
            "media_type",
            "give the media type of the file; the body is its bytes, no multipart form",
        )
    return given
