"""``GET /v1/links/{number}``: files by links that are their own key."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from service import errors
from service.api.file_response import BINARY, PART_HEADERS, VERSION_HEADERS, Conditions, file_response
from service.api.openapi_responses import answer, problems
from service.api.services import InjectedServices, Services
from service.artifacts.download_links import Link
from service.artifacts.port import StoredArtifact
from service.identity import ConversationKey

ROUTE = "/v1/links/{number}"
_NUMBER_MAX = 2**63 - 1
router = APIRouter(tags=["files"])


@dataclass(frozen=True, slots=True)
class LinkQuery:
    """What stands behind the number; whatever it is, it is checked and not validated: a bent link is refused."""

    expires: Annotated[str, Query(description="Until when the link works, in seconds since 1970.")] = ""
    key: Annotated[str, Query(description="Which key has signed it.")] = ""
    signature: Annotated[str, Query(description="The signature over the file, the method and the time.")] = ""


async def own_link(services: Services, scope: ConversationKey, artifact: StoredArtifact) -> str:
    """A link to a version of a file at this service's own door.

    Raises:
        StoreFailedError: the version is not stored, or the key that signs links cannot be read.
    """
    number = await services.artifacts.number_of(scope, artifact)
    # In a thread: it looks whether the file of keys was changed.
    link = await asyncio.to_thread(services.links.make, scope, artifact, number)
    return f"{services.public_url.rstrip('/')}{_target(link)}"


def _target(link: Link) -> str:
    """Path and query of a link, in the one form that works."""
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
            errors.LinkRefusedError, errors.RangeNotSatisfiableError, errors.StoreFailedError, for_anybody=True
        ),
    },
)
@router.api_route(ROUTE, methods=["HEAD", "POST", "PUT", "PATCH", "DELETE"], include_in_schema=False)
async def get_linked_file(
    request: Request,
    services: InjectedServices,
    number: Annotated[str, Path(description="Which version of which file.")],
    conditions: Annotated[Conditions, Depends()],
    told: Annotated[LinkQuery, Depends()],
) -> Response:
    """Links are made by `get_artifact` with `link=1`; each works for one version, one method and a while."""
    scope, artifact = await _checked(services, request, number, told)
    return await file_response(request, services.artifacts, scope, artifact, conditions)


async def _checked(
    services: Services, request: Request, number: str, told: LinkQuery
) -> tuple[ConversationKey, StoredArtifact]:
    """What a link leads to.

    Raises:
        LinkRefusedError: it is none that works, or is spelled in another way than it was made. Whatever is wrong
            with it, the answer is the same.
    """
    link = Link(_number(number), _number(told.expires), told.key, told.signature)
    found = await services.artifacts.numbered(link.number)
    if found is None or _asked(request) != _target(link):
        raise errors.LinkRefusedError("the link is none that this service made; ask for a new one")
    await asyncio.to_thread(services.links.check, link, request.method, *found)
    return found


def _asked(request: Request) -> str:
    """Path and query as the client sent them; nothing is decoded."""
    path: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return f"{path.decode('latin-1')}?{query.decode('latin-1')}"


def _number(text: str) -> int:
    digits_max = len(str(_NUMBER_MAX))
    if not (text.isascii() and text.isdigit()) or len(text) > digits_max or int(text) > _NUMBER_MAX:
        raise errors.LinkRefusedError("the link is none that this service made; ask for a new one")
    return int(text)
