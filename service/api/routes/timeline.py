"""``/v1/conversations/{c}/timeline`` and ``/sources``: what a conversation remembers."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from proofbox.contracts.timeline import (
    PAGE_BLOCKS_MAX,
    AlignedTimeline,
    Sources,
    TimelineAppend,
    TimelineAppended,
    TimelinePage,
)
from proofbox.service import errors
from proofbox.service.api.identity import ReadsTimeline, WritesTimeline
from proofbox.service.api.openapi_responses import answer, header, json_answer, json_content, link, problems
from proofbox.service.api.parameters import AfterInQuery
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.services import InjectedServices
from proofbox.service.api.strict_json import read_model

_TEXT = "text/plain; charset=utf-8"
_HEADERS = {
    "Timeline-Last": header("The position of the last block that is shown.", type="integer"),
    "Timeline-Revision": header(
        "`view=rendered`: the position of the block that last changed earlier text (a hiding, a summary); 0 if "
        "none did. While it stays the same, text that was read before stays right.",
        type="integer",
    ),
    "Timeline-Cache-Points": header(
        "`view=rendered`: the positions of the pre-tail and the tail cache point, such as `41,58`; 0 for none yet."
    ),
    "Timeline-Tokens": header("`view=rendered`: how many tokens the text has.", type="integer"),
}
router = APIRouter(prefix="/v1/conversations/{conversation_id}", tags=["timeline"])


@router.get(
    "/timeline",
    operation_id="get_timeline",
    summary="Read the timeline",
    response_class=Response,
    responses={
        200: answer(
            "`view=blocks`: a page of blocks. `view=rendered`: the text that a model reads, of all blocks.",
            {**json_content(TimelinePage), _TEXT: {"schema": {"type": "string"}}},
            _HEADERS,
        ),
        **problems(errors.UnsafeNameError, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def get_timeline(
    services: InjectedServices,
    scope: ReadsTimeline,
    view: Annotated[Literal["blocks", "rendered"], Query(description="Raw blocks, or the text.")] = "blocks",
    after: AfterInQuery = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_BLOCKS_MAX, description="Blocks of a page.")] = 100,
) -> Response:
    """The event log of a conversation, the oldest block first; an unknown conversation has an empty one."""
    if view == "rendered":
        shown = await services.timeline.rendered(scope, after)
        headers = {
            "Timeline-Last": str(shown.last),
            "Timeline-Revision": str(shown.revision),
            "Timeline-Cache-Points": f"{shown.cache_points.pre_tail},{shown.cache_points.tail}",
            "Timeline-Tokens": str(shown.tokens),
        }
        return Response(shown.text, media_type=_TEXT, headers={**NO_STORE, **headers})
    page = await services.timeline.page(scope, after, limit)
    return model_response(page, headers={**NO_STORE, "Timeline-Last": str(page.last)})


@router.get(
    "/timeline/aligned",
    operation_id="get_aligned_timeline",
    summary="Read the blocks beside what a model reads of them",
    response_class=Response,
    responses={
        200: json_answer("A page of blocks, each with its text and tokens.", AlignedTimeline),
        **problems(errors.UnsafeNameError, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def get_aligned_timeline(
    services: InjectedServices,
    scope: ReadsTimeline,
    after: AfterInQuery = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE_BLOCKS_MAX, description="Blocks of a page.")] = 100,
) -> Response:
    """The blocks of `view=blocks` without base64, and at each the part of `view=rendered` that it gives.

    A hidden block has the text of its replacement, a block in a summarised turn has none, and the summary stands
    at the block before which it is read.
    """
    return model_response(await services.timeline.aligned(scope, after, limit), headers=NO_STORE)


@router.post(
    "/timeline",
    operation_id="append_to_timeline",
    summary="Add blocks of the loop",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(TimelineAppend)}},
    responses={
        201: json_answer(
            "They are added; where the timeline ends now.",
            TimelineAppended,
            links={"read": link("get_timeline", conversation_id="$request.path.conversation_id")},
        ),
        **problems(
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.TimelineMovedError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def append_to_timeline(request: Request, services: InjectedServices, scope: WritesTimeline) -> Response:
    """Prompts, completions, plans, summaries: what the loop writes; tool calls add their own blocks."""
    addition = await read_model(request, TimelineAppend)
    return model_response(await services.timeline.append(scope, addition), status=201)


@router.get(
    "/sources",
    operation_id="get_sources",
    summary="Read the sources pool",
    response_class=Response,
    responses={
        200: json_answer("All rows, by ascending sid.", Sources),
        **problems(errors.UnsafeNameError, errors.StoreFailedError),
    },
)
async def get_sources(services: InjectedServices, scope: ReadsTimeline) -> Response:
    """What `[[S:n]]` stands for in this conversation."""
    return model_response(Sources(sources=await services.sources.rows(scope)), headers=NO_STORE)
