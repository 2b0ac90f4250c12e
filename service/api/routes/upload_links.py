"""``PUT /v1/uploads/{token}``: storing an attachment by its link, without a key."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from proofbox.contracts.tool_call_response import Attachment
from proofbox.service import access_errors, errors
from proofbox.service.access.quotas import Allowances, CallerMeter
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
        201: json_answer(
            "A new attachment, or a new version of it; the link stores no other one.", Attachment, "attachment"
        ),
        **problems(
            errors.UnsafeNameError,
            access_errors.LinkRefusedError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StorageQuotaError,
            access_errors.LinkUsedError,
            errors.RateLimitedError,
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
    """The MCP tool `get_upload_link` makes links; each stores one version of one name, for a while."""
    # In a thread: it checks whether the file of keys was changed.
    target = await asyncio.to_thread(services.uploads.check, token)
    who = target.scope.principal
    meter = services.quotas.known_meter(who.caller, target.own)
    meter.take_request(is_call=False)
    quota = Allowances(stored_bytes=target.stored_bytes_max)
    await services.quotas.check_storage_quota(quota, who.tenant, who.project)
    content = _limit(request, target.bytes_max, meter)
    stored = await services.attachments.store_linked(target, content, media_type_of(request))
    return model_response(stored.attachment, status=201 if stored.created else 200, headers=NO_STORE)


async def _limit(request: Request, bytes_max: int, meter: CallerMeter) -> AsyncIterator[bytes]:
    """Yield the pieces of a body; count its bytes, all of them first if its length is declared.

    Raises:
        BodyTooLargeError: it has more bytes than the link allows.
        RateLimitedError: the caller's limit of uploaded bytes is used up.
    """
    size_bytes, declared = 0, int(request.headers.get("content-length", "0"))
    if declared > bytes_max:
        raise _too_large(bytes_max)
    meter.take_upload(declared)
    async for piece in request.stream():
        size_bytes += len(piece)
        if size_bytes > bytes_max:
            raise _too_large(bytes_max)
        if not declared:
            meter.take_upload(len(piece))
        yield piece


def _too_large(bytes_max: int) -> errors.BodyTooLargeError:
    return errors.BodyTooLargeError(f"body: too large for this link (limit {bytes_max} bytes)")
