"""Models and errors as HTTP responses: JSON that is serialised once, problem documents, streams that clean up."""

import logging
import math
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel
from starlette.types import Receive, Scope, Send

from proofbox.service.access_errors import MissingPermissionError, NotAuthenticatedError
from proofbox.service.calls.problem import log_fields, problem_of, retry_after_s
from proofbox.service.errors import OurError, ServiceError

JSON = "application/json"
PROBLEM_JSON = "application/problem+json"
REQUEST_ID_HEADER = "X-Request-ID"
_LOGGER = logging.getLogger("proofbox.api")
_REALM = 'Bearer realm="proofbox"'
NO_STORE = {"Cache-Control": "no-store"}


def request_id_of(connection: Request | Scope) -> str:
    """The id that names a request in the log, as the request log gave it."""
    scope = connection.scope if isinstance(connection, Request) else connection
    request_id: str = scope["state"]["request_id"]
    return request_id


def retry_after(seconds: float | None) -> dict[str, str]:
    """Return the header ``Retry-After`` in whole seconds, rounded up; no header without a time."""
    return {} if seconds is None else {"Retry-After": str(max(0, math.ceil(seconds)))}


def model_response(model: BaseModel, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A model as JSON; a field that does not apply is null, as in the stored answers."""
    return Response(model.model_dump_json(), status, headers, JSON)


def problem_response(exc: BaseException, request_id: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """An error as a problem document, with ``Retry-After`` if it may pass."""
    problem = problem_of(exc, request_id)
    seconds = retry_after_s(exc, problem)
    return Response(
        problem.model_dump_json(exclude_none=True),
        problem.status,
        {**retry_after(seconds), **_challenge(exc), **(headers or {})},
        PROBLEM_JSON,
    )


def _challenge(exc: BaseException) -> dict[str, str]:
    """How a client is asked for a key, or for one that may do more (RFC 6750)."""
    if isinstance(exc, NotAuthenticatedError):
        return {"WWW-Authenticate": _REALM + (', error="invalid_token"' if exc.was_given else "")}
    if isinstance(exc, MissingPermissionError):
        return {"WWW-Authenticate": f'{_REALM}, error="insufficient_scope", scope="{exc.permission}"'}
    return {}


class BrokenBodyError(Exception):
    """A body cannot be completed, which is in the log; only a broken connection shows it to the client."""


def note_subject(request: Request, **names: str | None) -> None:
    """Give the log line of a request that fails what it is about: ``call_id``, ``conversation_id``, ``path``."""
    subject = request.scope["state"].setdefault("subject", {})
    subject.update({name: value for name, value in names.items() if value})


def log_failure(exc: ServiceError, scope: Scope) -> None:
    """Write the one line of a request that we failed: what it was about, and the cause; nothing of its content."""
    params = {**dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"))), **scope.get("path_params", {})}
    subject = {
        "call_id": params.get("tool_call_id"),
        "conversation_id": params.get("conversation_id"),
        "path": params.get("logical_path"),
        **scope.get("state", {}).get("subject", {}),
    }
    fields = {**{name: value for name, value in subject.items() if value}, **log_fields(exc)}
    _LOGGER.warning("%s: %s", type(exc).__name__, exc, exc_info=exc, extra={"fields": fields})


class ClosingStream(StreamingResponse):
    """A streamed body whose generator is closed at once when the client goes away, not when it is collected."""

    def __init__(self, content: AsyncGenerator[bytes, None], status_code: int, headers: Mapping[str, str]) -> None:
        super().__init__(content, status_code, headers)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response.

        Raises:
            BrokenBodyError: we failed in its middle.
        """
        try:
            await super().__call__(scope, receive, send)
        except OurError as exc:
            log_failure(exc, scope)
            raise BrokenBodyError(str(exc)) from exc

    async def stream_response(self, send: Send) -> None:
        """Send the body to its end and closes the generator whatever happens."""
        async with aclosing(self._content):
            await super().stream_response(send)
