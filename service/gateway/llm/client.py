"""One bounded JSON request to an endpoint of the operator, and the errors that a model may read."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proofbox.contracts.codes import WebCode
from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.service.calls.admission import Admission
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.http_exchange import (
    ExchangePolicy,
    HttpRefusedError,
    HttpSender,
    exchange,
    is_success,
)
from proofbox.service.gateway.llm.endpoints import LlmEndpoint
from proofbox.service.gateway.redaction import Redactor
from proofbox.service.gateway.response_body import error_bytes_max, parse_json, read_error
from proofbox.service.gateway.tool_call import Effected
from proofbox.service.visible_text import visible_line
from proofbox.service.web.client.outgoing import OutgoingRequest, OutgoingResponse

_log = logging.getLogger("proofbox.gateway")
_MESSAGE_CHARACTERS_MAX = 500
_UNAUTHORIZED = frozenset({401, 403})
_TOO_MANY = 429
_EXPLAINED = range(400, 500)
_REASONS: dict[str, str] = {
    WebCode.FETCH_TIMEOUT: "did not answer in time",
    GatewayCode.RESPONSE_TOO_LARGE: "answered with more than may be read",
    GatewayCode.REDIRECT_REFUSED: "redirects; the operator has to name its final address",
    WebCode.TLS_FAILED: "has no valid certificate",
    WebCode.BAD_RESPONSE: "broke off or answered no valid HTTP",
}


class LlmFailedError(Exception):
    """An endpoint gave no usable answer.

    Args:
        message: one sentence for a model, without key and address.
        is_too_large: whether the answer was larger than is read.
    """

    def __init__(self, message: str, *, is_too_large: bool = False) -> None:
        super().__init__(message)
        self.is_too_large = is_too_large


@dataclass(frozen=True, slots=True)
class LlmRequest:
    """What is asked.

    Attributes:
        path: below the endpoint's address, such as ``/chat/completions``.
        body: the JSON body.
        bytes_max: the largest response.
        timeout_s: for all attempts.
        attempts: how often it is sent if the connection fails or the status is 429, 502, 503 or 504.
    """

    path: str
    body: dict[str, Any]
    bytes_max: int
    timeout_s: float
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn a request takes, and who watches it.

    Attributes:
        owner: the caller whose share of the places it counts against.
        on_queued: gets how many requests are before it.
        on_running: called when it has its place.
        on_effect: gets each request that left the service.
    """

    owner: str
    on_queued: Callable[[int], None]
    on_running: Callable[[], None]
    on_effect: Callable[[Effected], None]


class LlmClient:
    """Asks endpoints.

    Args:
        sender: sends requests; the operator's endpoints may be on private networks.
        admission: how many requests are made at the same time; a place is held for one request only.
        queue_s: how long a request may wait for its place.
    """

    def __init__(self, sender: HttpSender, admission: Admission, queue_s: float) -> None:
        self._sender = sender
        self._admission = admission
        self._queue_s = queue_s

    async def send(self, endpoint: LlmEndpoint, request: LlmRequest, turn: Turn) -> OutgoingResponse:
        """Sends a request and returns its response of a status 2xx.

        Raises:
            LlmFailedError: there is none.
            QueueFullError, QueueTimeoutError: there was no place for it; nothing was sent.
        """
        redactor = endpoint.redactor
        headers = [("Content-Type", "application/json"), ("Accept", "application/json")]
        if endpoint.key:
            headers.append(("Authorization", f"Bearer {endpoint.key}"))
        body = compact_json(request.body).encode(errors="replace")
        outgoing = OutgoingRequest("POST", endpoint.url_of(request.path), headers, body)
        bytes_max = request.bytes_max
        policy = ExchangePolicy(
            request.timeout_s, request.attempts, bytes_max, error_bytes_max(redactor), file_bytes_max=bytes_max
        )
        deadline = time.monotonic() + min(self._queue_s, request.timeout_s)
        with await self._admission.enter(deadline, turn.on_queued, turn.owner):
            turn.on_running()
            try:
                response = await exchange(self._sender, outgoing, policy, turn.on_effect)
            except HttpRefusedError as exc:
                reason = _REASONS.get(exc.code, f"cannot be reached ({exc.code})")
                _log.warning("endpoint failed", extra={"endpoint": endpoint.name, "code": str(exc.code)})
                is_too_large = exc.code == GatewayCode.RESPONSE_TOO_LARGE
                message = f"the endpoint {endpoint.name!r} {reason}"
                raise LlmFailedError(message, is_too_large=is_too_large) from exc
        if not is_success(status := response.head.status):
            _log.warning("endpoint failed", extra={"endpoint": endpoint.name, "status": status})
            raise LlmFailedError(_explain(endpoint, response, redactor))
        return response


def _explain(endpoint: LlmEndpoint, response: OutgoingResponse, redactor: Redactor) -> str:
    """Why a request was refused; the endpoint's own message is shown only if the request was at fault."""
    status = response.head.status
    name = f"the endpoint {endpoint.name!r}"
    if status in _UNAUTHORIZED:
        return f"{name} refused the operator's key (HTTP status {status})"
    if status == _TOO_MANY:
        return f"{name} takes no more requests now (HTTP status {status}); try again later"
    if status not in _EXPLAINED:
        return f"{name} failed with HTTP status {status}"
    text = read_error(response, redactor)
    try:
        body = parse_json(text)
    except ValueError:
        body = None
    error = body.get("error") if isinstance(body, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    shown = visible_line(message if isinstance(message, str) else text)[:_MESSAGE_CHARACTERS_MAX]
    return f"{name} refused the request with HTTP status {status}: {shown}"
