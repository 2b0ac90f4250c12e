"""The address and key of a service, and requests with retries."""

import json
import os
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import quote, urlencode, urlsplit

from pydantic import BaseModel, ValidationError

from proofbox.client.errors import (
    ArgumentError,
    ProblemError,
    ProofboxError,
    UnexpectedResponseError,
    UnreachableError,
    problem_error,
)
from proofbox.client.exchange import (
    NotConnected,
    Plan,
    Reply,
    Request,
    Silence,
    Sleep,
    TransportFailure,
    send,
)
from proofbox.client.uploads import UploadSource
from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import Problem

DEFAULT_URL = "http://127.0.0.1:8080"
TIMEOUT_S = 60.0
RETRY_AFTER_S_MAX = 90.0
"""A service that asks for a longer pause gets no retry: the caller decides.

The service makes a pause up to half as long again, by chance."""
_BACKOFF_S = 0.2
_BACKOFF_S_MAX = 5.0
_ERROR_STATUS = 400
_GATEWAY_STATUSES = {502, 503, 504}  # of a proxy that does not reach the service
_SHOWN_CHARS = 200
_NOT_NAMES = {"", ".", ".."}  # they would lead to another route
_SURROGATES = re.compile("[\ud800-\udfff]")  # of file names that are not UTF-8
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Api:
    """What every request needs; it holds no connection.

    Attributes:
        url: the address of the service, without a slash at its end.
        headers: the headers of every request, with the key.
        timeout_s: how long the service may send nothing.
        retries: how often a request is sent again.
    """

    url: str
    headers: Mapping[str, str]
    timeout_s: float
    retries: int

    @classmethod
    def create(cls, url: str | None, api_key: str | None, timeout_s: float | None, retries: int) -> "Api":
        """Read the settings of a client; what is None comes from the environment.

        Raises:
            ArgumentError: one of them is wrong.
        """
        key = api_key if api_key is not None else os.environ.get("PROOFBOX_API_KEY", "")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ArgumentError("api_key", "the key has characters that no key has; copy it again, without blanks")
        if timeout_s is not None and not timeout_s > 0:
            raise ArgumentError("timeout_s", f"{timeout_s} is not more than 0")
        if retries < 0:
            raise ArgumentError("retries", f"{retries} is negative; give 0 for none")
        headers = {"Accept-Encoding": "identity", "User-Agent": "proofbox-python"}
        return cls(
            _checked_url(url or os.environ.get("PROOFBOX_URL") or DEFAULT_URL),
            {**headers, "Authorization": f"Bearer {key}"} if key else headers,
            TIMEOUT_S if timeout_s is None else float(timeout_s),
            retries,
        )

    def __repr__(self) -> str:
        """The address, without the key."""
        return f"Api({self.url!r})"

    def request(self, request: Request, *, is_silence_raised: bool = False) -> Plan[Reply]:
        """Send a request until it is answered, and read the answer.

        Raises:
            UnreachableError: there was no answer, and the retries are used up.
            ProblemError, UnexpectedResponseError: the answer is an error.
            Silence: only if ``is_silence_raised``; the request may have reached the service.
        """
        is_repeatable = not isinstance(request.body, UploadSource) or request.body.is_repeatable
        attempts = self.attempts()
        while True:
            try:
                reply = yield from send(request)
            except TransportFailure as exc:
                if is_silence_raised and isinstance(exc, Silence):
                    raise
                error: ProofboxError = self.unreachable(exc, request.silence_s)
                if not is_repeatable and not isinstance(exc, NotConnected):
                    raise error from None
            else:
                if reply.status < _ERROR_STATUS:
                    return reply
                error = self.error(reply)
                if not is_repeatable:
                    raise error
            yield from attempts.wait(error)

    def attempts(self) -> "Attempts":
        """A count of retries."""
        return Attempts(self.retries)

    def parse(self, model: type[Model], reply: Reply) -> Model:
        """Read an answer; fields of a newer service are skipped.

        Raises:
            UnexpectedResponseError: it is not what the model describes.
        """
        try:
            return model.model_validate_json(reply.body, extra="ignore")
        except ValidationError as exc:
            raise self.unexpected(reply, f"not a {model.__name__}: {exc.errors()[0]['msg']}") from None

    def unreachable(self, failure: TransportFailure, silence_s: float | None = None) -> UnreachableError:
        """Build the error of a request without an answer, which could be silent for so long."""
        if isinstance(failure, NotConnected):
            advice = "start the service with 'proofbox serve', or correct PROOFBOX_URL"
            what = f"no connection ({failure.reason}); {advice}"
        elif isinstance(failure, Silence):
            waited_s = self.timeout_s if silence_s is None else silence_s
            what = f"no byte for {waited_s:g} s; see whether the service is busy, or give a larger timeout_s"
        else:
            what = f"the connection was lost ({failure.reason}); see whether the service or a proxy was restarted"
        return UnreachableError(self.url, f"{self.url}: {what}")

    def error(self, reply: Reply) -> ProofboxError:
        """Build the error of an answer that is none of those that were expected."""
        problem = _problem(reply.body)
        if problem is not None:
            return problem_error(problem, _retry_after_s(reply))
        return self.unexpected(reply, f"HTTP {reply.status} without a problem document")

    def unexpected(self, reply: Reply, what: str) -> UnexpectedResponseError:
        """Build the error of an answer that is not one of Proofbox."""
        start = reply.body[:_SHOWN_CHARS].decode(errors="replace").strip()
        advice = "see whether this is the address of a Proofbox service, and of this release"
        return UnexpectedResponseError(
            self.url, reply.status, f"{self.url}: {what}; {advice}. It begins: {start!r}"
        )


class Attempts:
    """How often a request was sent again, and how long to wait before the next time."""

    def __init__(self, retries: int) -> None:
        self._retries = retries
        self._made = 0
        self._pauses = 0  # of growing length

    def reset(self) -> None:
        """Count anew: something arrived."""
        self._made = self._pauses = 0

    def renew(self) -> None:
        """Count anew, but let the pauses go on growing: the service answers, and nothing arrived yet."""
        self._made = 0

    def wait(self, error: ProofboxError) -> Plan[None]:
        """Wait before the next attempt.

        Raises:
            ProofboxError: the error itself, if no other attempt makes sense.
        """
        pause_s = _pause_s(error, self._pauses)
        if pause_s is None:
            raise error
        yield from self.repeat(error, pause_s)

    def repeat(self, error: ProofboxError, pause_s: float | None = None) -> Plan[None]:
        """Wait before the next attempt, whatever the error is.

        Raises:
            ProofboxError: the error itself, if the retries are used up.
        """
        if self._made >= self._retries:
            raise error
        backoff_s = _backoff_s(self._pauses)
        self._made += 1
        self._pauses += 1
        yield Sleep(backoff_s if pause_s is None else pause_s)


def target(*segments: str, **query: str | int | None) -> str:
    """A path below ``/v1``, and a query without the values that are None.

    Raises:
        ArgumentError: a segment is not a name.
    """
    for segment in segments:
        if segment in _NOT_NAMES or _SURROGATES.search(segment):
            raise ArgumentError(
                "path", f"{segment!a} is not a name; give a conversation, call, turn or file by its name"
            )
    # A colon needs no escape in a path, and logical paths are easier to read with it.
    path = "/v1/" + "/".join(quote(segment, safe=":") for segment in segments)
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def now_s() -> float:
    """The clock of deadlines."""
    return time.monotonic()


def _checked_url(url: str) -> str:
    # `urlsplit` drops line ends and tabs.
    is_sound = url.isprintable() and " " not in url
    has_user = "@" in url  # of what cannot be split, in any part
    try:
        parts = urlsplit(url)
        is_sound = is_sound and parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        is_sound = is_sound and not parts.query and not parts.fragment
        has_user = "@" in (parts.netloc if is_sound else url)
    except ValueError:  # a port that is not a number, half an IPv6 address
        is_sound = False
    if has_user:
        raise ArgumentError("url", "the address has a user name; give the key as api_key or PROOFBOX_API_KEY")
    if not is_sound:
        raise wrong_url(url)
    return url.rstrip("/")


def wrong_url(url: str) -> ArgumentError:
    """The error of a URL that is not the address of a service."""
    return ArgumentError("url", f"{url[:_SHOWN_CHARS]!r} is not an address such as {DEFAULT_URL}, without query")


def _backoff_s(made: int) -> float:
    # The random part only spreads the clients; it is not a secret.
    return min(_BACKOFF_S * 2.0 ** min(made, 10), _BACKOFF_S_MAX) * random.uniform(0.5, 1)  # noqa: S311


def _pause_s(error: ProofboxError, made: int) -> float | None:
    """How long to wait before an attempt; None if the request is not sent again."""
    backoff_s = _backoff_s(made)
    if isinstance(error, ProblemError):
        if not error.retryable or (error.retry_after_s or 0) > RETRY_AFTER_S_MAX:
            return None
        return backoff_s if error.retry_after_s is None else max(error.retry_after_s, backoff_s)
    if isinstance(error, UnexpectedResponseError):
        return backoff_s if error.status in _GATEWAY_STATUSES else None
    return backoff_s


def _problem(body: bytes) -> Problem | None:
    """A problem document; one with a code that this release does not know is read too."""
    try:
        return Problem.model_validate_json(body, extra="ignore")
    except ValidationError as exc:
        if any(error["loc"] != ("code",) or error["type"] != "enum" for error in exc.errors()):
            return None
    fields = json.loads(body)
    known = Problem.model_validate({**fields, "code": ProblemCode.INTERNAL}, extra="ignore")
    return known.model_copy(update={"code": fields["code"]})


def _retry_after_s(reply: Reply) -> float | None:
    text = reply.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
