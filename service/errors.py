"""What can go wrong on our side or the caller's; the model's mistakes and the program's failures are results.

ServiceError
├── CallerError            the caller's program has to change something
│   ├── InvalidRequestError
│   ├── BodyTooLargeError
│   ├── RangeNotSatisfiableError
│   ├── NoProvenanceError
│   ├── NotRerunnableError
│   ├── NoPreviewError
│   ├── UnknownToolError
│   ├── UnknownCallError
│   ├── UnknownConversationError
│   ├── ConversationBusyError
│   ├── UnknownArtifactError
│   ├── AmbiguousCallError
│   ├── UnsafeNameError
│   ├── LimitNotAllowedError
│   ├── NetworkNotAllowedError
│   ├── PackagesNotAllowedError
│   ├── AssetRefusedError
│   ├── SidConflictError
│   ├── IdReusedError
│   ├── TimelineMovedError
│   ├── StorageQuotaError
│   ├── RequestTimeoutError
│   └── CallCancelledError
│       └── CallAbandonedError
└── OurError               the service could not do it; the same request may succeed later
    ├── RateLimitedError
    ├── QueueFullError
    ├── QueueTimeoutError
    ├── ShuttingDownError
    ├── CallSetAsideError
    ├── EngineUnavailableError
    ├── PackageIndexError
    ├── StoreFailedError
    │   └── StoreDefectError
    └── StoreFullError
        └── StoreNotReadyError

Each class carries the HTTP status, a stable ``code``, whether a retry makes sense, and which part (``where``)
speaks; the message is for the caller and names the field, the limit and the way out. `access_errors` and
`gateway_errors` have more of them.
"""

import errno
from typing import ClassVar

from proofbox.contracts.codes import ProblemCode
from proofbox.contracts.problems import FieldError


class ServiceError(Exception):
    """Any error that becomes a problem document."""

    code: ClassVar[ProblemCode] = ProblemCode.INTERNAL
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False
    where: ClassVar[str] = "service"

    def __init__(
        self, message: str, *, retry_after_s: float | None = None, errors: list[FieldError] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s
        self.errors = errors


class CallerError(ServiceError):
    """The caller's program has to change something."""

    status = 400


class InvalidRequestError(CallerError):
    """A field of the request is not what the schema asks for."""

    code = ProblemCode.INVALID_REQUEST
    status = 422
    where = "request"


class BodyTooLargeError(CallerError):
    """The body of a request is larger than the operator allows."""

    code = ProblemCode.BODY_TOO_LARGE
    status = 413
    where = "body"


class RangeNotSatisfiableError(CallerError):
    """The range request is beyond the artifact's bytes."""

    code = ProblemCode.RANGE_NOT_SATISFIABLE
    status = 416
    where = "range"


class NoProvenanceError(CallerError):
    """The call has no audit line: it has not ended, or an older release answered it."""

    code = ProblemCode.NO_PROVENANCE
    status = 409
    where = "call"


class NotRerunnableError(CallerError):
    """The call cannot be run again: it ran no program, or an input has changed."""

    code = ProblemCode.NOT_RERUNNABLE
    status = 409
    where = "call"


class NoPreviewError(CallerError):
    """The file has no preview or difference: its format has none, it is too large, or it cannot be opened."""

    code = ProblemCode.NO_PREVIEW
    status = 422
    where = "preview"


class UnknownToolError(CallerError):
    """No tool of that id is in the catalogue."""

    code = ProblemCode.UNKNOWN_TOOL
    status = 404
    where = "tool_id"


class UnknownCallError(CallerError):
    """No call of that id is known."""

    code = ProblemCode.UNKNOWN_CALL
    status = 404
    where = "tool_call_id"


class UnknownArtifactError(CallerError):
    """No artifact of that path is stored in the conversation."""

    code = ProblemCode.UNKNOWN_ARTIFACT
    status = 404
    where = "artifact"


class UnknownConversationError(CallerError):
    """The user has no conversation of that id."""

    code = ProblemCode.UNKNOWN_CONVERSATION
    status = 404
    where = "conversation_id"


class ConversationBusyError(CallerError):
    """Calls of the conversation are running or queued."""

    code = ProblemCode.CONVERSATION_BUSY
    status = 409
    retryable = True
    where = "conversation_id"


class AmbiguousCallError(CallerError):
    """Several conversations have a call of that id; give ``conversation_id``."""

    code = ProblemCode.AMBIGUOUS_CALL
    status = 409
    where = "conversation_id"


class UnsafeNameError(CallerError):
    """A path or name in the URL is unsafe."""

    code = ProblemCode.UNSAFE_PATH
    status = 400
    where = "path"


class LimitNotAllowedError(CallerError):
    """A limit of the request is above the operator's."""

    code = ProblemCode.LIMIT_NOT_ALLOWED
    status = 422
    where = "limits"


class NetworkNotAllowedError(CallerError):
    """The call asks for a network that the operator, its key or its tool does not allow."""

    code = ProblemCode.NETWORK_NOT_ALLOWED
    status = 422
    where = "network"


class PackagesNotAllowedError(CallerError):
    """The call asks for packages that the operator or its tool does not allow."""

    code = ProblemCode.PACKAGES_NOT_ALLOWED
    status = 422
    where = "packages"


class AssetRefusedError(CallerError):
    """An asset of the request is missing, or its store is not allowed."""

    code = ProblemCode.ASSET_REFUSED
    status = 422
    where = "assets"


class SidConflictError(CallerError):
    """A row of the request gives a known source id another meaning."""

    code = ProblemCode.SID_CONFLICT
    status = 409
    where = "sources_pool"


class IdReusedError(CallerError):
    """The same call id or idempotency key came with another payload."""

    code = ProblemCode.ID_REUSED
    status = 409
    where = "tool_call_id"


class TimelineMovedError(CallerError):
    """The timeline has other blocks at its end than the caller knows."""

    code = ProblemCode.TIMELINE_MOVED
    status = 409
    where = "timeline"


class CallCancelledError(CallerError):
    """The call was cancelled, or its grace time ended after a lost connection."""

    code = ProblemCode.CANCELLED
    status = 409
    where = "call"


class CallAbandonedError(CallCancelledError):
    """Nobody asked for the call in the grace time after its connection was lost."""


class StorageQuotaError(CallerError):
    """The tenant's project has reached its limit of stored bytes."""

    code = ProblemCode.STORAGE_QUOTA
    status = 403
    where = "stored_bytes"


class RequestTimeoutError(CallerError):
    """The request's body did not arrive in time."""

    code = ProblemCode.REQUEST_TIMEOUT
    status = 408
    retryable = True
    where = "body"


class OurError(ServiceError):
    """The service could not do it; the same request may succeed later."""

    status = 503
    retryable = True


class RateLimitedError(OurError):
    """A limit of the API key, or of the tenant, is reached; ``errors`` names it."""

    code = ProblemCode.RATE_LIMITED
    status = 429
    where = "limits"


class QueueFullError(OurError):
    """The queue is full."""

    code = ProblemCode.QUEUE_FULL
    status = 429
    where = "admission"


class QueueTimeoutError(OurError):
    """The call's deadline passed while it waited."""

    code = ProblemCode.QUEUE_TIMEOUT
    where = "admission"


class ShuttingDownError(OurError):
    """The service takes no new calls."""

    code = ProblemCode.SHUTTING_DOWN
    where = "admission"


class CallSetAsideError(OurError):
    """No worker could begin the call; an operator releases it."""

    code = ProblemCode.SET_ASIDE
    where = "dispatch"


class EngineUnavailableError(OurError):
    """The container engine does not answer, or cannot start a sandbox."""

    code = ProblemCode.ENGINE_UNAVAILABLE
    where = "engine"


class PackageIndexError(OurError):
    """The package index does not answer, or not in time."""

    code = ProblemCode.PACKAGE_INDEX_UNAVAILABLE
    where = "packages"


class StoreFailedError(OurError):
    """A store could not read or write."""

    path = ""  # the logical path of the file that it is about, where that is known; for the log
    code = ProblemCode.STORE_FAILED
    where = "store"


class StoreDefectError(StoreFailedError):
    """A store was asked for rows that it cannot have or take: a defect, which trying again does not mend."""


class StoreFullError(OurError):
    """The store has no space left."""

    code = ProblemCode.STORE_FULL
    status = 507
    where = "store"


DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""No space, or no quota, is left."""


def build_store_error(exc: OSError, *, full: str, failed: str) -> StoreFullError | StoreFailedError:
    """Return the error of a store for a file that could not be written.

    Args:
        exc: the error of the file system.
        full: the message where no space or quota is left.
        failed: the message of any other error.
    """
    return StoreFullError(full) if exc.errno in DISK_FULL else StoreFailedError(failed)


class StoreNotReadyError(StoreFullError):
    """The store has too little space left for another call."""

    status = 503
