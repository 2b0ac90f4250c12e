"""``GET /v1/conversations/{c}/archive``: the files of a call, a turn or the conversation as one ZIP archive."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Query, Response

from proofbox.contracts.problems import FieldError
from proofbox.contracts.tool_call_request import CallId, TurnId
from proofbox.service import errors
from proofbox.service.api.download_headers import harmless_headers
from proofbox.service.api.identity import ReadsArtifacts
from proofbox.service.api.openapi_responses import answer, header, problems
from proofbox.service.api.responses import ClosingStream
from proofbox.service.api.services import InjectedServices, Services
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.artifacts.zip_stream import stream_zip
from proofbox.service.identity import ConversationKey

ZIP = "application/zip"
ARCHIVE_FILES_MAX = 5_000
_LISTED_AT_ONCE = 1_000
router = APIRouter(tags=["files"])


# The conversation is read by the dependency that its routes share.
ROUTE = "/v1/conversations/{conversation_id}/archive"


@router.get(
    ROUTE,
    operation_id="get_archive",
    summary="Download files as a ZIP archive",
    response_class=Response,
    responses={
        200: answer(
            "The archive. Files are stored as they are, in folders named by their turn.",
            {ZIP: {"schema": {"type": "string", "format": "binary"}}},
            {"Content-Disposition": header("Always `attachment`, with a name for the archive.")},
        ),
        **problems(
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.UnknownArtifactError,
            errors.StoreFailedError,
        ),
    },
)
async def get_archive(
    services: InjectedServices,
    scope: ReadsArtifacts,
    turn_id: Annotated[
        TurnId | None, Query(description="The latest versions of the files and attachments of this turn.")
    ] = None,
    tool_call_id: Annotated[CallId | None, Query(description="The versions that this call made.")] = None,
) -> Response:
    """Without a parameter: the latest versions of all files of the conversation.

    Files that a program removed are left out. If a file cannot be read, the archive ends early and is not valid.
    """
    if turn_id is not None and tool_call_id is not None:
        raise _invalid("tool_call_id", "give turn_id or tool_call_id, not both")
    found = await _select(services, scope, turn_id, tool_call_id)
    if not found:
        raise errors.UnknownArtifactError("archive: there are no files; list the files of the conversation")
    if len(found) > ARCHIVE_FILES_MAX:
        field = "tool_call_id" if turn_id is not None else "turn_id"
        raise _invalid(field, f"more than {ARCHIVE_FILES_MAX} files; ask for one turn or one call")
    pieces = _pieces(services, scope, found)
    await anext(pieces)  # a store that fails at the first file is a problem document
    name = f"{scope.conversation_id}{'' if turn_id is None else f'-{turn_id}'}"
    name = f"{name}{'' if tool_call_id is None else f'-{tool_call_id}'}.zip"
    return ClosingStream(pieces, 200, harmless_headers(name, ZIP))


def _invalid(field: str, message: str) -> errors.InvalidRequestError:
    return errors.InvalidRequestError(
        f"{field}: {message}", errors=[FieldError(field=field, code="value_error", message=message)]
    )


async def _select(
    services: Services, scope: ConversationKey, turn_id: str | None, tool_call_id: str | None
) -> list[StoredArtifact]:
    """The files of the archive, without removed ones; more than `ARCHIVE_FILES_MAX` if there are too many."""
    if tool_call_id is not None:
        return await services.history.of_call(scope, tool_call_id, ARCHIVE_FILES_MAX + 1)
    if turn_id is not None:
        return [artifact for artifact in await services.artifacts.of_turn(scope, turn_id) if not artifact.removed]
    found: list[StoredArtifact] = []
    after = 0
    while page := await services.artifacts.listed(scope, after, _LISTED_AT_ONCE):
        found += [artifact for _, artifact in page if not artifact.removed]
        after = page[-1][0]
        if len(found) > ARCHIVE_FILES_MAX:
            break
    return found


async def _pieces(
    services: Services, scope: ConversationKey, found: list[StoredArtifact]
) -> AsyncGenerator[bytes, None]:
    """Yield an empty piece once the first file is being read, then the archive."""
    archive = stream_zip(services.artifacts, scope, found)
    try:
        first = await anext(archive)
        yield b""
        yield first
        async for piece in archive:
            yield piece
    finally:
        await archive.aclose()
