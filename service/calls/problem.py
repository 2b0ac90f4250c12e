"""One function turns any exception into a problem document; the doors and the stored answers both use it."""

from http import HTTPStatus

from contracts.codes import ProblemCode
from contracts.problems import Problem
from service.errors import ServiceError

_SOON_S = 1.0


def problem_of(exc: BaseException, request_id: str) -> Problem:
    """The problem document of an exception.

    Of an unforeseen one only its kind of failure is told, never its text: that belongs to the log, which the
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


def retry_after_s(exc: BaseException, problem: Problem) -> float | None:
    """When to come again, if that makes sense: what the error says, or soon."""
    told = exc.retry_after_s if isinstance(exc, ServiceError) else None
    return _SOON_S if told is None and problem.retryable else told
