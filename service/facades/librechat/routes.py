"""The routes below ``/librechat/v1``."""

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from starlette.datastructures import Headers, UploadFile
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from proofbox.contracts.tools import IN_EVERY_IMAGE, Language
from proofbox.service.access.api_keys import Permission
from proofbox.service.access.authenticator import Caller
from proofbox.service.api.file_response import Conditions, file_response
from proofbox.service.api.middleware.access_log import CLIENT_GONE
from proofbox.service.api.middleware.authentication import caller_of, check_storage_quota
from proofbox.service.api.responses import log_failure, request_id_of
from proofbox.service.api.services import Services
from proofbox.service.api.strict_json import read_model
from proofbox.service.errors import (
    BodyTooLargeError,
    RateLimitedError,
    RequestTimeoutError,
    ServiceError,
    UnknownCallError,
)
from proofbox.service.facades.librechat import errors
from proofbox.service.facades.librechat.access import Access
from proofbox.service.facades.librechat.answers import build_answer
from proofbox.service.facades.librechat.cancellations import (
    HEADER,
    Cancellations,
    RequestCancelledError,
    parse_id,
)
from proofbox.service.facades.librechat.errors import RefusedError
from proofbox.service.facades.librechat.files import SessionFile, SessionFiles, Upload, safe_path
from proofbox.service.facades.librechat.ids import UPLOADS_TURN, new_id, require_id
from proofbox.service.facades.librechat.listings import DETAILS, describe
from proofbox.service.facades.librechat.owners import parse_owner
from proofbox.service.facades.librechat.programmatic import ProgrammaticRuns
from proofbox.service.facades.librechat.replay_state import BODY_BYTES_MAX, ReplayStates
from proofbox.service.facades.librechat.requests import CancelRequest, ExecRequest, ProgrammaticRequest
from proofbox.service.facades.librechat.runs import ClientGoneError, Run, RunProblemError, Runs
from proofbox.service.facades.librechat.uploads import FILES_MAX, Form, mime_of, pieces_of, read_form
from proofbox.service.facades.librechat.wrapping import with_followed_link
from proofbox.service.identity import Principal

PREFIX = "/librechat/v1"
_FORM_BYTES = 1024 * 1024  # of a form beside its files
_CANCEL_BYTES_MAX = 64 * 1024
_CALLS = frozenset({f"{PREFIX}/exec", f"{PREFIX}/exec/programmatic"})
_UPLOADS = (f"{PREFIX}/upload", f"{PREFIX}/upload/batch")
_WHILE_READING = (BodyTooLargeError, RequestTimeoutError, RateLimitedError)
_SERVER_ERROR = 500
_PROFILE = "X-CodeAPI-Expected-Profile"
_LANGUAGES = {
    **dict.fromkeys(("py", "python"), Language.PYTHON),
    **dict.fromkeys(("bash", "sh"), Language.BASH),
    **dict.fromkeys(("js", "javascript", "node", "nodejs"), Language.NODE),
}
Endpoint = Callable[[Request], Awaitable[Response]]


class _NamedRoute(Route):
    """A route that log lines and metrics name by its pattern, as those of FastAPI."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, found = super().matches(scope)
        return match, {**found, "route": self}


class LibreChat:
    """The facade.

    Args:
        services: the services of the application.
        access: determines callers.
    """

    prefix = PREFIX
    open_paths = frozenset({f"{PREFIX}/health"})

    def __init__(self, services: Services, access: Access) -> None:
        self._services = services
        self._access = access
        self._files = SessionFiles(services.artifacts, services.attachments)
        self._runs = Runs(services, self._files)
        self._programmatic = ProgrammaticRuns(self._runs, ReplayStates(services.artifacts, services.conversations))
        self._cancellations = Cancellations()

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes; the last one answers all other paths."""
        session, file = "{session}", "{file_id}"
        table: list[tuple[str, str, Endpoint]] = [
            ("GET", "/health", self.health),
            ("POST", "/exec", self.run),
            ("POST", "/exec/programmatic", self.run_programmatic),
            ("POST", "/exec/programmatic/cancel", self.cancel),
            ("POST", "/upload", self.upload),
            ("POST", "/upload/batch", self.upload_batch),
            ("GET", f"/download/{session}/{file}", self.download),
            ("GET", f"/sessions/{session}/objects/{file}", self.describe),
            ("GET", f"/files/{session}", self.list_files),
            ("DELETE", f"/files/{session}/{file}", self.delete),
        ]
        routes = [_NamedRoute(f"{PREFIX}{path}", _guarded(run), methods=[method]) for method, path, run in table]
        every = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]
        return [*routes, _NamedRoute(f"{PREFIX}/{{rest:path}}", _guarded(self.refuse_path), methods=every)]

    @property
    def upload_bytes_max(self) -> Mapping[str, int]:
        """The largest body of uploads, in bytes."""
        return dict.fromkeys(_UPLOADS, self._services.attachments.bytes_max + _FORM_BYTES)

    async def authenticate(self, headers: Headers) -> Caller:
        """See `Access.authenticate`."""
        return await self._access.authenticate(headers)

    def is_call(self, method: str, path: str) -> bool:
        """Whether a request runs a program."""
        return method == "POST" and path in _CALLS

    def error_response(
        self, exc: Exception, request_id: str, *, headers: Mapping[str, str] | None = None
    ) -> Response:
        """See `errors.error_response`."""
        return errors.error_response(exc, request_id, headers=headers)

    async def health(self, request: Request) -> Response:
        """Answer as long as the process serves requests."""
        del request
        return JSONResponse({"status": "ok"})

    async def refuse_path(self, request: Request) -> Response:
        """Refuse a path or method that no route takes."""
        raise RefusedError(
            "not_found", status=404, message=f"{request.method} {request.url.path[:200]} is not a route of this API"
        )

    async def run(self, request: Request) -> Response:
        """Run a program."""
        caller = await self._caller_of_run(request)
        asked = await read_model(request, ExecRequest, BODY_BYTES_MAX)
        language = await self._language(asked.lang)
        if not asked.code.strip():
            raise RefusedError("Missing required field: code")
        code = asked.code
        if language is Language.BASH:
            code = await asyncio.to_thread(with_followed_link, code)
        inputs = await self._runs.resolve_inputs(caller, asked.files)
        ended = await self._runs.run(request, caller, Run(language, code, inputs, asked.args or ()))
        return JSONResponse(build_answer(ended))

    async def run_programmatic(self, request: Request) -> Response:
        """Run a program with tools, or go on with the results of its calls."""
        caller = await self._caller_of_run(request)
        asked = await read_model(request, ProgrammaticRequest, BODY_BYTES_MAX)
        go_on = self._programmatic.resume if asked.continuation_token else self._programmatic.start
        with self._cancellations.request(caller, request.headers.get(HEADER)) as cancellable:
            try:
                return JSONResponse(await go_on(request, caller, asked, cancellable))
            except (RequestCancelledError, RunProblemError):
                if not cancellable.is_cancelled:
                    raise
                return JSONResponse({"status": "error", "error": "Execution was cancelled"})

    async def cancel(self, request: Request) -> Response:
        """Cancel a request for a program with tools."""
        caller = _require(request, Permission.CALLS_RUN)
        asked = await read_model(request, CancelRequest, _CANCEL_BYTES_MAX)
        request_id = parse_id(asked.request_id, "Invalid or missing request_id")
        cancellable = self._cancellations.cancel(caller, request_id)
        if cancellable is not None and cancellable.call:
            with contextlib.suppress(UnknownCallError):  # it is being registered, and is cancelled after that
                await self._services.calls.cancel(caller, cancellable.call, cancellable.conversation)
        return JSONResponse({"status": "cancellation_requested"}, 202)

    async def upload(self, request: Request) -> Response:
        """Store the files of a form."""
        caller = _require(request, Permission.ARTIFACTS_WRITE)
        await check_storage_quota(request, self._services)
        async with read_form(request, self._services.artifacts) as form:
            if not form.files:
                raise RefusedError("No files provided")
            session, names = new_id(), set[str]()
            stored = [await self._store(caller, session, form, file, names) for file in form.files]
        return JSONResponse(
            {
                "message": "success",
                "storage_session_id": session,
                "files": [{"fileId": file.id, "filename": file.name} for file in stored],
            }
        )

    async def upload_batch(self, request: Request) -> Response:
        """Store the files of a form, each of which may be refused by itself."""
        caller = _require(request, Permission.ARTIFACTS_WRITE)
        await check_storage_quota(request, self._services)
        async with read_form(request, self._services.artifacts) as form:
            if not form.files:
                raise RefusedError("No files provided")
            session, results, names = new_id(), list[dict[str, Any]](), set[str]()
            for file in form.files:
                results.append(await self._try_to_store(caller, session, form, file, names))
        failed = sum(result["status"] == "error" for result in results)
        message = "success" if not failed else "error" if failed == len(results) else "partial_success"
        body = {
            "message": message,
            "storage_session_id": session,
            "files": results,
            "succeeded": len(results) - failed,
            "failed": failed,
            **({"filesLimitReached": True, "maxFiles": FILES_MAX} if form.is_cut else {}),
        }
        return JSONResponse(body, 400 if message == "error" else 200)

    async def download(self, request: Request) -> Response:
        """Answer the bytes of a file."""
        file = await self._file(request, Permission.ARTIFACTS_READ)
        headers = request.headers
        conditions = Conditions(headers.get("range"), headers.get("if-range"), headers.get("if-none-match"))
        response = await file_response(request, self._services.artifacts, file.scope, file.artifact, conditions)
        if file.is_read_only:
            response.headers["X-Read-Only"] = "true"
        return response

    async def describe(self, request: Request) -> Response:
        """Answer the metadata of a file."""
        return JSONResponse(describe(await self._file(request, Permission.ARTIFACTS_READ)))

    async def list_files(self, request: Request) -> Response:
        """Answer the files of a session."""
        caller = _require(request, Permission.ARTIFACTS_READ)
        session = require_id("session", request.path_params["session"])
        files = await self._files.all(_owner(request, caller), session)
        show = DETAILS.get(request.query_params.get("detail", "simple"))
        if show is None:
            raise RefusedError(f"detail must be one of: {', '.join(DETAILS)}")
        return JSONResponse([show(file) for file in files])

    async def delete(self, request: Request) -> Response:
        """Delete a file."""
        file = await self._file(request, Permission.ARTIFACTS_WRITE)
        await self._services.conversations.delete_file(
            file.scope, file.artifact.path, request_id=request_id_of(request)
        )
        return JSONResponse({"message": "File deleted", "fileId": file.id, "storage_session_id": file.session})

    async def _caller_of_run(self, request: Request) -> Principal:
        caller = _require(request, Permission.CALLS_RUN)
        profile = request.headers.get(_PROFILE, "default").strip().lower()
        if profile != "default":
            raise RefusedError(
                "execution_profile_mismatch",
                status=409,
                message=f"{_PROFILE}: this service runs each program in a new sandbox; use the profile default",
            )
        await check_storage_quota(request, self._services)
        return caller

    async def _language(self, given: str) -> Language:
        language = _LANGUAGES.get(given.strip().lower())
        if language is not None and language not in IN_EVERY_IMAGE:
            image = await self._services.image.get()
            language = language if language in image.languages else None
        if language is None:
            raise RefusedError(f"Unsupported language: {given[:40]}")
        return language

    async def _store(
        self, caller: Principal, session: str, form: Form, file: UploadFile, names: set[str]
    ) -> SessionFile:
        fields, name = form.fields, safe_path("filename", UPLOADS_TURN, file.filename or "").rel
        if name in names:
            raise RefusedError("filename: another file of the form has it; give each file its own")
        names.add(name)
        owner = parse_owner(fields.get("kind"), fields.get("id"), fields.get("version"), fields.get("entity_id"))
        is_read_only = fields.get("read_only", "").lower() == "true"
        upload = Upload(name, pieces_of(file), mime_of(file), is_read_only)
        return await self._files.store(owner.principal(caller), session, upload)

    async def _try_to_store(
        self, caller: Principal, session: str, form: Form, file: UploadFile, names: set[str]
    ) -> dict[str, Any]:
        try:
            stored = await self._store(caller, session, form, file, names)
        except (RefusedError, BodyTooLargeError) as exc:
            return {"status": "error", "filename": file.filename, "error": exc.message}
        return {"status": "success", "filename": stored.name, "fileId": stored.id}

    async def _file(self, request: Request, permission: Permission) -> SessionFile:
        caller = _require(request, permission)
        session = require_id("session", request.path_params["session"])
        wanted = require_id("file", request.path_params["file_id"])
        file = await self._files.find(_owner(request, caller), session, wanted)
        if file is None:
            raise RefusedError("File not found", status=404, details="The file may have expired or does not exist")
        return file


def _guarded(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose errors have the form of this API."""

    @functools.wraps(endpoint)
    async def guarded(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ServiceError as exc:
            if exc.status >= _SERVER_ERROR:
                log_failure(exc, request.scope)
            # The rest of a refused body is not read: a client that never ends must not hold the connection.
            is_unread = request.url.path in _UPLOADS or isinstance(exc, _WHILE_READING)
            headers = {"Connection": "close"} if is_unread else {}
            return errors.error_response(exc, request_id_of(request), headers=headers)
        except RunProblemError as exc:
            return errors.problem_as_error(exc.problem, exc.retry_after_s)
        except ClientGoneError:
            return Response(status_code=CLIENT_GONE)

    return guarded


def _require(request: Request, permission: Permission) -> Principal:
    """Return the caller of a request.

    Raises:
        MissingPermissionError: its key has not the scope.
    """
    caller = caller_of(request.scope["state"])
    caller.require(permission)
    return caller.principal


def _owner(request: Request, caller: Principal) -> Principal:
    """Return the owner of the session that a query names.

    Raises:
        RefusedError: the query names none.
    """
    query = request.query_params
    owner = parse_owner(query.get("kind"), query.get("id"), query.get("version"), query.get("entity_id"))
    return owner.principal(caller)
