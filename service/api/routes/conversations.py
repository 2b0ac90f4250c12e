"""``/v1/conversations``: the list of conversations, their files, and their deletion."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from proofbox.contracts.conversations import PAGE_CONVERSATIONS_MAX, PAGE_FILES_MAX, ConversationPage, FilePage
from proofbox.contracts.logical_paths import parse
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.service import errors
from proofbox.service.api.identity import DeletesConversation, ReadsArtifacts, ReadsConversations, WritesArtifacts
from proofbox.service.api.openapi_responses import answer, json_answer, problems
from proofbox.service.api.responses import NO_STORE, model_response, request_id_of
from proofbox.service.api.services import InjectedServices

ROUTE = "/v1/conversations"
CONVERSATION_ROUTE = "/v1/conversations/{conversation_id}"
FILES_ROUTE = f"{CONVERSATION_ROUTE}/files"
FILE_ROUTE = f"{CONVERSATION_ROUTE}/artifacts/{{logical_path:path}}"
router = APIRouter(tags=["conversations"])
_After = Annotated[
    str | None,
    Query(min_length=1, max_length=200, description="`next` of the page before; none for the first page."),
]


@router.get(
    ROUTE,
    operation_id="list_conversations",
    summary="List the conversations of the user",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", ConversationPage, "conversation_page"),
        **problems(errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def list_conversations(
    services: InjectedServices,
    principal: ReadsConversations,
    after: _After = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_CONVERSATIONS_MAX, description="Conversations of a page.")] = 50,
) -> Response:
    """The newest first, by the time of their first use; those of other users are not among them."""
    return model_response(await services.conversations.page(principal, after, limit), headers=NO_STORE)


@router.get(
    FILES_ROUTE,
    operation_id="list_files",
    summary="List the files of a conversation, page by page",
    response_class=Response,
    responses={
        200: json_answer("A page of the list.", FilePage, "file_page"),
        **problems(errors.UnsafeNameError, errors.InvalidRequestError, errors.StoreFailedError),
    },
)
async def list_files(
    services: InjectedServices,
    scope: ReadsArtifacts,
    after: _After = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_FILES_MAX, description="Files of a page.")] = 100,
) -> Response:
    """The latest version of every file and attachment, the oldest first; an unknown conversation has none."""
    return model_response(await services.conversations.files(scope, after, limit), headers=NO_STORE)


@router.delete(
    CONVERSATION_ROUTE,
    operation_id="delete_conversation",
    summary="Delete a conversation",
    status_code=204,
    response_class=Response,
    responses={
        204: answer("It is deleted, with all that belonged to it."),
        **problems(
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.UnknownConversationError,
            errors.ConversationBusyError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def delete_conversation(request: Request, services: InjectedServices, scope: DeletesConversation) -> Response:
    """Timeline, files, attachments, sources, passages, calls with their stored answers, events and links.

    Audit lines stay, with one for the deletion. The ids of its calls are unknown afterwards: the same request runs
    again, in a new conversation.
    """
    await services.conversations.delete(scope, request_id=request_id_of(request))
    return Response(status_code=204)


@router.delete(
    FILE_ROUTE,
    operation_id="delete_file",
    summary="Delete a file",
    status_code=204,
    response_class=Response,
    responses={
        204: answer("All its versions are deleted."),
        **problems(
            errors.UnsafeNameError,
            errors.InvalidRequestError,
            errors.UnknownArtifactError,
            errors.ConversationBusyError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def delete_file(
    request: Request,
    services: InjectedServices,
    scope: WritesArtifacts,
    logical_path: Annotated[
        str,
        Path(description="`fi:<turn_id>.files/<path>` or `fi:<turn_id>.user.attachments/<name>`."),
    ],
) -> Response:
    """All versions of a file or attachment, its links, and its content in the timeline.

    The timeline keeps its blocks without the content, and gets one that states when the file was deleted. What
    calls printed or quoted of it stays in their answers; deleting the conversation removes that too.
    """
    try:
        path = parse(logical_path)
    except UnsafePathError as exc:
        raise errors.UnsafeNameError(str(exc)) from exc
    if not isinstance(path, FilePath):
        raise errors.UnknownArtifactError(
            "artifact: only files and attachments can be deleted by themselves; delete the conversation"
        )
    await services.conversations.delete_file(scope, path, request_id=request_id_of(request))
    return Response(status_code=204)
