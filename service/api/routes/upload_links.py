"""``PUT /v1/uploads/{token}``: storing an attachment by its link, without a key."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from proofbox.contracts.tool_call_response import Attachment
from proofbox.service import errors
from proofbox.service.access.quotas import Allowances
from proofbox.service.api.openapi_responses import json_answer, problems
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.routes.attachments import media_type_of
from proofbox.service.api.services import InjectedServices

ROUTE = "/v1/uploads/{token}"
router = APIRouter(tags=["files"])


@router.put(
    ROUTE,
    operation_id="put_linked_attachment",
    summary="Store an attachment by its link",
    response_class=Response,
    openapi_extra={
        "requestBody": {
            "required": False,
            "description": "The file's bytes as they are, no multipart form.",
            "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    responses={
        200: json_answer("Its latest version has the very same bytes already.", Attachment, "attachment"),
        201: json_answer("A new attachment, or a new version of it.", Attachment, "attachment"),
        **problems(
            errors.UnsafeNameError,
            errors.LinkRefusedError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StorageQuotaError,
            errors.InvalidRequestError,
            errors.StoreFailedError,
            errors.StoreFullError,
            for_anybody=True,
        ),
    },
)
async def put_linked_attachment(
    request: Request,
    services: InjectedServices,
    token: Annotated[str, Path(description="The token of the link.")],
) -> Response:
    """The MCP tool `get_upload_link` makes links; each stores one name in one conversation, for a while."""
    # In a thread: it checks whether the file of keys was changed.
    target = await asyncio.to_thread(services.uploads.check, token)
    who = target.scope.principal
    quota = Allowances(stored_bytes=target.stored_bytes_max)
    await services.quotas.check_storage_quota(quota, who.tenant, who.project)
    content = _limit(request.stream(), target.bytes_max)
    stored = await services.attachments.store(
        target.scope, target.turn_id, target.name, content, media_type_of(request)
    )
    return model_response(stored.attachment, status=201 if stored.created else 200, headers=NO_STORE)


async def _limit(content: AsyncIterator[bytes], bytes_max: int) -> AsyncIterator[bytes]:
    """Yield the pieces of a body.

    Raises:
        BodyTooLargeError: it has more bytes than the link allows.
    """
    size_bytes = 0
    async for piece in content:
        size_bytes += len(piece)
        if size_bytes > bytes_max:
            raise errors.BodyTooLargeError(f"body: too large for this link (limit {bytes_max} bytes)")
        yield piece
