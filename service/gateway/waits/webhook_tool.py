"""Tools of the type ``external``: a signed webhook, which a service answers at once or later."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn
from urllib.parse import quote

from proofbox.contracts.codes import NoticeCode, WebCode
from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.gateway.executions import WebhookExecution
from proofbox.service.calls.observer import CallObserver
from proofbox.service.calls.suspension import CallResponse, CallRun, RunOutcome, Suspension, WaitOutcome
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.environment import Environment, UnknownEnvError
from proofbox.service.gateway.filling import RefusedInputError, TemplateFiller
from proofbox.service.gateway.http_exchange import (
    HttpSender,
    is_json,
    is_success,
    retry_after_s,
)
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.response_body import error_bytes_max, read_error, read_json
from proofbox.service.gateway.tool_call import Effected, GatewayCall, ToolExecution
from proofbox.service.gateway.waits.answers import expiry, new_wait_id
from proofbox.service.gateway.waits.policy import WaitPolicy, spec_of
from proofbox.service.gateway.waits.port import OpenWait
from proofbox.service.gateway.waits.space_tool import answer_with
from proofbox.service.gateway.waits.webhook_signing import (
    CallbackTokens,
    SigningSecrets,
    parse_secret,
    sign_webhook,
)
from proofbox.service.web.client.outgoing import (
    BodyLimit,
    LimitBody,
    OutgoingRequest,
    OutgoingResponse,
    ResponseHead,
)
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import UrlRefusedError, WebUrl

_ATTEMPTS = 3
_PAUSE_S = 0.5
_ACCEPTED, _NO_CONTENT, _SERVER_ERROR = 202, 204, 500
_PASSING = frozenset({408, 425, 429})
_WEBHOOK_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class WebhookParts:
    """What webhooks need.

    Attributes:
        sender: sends requests over the checked network.
        environment: the operator's secrets.
        secrets: the agents' own secrets.
        tokens: makes callback tokens.
        public_url: the URL of the service for clients, without a slash at its end.
        response_bytes_max: the largest response.
    """

    sender: HttpSender
    environment: Environment
    secrets: SigningSecrets
    tokens: CallbackTokens
    public_url: str
    response_bytes_max: int


class _FailedError(Exception):
    """The service gave no result; the text is redacted."""


class WebhookTool(ToolExecution):
    """Sends a call to a service; see `ToolExecution`.

    Args:
        parts: what webhooks need.
        policy: the operator's limits of waits.
    """

    def __init__(self, parts: WebhookParts, policy: WaitPolicy) -> None:
        self._parts = parts
        self._policy = policy

    async def run(self, call: GatewayCall, observer: CallObserver) -> RunOutcome:
        """Sends the webhook; with 202 the call waits for the callback."""
        observer.on_running()
        execution = _execution(call)
        project = f"{call.principal.tenant}/{call.principal.project}"
        filler = TemplateFiller(call.input, call.tool_call_id, self._parts.environment, project)
        wait_id = new_wait_id()
        expires = expiry(self._policy.seconds(execution.answer_timeout))
        try:
            # In a thread: values of several MiB may be put in.
            url, host, headers = await asyncio.to_thread(_fill, filler, execution)
            keys = await self._keys(call, filler, host)
            sending = _Sending(call, execution.method, WebUrl.parse(url), headers, keys, filler.redactor)
            response = await self._send(sending, (wait_id, expires), execution.timeout / 1000)
            if response.head.status == _ACCEPTED:
                return self._wait(call, wait_id, expires)
            return await self._policy.succeed(call, await asyncio.to_thread(_result, sending, response))
        except RefusedInputError as exc:
            errors = [error.model_dump(exclude_none=True) for error in exc.errors]
            return call.fail(GatewayCode.INVALID_INPUT, str(exc), notice=NoticeCode.INVALID_INPUT, errors=errors)
        except UnknownEnvError as exc:
            return call.fail(GatewayCode.UNKNOWN_ENV, str(exc))
        except UrlRefusedError as exc:
            return call.fail(WebCode.URL_NOT_ALLOWED, filler.redactor.redact_text(str(exc)))
        except _FailedError as exc:
            return call.fail(GatewayCode.EXTERNAL_FAILED, filler.redactor.redact_text(str(exc)))
        except WebFailedError as exc:
            code = GatewayCode.RESPONSE_TOO_LARGE if exc.code is WebCode.TOO_LARGE else exc.code
            return call.fail(code, filler.redactor.redact_text(exc.message))

    async def resume(self, call: GatewayCall, outcome: WaitOutcome) -> CallResponse | CallRun:
        """Makes the callback's answer the result of the call."""
        redactor = await asyncio.to_thread(self._redactor, call)
        value = redactor.redact_json(outcome.value)
        redacted = WaitOutcome(outcome.kind, outcome.how, value, outcome.answered_by, outcome.spec)
        return await answer_with(call, redacted, self._policy)

    def _redactor(self, call: GatewayCall) -> Redactor:
        """Removes the secrets that the webhook had."""
        execution = _execution(call)
        project = f"{call.principal.tenant}/{call.principal.project}"
        filler = TemplateFiller(call.input, call.tool_call_id, self._parts.environment, project)
        with suppress(RefusedInputError, UnknownEnvError):  # the operator removed a secret since: the others go
            _fill(filler, execution)
        return filler.redactor

    async def _keys(self, call: GatewayCall, filler: TemplateFiller, host: str) -> Sequence[bytes]:
        execution = _execution(call)
        if execution.secret is None:
            return await self._parts.secrets.keys_of(call.principal, call.run.agent_id)
        try:
            return [parse_secret(filler.fill_secret(execution.secret, host))]
        except ValueError as exc:
            raise _FailedError(f"secret: {exc}; the operator corrects it in PROOFBOX_GATEWAY_ENV") from exc

    async def _send(self, sending: "_Sending", answer_by: tuple[str, str], timeout_s: float) -> OutgoingResponse:
        """Sends until the service takes the webhook, or its attempts or its time are over.

        Raises:
            _FailedError: the service has not answered as it should.
            WebFailedError: its address is not allowed, or its response is too large.
        """
        ends = time.monotonic() + timeout_s
        webhook_id = f"msg_{secrets.token_hex(_WEBHOOK_ID_BYTES)}"
        for attempt in range(1, _ATTEMPTS + 1):
            body = self._envelope(sending.call, attempt, answer_by)
            signed = sign_webhook(sending.keys, webhook_id, int(time.time()), body)
            pause_s = _PAUSE_S * attempt
            try:
                response = await self._attempt(sending, body, signed, attempt, ends)
            except WebFailedError as exc:
                if exc.code in {WebCode.URL_NOT_ALLOWED, WebCode.TOO_LARGE}:
                    raise
                if attempt == _ATTEMPTS or exc.code is not WebCode.CONNECT_FAILED:
                    raise _FailedError(exc.message) from exc
            else:
                status = response.head.status
                if is_success(status):
                    return response
                if attempt == _ATTEMPTS or not (status in _PASSING or status >= _SERVER_ERROR):
                    _refuse(sending, response)
                pause_s = retry_after_s(response.head.retry_after) or pause_s
                if time.monotonic() + pause_s >= ends:
                    _refuse(sending, response)
            await asyncio.sleep(min(pause_s, max(0.0, ends - time.monotonic())))
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(
        self, sending: "_Sending", body: bytes, signed: list[tuple[str, str]], attempt: int, ends: float
    ) -> OutgoingResponse:
        given = [(name, value) for name, value in sending.headers if name.lower() != "content-type"]
        headers = [*given, ("Content-Type", "application/json"), *signed]
        request = OutgoingRequest(sending.method, sending.url, headers, body)
        began = time.monotonic()
        response: OutgoingResponse | None = None
        try:
            response = await self._parts.sender.send(request, self._limit_by(sending), max(0.0, ends - began))
        except WebFailedError as exc:
            if exc.code is not WebCode.URL_NOT_ALLOWED:
                self._count(sending, None, attempt, began)
            raise
        except ValueError as exc:
            raise _FailedError(f"the request cannot be sent: {exc}") from exc
        self._count(sending, response, attempt, began)
        return response

    def _count(self, sending: "_Sending", response: OutgoingResponse | None, attempt: int, began: float) -> None:
        sending.call.effects.append(
            Effected(
                host=sending.redactor.redact_text(sending.url.authority),
                method=sending.method,
                status=None if response is None else response.head.status,
                attempt=attempt,
                size_bytes=0 if response is None else len(response.body),
                ms=round((time.monotonic() - began) * 1000, 3),
            )
        )

    def _limit_by(self, sending: "_Sending") -> LimitBody:
        def limit_body(head: ResponseHead) -> BodyLimit:
            if not is_success(head.status):
                return BodyLimit(error_bytes_max(sending.redactor), is_cut=True)
            return BodyLimit(self._parts.response_bytes_max)

        return limit_body

    def _envelope(self, call: GatewayCall, attempt: int, answer_by: tuple[str, str]) -> bytes:
        wait_id, expires = answer_by
        envelope = {
            "type": "tool.call",
            "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "data": {
                "tool": call.tool.name,
                "tool_call_id": call.tool_call_id,
                "run_id": call.run.run_id,
                "agent": call.run.agent_id,
                "input": call.input,
                "attempt": attempt,
                "callback": {
                    "url": f"{self._parts.public_url}/v1/tool-calls/{quote(call.tool_call_id, safe='')}/result",
                    "token": self._parts.tokens.issue(wait_id, call.tool_call_id),
                    "expires": expires,
                },
            },
        }
        return compact_json(envelope).encode(errors="replace")

    def _wait(self, call: GatewayCall, wait_id: str, expires: str) -> Suspension:
        schema = None if call.tool.configuration is None else call.tool.configuration.result_schema
        opened = OpenWait(
            wait_id,
            "external",
            call.recorded,
            call.posting,
            expires,
            None,
            spec_of(call, answer_by="callback", result_schema=schema) | {"waiting_for": []},
            self._policy.lease_s,
        )
        return Suspension([opened], call.fail)


@dataclass(frozen=True, slots=True)
class _Sending:
    call: GatewayCall
    method: str
    url: WebUrl
    headers: Sequence[tuple[str, str]]
    keys: Sequence[bytes]
    redactor: Redactor


def _refuse(sending: _Sending, response: OutgoingResponse) -> NoReturn:
    if response.head.location is not None:
        raise _FailedError(f"{sending.url.host} redirects; configure the final address")
    shown = read_error(response, sending.redactor).strip()
    after = f": {shown}" if shown else ""
    raise _FailedError(f"{sending.url.host} answered with status {response.head.status}{after}")


def _result(sending: _Sending, response: OutgoingResponse) -> Any:
    """The result in a response, without secrets.

    Raises:
        _FailedError: it is not JSON.
    """
    if response.head.status == _NO_CONTENT or not response.body:
        return None
    if not is_json(response.head.mime):
        raise _FailedError(f"the response is {response.head.mime or 'of no type'}, not application/json")
    try:
        return read_json(response, sending.redactor)
    except ValueError as exc:
        raise _FailedError("the response is not JSON that can be stored") from exc


def _fill(filler: TemplateFiller, execution: WebhookExecution) -> tuple[str, str, list[tuple[str, str]]]:
    """The URL of a webhook, its host and its headers; raises as `TemplateFiller`."""
    url, host = filler.fill_url(execution.webhook_url)
    return url, host, filler.fill_headers(execution.headers, host)


def _execution(call: GatewayCall) -> WebhookExecution:
    execution = None if call.tool.configuration is None else call.tool.configuration.execution
    if not isinstance(execution, WebhookExecution):
        raise AssertionError(f"{call.tool.name} is not a webhook")  # noqa: TRY004
    return execution
