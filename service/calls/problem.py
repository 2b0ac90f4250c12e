"""Problem documents: one function builds them from any exception, for routes and for stored answers."""

import math
import random
from collections.abc import Callable
from http import HTTPStatus

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import Problem
from proofbox.service.errors import ServiceError

_SOON_S = 1.0
_SPREAD = 0.5
_REFUSED = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})


def problem_of(exc: BaseException, request_id: str) -> Problem:
    """The problem document of an exception.

    Of an unforeseen one the document has only the kind, never its text: that belongs to the log, which the
    request id finds.
    """
    if not isinstance(exc, ServiceError):
        return Problem(
            title=HTTPStatus.INTERNAL_SERVER_ERROR.phrase,
            status=500,
            detail="the service failed in a way it did not foresee; its log has the request id",
            code=ProblemCode.INTERNAL,
            request_id=request_id,
            retryable=True,
            where="service",
        )
    return Problem(
        title=HTTPStatus(exc.status).phrase,
        status=exc.status,
        detail=exc.message,
        code=exc.code,
        request_id=request_id,
        retryable=exc.retryable,
        where=exc.where,
        errors=exc.errors,
    )


def retry_after_s(exc: BaseException, problem: Problem, draw: Callable[[], float] = random.random) -> float | None:
    """The time of a retry in whole seconds, if one makes sense: the one of the error, or soon.

    Of a 429 or 503 it is up to half as long again, by chance: those refused together do not come again together.
    """
    seconds = exc.retry_after_s if isinstance(exc, ServiceError) else None
    if seconds is None and not problem.retryable:
        return None
    whole = max(0, math.ceil(_SOON_S if seconds is None else seconds))
    return float(whole + math.floor(draw() * (whole * _SPREAD + 1)) if problem.status in _REFUSED else whole)
