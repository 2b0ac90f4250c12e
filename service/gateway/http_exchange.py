"""The attempts and redirects of one HTTP call: every request goes over the checked network and is counted."""

import asyncio
import email.utils
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from proofbox.contracts.codes import WebCode
from proofbox.contracts.gateway.codes import GatewayCode
from proofbox.contracts.media_types import is_text
from proofbox.service.gateway.tool_call import Effected
from proofbox.service.web.client.outgoing import (
    BodyLimit,
    LimitBody,
    OutgoingRequest,
    OutgoingResponse,
    ResponseHead,
)
from proofbox.service.web.port import WebFailedError
from proofbox.service.web.urls import UrlRefusedError, WebUrl

REDIRECTS_MAX = 3
FILE_FACTOR = 10
"""How many times as large as JSON or text a response may be that becomes a file."""
_REPEATED = frozenset({"GET", "HEAD", "PUT", "DELETE"})  # whose repetition has the effect of one
_PASSING = frozenset({429, 502, 503, 504})
_NOT_SENT = frozenset({WebCode.CONNECT_FAILED})
_PAUSE_S = 0.25
_TEXT_TYPES = frozenset({"application/xml", "application/javascript", "application/x-www-form-urlencoded"})


class HttpSender(Protocol):
    """Sends one request; `OutgoingClient` is one."""

    async def send(self, request: OutgoingRequest, limit_body: LimitBody, timeout_s: float) -> OutgoingResponse:
        """See `OutgoingClient.send`."""


class HttpRefusedError(Exception):
    """A request has no usable response.

    Args:
        code: the stable code.
        message: one sentence for the model, not redacted yet.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class ExchangePolicy:
    """How a call may spend its time.

    Attributes:
        timeout_s: for all attempts and redirects together.
        attempts: how often a request is sent if its failure may pass.
        bytes_max: the largest JSON or text.
        error_bytes_max: how much of the body of a response that is not 2xx is read.
        file_bytes_max: the largest other body; None: `FILE_FACTOR` times as much as JSON or text.
    """

    timeout_s: float
    attempts: int
    bytes_max: int
    error_bytes_max: int
    file_bytes_max: int | None = None


def attempts_of(method: str, asked: int | None) -> int:
    """How often a request of a method is sent: as asked, else twice if a repetition has no further effect."""
    if asked is not None:
        return asked
    return 2 if method in _REPEATED else 1


async def exchange(
    sender: HttpSender, request: OutgoingRequest, policy: ExchangePolicy, on_effect: Callable[[Effected], None]
) -> OutgoingResponse:
    """Sends a request until it has a response that is no passing failure, or its attempts or its time are over.

    Args:
        sender: sends it.
        request: the request.
        policy: its bounds.
        on_effect: gets each request that left the service.

    Raises:
        HttpRefusedError: there is no response; ``response_too_large``, ``redirect_refused``, or a network code.
    """
    ends = time.monotonic() + policy.timeout_s
    for attempt in range(1, policy.attempts + 1):
        is_last = attempt == policy.attempts
        try:
            response = await _follow(sender, request, policy, ends, _Counter(attempt, on_effect))
        except WebFailedError as exc:
            if is_last or exc.code not in _NOT_SENT:
                code = GatewayCode.RESPONSE_TOO_LARGE if exc.code is WebCode.TOO_LARGE else exc.code
                raise HttpRefusedError(str(code), exc.message) from exc
            pause_s = _PAUSE_S * attempt
        else:
            if is_last or response.head.status not in _PASSING:
                return response
            pause_s = retry_after_s(response.head.retry_after) or _PAUSE_S * attempt
            if time.monotonic() + pause_s >= ends:
                return response  # it asks for more time than the call has
        await asyncio.sleep(pause_s)
    raise AssertionError("the last attempt returns or raises")


@dataclass(frozen=True, slots=True)
class _Counter:
    attempt: int
    on_effect: Callable[[Effected], None]

    def count(self, request: OutgoingRequest, response: OutgoingResponse | None, began: float) -> None:
        self.on_effect(
            Effected(
                host=request.url.authority,
                method=request.method,
                status=None if response is None else response.head.status,
                attempt=self.attempt,
                size_bytes=0 if response is None else len(response.body),
                ms=round((time.monotonic() - began) * 1000, 3),
            )
        )


async def _follow(
    sender: HttpSender, request: OutgoingRequest, policy: ExchangePolicy, ends: float, counter: _Counter
) -> OutgoingResponse:
    """One attempt, with its redirects.

    Raises:
        HttpRefusedError: ``redirect_refused``, or ``fetch_failed``: it cannot be sent.
        WebFailedError: there is no response.
    """
    for _ in range(REDIRECTS_MAX + 1):
        began = time.monotonic()
        try:
            response = await sender.send(request, _limit_by(policy), max(0.0, ends - began))
        except WebFailedError as exc:
            if exc.code is not WebCode.URL_NOT_ALLOWED:  # nothing was sent to an address that is not allowed
                counter.count(request, None, began)
            raise
        except ValueError as exc:
            raise HttpRefusedError(WebCode.FETCH_FAILED, f"the request cannot be sent: {exc}") from exc
        counter.count(request, response, began)
        if response.head.location is None:
            return response
        request = replace(request, url=_next(request, response.head.location))
    raise HttpRefusedError(
        GatewayCode.REDIRECT_REFUSED, f"{request.url.host} redirects more than {REDIRECTS_MAX} times"
    )


def _next(request: OutgoingRequest, location: str) -> WebUrl:
    """Where a redirect leads: only a GET, and only within its origin, so that no header goes elsewhere."""
    if request.method != "GET":
        raise HttpRefusedError(
            GatewayCode.REDIRECT_REFUSED,
            f"{request.url.host} redirects a {request.method}; only the redirects of a GET are followed",
        )
    try:
        target = request.url.joined(location)
    except UrlRefusedError as exc:
        raise HttpRefusedError(
            GatewayCode.REDIRECT_REFUSED, f"{request.url.host} redirects to what is no address"
        ) from exc
    own = request.url
    if (target.scheme, target.host, target.port) != (own.scheme, own.host, own.port):
        raise HttpRefusedError(
            GatewayCode.REDIRECT_REFUSED,
            f"{own.host} redirects to another origin, {target.host[:100]}; configure the final address",
        )
    return target


def _limit_by(policy: ExchangePolicy) -> LimitBody:
    def limit_body(head: ResponseHead) -> BodyLimit:
        if not is_success(head.status):
            return BodyLimit(policy.error_bytes_max, is_cut=True)
        shown = is_json(head.mime) or is_readable(head.mime)
        file_bytes_max = policy.file_bytes_max or FILE_FACTOR * policy.bytes_max
        return BodyLimit(policy.bytes_max if shown else file_bytes_max)

    return limit_body


def is_success(status: int) -> bool:
    """Whether a status is 2xx."""
    return 200 <= status < 300  # noqa: PLR2004 - the class of HTTP


def is_json(mime: str) -> bool:
    """Whether a media type is JSON."""
    return mime == "application/json" or mime.endswith("+json")


def is_readable(mime: str) -> bool:
    """Whether a media type is text, which a model gets as it is."""
    return is_text(mime) or mime in _TEXT_TYPES or mime.endswith("+xml")


def retry_after_s(value: str) -> float | None:
    """The seconds of a header ``Retry-After``, which has seconds or a date; None if there is none."""
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        when = email.utils.parsedate_to_datetime(value)
    except (ValueError, TypeError):
        return None
    when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())
