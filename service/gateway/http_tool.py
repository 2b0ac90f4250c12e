"""The variant ``http``: a request that a configuration describes, and its response as a result."""

import asyncio
import time
from dataclasses import dataclass, replace
from typing import Any

from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.executions import HttpExecution
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, RunOutcome
from proofbox.service.gateway.environment import Environment, UnknownEnvError
from proofbox.service.gateway.filling import RefusedInputError, TemplateFiller
from proofbox.service.gateway.http_exchange import (
    ExchangePolicy,
    HttpRefusedError,
    HttpSender,
    attempts_of,
    exchange,
    is_json,
    is_readable,
    is_success,
)
from proofbox.service.gateway.http_template import PreparedRequest, prepare_request
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.response_body import error_bytes_max, read_error, read_json, read_text
from proofbox.service.gateway.result_files import ResultFiles, data_of, new_file
from proofbox.service.gateway.tool_call import Effected, GatewayCall, ToolExecution
from proofbox.service.web.client.outgoing import OutgoingRequest, OutgoingResponse
from proofbox.service.web.urls import UrlRefusedError, WebUrl

_OCTET_STREAM = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class HttpParts:
    """What requests of tools need.

    Attributes:
        sender: sends them over the checked network.
        files: stores what is neither JSON nor text.
        environment: the operator's secrets.
        admission: how many requests are made at the same time.
        bytes_max: the largest JSON or text.
        queue_s: how long a call may wait for its turn.
    """

    sender: HttpSender
    files: ResultFiles
    environment: Environment
    admission: Admission
    bytes_max: int
    queue_s: float


class HttpTool(ToolExecution):
    """Runs the calls of the variant ``http``."""

    def __init__(self, parts: HttpParts) -> None:
        self._parts = parts

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
        """See `ToolExecution.run`."""
        execution = call.execution_as(HttpExecution)
        principal = call.principal
        project = f"{principal.tenant}/{principal.project}"
        filler = TemplateFiller(call.input, call.tool_call_id, self._parts.environment, project)
        try:
            # In a thread: values of several MiB may be put in.
            prepared = await asyncio.to_thread(prepare_request, execution, call.input, filler)
            request = _request(prepared)
        except RefusedInputError as exc:
            return call.refuse_input(exc.listed)
        except UnknownEnvError as exc:
            return call.fail(GatewayCode.UNKNOWN_ENV, str(exc))
        except UrlRefusedError as exc:
            return call.refuse_input([{"field": "input", "message": filler.redactor.redact_text(str(exc))}])
        redactor = filler.redactor
        policy = ExchangePolicy(
            timeout_s=execution.timeout / 1000,
            attempts=attempts_of(execution.method, None if execution.retry is None else execution.retry.attempts),
            bytes_max=self._parts.bytes_max,
            error_bytes_max=error_bytes_max(redactor),
        )

        def on_effect(effect: Effected) -> None:
            call.effects.append(replace(effect, host=redactor.redact_text(effect.host)))

        deadline = time.monotonic() + self._parts.queue_s
        with await self._parts.admission.enter(deadline, observer.on_queued, observer.owner):
            observer.on_running()
            try:
                response = await exchange(self._parts.sender, request, policy, on_effect)
            except HttpRefusedError as exc:
                return call.fail(exc.code, redactor.redact_text(exc.message))
        return await self._respond(call, response, redactor)

    async def _respond(self, call: GatewayCall, response: OutgoingResponse, redactor: Redactor) -> CallResponse:
        status = response.head.status
        if not is_success(status):
            shown = read_error(response, redactor)
            return call.fail(
                GatewayCode.HTTP_STATUS,
                f"the service answered with HTTP status {status}",
                ret={"status": status, "data": shown},
            )
        mime, body = response.head.mime, response.body
        if not body:
            return await self._parts.files.succeed(call, {"status": status, "data": None})
        if is_json(mime) or is_readable(mime):
            data = await asyncio.to_thread(_read, response, redactor)
            return await self._parts.files.succeed(call, {"status": status, "data": data})
        content = await asyncio.to_thread(redactor.redact_bytes, body)
        file = await new_file(call, content, mime or _OCTET_STREAM)
        ret = {"status": status, "data": data_of(file)}
        return await self._parts.files.succeed(call, ret, files=(file,))


def _request(prepared: PreparedRequest) -> OutgoingRequest:
    """The request as it is sent.

    Raises:
        UrlRefusedError: it has no address that can be asked.
    """
    url = WebUrl.parse(prepared.url)
    return OutgoingRequest(prepared.method, url, prepared.headers, prepared.body or b"")


def _read(response: OutgoingResponse, redactor: Redactor) -> Any:
    """The body as JSON, or as text if it is none that can be passed on."""
    if is_json(response.head.mime):
        try:
            return read_json(response, redactor)
        except ValueError:
            pass
    return read_text(response, redactor)
