"""Answers from outside to calls that wait: of persons in a space, and of services that call back."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers

from proofbox.contracts.gateway.messages import Message, ResultAccepted
from proofbox.contracts.gateway.waits import ResultSubmission
from proofbox.service import access_errors, errors, gateway_errors
from proofbox.service.access.api_keys import Permission
from proofbox.service.api.gateway_services import GatewayServices, InjectedGateway
from proofbox.service.api.identity import API_KEY
from proofbox.service.api.middleware.authentication import callback_token, caller_of, is_callback
from proofbox.service.api.openapi_responses import header, json_answer, json_content, problems
from proofbox.service.api.parameters import CallIdInPath, ConversationIdInQuery
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.routes.gateway.actors import WritingActor, build_actor, replayed
from proofbox.service.api.routes.gateway.parameters import MessageIdInPath, SpaceIdInPath
from proofbox.service.api.strict_json import read_model
from proofbox.service.calls.call_status import build_status
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.waits.answers import Answerer, Submitted
from proofbox.service.gateway.waits.port import StoredWait
from proofbox.service.identity import Principal

BODY_BYTES_MAX = 1024 * 1024
"""Of an answer: its result is at most 256 KiB of JSON, whose spelling may be longer."""
CALLBACK_TOKEN = HTTPBearer(
    scheme_name="callback_token",
    bearerFormat="pbt_<wait>_<signature>",
    description="The token of a webhook's `callback`: it answers that call and nothing else.",
    auto_error=False,
)
_BODY = {"requestBody": {"required": True, "content": json_content(ResultSubmission, "result_submission")}}
_ACCEPTED = json_answer(
    "The answer was taken, now or before.",
    ResultAccepted,
    headers={"Idempotent-Replayed": header("`true` if the same answer was taken before.")},
)
_REFUSALS = (
    gateway_errors.NotWaitingError,
    gateway_errors.AlreadyAnsweredError,
    gateway_errors.WaitExpiredError,
    gateway_errors.WaitCancelledError,
    gateway_errors.InvalidResultError,
    gateway_errors.MayNotAnswerError,
    errors.UnknownCallError,
    errors.InvalidRequestError,
    errors.BodyTooLargeError,
    errors.RequestTimeoutError,
    errors.StoreFailedError,
    errors.StoreFullError,
)
router = APIRouter(tags=["waits"])


@router.post(
    "/v1/spaces/{space_id}/messages/{message_id}/result",
    operation_id="answer_message",
    summary="Answer a card",
    response_class=Response,
    openapi_extra=_BODY,
    responses={
        200: _ACCEPTED,
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownSpaceError,
            gateway_errors.UnknownMessageError,
            gateway_errors.UnknownEntityError,
            *_REFUSALS,
        ),
    },
)
async def answer_message(
    request: Request,
    gateway: InjectedGateway,
    _actor: WritingActor,
    space_id: SpaceIdInPath,
    message_id: MessageIdInPath,
) -> Response:
    """Ends the wait of a call that a space shows: its result, that there is none, or an approval.

    The same answer of the same entity again gets the stored outcome; of two at the same moment one is taken.
    """
    given = await read_model(request, ResultSubmission, BODY_BYTES_MAX)
    actor = build_actor(request, given.entity_id)
    wait, by = await gateway.waits.answers.find_of_message(actor, space_id, message_id)
    submitted = await gateway.waits.answers.submit(wait, given, by)
    return _accept(submitted, await gateway.messages.find(actor, space_id, message_id))


async def find_answered(
    request: Request,
    gateway: InjectedGateway,
    tool_call_id: CallIdInPath,
    _key: Annotated[object, Depends(API_KEY)],
    _token: Annotated[object, Depends(CALLBACK_TOKEN)],
    conversation_id: ConversationIdInQuery = None,
) -> tuple[StoredWait, Answerer]:
    """The wait that a request answers, and who does.

    Raises:
        NotAuthenticatedError: its callback token is not one of this call.
        MissingPermissionError: its key has not the scope ``calls:run``.
        UnknownCallError, AmbiguousCallError, NotWaitingError: there is no such wait.
    """
    answers = gateway.waits.answers
    if is_callback(request.scope):
        token = callback_token(Headers(scope=request.scope)) or ""
        wait_id = gateway.waits.tokens.verify(token, tool_call_id)
        if wait_id is None:
            raise access_errors.NotAuthenticatedError(
                "the callback token is not one of this call; use the one of its webhook", was_given=True
            )
        return await gateway.waits.callbacks.find(wait_id), Answerer("callback", "callback")
    caller = caller_of(request.scope["state"])
    caller.require(Permission.CALLS_RUN)
    wait = await answers.find_of_call(caller.principal, tool_call_id, conversation_id)
    return wait, Answerer(f"key:{caller.principal.key_id or 'local'}", "key")


@router.post(
    "/v1/tool-calls/{tool_call_id}/result",
    operation_id="answer_tool_call",
    summary="Answer a call that waits",
    response_class=Response,
    openapi_extra=_BODY,
    responses={200: _ACCEPTED, **problems(errors.UnsafeNameError, errors.AmbiguousCallError, *_REFUSALS)},
)
async def answer_tool_call(
    request: Request,
    gateway: InjectedGateway,
    found: Annotated[tuple[StoredWait, Answerer], Depends(find_answered)],
) -> Response:
    """Ends the wait of a call: by a service with the callback token of its webhook, or with a key (`calls:run`).

    A key answers calls that wait for a service or a person, but approves nothing.
    """
    wait, by = found
    submitted = await gateway.waits.answers.submit(
        wait, await read_model(request, ResultSubmission, BODY_BYTES_MAX), by
    )
    if by.kind == "callback":  # the token answers; it reads nothing
        return _accept(submitted, None, is_bare=True)
    return _accept(submitted, await _shown(gateway, caller_of(request.scope["state"]).principal, wait))


async def _shown(gateway: GatewayServices, principal: Principal, wait: StoredWait) -> Message | None:
    if wait.space_id is None or wait.message_id is None:
        return None
    return await gateway.messages.find(Actor(principal, may_act_as=True), wait.space_id, wait.message_id)


def _accept(submitted: Submitted, message: Message | None, *, is_bare: bool = False) -> Response:
    status = build_status(submitted.call)
    if is_bare:
        status = status.model_copy(update={"response": None})
    body = ResultAccepted(message=message, call=status)
    return model_response(body, headers={**NO_STORE, **replayed(submitted.was_known)})
