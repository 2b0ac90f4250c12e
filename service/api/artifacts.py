"""``GET /v1/conversations/{c}/artifacts/{logical path}``: files, and all that has a logical path."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from contracts.logical import LogicalPath, parse
from contracts.paths import FilePath, UnsafePathError
from service.api.byte_ranges import ByteRange, requested_range
from service.api.documented import answer, header, problems
from service.api.doors import OpenDoors
from service.api.download_headers import download_headers, is_unchanged, range_holds
from service.api.principal import ReadsArtifacts
from service.api.remembered import remembered_response
from service.api.responses import ClosingStream, problem_response, request_id_of
from service.core import errors
from service.core.scopes import Scope
from service.core.store_ports import ArtifactStore, StoredArtifact

ROUTE = "/v1/conversations/{conversation_id}/artifacts/{logical_path:path}"
_BINARY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
_VERSION_HEADERS = {
    "ETag": header("The SHA-256 of the version, quoted."),
    "Last-Modified": header("When the version was stored."),
    "Artifact-Version": header("Which version it is, 1 for the first.", type="integer"),
    "Content-Disposition": header("Always `attachment`, with the file's name."),
    "Accept-Ranges": header("`bytes`."),
}
router = APIRouter(tags=["files"])


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which bytes the client wants, and which version it has."""

    wanted: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None
    if_range: Annotated[
        str | None, Header(alias="If-Range", description="Serve the range only of this version.")
    ] = None
    if_none_match: Annotated[
        str | None, Header(alias="If-None-Match", description="Versions that the client has.")
    ] = None


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
        200: answer("The version, the latest one unless another is asked for.", _BINARY, _VERSION_HEADERS),
        206: answer(
            "The part that `Range` asks for.",
            _BINARY,
            {**_VERSION_HEADERS, "Content-Range": header("Which part of how many bytes.")},
        ),
        303: answer(
            "A link to the version, as `link=1` asks for: it works for a while, for whoever has it.",
            None,
            {"Location": header("The link.", type="string", format="uri"), "Cache-Control": header("`no-store`.")},
        ),
        304: answer(
            "It is still the version that `If-None-Match` names.", None, {"ETag": _VERSION_HEADERS["ETag"]}
        ),
        **problems(
            errors.UnsafeNameError,
            errors.UnknownArtifactError,
            errors.RangeNotSatisfiableError,
            errors.NoLinksError,
            errors.StoreFailedError,
        ),
    },
)
async def get_artifact(
    request: Request,
    doors: OpenDoors,
    scope: ReadsArtifacts,
    logical_path: Annotated[
        str,
        Path(
            description="`fi:<turn_id>.files/<path>`, `fi:<turn_id>.user.attachments/<name>`: the latest version. "
            "`fi:<turn_id>.code.<call>`, `ar:`, `tc:`, `su:`: the latest block's text or bytes. "
            "`so:sources_pool[1,3-5]`: rows as JSON. `sk:<id>`: the skill's text."
        ),
    ],
    conditions: Annotated[Conditions, Depends()],
    choice: Annotated[Choice, Depends()],
) -> Response:
    """What a path means now; a browser saves it and runs nothing of it. Ranges are served of files."""
    path = _parsed(logical_path)
    artifact = await _stored(doors.artifacts, scope, path, choice.version)
    if artifact is None and choice.version is not None:
        raise errors.UnknownArtifactError(f"version: there is no version {choice.version} of a file at this path")
    if artifact is None:
        found = await doors.recall.find(scope, path)
        if found is None:
            raise errors.UnknownArtifactError("the conversation has nothing at this path")
        return remembered_response(request, found, conditions.if_none_match)
    if choice.link:
        return await _link(doors.artifacts, scope, artifact)
    headers = download_headers(artifact)
    if is_unchanged(artifact, conditions.if_none_match):
        kept = ("Cache-Control", "ETag", "Last-Modified")
        return Response(status_code=304, headers={name: headers[name] for name in kept})
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(artifact.size_bytes)})
    try:
        wanted = conditions.wanted if range_holds(artifact, conditions.if_range) else None
        part = requested_range(wanted, artifact.size_bytes)
    except errors.RangeNotSatisfiableError as exc:
        size = {"Content-Range": f"bytes */{artifact.size_bytes}"}
        return problem_response(exc, request_id_of(request), headers=size)
    return await _body(doors.artifacts, scope, artifact, part, headers)


async def _stored(
    store: ArtifactStore, scope: Scope, path: LogicalPath, version: int | None
) -> StoredArtifact | None:
    if not isinstance(path, FilePath):
        return None
    return await (store.latest(scope, path) if version is None else store.version(scope, path, version))


def _parsed(logical_path: str) -> LogicalPath:
    """What a logical path names.

    Raises:
        UnsafeNameError: it has no form of a logical path.
    """
    try:
        return parse(logical_path)
    except UnsafePathError as exc:
        raise errors.UnsafeNameError(str(exc)) from exc


async def _link(store: ArtifactStore, scope: Scope, artifact: StoredArtifact) -> Response:
    """The answer that leads to the bytes where they are stored.

    Raises:
        NoLinksError: the store has none.
        StoreFailedError: the store cannot make one.
    """
    url = await store.link(scope, artifact)
    if url is None:
        raise errors.NoLinksError("this service keeps its files in a folder and has no links; ask without link=1")
    # The link is a key to the bytes: nobody on the way keeps it, and where it leads does not learn of this URL.
    kept_back = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    return Response(status_code=303, headers={"Location": url, **kept_back})


async def _body(
    store: ArtifactStore,
    scope: Scope,
    artifact: StoredArtifact,
    part: ByteRange | None,
    headers: dict[str, str],
) -> Response:
    """The file or the part of it.

    The first piece is read before the status is sent, so that a store that fails is a problem and no empty file.

    Raises:
        StoreFailedError: the store cannot read it.
    """
    wanted = part or ByteRange(0, artifact.size_bytes)
    length = {"Content-Length": str(wanted.end - wanted.start)}
    pieces = _pieces(store, scope, artifact, wanted)
    await anext(pieces)
    if part is None:
        return ClosingStream(pieces, 200, {**headers, **length})
    content_range = f"bytes {part.start}-{part.end - 1}/{artifact.size_bytes}"
    return ClosingStream(pieces, 206, {**headers, **length, "Content-Range": content_range})


async def _pieces(
    store: ArtifactStore, scope: Scope, artifact: StoredArtifact, wanted: ByteRange
) -> AsyncGenerator[bytes, None]:
    """Nothing once the store has answered, then the bytes."""
    reading = store.read(scope, artifact, wanted.start, wanted.end)
    try:
        first = await anext(reading, b"")
        yield b""
        yield first
        async for piece in reading:
            yield piece
    finally:
        if isinstance(reading, AsyncGenerator):
            await reading.aclose()
