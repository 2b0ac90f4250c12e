"""The response with a stored file: whole, a range, not modified, or only its headers."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Header, Request, Response

from proofbox.service import errors
from proofbox.service.api.byte_ranges import ByteRange, requested_range
from proofbox.service.api.download_headers import download_headers, is_unchanged, range_holds
from proofbox.service.api.openapi_responses import header
from proofbox.service.api.responses import ClosingStream, problem_response, request_id_of
from proofbox.service.artifacts.port import ArtifactStore, StoredArtifact
from proofbox.service.identity import ConversationKey

BINARY = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
VERSION_HEADERS = {
    "ETag": header("The SHA-256 of the version, quoted."),
    "Last-Modified": header("When the version was stored."),
    "Artifact-Version": header("Which version it is, 1 for the first.", type="integer"),
    "Content-Disposition": header("Always `attachment`, with the file's name."),
    "Accept-Ranges": header("`bytes`."),
}
PART_HEADERS = {**VERSION_HEADERS, "Content-Range": header("Which part of how many bytes.")}


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditional headers of a request."""

    wanted: Annotated[str | None, Header(alias="Range", description="One range of bytes.")] = None
    if_range: Annotated[
        str | None, Header(alias="If-Range", description="Serve the range only of this version.")
    ] = None
    if_none_match: Annotated[
        str | None, Header(alias="If-None-Match", description="Versions that the client has.")
    ] = None


async def file_response(
    request: Request, store: ArtifactStore, scope: ConversationKey, artifact: StoredArtifact, conditions: Conditions
) -> Response:
    """Build the response to a request for a version of a file.

    Raises:
        StoreFailedError: the store cannot read it.
    """
    headers = download_headers(artifact)
    if is_unchanged(artifact, conditions.if_none_match):
        names = ("Cache-Control", "ETag", "Last-Modified")
        return Response(status_code=304, headers={name: headers[name] for name in names})
    if request.method == "HEAD":
        return Response(headers={**headers, "Content-Length": str(artifact.size_bytes)})
    try:
        wanted = conditions.wanted if range_holds(artifact, conditions.if_range) else None
        part = requested_range(wanted, artifact.size_bytes)
    except errors.RangeNotSatisfiableError as exc:
        size = {"Content-Range": f"bytes */{artifact.size_bytes}"}
        return problem_response(exc, request_id_of(request), headers=size)
    return await _body(store, scope, artifact, part, headers)


async def _body(
    store: ArtifactStore,
    scope: ConversationKey,
    artifact: StoredArtifact,
    part: ByteRange | None,
    headers: dict[str, str],
) -> Response:
    """Build the response with the file or a range of it.

    The first piece is read before the status is sent, so that a store that fails is a problem document.

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
    store: ArtifactStore, scope: ConversationKey, artifact: StoredArtifact, wanted: ByteRange
) -> AsyncGenerator[bytes, None]:
    """Yield an empty piece once the store has answered, then the bytes."""
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
