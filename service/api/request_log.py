"""One line of log for each request, its id on every answer, and the answer when something unforeseen is raised."""

import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.responses import REQUEST_ID_HEADER, problem_response, request_id_of

# nginx's number for it: the client went away, so there is nobody to answer.
CLIENT_GONE = 499
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,127}")
_LOGGER = logging.getLogger("proofbox.api")


class RequestLog:
    """ASGI middleware around everything else.

    A caller may name a request itself with ``X-Request-ID``; one that could confuse a log or a header is replaced.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})["request_id"] = _request_id(scope)
        answered = _Answered(scope, send)
        started = time.perf_counter()
        try:
            await self._app(scope, receive, answered)
        except ClientDisconnect:
            answered.status = CLIENT_GONE
        except Exception as exc:
            # Never the text of it to the client; the log has it under the request's id.
            _LOGGER.exception("unforeseen request_id=%s", request_id_of(scope))
            if answered.status is not None:
                # Half an answer is out: only breaking the connection tells the client that the rest is missing.
                raise
            await problem_response(exc, request_id_of(scope))(scope, receive, answered)
        finally:
            _LOGGER.info(
                "%s %s %s %.1fms request_id=%s",
                scope["method"].encode("unicode_escape").decode(),
                getattr(scope.get("route"), "path", "-"),
                answered.status or CLIENT_GONE,
                (time.perf_counter() - started) * 1_000,
                request_id_of(scope),
            )


class _Answered:
    """``send`` of one request: adds the request's id and remembers the status."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status: int | None = None
        self._scope = scope
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id_of(self._scope)
        await self._send(message)


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
