"""Errors of the service as MCP has them: a result for what the model can correct, else an error of the protocol."""

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, CallToolResult

from proofbox.contracts.problems import Problem
from proofbox.service import errors
from proofbox.service.calls.problem import problem_of, retry_after_s
from proofbox.service.mcp.results import error_result

CORRECTABLE = (
    errors.InvalidRequestError,
    errors.UnknownCallError,
    errors.UnknownArtifactError,
    errors.UnsafeNameError,
    errors.LimitNotAllowedError,
    errors.NetworkNotAllowedError,
    errors.PackagesNotAllowedError,
    errors.AssetRefusedError,
    errors.BodyTooLargeError,
    errors.CallCancelledError,
)
"""What the model can correct by other arguments."""
CORRECTABLE_CODES = frozenset(error.code for error in CORRECTABLE)


def result_of_error(exc: errors.ServiceError, request_id: str) -> CallToolResult:
    """The result of a call that was refused.

    Raises:
        MCPError: the model cannot correct it.
    """
    if isinstance(exc, CORRECTABLE):
        return error_result(exc.message)
    problem = problem_of(exc, request_id)
    raise protocol_error(problem, retry_after_s(exc, problem))


def protocol_error(problem: Problem, seconds: float | None = None) -> MCPError:
    """The error of the protocol for a problem; ``data`` has its code and whether to try again."""
    data = {"code": str(problem.code), "retryable": problem.retryable, "request_id": problem.request_id}
    if seconds is not None:
        data["retry_after_s"] = round(seconds, 1)
    return MCPError(INTERNAL_ERROR, problem.detail, data)


def unknown_resource(uri: str) -> MCPError:
    """The error for a resource that does not exist."""
    return MCPError(INVALID_PARAMS, "resource not found", {"uri": uri})
