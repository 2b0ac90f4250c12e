"""Problem documents: one function builds them from any exception, for routes and for stored answers."""

import errno
from http import HTTPStatus

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import Problem
from proofbox.service.errors import ServiceError, StoreFailedError

_SOON_S = 1.0


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


def retry_after_s(exc: BaseException, problem: Problem) -> float | None:
    """The time of a retry, if one makes sense: the one of the error, or soon."""
    seconds = exc.retry_after_s if isinstance(exc, ServiceError) else None
    return _SOON_S if seconds is None and problem.retryable else seconds


def log_fields(exc: BaseException) -> dict[str, str]:
    """What the log line of an error has beside its text: the file that it is about, and the cause."""
    path = exc.path if isinstance(exc, StoreFailedError) else ""
    return {name: text for name, text in {"path": path, "cause": _cause_of(exc)}.items() if text}


def _cause_of(exc: BaseException) -> str:
    """The kind of the first error and its code, never its text: those of databases may have values of rows."""
    first = exc
    while (below := first.__cause__) is not None:
        first = below
    if first is exc:
        return ""
    response = getattr(first, "response", None)
    code = response.get("Error", {}).get("Code") if isinstance(response, dict) else None
    code = code or getattr(first, "sqlite_errorname", None) or getattr(first, "sqlstate", None)
    if code is None and isinstance(first, OSError) and first.errno is not None:
        code = errno.errorcode.get(first.errno)
    return type(first).__name__ if code is None else f"{type(first).__name__} {code}"
