"""Gotenberg's API below ``/gotenberg``: routes, credentials, errors as text."""

import asyncio
import base64
import binascii
import functools
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from http import HTTPMethod

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from proofbox.service.access.api_keys import PREFIX, Permission
from proofbox.service.access.authenticator import Caller, RequestCredentials
from proofbox.service.access_errors import NotAuthenticatedError
from proofbox.service.api.connected_work import run_until_disconnected
from proofbox.service.api.middleware.access_log import CLIENT_GONE
from proofbox.service.api.middleware.authentication import caller_of
from proofbox.service.api.responses import log_failure, request_id_of, retry_after
from proofbox.service.api.services import Services
from proofbox.service.calls.problem import problem_of, retry_after_s
from proofbox.service.errors import OurError, ServiceError, ShuttingDownError
from proofbox.service.facades.gotenberg.conversion import Source, convert
from proofbox.service.facades.gotenberg.errors import RequestRefusedError
from proofbox.service.facades.gotenberg.fields import FieldReader
from proofbox.service.facades.gotenberg.form import read_form
from proofbox.service.facades.gotenberg.pdf_engines import OPERATIONS, UNSUPPORTED, operate
from proofbox.service.facades.gotenberg.responses import StagedFileResponse, file_headers, warning_headers
from proofbox.service.facades.gotenberg.screenshot import take_screenshot
from proofbox.service.facades.gotenberg.work import Made
from proofbox.service.jobs.one_shot import OneShot, OneShotJobs

PREFIX_PATH = "/gotenberg"
VERSION = "8.36.0"
"""The release of Gotenberg whose routes and fields these are; clients decide by it what they may send."""
_CONVERSATION = "gotenberg"
_FORMS = f"{PREFIX_PATH}/forms"
_TRACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+=-]{0,127}")
_SERVER_ERROR = 500
_WEBHOOK = "gotenberg-webhook-"
_NO_URL = "this service has no outgoing network; send the page itself to the route html"
_NO_OFFICE = "this service has no LibreOffice; send HTML or Markdown to /forms/chromium/convert"
_NO_ENGINE = "no PDF engine of this service does that"

Work = Callable[[OneShot, FieldReader], Awaitable[Made]]


class _NamedRoute(Route):
    """A route that the access log and the metrics name."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See `Route.matches`."""
        match, found = super().matches(scope)
        return match, {**found, "route": self}


class GotenbergFacade:
    """The facade; see `Facade`.

    Args:
        services: the services of the application.
        jobs: runs the work of requests.
        form_bytes_max: the largest form, in bytes.
    """

    prefix = PREFIX_PATH

    def __init__(self, services: Services, jobs: OneShotJobs, form_bytes_max: int) -> None:
        self._services = services
        self._jobs = jobs
        works: dict[str, Work] = {
            **{f"/forms/chromium/convert/{kind}": _conversion(kind) for kind in _SOURCES},
            **{f"/forms/chromium/screenshot/{kind}": _screenshot(kind) for kind in _SOURCES},
            **{f"/forms/pdfengines/{name}": _operation(name) for name in OPERATIONS},
        }
        refusals = {
            "/forms/chromium/convert/url": _NO_URL,
            "/forms/chromium/screenshot/url": _NO_URL,
            "/forms/libreoffice/convert": _NO_OFFICE,
            **{f"/forms/pdfengines/{name}": _NO_ENGINE for name in UNSUPPORTED},
        }
        self.routes: Sequence[BaseRoute] = [
            _NamedRoute(f"{PREFIX_PATH}/health", self._health, methods=["GET", "HEAD"]),
            _NamedRoute(f"{PREFIX_PATH}/version", self._version, methods=["GET", "HEAD"]),
            *(
                _NamedRoute(f"{PREFIX_PATH}{path}", functools.partial(self._serve, work), methods=["POST"])
                for path, work in works.items()
            ),
            *(
                _NamedRoute(f"{PREFIX_PATH}{path}", functools.partial(self._refuse, path, why), methods=["POST"])
                for path, why in refusals.items()
            ),
            _NamedRoute(f"{PREFIX_PATH}/{{path:path}}", self._unknown, methods=list(HTTPMethod)),
        ]
        self.open_paths = frozenset({f"{PREFIX_PATH}/health"})
        self.upload_bytes_max: Mapping[str, int] = {f"{PREFIX_PATH}{path}": form_bytes_max for path in works}
        self._methods = {
            **dict.fromkeys((f"{PREFIX_PATH}/health", f"{PREFIX_PATH}/version"), "GET, HEAD"),
            **{f"{PREFIX_PATH}{path}": "POST" for path in (*works, *refusals)},
        }

    async def authenticate(self, headers: Headers) -> Caller:
        """See `Facade.authenticate`."""
        given = tuple(_bearer(value) for value in headers.getlist("authorization"))
        given += tuple(f"Bearer {value}" for value in headers.getlist("x-api-key"))  # as chromiumly sends a key
        credentials = RequestCredentials(given, headers.get("Proofbox-Tenant"), headers.get("Proofbox-Project"))
        return await self._services.authenticator.authenticate(credentials)

    def is_call(self, method: str, path: str) -> bool:
        """See `Facade.is_call`."""
        return method == "POST" and path.startswith(f"{_FORMS}/")

    def error_response(
        self, exc: Exception, request_id: str, *, headers: Mapping[str, str] | None = None
    ) -> Response:
        """See `Facade.error_response`."""
        if isinstance(exc, RequestRefusedError):
            return PlainTextResponse(exc.message, exc.status, headers)
        problem = problem_of(exc, request_id)
        challenge = {"WWW-Authenticate": 'Basic realm="proofbox"'} if isinstance(exc, NotAuthenticatedError) else {}
        again = retry_after(retry_after_s(exc, problem))
        return PlainTextResponse(problem.detail, problem.status, {**again, **challenge, **(headers or {})})

    async def _serve(self, work: Work, request: Request) -> Response:
        request_id = request_id_of(request)
        trace = {"Gotenberg-Trace": _trace_of(request)}
        try:
            return await self._make(work, request, trace)
        except (RequestRefusedError, ServiceError) as exc:
            if isinstance(exc, ServiceError) and exc.status >= _SERVER_ERROR:
                log_failure(exc, request.scope)
            # The rest of a form that was refused is not read.
            return self.error_response(exc, request_id, headers={**trace, "Connection": "close"})

    async def _make(self, work: Work, request: Request, trace: dict[str, str]) -> Response:
        caller = caller_of(request.scope["state"])
        caller.require(Permission.CALLS_RUN)
        if self._services.draining():
            raise ShuttingDownError(
                "the service is shutting down; send the request again in a moment", retry_after_s=5
            )
        _refuse_webhooks(request.headers)
        async with AsyncExitStack() as stack:
            run = await stack.enter_async_context(
                self._jobs.open(caller.principal, _CONVERSATION, request_id_of(request))
            )
            form = await read_form(request.headers.get("content-type", ""), request.stream(), run.folder)
            made = await run_until_disconnected(request, work(run, FieldReader(form)))
            if made is None:
                return Response(status_code=CLIENT_GONE)
            headers = {**trace, **warning_headers(made.warnings)}
            if made.kind == "json":
                text = await asyncio.to_thread(made.path.read_bytes)
                return Response(text, 200, headers, "application/json")
            headers |= file_headers(made, request.headers.get("Gotenberg-Output-Filename", ""))
            # The folder is removed when the response is sent.
            return StagedFileResponse(made.path, headers, stack.pop_all())

    async def _health(self, _request: Request) -> Response:
        try:
            async with asyncio.timeout(self._services.ping_s_max):
                await self._services.engine.ping()
            status = "down" if self._services.draining() else "up"
        except (TimeoutError, OurError):
            status = "down"
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        details = {"chromium": {"status": status, "timestamp": now}}
        body = json.dumps({"status": status, "details": details})
        return Response(body, 200 if status == "up" else 503, media_type="application/json")

    async def _version(self, _request: Request) -> Response:
        return PlainTextResponse(VERSION)

    async def _refuse(self, path: str, why: str, request: Request) -> Response:
        headers = {"Gotenberg-Trace": _trace_of(request), "Connection": "close"}
        return PlainTextResponse(f"{path}: {why}", 404, headers)

    async def _unknown(self, request: Request) -> Response:
        path = request.scope["path"]
        trace = {"Gotenberg-Trace": _trace_of(request), "Connection": "close"}
        if path in self._methods:
            return PlainTextResponse("Method Not Allowed", 405, {**trace, "Allow": self._methods[path]})
        return PlainTextResponse("Not Found", 404, trace)


_SOURCES: tuple[Source, ...] = ("html", "markdown")


def _conversion(source: Source) -> Work:
    return lambda run, reader: convert(run, reader, source, datetime.now(UTC))


def _screenshot(source: Source) -> Work:
    return lambda run, reader: take_screenshot(run, reader, source)


def _operation(name: str) -> Work:
    return lambda run, reader: operate(run, reader, name)


def _refuse_webhooks(headers: Headers) -> None:
    given = next((name for name in headers if name.startswith(_WEBHOOK)), None)
    if given is not None:
        raise RequestRefusedError(
            400,
            f"{given.title()}: this service has no outgoing network; leave the header out and read the response",
        )


def _trace_of(request: Request) -> str:
    given = request.headers.get("Gotenberg-Trace", "")
    return given if _TRACE.fullmatch(given) else request_id_of(request)


def _bearer(authorization: str) -> str:
    """A key that came as a password, or as the user name without one, in the form of a bearer token."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        user, _, password = base64.b64decode(value.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return authorization
    secret = user if user.startswith(f"{PREFIX}_") and not password.startswith(f"{PREFIX}_") else password
    return f"Bearer {secret}"
