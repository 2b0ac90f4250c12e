"""``POST /v1/runs/{run_id}/tool-inputs/{tool_call_id}``: the arguments of a call while a model writes them."""

from fastapi import APIRouter, Request, Response

from proofbox.contracts.gateway.messages import ToolInputDelta, ToolInputLength
from proofbox.service import errors, gateway_errors
from proofbox.service.api.gateway_services import InjectedGateway
from proofbox.service.api.identity import WritesRuns
from proofbox.service.api.openapi_responses import json_answer, json_content, problems
from proofbox.service.api.parameters import CallIdInPath
from proofbox.service.api.responses import NO_STORE, model_response
from proofbox.service.api.routes.gateway.parameters import RunIdInPath
from proofbox.service.api.routes.gateway.runs import LeaseInHeader
from proofbox.service.api.strict_json import read_model

router = APIRouter(tags=["runs"])


@router.post(
    "/v1/runs/{run_id}/tool-inputs/{tool_call_id}",
    operation_id="post_tool_input",
    summary="Pass on a part of the arguments that a model writes",
    response_class=Response,
    openapi_extra={"requestBody": {"required": True, "content": json_content(ToolInputDelta)}},
    responses={
        200: json_answer("How much has arrived.", ToolInputLength),
        **problems(
            errors.UnsafeNameError,
            gateway_errors.UnknownRunError,
            errors.UnknownToolError,
            gateway_errors.StreamConflictError,
            gateway_errors.StreamGapError,
            gateway_errors.LeaseLostError,
            gateway_errors.RunNotRunningError,
            gateway_errors.RunEndedError,
            errors.InvalidRequestError,
            errors.BodyTooLargeError,
            errors.RequestTimeoutError,
            errors.StoreFailedError,
            errors.StoreFullError,
        ),
    },
)
async def post_tool_input(
    request: Request,
    gateway: InjectedGateway,
    principal: WritesRuns,
    run_id: RunIdInPath,
    tool_call_id: CallIdInPath,
    run_lease: LeaseInHeader,
) -> Response:
    """The active space shows the arguments as they grow; `POST /v1/tool-calls` with that id makes the call.

    `offset` and lengths count Unicode code points. A part that repeats known text is ignored as far as it does. Of
    a tool that the space does not show nothing is kept. A call that is not made within 60 s is `abandoned`.
    """
    part = await read_model(request, ToolInputDelta)
    length = await gateway.inputs.add(principal, run_id, tool_call_id, run_lease, part)
    return model_response(ToolInputLength(length=length), headers=NO_STORE)
