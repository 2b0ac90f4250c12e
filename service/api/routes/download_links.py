"""``GET /v1/links/{number}``: files by download links, without a key."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from proofbox.service import access_errors, errors
from proofbox.service.api.file_response import BINARY, PART_HEADERS, VERSION_HEADERS, Conditions, file_response
from proofbox.service.api.openapi_responses import answer, problems
from proofbox.service.api.services import InjectedServices, Services
from proofbox.service.artifacts.download_links import Link
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.identity import ConversationKey

ROUTE = "/v1/links/{number}"
_NUMBER_MAX = 2**63 - 1
router = APIRouter(tags=["files"])


@dataclass(frozen=True, slots=True)
class LinkQuery:
    """The query of a link; it is verified as text, so that every invalid link gets the same response."""

    expires: Annotated[str, Query(description="Until when the link works, in seconds since 1970.")] = ""
    key: Annotated[str, Query(description="Which key has signed it.")] = ""
    signature: Annotated[str, Query(description="The signature over the file, the method and the time.")] = ""


async def own_link(
    services: Services, scope: ConversationKey, artifact: StoredArtifact, request: Request | None = None
) -> str:
    """Create a link to a version of a file at this service.

    Args:
        services: of the service.
        scope: the conversation of the file.
        artifact: the version.
        request: makes the link relative to this request; None: below the service's URL for clients, if it has one.

    Raises:
        StoreFailedError: the version is not stored, or the key that signs links cannot be read.
    """
    number = await services.artifacts.number_of(scope, artifact)
    # In a thread: it checks whether the file of keys was changed.
    link = await asyncio.to_thread(services.links.make, scope, artifact, number)
    if request is not None:
        return relative_link(request, _target(link))
    return f"{services.public_url.rstrip('/')}{_target(link)}"


def relative_link(request: Request, url: str) -> str:
    """Return a path of this service relative to the request's own path.

    The client resolves it against the address that it has used: it works under any name of the service, and below
    any prefix that a proxy removes.

    Args:
        request: the request that is answered.
        url: path and query, from ``/`` on.
    """
    path: bytes = request.scope["raw_path"]
    return "../" * (path.count(b"/") - 1) + url.removeprefix("/")


def _target(link: Link) -> str:
    """Return path and query of a link in its only valid spelling."""
    query = f"expires={link.expires}&key={link.key}&signature={link.signature}"
    return f"/v1/links/{link.number}?{query}"


@router.get(
    ROUTE,
    operation_id="get_linked_file",
    summary="Read a file by its link",
    response_class=Response,
    responses={
        200: answer("The version that the link was made for.", BINARY, VERSION_HEADERS),
        206: answer("The part that `Range` asks for.", BINARY, PART_HEADERS),
        304: answer("It is still the version that `If-None-Match` names.", None, {"ETag": VERSION_HEADERS["ETag"]}),
        **problems(
            errors.UnsafeNameError,
            access_errors.LinkRefusedError,
            errors.RangeNotSatisfiableError,
            errors.StoreFailedError,
            for_anybody=True,
        ),
    },
)
@router.api_route(ROUTE, methods=["HEAD", "POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
async def get_linked_file(
    request: Request,
    services: InjectedServices,
    number: Annotated[str, Path(description="Which version of which file.")],
    conditions: Annotated[Conditions, Depends()],
    query: Annotated[LinkQuery, Depends()],
) -> Response:
    """Links are made by `get_artifact` with `link=1`; each works for one version, one method and a while."""
    scope, artifact = await _verify_link(services, request, number, query)
    return await file_response(request, services.artifacts, scope, artifact, conditions)


async def _verify_link(
    services: Services, request: Request, number: str, query: LinkQuery
) -> tuple[ConversationKey, StoredArtifact]:
    """Verify a link and return its file.

    Raises:
        LinkRefusedError: the link is invalid, expired or spelled differently. The response is the same for all.
    """
    link = Link(_number(number), _number(query.expires), query.key, query.signature)
    found = await services.artifacts.numbered(link.number)
    if found is None or _sent_target(request) != _target(link):
        raise access_errors.LinkRefusedError("invalid download link; request a new one")
    await asyncio.to_thread(services.links.check, link, request.method, *found)
    return found


def _sent_target(request: Request) -> str:
    """Return path and query as the client sent them, not decoded."""
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return f"{path.decode('latin-1')}?{query.decode('latin-1')}"


def _number(text: str) -> int:
    digits_max = len(str(_NUMBER_MAX))
    if not (text.isascii() and text.isdigit()) or len(text) > digits_max or int(text) > _NUMBER_MAX:
        raise access_errors.LinkRefusedError("invalid download link; request a new one")
    return int(text)
