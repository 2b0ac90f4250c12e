"""``GET /v1/conversations/{c}/artifacts/{logical path}``: files, and all that has a logical path."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from proofbox.contracts.logical_paths import LogicalPath, parse
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.service import errors
from proofbox.service.api.file_response import BINARY, PART_HEADERS, VERSION_HEADERS, Conditions, file_response
from proofbox.service.api.identity import ReadsArtifacts
from proofbox.service.api.openapi_responses import answer, header, problems
from proofbox.service.api.routes.download_links import own_link
from proofbox.service.api.routes.logical_artifacts import content_response
from proofbox.service.api.services import InjectedServices, Services
from proofbox.service.artifacts.path_resolver import PathContent
from proofbox.service.artifacts.port import ArtifactStore, StoredArtifact
from proofbox.service.identity import ConversationKey

ROUTE = "/v1/conversations/{conversation_id}/artifacts/{logical_path:path}"
router = APIRouter(tags=["files"])


@dataclass(frozen=True)
class Choice:
    """Which version the client wants, and how."""

    link: Annotated[bool, Query(description="Answer with a link to the bytes in place of the bytes.")] = False
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="An earlier version; 1 is the first.")] = (
        None
    )


@router.head(ROUTE, include_in_schema=False)
@router.get(
    ROUTE,
    operation_id="get_artifact",
    summary="Read a file, or what else a logical path names",
    response_class=Response,
    responses={
        200: answer("The version, the latest one unless another is asked for.", BINARY, VERSION_HEADERS),
        206: answer(
            "The part that `Range` asks for.",
            BINARY,
            PART_HEADERS,
        ),
        303: answer(
            "A link to the version, as `link=1` asks for: it works for a while, for everyone who has it.",
            None,
            {
                "Location": header("The link; relative with `own_link`.", type="string", format="uri-reference"),
                "Cache-Control": header("`no-store`."),
            },
        ),
        304: answer("It is still the version that `If-None-Match` names.", None, {"ETag": VERSION_HEADERS["ETag"]}),
        **problems(
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.UnknownArtifactError,
            errors.RangeNotSatisfiableError,
            errors.StoreFailedError,
        ),
    },
)
async def get_artifact(
    request: Request,
    services: InjectedServices,
    scope: ReadsArtifacts,
    logical_path: Annotated[
        str,
        Path(
            description="`fi:<turn_id>.files/<path>`, `fi:<turn_id>.user.attachments/<name>`: the latest version. "
            "`fi:<turn_id>.code.<call>`, `ar:`, `tc:`, `su:`: the latest block's text or bytes. "
            "`fi:<turn_id>.output.<call>`: what its program printed. "
            "`so:sources_pool[1,3-5]`: rows as JSON. `sk:<id>`: the skill's text."
        ),
    ],
    conditions: Annotated[Conditions, Depends()],
    choice: Annotated[Choice, Depends()],
) -> Response:
    """What a path means now; a browser saves it and does not run it. Ranges are served of files."""
    path = _parse_path(logical_path)
    artifact: StoredArtifact | PathContent | None
    if choice.version is None:
        artifact = await services.paths.find(scope, path)
    else:
        artifact = await _version(services.artifacts, scope, path, choice.version)
    if artifact is None:
        deletion = (await services.artifacts.deletions(scope)).get(path) if isinstance(path, FilePath) else None
        raise errors.UnknownArtifactError(
            "the conversation has nothing at this path"
            if deletion is None
            else f"artifact: the file was deleted at {deletion.deleted}; upload or make it again if you need it"
        )
    if isinstance(artifact, PathContent):
        return content_response(request, artifact, conditions.if_none_match)
    if choice.link:
        return await link_response(services, scope, artifact)
    return await file_response(request, services.artifacts, scope, artifact, conditions)


async def _version(store: ArtifactStore, scope: ConversationKey, path: LogicalPath, number: int) -> StoredArtifact:
    """A version of a stored file.

    Raises:
        UnknownArtifactError: the file has no such version.
        StoreFailedError: the store failed.
    """
    artifact = await store.version(scope, path, number) if isinstance(path, FilePath) else None
    if artifact is None:
        raise errors.UnknownArtifactError(f"version: {number} does not exist; omit it to read the latest")
    return artifact


def _parse_path(logical_path: str) -> LogicalPath:
    """What a logical path names.

    Raises:
        UnsafeNameError: it has no form of a logical path.
    """
    try:
        return parse(logical_path)
    except UnsafePathError as exc:
        raise errors.UnsafeNameError(str(exc)) from exc


async def link_response(
    services: Services, scope: ConversationKey, artifact: StoredArtifact, own_to: Request | None = None
) -> Response:
    """Build the response with the link: to the object store, else to this service's route of download links.

    With ``own_to`` it leads to this service in any case, relative to that request.

    Raises:
        StoreFailedError: the store cannot make a link.
    """
    url = None if own_to is not None else await services.artifacts.link(scope, artifact)
    if url is None:
        url = await own_link(services, scope, artifact, own_to)
    # The link is a credential: no cache stores it, and its target does not learn this URL.
    private = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return Response(status_code=303, headers={"Location": url, **private})
