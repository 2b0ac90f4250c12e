"""Why a request is not let in: its key, its origin or its link.

CallerError
├── NotAuthenticatedError
├── MissingPermissionError
├── WrongTenantError
├── OriginRefusedError
├── LinkRefusedError
└── IdReusedError
    └── LinkUsedError
"""

from proofbox.contracts.codes import ProblemCode
from proofbox.service.errors import CallerError, IdReusedError


class NotAuthenticatedError(CallerError):
    """The request has no API key, or one that does not work."""

    code = ProblemCode.UNAUTHORIZED
    status = 401
    where = "Authorization"

    def __init__(self, message: str, *, was_given: bool = False) -> None:
        super().__init__(message)
        self.was_given = was_given


class MissingPermissionError(CallerError):
    """The API key lacks the scope of the route."""

    code = ProblemCode.FORBIDDEN
    status = 403
    where = "Authorization"

    def __init__(self, message: str, permission: str = "") -> None:
        super().__init__(message)
        self.permission = permission


class WrongTenantError(CallerError):
    """The request names a tenant or project of another API key."""

    code = ProblemCode.WRONG_TENANT
    status = 403
    where = "tenant"


class OriginRefusedError(CallerError):
    """A web page of another origin sent the request, or its Host is not allowed."""

    code = ProblemCode.ORIGIN_REFUSED
    status = 403
    where = "Host"


class LinkRefusedError(CallerError):
    """The download link has expired, was changed, or is for another method or an old key."""

    code = ProblemCode.LINK_REFUSED
    status = 403
    where = "link"


class LinkUsedError(IdReusedError):
    """The upload link has stored its file, and the request has other bytes."""

    where = "link"
