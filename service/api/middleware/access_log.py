"""One log line for each request, its id in every response, and the response to an unexpected exception."""

import logging
import re
import time
import uuid

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from proofbox.service.api.responses import REQUEST_ID_HEADER, BrokenBodyError, problem_response, request_id_of
from proofbox.service.observability.log_context import about
from proofbox.service.observability.metrics_port import Meter, ServedRequest
from proofbox.service.observability.tracing import Span, Tracer, inside, trace_id_of

# The status of nginx for a client that closed the connection before the response.
CLIENT_GONE = 499
_SERVER_ERROR = 500
_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,127}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"})
_LOGGER = logging.getLogger("proofbox.api")


class AccessLogMiddleware:
    """ASGI middleware around everything else.

    A client may set ``X-Request-ID``; an id with unsafe characters is replaced.
    """

    def __init__(self, app: ASGIApp, meter: Meter, tracer: Tracer) -> None:
        self._app = app
        self._meter = meter
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
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
        except BrokenBodyError:  # the log has it
            raise
        except Exception as exc:
            # The client does not get the text of the exception; the log has it under the request id.
            _LOGGER.exception("unexpected error")
            if answered.status is not None:
                # Half of the response is sent: only a broken connection shows the client that the rest is missing.
                raise
            await problem_response(exc, request_id_of(scope))(scope, receive, answered)
        finally:
            served = ServedRequest(
                method=_method(scope),
                route=getattr(scope.get("route"), "path", "-"),
                status=answered.status or CLIENT_GONE,
                seconds=time.perf_counter() - started,
            )
            _record(request, served)
            self._meter.request_ended(served)


class _Answered:
    """``send`` of one request: adds the request id and records the status."""

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


def _record(request: Span, served: ServedRequest) -> None:
    fields = {"method": served.method, "route": served.route, "status": served.status, "ms": served.ms}
    _LOGGER.info("%s %s %s %.1fms", *fields.values(), extra={"fields": fields})
    request.rename(f"{served.method} {served.route}")
    request.set({"http.route": served.route, "http.response.status_code": served.status})
    if served.status >= _SERVER_ERROR:
        request.fail(str(served.status))


def _method(scope: Scope) -> str:
    """Return the method; unknown methods share one label, so that clients cannot create metrics."""
    method: str = scope["method"]
    return method if method in _METHODS else "_OTHER"


def _request_id(headers: Headers) -> str:
    given = headers.get(REQUEST_ID_HEADER, "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
