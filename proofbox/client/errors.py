"""What a client raises: one class for each kind of reaction.

ProofboxError
├── ArgumentError            a wrong argument; nothing was sent
├── UnreachableError         no connection, or it was lost and the retries are used up
├── ProblemError             the service answered with a problem document
│   ├── InvalidRequestError      400, 408, 413, 416, 422
│   ├── AuthenticationError      401
│   ├── ForbiddenError           403
│   ├── NotFoundError            404
│   │   └── CallLostError            the call had started; it may have run
│   ├── ConflictError            409
│   │   └── CallCancelledError
│   ├── RateLimitedError         429
│   ├── UnavailableError         503, 507
│   └── ServiceFailedError       any other
├── UnexpectedResponseError  the answer is not one of Proofbox
├── StillRunningError        the call has not ended in the given time; it continues
├── CallFailedError          `RunResult.require_ok` of a call that failed
└── DamagedDownloadError     the bytes are not those of the file
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofbox.contracts.problems import FieldError, Problem
    from proofbox.contracts.tool_call_response import ToolCallResponse


class ProofboxError(Exception):
    """Any error of the client; it can be copied and pickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Message and attributes: the arguments of the classes differ."""
        return _restored, (type(self), self.args, self.__dict__)


class ArgumentError(ProofboxError, ValueError):
    """A wrong argument; nothing was sent.

    Attributes:
        field: the argument, such as ``files`` or ``limits.wall_s``.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class UnreachableError(ProofboxError):
    """The service cannot be reached, or the connection was lost and the retries are used up.

    Attributes:
        url: the address of the service.
    """

    def __init__(self, url: str, message: str) -> None:
        super().__init__(message)
        self.url = url


class ProblemError(ProofboxError):
    """The service answered with a problem document (RFC 9457).

    Attributes:
        problem: the document.
        retry_after_s: when to try again, in seconds; None if the service did not state it.
    """

    def __init__(self, problem: "Problem", retry_after_s: float | None = None) -> None:
        super().__init__(_sentence(problem))
        self.problem = problem
        self.retry_after_s = retry_after_s

    @property
    def code(self) -> str:
        """The stable code, such as ``unknown_tool``."""
        return str(self.problem.code)

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status

    @property
    def detail(self) -> str:
        """One sentence: what is wrong, and what to do."""
        return self.problem.detail

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.problem.retryable

    @property
    def request_id(self) -> str:
        """Names the request in the service's log."""
        return self.problem.request_id

    @property
    def errors(self) -> "list[FieldError]":
        """Every refused field."""
        return self.problem.errors or []

    @property
    def field(self) -> str | None:
        """The first refused field; None if the problem is not about one."""
        return self.errors[0].field if self.errors else None

    @property
    def limit(self) -> str | None:
        """The limit that was reached or exceeded, such as ``calls_per_minute``; None for other problems."""
        return (self.field or self.problem.where) if self.code in _LIMIT_CODES else None


class InvalidRequestError(ProblemError):
    """A field, path or size of the request is wrong."""


class AuthenticationError(ProblemError):
    """The API key is missing or invalid."""


class ForbiddenError(ProblemError):
    """The API key lacks a scope, belongs to another tenant, or its storage is full."""


class NotFoundError(ProblemError):
    """The tool, call, file or conversation does not exist."""


class CallLostError(NotFoundError):
    """The call had started, and the service does not know it any more; it may have run, and is not repeated.

    Attributes:
        call_id: its id.
        conversation: its conversation; None if the caller did not give it.
    """

    def __init__(
        self, problem: "Problem", retry_after_s: float | None, call_id: str, conversation: str | None
    ) -> None:
        super().__init__(problem, retry_after_s)
        of = f" of {conversation}" if conversation else ""
        advice = f"the call {call_id}{of} had started and may have run; see what it did before you call again"
        self.args = (f"{self.args[0]}: {advice}",)
        self.call_id = call_id
        self.conversation = conversation


class ConflictError(ProblemError):
    """The state of the call or conversation does not allow the request."""


class CallCancelledError(ConflictError):
    """The call was cancelled."""


class RateLimitedError(ProblemError):
    """A limit of the API key, or the queue, is full."""


class UnavailableError(ProblemError):
    """The service cannot do it now."""


class ServiceFailedError(ProblemError):
    """The service failed in a way that it did not foresee."""


class UnexpectedResponseError(ProofboxError):
    """The answer is not one of Proofbox, or one of a release that this client does not know.

    Attributes:
        url: the address of the service.
        status: the HTTP status.
    """

    def __init__(self, url: str, status: int, message: str) -> None:
        super().__init__(message)
        self.url = url
        self.status = status


class StillRunningError(ProofboxError):
    """The call has not ended in the given time; it continues.

    Attributes:
        handle: the call, a `CallHandle` or `AsyncCallHandle`: wait for it, or cancel it.
        call_id: its id.
        conversation: its conversation.
    """

    handle: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the handle, which has connections."""
        state = {name: value for name, value in self.__dict__.items() if name != "handle"}
        return _restored, (type(self), self.args, state)

    def __init__(self, call_id: str, conversation: str, wait_s: float) -> None:
        super().__init__(
            f"the call {call_id} of {conversation} still runs after {wait_s:g} s; wait for it or cancel it"
        )
        self.call_id = call_id
        self.conversation = conversation


class CallFailedError(ProofboxError):
    """A call ran and failed: its program, a promised file, or what the caller wrote.

    Attributes:
        code: the code of the error, such as ``nonzero_exit``.
        response: the answer.
    """

    def __init__(self, response: "ToolCallResponse") -> None:
        error = response.error
        first = f"{error.code}: {error.message}" if error is not None else "the call failed"
        super().__init__(f"{first}\n{response.text}")
        self.code = error.code if error is not None else "failed"
        self.response = response


class DamagedDownloadError(ProofboxError):
    """The bytes that arrived are not those of the file, or another version replaced it meanwhile."""


_LIMIT_CODES = {
    "rate_limited",
    "queue_full",
    "limit_not_allowed",
    "network_not_allowed",
    "packages_not_allowed",
    "storage_quota",
    "body_too_large",
}
_CLASSES: dict[int, type[ProblemError]] = {
    400: InvalidRequestError,
    401: AuthenticationError,
    403: ForbiddenError,
    404: NotFoundError,
    408: InvalidRequestError,
    409: ConflictError,
    413: InvalidRequestError,
    416: InvalidRequestError,
    422: InvalidRequestError,
    429: RateLimitedError,
    503: UnavailableError,
    507: UnavailableError,
}


def problem_error(problem: "Problem", retry_after_s: float | None = None) -> ProblemError:
    """Build the error of a problem document."""
    if str(problem.code) == "cancelled":
        return CallCancelledError(problem, retry_after_s)
    return _CLASSES.get(problem.status, ServiceFailedError)(problem, retry_after_s)


def _restored(kind: type[ProofboxError], args: tuple[Any, ...], state: dict[str, Any]) -> ProofboxError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _sentence(problem: "Problem") -> str:
    fields = "; ".join(f"{error.field}: {error.message}" for error in problem.errors or [])
    detail = problem.detail if not fields or fields in problem.detail else f"{problem.detail} ({fields})"
    return f"{problem.code}: {detail}"
