"""``GET /v1/conversations/{c}/artifacts``: the files of a conversation."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from proofbox.contracts.artifact_lists import PAGE_ARTIFACTS_MAX, ArtifactPage, ListedArtifact
from proofbox.service import errors
from proofbox.service.api.identity import ReadsArtifacts
from proofbox.service.api.openapi_responses import json_answer, problems
from proofbox.service.api.parameters import AfterInQuery
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.services import InjectedServices
from proofbox.service.artifacts.port import StoredArtifact

router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["files"])


@router.get(
    "/artifacts",
    operation_id="list_artifacts",
    summary="List the files of a conversation",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", ArtifactPage, "artifact_page"),
        **problems(errors.UnsafeNameError, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def list_artifacts(
    services: InjectedServices,
    scope: ReadsArtifacts,
    after: AfterInQuery = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_ARTIFACTS_MAX, description="Files of a page.")] = 100,
) -> Response:
    """The latest version of every file and attachment, by the time it was stored; the oldest first."""
    found = await services.artifacts.listed(scope, after, limit + 1)
    page = found[:limit]
    last = page[-1][0] if page else after
    listed = [_entry(artifact) for _, artifact in page]
    return model_response(ArtifactPage(artifacts=listed, last=last, more=len(found) > limit), headers=NO_STORE)


def _entry(artifact: StoredArtifact) -> ListedArtifact:
    return ListedArtifact(
        logical_path=artifact.path.logical,
        physical_path=artifact.path.physical,
        turn_id=artifact.path.turn_id,
        version=artifact.version,
        mime=artifact.mime,
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
        visibility=artifact.visibility,
        description=artifact.description,
        created=artifact.created,
    )
