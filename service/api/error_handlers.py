"""Every error of a route or of the router as a problem document."""

import logging
from collections.abc import Sequence
from http import HTTPMethod

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import FieldError
from proofbox.service.api.responses import log_failure, problem_response, request_id_of
from proofbox.service.calls.validation import invalid_model, refusal
from proofbox.service.errors import (
    BodyTooLargeError,
    CallerError,
    InvalidRequestError,
    RateLimitedError,
    RequestTimeoutError,
    ServiceError,
    UnsafeNameError,
)

_SERVER_ERROR = 500
_PROBE = "/readyz"
_LOGGER = logging.getLogger("proofbox.api")


class NoRouteError(CallerError):
    """No route has this path."""

    code = ProblemCode.NOT_FOUND
    status = 404
    where = "route"


class MethodNotAllowedError(CallerError):
    """The route does not take this method; the header ``Allow`` lists those that it takes."""

    code = ProblemCode.METHOD_NOT_ALLOWED
    status = 405
    where = "route"


def install(app: FastAPI) -> None:
    """Make an application answer every error that it foresees with a problem document."""
    app.add_exception_handler(ServiceError, answer_service_error)
    app.add_exception_handler(RequestValidationError, answer_invalid_parameters)
    app.add_exception_handler(HTTPException, answer_router_error)


async def answer_service_error(request: Request, exc: Exception) -> Response:
    """The problem of an error that the core raised; of ours, the log gets what the client does not."""
    request_id = request_id_of(request)
    if isinstance(exc, ServiceError) and exc.status >= _SERVER_ERROR:
        if request.url.path == _PROBE:  # every few seconds: a line, no traceback
            _LOGGER.warning("not ready: %s", exc)
        else:
            log_failure(exc, request.scope)
    # The rest of a body that was refused is not read: a client that never ends must not hold the connection.
    headers = (
        {"Connection": "close"}
        if isinstance(exc, BodyTooLargeError | RequestTimeoutError | RateLimitedError)
        else {}
    )
    return problem_response(exc, request_id, headers=headers)


async def answer_invalid_parameters(request: Request, exc: Exception) -> Response:
    """The problem of path, query or header parameters that the route does not take."""
    assert isinstance(exc, RequestValidationError)
    errors = exc.errors()
    in_path = any(error["loc"][:1] == ("path",) for error in errors)
    located = [{**error, "loc": error["loc"][1:]} for error in errors]
    kind: type[CallerError] = UnsafeNameError if in_path else InvalidRequestError
    return problem_response(refusal(kind, located), request_id_of(request))


async def answer_router_error(request: Request, exc: Exception) -> Response:
    """The problem of a path or method that no route has; whatever else the framework raises is unforeseen."""
    assert isinstance(exc, HTTPException)
    error: CallerError
    headers = exc.headers
    if exc.status_code == NoRouteError.status:
        error = NoRouteError("no route has this path; GET /openapi.json lists them all")
    elif exc.status_code == MethodNotAllowedError.status:
        error = MethodNotAllowedError("the route does not take this method; use one of the header Allow")
        headers = {"Allow": ", ".join(sorted(_methods_of_path(request)))}
    else:
        raise exc
    return problem_response(error, request_id_of(request), headers=headers)


def _methods_of_path(request: Request) -> set[str]:
    """What a path takes, each method of it being a route of its own.

    Where a route has exactly this path (`/v1/runs/claim`), routes with a parameter in its place do not count.
    """
    path = request.scope["path"]
    exact = [route for route in request.app.routes if getattr(route, "path", None) == path]
    return {
        method
        for method in HTTPMethod
        if any(
            route.matches({**request.scope, "method": method})[0] is Match.FULL
            for route in exact or request.app.routes
        )
    }


def invalid_body(
    exc: ValidationError, model: type[BaseModel] | None = None, more: Sequence[FieldError] = ()
) -> InvalidRequestError:
    """The error of a body that is JSON but not what the schema asks for; see `invalid_model`."""
    return invalid_model(exc, model=model, more=more)


def invalid_field(field: str, code: str, message: str) -> InvalidRequestError:
    """The error of one field, header or body as a whole."""
    return refusal(InvalidRequestError, [{"loc": (field,), "type": code, "msg": message}])
