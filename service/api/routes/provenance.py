"""``/v1/tool-calls/{id}/provenance`` and ``/rerun``: what a call ran with and made, and running it again."""

import asyncio
import json
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from proofbox.contracts.provenance import AuditLine, RerunReport
from proofbox.service import errors
from proofbox.service.api.connected_work import disconnected
from proofbox.service.api.identity import ReadsCalls, RunsCalls
from proofbox.service.api.middleware.access_log import CLIENT_GONE
from proofbox.service.api.openapi_responses import answer, header, json_answer, json_content, problems
from proofbox.service.api.parameters import CallIdInPath, ConversationIdInQuery
from proofbox.service.api.responses import JSON, NO_STORE, model_response, request_id_of
from proofbox.service.api.services import InjectedServices
from proofbox.service.calls.slsa import statement

IN_TOTO = "application/vnd.in-toto+json"
_SAME_ERRORS = (
    errors.UnsafeNameError,
    errors.UnknownCallError,
    errors.AmbiguousCallError,
    errors.NoProvenanceError,
    errors.InvalidRequestError,
    errors.StoreFailedError,
)
router = APIRouter(prefix="/v1/tool-calls/{tool_call_id}", tags=["provenance"])


@router.get(
    "/provenance",
    operation_id="get_provenance",
    summary="Ask what a call ran with and what it made",
    response_class=Response,
    responses={
        200: answer(
            "`form=line`: the audit line, byte for byte as it stands in its chain. `form=in-toto`: the same as an "
            "in-toto Statement with the SLSA Provenance predicate, unsigned.",
            {**json_content(AuditLine, "audit_line"), IN_TOTO: {"schema": {"type": "object"}}},
            {"Audit-SHA256": header("The SHA-256 of the audit line: what the next line of the chain has.")},
        ),
        **problems(*_SAME_ERRORS),
    },
)
async def get_provenance(
    services: InjectedServices,
    principal: ReadsCalls,
    tool_call_id: CallIdInPath,
    conversation_id: ConversationIdInQuery = None,
    form: Annotated[Literal["line", "in-toto"], Query(description="How it is written.")] = "line",
) -> Response:
    """Who called, which code and inputs by hash and version, image, limits, outputs by hash."""
    line = await services.provenance.line(principal, tool_call_id, conversation_id)
    headers = {**NO_STORE, "Audit-SHA256": line.sha256}
    if form == "line":
        return Response(line.text, headers=headers, media_type=JSON)
    attestation = statement(AuditLine.model_validate_json(line.text), line.sha256)
    return Response(json.dumps(attestation), headers=headers, media_type=IN_TOTO)


@router.post(
    "/rerun",
    operation_id="rerun_tool_call",
    summary="Run a call again and compare",
    response_class=Response,
    responses={
        200: json_answer("What is the same and what is not.", RerunReport, "rerun_report"),
        **problems(
            *_SAME_ERRORS,
            errors.NotRerunnableError,
            errors.QueueFullError,
            errors.QueueTimeoutError,
            errors.ShuttingDownError,
            errors.EngineUnavailableError,
            errors.StoreFullError,
        ),
    },
)
async def rerun_tool_call(
    request: Request,
    services: InjectedServices,
    principal: RunsCalls,
    tool_call_id: CallIdInPath,
    conversation_id: ConversationIdInQuery = None,
) -> Response:
    """Runs the stored program on the versions that it read, and compares its files byte by byte.

    Timeline, artifacts and sources stay as they are; only an audit line is stored. The rerun ends when the client
    disconnects.
    """
    if services.draining():
        raise errors.ShuttingDownError("the service is shutting down; call again in a moment", retry_after_s=5)
    running = asyncio.ensure_future(
        services.provenance.rerun(principal, tool_call_id, conversation_id, request_id_of(request))
    )
    leaving = asyncio.ensure_future(disconnected(request))
    try:
        await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return model_response(running.result(), headers=NO_STORE)
        return Response(status_code=CLIENT_GONE)
    finally:
        running.cancel()
        leaving.cancel()
        await asyncio.gather(running, leaving, return_exceptions=True)
