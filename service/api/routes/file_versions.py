"""``/v1/conversations/{c}/versions/{logical path}`` and ``/differences/…``: the versions of a file."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from proofbox.contracts.logical_paths import parse
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.contracts.previews import FileDifference, FileVersion, VersionPage
from proofbox.contracts.problems import FieldError
from proofbox.service import errors
from proofbox.service.api.connected_work import run_until_disconnected
from proofbox.service.api.identity import ReadsArtifacts
from proofbox.service.api.middleware.access_log import CLIENT_GONE
from proofbox.service.api.openapi_responses import json_answer, problems
from proofbox.service.api.responses import NO_STORE, model_response, request_id_of
from proofbox.service.api.services import InjectedServices, Services
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.identity import ConversationKey

PAGE_VERSIONS_MAX = 200
_BASE = "/v1/conversations/{conversation_id}"
router = APIRouter(tags=["files"])
_FilePathInPath = Annotated[
    str,
    Path(description="`fi:<turn_id>.files/<path>` or `fi:<turn_id>.user.attachments/<name>`."),
]
_VERSION_MAX = 2**31 - 1


@router.get(
    f"{_BASE}/versions/{{logical_path:path}}",
    operation_id="list_versions",
    summary="List the versions of a file",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", VersionPage, "version_page"),
        **problems(
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.UnknownArtifactError,
            errors.StoreFailedError,
        ),
    },
)
async def list_versions(
    services: InjectedServices,
    scope: ReadsArtifacts,
    logical_path: _FilePathInPath,
    before: Annotated[
        int | None, Query(ge=1, le=_VERSION_MAX, description="Only versions below this one; none: from the latest.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_VERSIONS_MAX, description="Versions of a page.")] = 50,
) -> Response:
    """The newest first. Each can be read with `version` of the route of its file."""
    path = parse_file_path(logical_path)
    found = await services.history.versions(scope, path, before, limit + 1)
    if not found and before is None:
        raise errors.UnknownArtifactError("the conversation has nothing at this path")
    page = VersionPage(
        logical_path=path.logical,
        physical_path=path.physical,
        versions=[_entry(artifact) for artifact in found[:limit]],
        more=len(found) > limit,
    )
    return model_response(page, headers=NO_STORE)


@router.get(
    f"{_BASE}/differences/{{logical_path:path}}",
    operation_id="get_difference",
    summary="Compare two versions of a file",
    response_class=Response,
    responses={
        200: json_answer("What changed.", FileDifference, "file_difference"),
        **problems(
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.UnknownArtifactError,
            errors.NoPreviewError,
            errors.QueueFullError,
            errors.QueueTimeoutError,
            errors.ShuttingDownError,
            errors.EngineUnavailableError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def get_difference(
    request: Request,
    services: InjectedServices,
    scope: ReadsArtifacts,
    logical_path: _FilePathInPath,
    to_version: Annotated[
        int | None, Query(ge=1, le=_VERSION_MAX, description="The newer version; none: the latest.")
    ] = None,
    from_version: Annotated[
        int | None, Query(ge=1, le=_VERSION_MAX, description="The older version; none: the one before the newer.")
    ] = None,
) -> Response:
    """By lines, as a unified diff, made in a sandbox; of DOCX, XLSX, PPTX and PDF the texts are compared."""
    path = parse_file_path(logical_path)
    newer = await find_version(services, scope, path, to_version)
    older_number = newer.version - 1 if from_version is None else from_version
    if older_number < 1 or older_number > newer.version:
        message = f"{older_number} is not a version before {newer.version}; give a number from 1 to {newer.version}"
        raise errors.InvalidRequestError(
            f"from_version: {message}",
            errors=[FieldError(field="from_version", code="value_error", message=message)],
        )
    older = await find_version(services, scope, path, older_number)
    if services.draining():
        raise errors.ShuttingDownError("the service is shutting down; call again in a moment", retry_after_s=5)
    work = services.previews.difference(scope, older, newer, request_id_of(request))
    found = await run_until_disconnected(request, work)
    if found is None:
        return Response(status_code=CLIENT_GONE)
    return model_response(found, headers=NO_STORE)


def parse_file_path(logical_path: str) -> FilePath:
    """The file that a logical path names.

    Raises:
        UnsafeNameError: it has no form of a logical path.
        UnknownArtifactError: it names something other than a file.
    """
    try:
        path = parse(logical_path)
    except UnsafePathError as exc:
        raise errors.UnsafeNameError(str(exc)) from exc
    if not isinstance(path, FilePath):
        raise errors.UnknownArtifactError("artifact: only files and attachments have versions and previews")
    return path


async def find_version(
    services: Services, scope: ConversationKey, path: FilePath, number: int | None
) -> StoredArtifact:
    """A version of a stored file; the latest one without a number.

    Raises:
        UnknownArtifactError: the conversation has no such file or version.
        StoreFailedError: the store failed.
    """
    store = services.artifacts
    found = await (store.latest(scope, path) if number is None else store.version(scope, path, number))
    if found is not None:
        return found
    if number is None:
        raise errors.UnknownArtifactError("the conversation has nothing at this path")
    raise errors.UnknownArtifactError(f"version: {number} does not exist; list the versions of the file")


def _entry(artifact: StoredArtifact) -> FileVersion:
    return FileVersion(
        version=artifact.version,
        mime=artifact.mime,
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
        visibility=artifact.visibility,
        description=artifact.description,
        tool_call_id=artifact.tool_call_id,
        created=artifact.created,
        removed=artifact.removed,
    )
