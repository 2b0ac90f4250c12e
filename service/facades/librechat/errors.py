"""Errors in the form that LibreChat's client reads."""

import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import Problem
from proofbox.service.access_errors import NotAuthenticatedError
from proofbox.service.calls.problem import problem_of, retry_after_s
from proofbox.service.errors import CallerError

_TOO_MANY = 429


class RefusedError(CallerError):
    """A request that this API refuses.

    Attributes:
        error: the text of the field ``error``.
        details: further fields of the body.
    """

    code = ProblemCode.INVALID_REQUEST
    where = "librechat"

    def __init__(self, error: str, *, status: int = 400, **details: Any) -> None:
        super().__init__(error)
        self.status = status  # type: ignore[misc]  # of the class in other errors
        self.error = error
        self.details = details


def error_response(exc: Exception, request_id: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """Build the response to an error: ``error``, and a sentence in ``message``."""
    given = dict(headers or {})
    if isinstance(exc, NotAuthenticatedError):
        given["WWW-Authenticate"] = 'Bearer realm="proofbox"'
    if isinstance(exc, RefusedError):
        return JSONResponse({"error": exc.error, **exc.details}, exc.status, given)
    problem = problem_of(exc, request_id)
    return problem_as_error(problem, retry_after_s(exc, problem), headers=given)


def problem_as_error(
    problem: Problem, seconds: float | None, *, headers: Mapping[str, str] | None = None
) -> Response:
    """Build the response for a problem document of the core."""
    given = dict(headers or {})
    body: dict[str, Any] = {"error": problem.code.value, "message": problem.detail}
    if seconds is not None:
        wait_s = max(1, math.ceil(seconds))
        given["Retry-After"] = str(wait_s)
        if problem.status == _TOO_MANY:
            body = {"error": "rate_limited", "retry_after_seconds": wait_s, "message": problem.detail}
    return JSONResponse(body, problem.status, given)
