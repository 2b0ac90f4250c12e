"""Problem documents: one function builds them from any exception, for routes and for stored answers."""

import errno
import math
import random
from collections.abc import Callable
from http import HTTPStatus

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import Problem
from proofbox.service.errors import ServiceError, StoreFailedError

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
