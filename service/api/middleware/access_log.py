"""One line of log for each request, its id on every answer, and the answer when something unforeseen is raised."""

import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.responses import REQUEST_ID_HEADER, problem_response, request_id_of
from service.observability.log_context import about
from service.observability.metrics_port import Meter, ServedRequest
from service.observability.tracing import Span, Tracer, inside, trace_id_of

# nginx's number for it: the client went away, so there is nobody to answer.
CLIENT_GONE = 499
_SERVER_ERROR = 500
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,127}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"})
_LOGGER = logging.getLogger("proofbox.api")


class AccessLogMiddleware:
    """ASGI middleware around everything else.

    A caller may name a request itself with ``X-Request-ID``; one that could confuse a log or a header is replaced.
    """

    def __init__(self, app: ASGIApp, meter: Meter, tracer: Tracer) -> None:
        self._app = app
        self._meter = meter
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = scope.setdefault("state", {})["request_id"] = _request_id(headers)
        request = self._tracer.trace("request", {"http.request.method": _method(scope)}, headers)
        with about(request_id=request_id, trace_id=trace_id_of(request.traceparent)), inside(request):
            await self._serve(scope, receive, _Answered(scope, send), request)

    async def _serve(self, scope: Scope, receive: Receive, answered: "_Answered", request: Span) -> None:
        started = time.perf_counter()
        try:
            await self._app(scope, receive, answered)
        except ClientDisconnect:
            answered.status = CLIENT_GONE
        except Exception as exc:
            # Never the text of it to the client; the log has it under the request's id.
            _LOGGER.exception("unforeseen")
            if answered.status is not None:
                # Half an answer is out: only breaking the connection tells the client that the rest is missing.
                raise
            await problem_response(exc, request_id_of(scope))(scope, receive, answered)
        finally:
            served = ServedRequest(
                method=_method(scope),
                route=getattr(scope.get("route"), "path", "-"),
                status=answered.status or CLIENT_GONE,
                seconds=time.perf_counter() - started,
            )
            _tell(request, served)
            self._meter.request_ended(served)


class _Answered:
    """``send`` of one request: adds the request's id and remembers the status."""

    __slots__ = ("_scope", "_send", "status")

    def __init__(self, scope: Scope, send: Send) -> None:
        self.status: int | None = None
        self._scope = scope
        self._send = send

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID_HEADER] = request_id_of(self._scope)
        await self._send(message)


def _tell(request: Span, served: ServedRequest) -> None:
    told = {"method": served.method, "route": served.route, "status": served.status, "ms": served.ms}
    _LOGGER.info("%s %s %s %.1fms", *told.values(), extra={"fields": told})
    request.rename(f"{served.method} {served.route}")
    request.set({"http.route": served.route, "http.response.status_code": served.status})
    if served.status >= _SERVER_ERROR:
        request.fail(str(served.status))


def _method(scope: Scope) -> str:
    """The method; one that HTTP does not know could be any text, and as many texts as somebody sends."""
    method: str = scope["method"]
    return method if method in _METHODS else "_OTHER"


def _request_id(headers: Headers) -> str:
    given = headers.get(REQUEST_ID_HEADER, "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
