"""Webhooks in both directions: the secret that signs an agent's, and our own tools for gateways that send one."""

import hashlib
import secrets
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import RootModel, ValidationError

from proofbox.contracts.gateway.agents import SigningSecret, SigningSecretRequest
from proofbox.contracts.gateway.external import ExternalFile, ExternalResponse, GivenCall
from proofbox.contracts.gateway.names import AgentId
from proofbox.contracts.paths import FilePath, is_call_id
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.contracts.tool_call_response import ArtifactResult, ToolCallResponse
from proofbox.service import errors, gateway_errors
from proofbox.service.api.error_handlers import invalid_body
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.identity import RunsCalls, WritesAgents
from proofbox.service.api.middleware.access_log import CLIENT_GONE
from proofbox.service.api.middleware.authentication import check_storage_quota
from proofbox.service.api.openapi_responses import header, json_answer, json_content, problems
from proofbox.service.api.responses import (
    JSON,
    NO_STORE,
    PROBLEM_JSON,
    model_response,
    request_id_of,
    retry_after,
)
from proofbox.service.api.routes.download_links import own_link
from proofbox.service.api.routes.tool_calls import REPLAYED, answer_or_leave
from proofbox.service.api.services import InjectedServices, Services
from proofbox.service.api.strict_json import read_model
from proofbox.service.calls.function_calls import canonical_call
from proofbox.service.identity import ConversationKey

ENVELOPE = "tool.call"
_TURN_DIGITS, _ID_BYTES = 24, 12
router = APIRouter(tags=["agents"])


class _Body(RootModel[dict[str, Any]]):
    """Any JSON object."""


@router.post(
    "/v1/agents/{agent_id}/signing-secret",
    operation_id="get_signing_secret",
    summary="Read or rotate the secret that signs webhooks",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(SigningSecretRequest)}},
    responses={
        200: json_answer("The secret.", SigningSecret),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownAgentError,
            errors.InvalidRequestError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def get_signing_secret(
    request: Request,
    gateway: InjectedGateway,
    principal: WritesAgents,
    agent_id: Annotated[AgentId, Path(description="The agent.")],
) -> Response:
    """The secret for the services that verify the agent's webhooks (Standard Webhooks).

    `{"rotate": true}` makes the next one; for 24 hours both sign.
    """
    asked = await read_model(request, SigningSecretRequest)
    shown = await gateway.waits.secrets.show(principal, agent_id, rotate=asked.rotate)
    answer = SigningSecret(secret=shown.secret, previous_until=shown.previous_until)
    return model_response(answer, headers=NO_STORE)


@router.post(
    "/v1/external/{tool_id}",
    operation_id="call_by_webhook",
    summary="Call a tool by a webhook's envelope",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": {JSON: {"schema": {"type": "object"}}}}},
    responses={
        200: json_answer(
            "What came of the call, with links to its files.",
            ExternalResponse,
            headers={"Idempotent-Replayed": header("`true` if the answer was stored before this request.")},
        ),
        **problems(
            errors.UnsafeNameError,
            errors.UnknownToolError,
            errors.IdReusedError,
            errors.CallCancelledError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StorageQuotaError,
            errors.InvalidRequestError,
            errors.LimitNotAllowedError,
            errors.QueueFullError,
            errors.QueueTimeoutError,
            errors.ShuttingDownError,
            errors.EngineUnavailableError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def call_by_webhook(
    request: Request,
    services: InjectedServices,
    principal: RunsCalls,
    tool_id: Annotated[str, Path(min_length=1, max_length=128, description="A tool of this service.")],
) -> Response:
    """Takes the envelope of an agent's gateway, or a bare input object.

    The envelope is `{"type": "tool.call", "data": {"tool_call_id"?, "input"}}`; other keys are ignored. The key
    authenticates; a signature on the request is not checked. The same call again gets the stored answer.
    """
    body = (await read_model(request, _Body)).root
    await check_storage_quota(request, services)
    call = canonical_call(_build_call(request, principal.key_id, tool_id, body))
    ticket = await services.calls.submit(
        principal, call, idempotency_key=None, request_id=request_id_of(request), detached=False
    )
    answer = await answer_or_leave(request, ticket)
    if answer is None:
        return Response(status_code=CLIENT_GONE)
    replayed = REPLAYED if ticket.replayed else {}
    if answer.is_problem:
        return Response(
            answer.body, answer.http_status, {**retry_after(answer.retry_after_s), **replayed}, PROBLEM_JSON
        )
    response = ToolCallResponse.model_validate_json(answer.body)
    scope = ConversationKey(principal, call.conversation_id)
    links = [await _link(request, services, scope, made) for made in response.artifacts if _is_given(made)]
    shown = ExternalResponse(
        ok=response.ok, error=response.error, report=response.report, ret=response.ret, files=links
    )
    return model_response(shown, headers={**NO_STORE, **replayed})


def _build_call(request: Request, key_id: str | None, tool_id: str, body: dict[str, Any]) -> ToolCallRequest:
    """The call in a body.

    Raises:
        InvalidRequestError: the envelope does not fit.
    """
    given = None
    if body.get("type") == ENVELOPE and "data" in body:
        try:
            given = GivenCall.model_validate(body["data"], strict=True)
        except ValidationError as exc:
            raise invalid_body(exc) from exc
    params = body if given is None else given.input
    webhook_id = request.headers.get("webhook-id", "")
    named = None if given is None else given.tool_call_id
    call_id = named or (webhook_id if is_call_id(webhook_id) else f"ext_{secrets.token_hex(_ID_BYTES)}")
    # A turn of its own, so that the files of two calls never meet.
    turn = hashlib.sha256(call_id.encode()).hexdigest()[:_TURN_DIGITS]
    try:
        return ToolCallRequest(
            tool_id=tool_id,
            tool_call_id=call_id,
            conversation_id=f"ext:{key_id or 'local'}",
            turn_id=f"turn_{turn}",
            params=params,
        )
    except ValidationError as exc:
        raise invalid_body(exc) from exc


def _is_given(made: ArtifactResult) -> bool:
    return made.visibility == "external" and made.sha256 is not None and made.size_bytes is not None


async def _link(request: Request, services: Services, scope: ConversationKey, made: ArtifactResult) -> ExternalFile:
    found = await services.artifacts.latest(scope, FilePath.from_physical(made.physical_path))
    if found is None:
        raise errors.UnknownArtifactError(f"artifact: '{made.physical_path}' is not stored any more")
    url = await services.artifacts.link(scope, found) or await own_link(services, scope, found)
    if url.startswith("/"):
        url = f"{str(request.base_url).rstrip('/')}{url}"
    return ExternalFile(
        path=made.physical_path.partition("/files/")[2] or made.physical_path,
        mime=made.mime or "application/octet-stream",
        size_bytes=made.size_bytes or 0,
        sha256=made.sha256 or "",
        url=url,
    )
