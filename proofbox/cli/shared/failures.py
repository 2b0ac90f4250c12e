"""Errors of the client, the service and the system as errors of the command line."""

import os
import sys
import traceback
from typing import TYPE_CHECKING

from proofbox.cli.shared.exit_codes import CommandError, ExitCode
from proofbox.cli.shared.inputs import file_error

if TYPE_CHECKING:
    from proofbox.client import ProblemError

_HINTS_BY_CODE: dict[str, str] = {"engine_unavailable": "'proofbox doctor' checks this machine"}
_HINTS_BY_TYPE = {
    "InUseError": "end it, such as 'proofbox mcp' or 'proofbox serve', or name that service with --url"
}
_CODES_BY_TYPE = dict.fromkeys(("ConfigurationError", "AuditFileError"), "invalid_setting")
_HINTS_BY_STATUS = {
    401: "check PROOFBOX_API_KEY, or save a key with 'proofbox login'",
    403: "use a key with that permission",
}


def describe_error(exc: Exception) -> CommandError:
    """The error of a command for any exception."""
    if isinstance(exc, CommandError):
        return exc
    for loaded, describe in (
        ("proofbox.client", _from_client),
        ("proofbox.service.errors", _from_service),
        ("pydantic_settings", _from_settings),
    ):
        if loaded in sys.modules and (error := describe(exc)) is not None:
            return error
    if isinstance(exc, OSError):
        if exc.filename is not None:
            return file_error(os.fsdecode(exc.filename), exc)
        return CommandError(exc.strerror or str(exc), code="system_error")
    if sys.flags.dev_mode:
        traceback.print_exception(exc)
    return CommandError(
        f"unexpected {type(exc).__name__}: {exc}",
        code="internal",
        hint="'python -X dev -m proofbox.cli' shows where; please report it",
    )


def _from_client(exc: Exception) -> CommandError | None:
    from proofbox import client  # noqa: PLC0415 - loaded

    if isinstance(exc, client.ArgumentError):
        return CommandError(str(exc), code="usage", exit_code=ExitCode.USAGE, field=exc.field)
    if isinstance(exc, client.UnreachableError):
        return CommandError(str(exc), code="unreachable", exit_code=ExitCode.UNREACHABLE, retryable=True)
    if isinstance(exc, client.CallCancelledError):
        return CommandError(exc.detail, code=exc.code, exit_code=ExitCode.INTERRUPTED)
    if isinstance(exc, client.ProblemError):
        return _from_problem(exc)
    if isinstance(exc, client.ProofboxError):
        return CommandError(str(exc), code="service_answer")
    return None


def _from_problem(exc: "ProblemError") -> CommandError:
    is_refusal = 400 <= exc.status < 500  # noqa: PLR2004 - the statuses of a client's mistakes
    return CommandError(
        exc.detail,
        code=exc.code,
        exit_code=ExitCode.REFUSED if is_refusal else ExitCode.ERROR,
        hint=_HINTS_BY_STATUS.get(exc.status, ""),
        field=exc.field,
        retryable=exc.retryable,
    )


def _from_service(exc: Exception) -> CommandError | None:
    from proofbox.service.errors import ServiceError  # noqa: PLC0415 - loaded

    if not isinstance(exc, ServiceError):
        return None
    hint = _HINTS_BY_TYPE.get(type(exc).__name__) or _HINTS_BY_CODE.get(exc.code, "")
    return CommandError(
        exc.message,
        code=_CODES_BY_TYPE.get(type(exc).__name__, str(exc.code)),
        exit_code=ExitCode.USAGE,
        hint=hint,
        retryable=exc.retryable,
    )


def _from_settings(exc: Exception) -> CommandError | None:
    from proofbox.service.app.config.mistakes import ConfigurationError, list_mistakes  # noqa: PLC0415 - loaded

    mistakes = list_mistakes(exc)
    return _from_service(ConfigurationError(mistakes)) if mistakes else None
