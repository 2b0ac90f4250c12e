"""``GET /v1/conversations/{c}/previews/{logical path}``: pictures of pages, and tables, made in a sandbox."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response

from proofbox.contracts.previews import TablePreview
from proofbox.service import errors
from proofbox.service.api.connected_work import run_until_disconnected
from proofbox.service.api.download_headers import is_same_tag
from proofbox.service.api.identity import ReadsArtifacts
from proofbox.service.api.middleware.access_log import CLIENT_GONE
from proofbox.service.api.openapi_responses import answer, header, json_content, problems
from proofbox.service.api.responses import model_response, request_id_of
from proofbox.service.api.routes.file_versions import find_version, parse_file_path
from proofbox.service.api.services import InjectedServices
from proofbox.service.previews.kinds import require_preview_kind
from proofbox.service.previews.service import PAGE_MAX, PagePicture

PNG = "image/png"
ROUTE = "/v1/conversations/{conversation_id}/previews/{logical_path:path}"
# A preview depends on the file's bytes and on this release; caches ask each time.
_HEADERS = {"Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff"}
router = APIRouter(tags=["files"])


@dataclass(frozen=True)
class Choice:
    """What the client wants to see."""

    page: Annotated[int, Query(ge=1, le=PAGE_MAX, description="Which page, slide or sheet.")] = 1
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Which version; none: the latest.")] = None


@router.get(
    ROUTE,
    operation_id="get_preview",
    summary="Look at a file without opening it",
    response_class=Response,
    responses={
        200: answer(
            "The picture of a page of a PDF, DOCX, PPTX, HTML, SVG or picture file; of a CSV, TSV, Parquet or XLSX "
            "file its first rows.",
            {PNG: {"schema": {"type": "string", "format": "binary"}}, **json_content(TablePreview)},
            {
                "ETag": header("Names the content, its format, the page and the release of the service."),
                "Preview-Page": header("Of a picture: its page, 1 for the first.", type="integer"),
                "Preview-Pages": header("Of a picture: how many pages the file has.", type="integer"),
                "Preview-Layout": header(
                    "Of a picture: `exact`, or `similar` for DOCX and PPTX, which no office program lays out here.",
                    type="string",
                    enum=["exact", "similar"],
                ),
            },
        ),
        304: answer("It is still the preview that `If-None-Match` names.", None, {"ETag": header("As above.")}),
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
async def get_preview(
    request: Request,
    services: InjectedServices,
    scope: ReadsArtifacts,
    logical_path: Annotated[
        str,
        Path(description="`fi:<turn_id>.files/<path>` or `fi:<turn_id>.user.attachments/<name>`."),
    ],
    choice: Annotated[Choice, Depends()],
    if_none_match: Annotated[
        str | None, Header(alias="If-None-Match", description="Previews that the client has.")
    ] = None,
) -> Response:
    """The file is opened in a sandbox, which takes one of the caller's slots for a moment.

    Scripts of HTML do not run, and nothing but `data:` URLs is loaded. The service answers a page that it has
    shown lately from its memory.
    """
    artifact = await find_version(services, scope, parse_file_path(logical_path), choice.version)
    kind = require_preview_kind(artifact.mime)
    # Other formats, and other releases, show the same bytes differently.
    tag = f'"{artifact.sha256}-{kind.name}-{choice.page}-{request.app.version}"'
    if is_same_tag(tag, if_none_match):
        return Response(status_code=304, headers={**_HEADERS, "ETag": tag})
    if services.draining():
        raise errors.ShuttingDownError("the service is shutting down; call again in a moment", retry_after_s=5)
    work = services.previews.preview(scope, artifact, choice.page, request_id_of(request))
    shown = await run_until_disconnected(request, work)
    if shown is None:
        return Response(status_code=CLIENT_GONE)
    headers = {**_HEADERS, "ETag": tag}
    if not isinstance(shown, PagePicture):
        return model_response(shown, headers=headers)
    described = {
        "Preview-Page": str(shown.number),
        "Preview-Pages": str(shown.total),
        "Preview-Layout": "exact" if shown.exact else "similar",
    }
    return Response(shown.png, headers={**headers, **described}, media_type=PNG)
