"""The exit codes of the command line, and the one error that its commands raise."""

from enum import IntEnum
from typing import Any


class ExitCode(IntEnum):
    """How a command ended; each case has a code of its own."""

    OK = 0
    ERROR = 1
    USAGE = 2
    CONTRACT_UNMET = 3
    PROGRAM_FAILED = 4
    REFUSED = 5
    UNREACHABLE = 6
    TIMEOUT = 124
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "success",
    ExitCode.ERROR: "an error of the service, the sandbox or this machine",
    ExitCode.USAGE: "wrong options, inputs or configuration; nothing ran",
    ExitCode.CONTRACT_UNMET: "the program ended, but a promised file is missing or invalid",
    ExitCode.PROGRAM_FAILED: "the program failed, or exceeded a limit",
    ExitCode.REFUSED: "the service refused the request: key, permission, quota, unknown name or invalid field",
    ExitCode.UNREACHABLE: "the service cannot be reached",
    ExitCode.TIMEOUT: "the time limit ended the program",
    ExitCode.INTERRUPTED: "interrupted with Ctrl-C; the call was cancelled",
}
"""The sentence of each exit code, for help and documentation."""


class CommandError(Exception):
    """A command cannot do its work.

    Attributes:
        message: one sentence: what is wrong.
        code: a stable name of the case.
        exit_code: the exit code of the process.
        hint: what to do about it; empty if there is nothing to add.
        field: the option or field that is wrong.
        retryable: whether the same command may succeed later.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        exit_code: ExitCode = ExitCode.ERROR,
        hint: str = "",
        **details: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.exit_code = exit_code
        self.hint = hint
        self.field: str | None = details.get("field")
        self.retryable: bool = details.get("retryable", False)

    def as_json(self) -> dict[str, Any]:
        """The error as all commands print it with ``--json``."""
        error = {
            "code": self.code,
            "message": self.message,
            "field": self.field,
            "retryable": self.retryable,
            "hint": self.hint,
        }
        return {"error": {name: value for name, value in error.items() if value is not None}}

    def as_text(self) -> str:
        """The error in one sentence, with the way out."""
        where = f"{self.field}: " if self.field and not self.message.startswith(self.field) else ""
        return f"{where}{self.message}" + (f"; {self.hint}" if self.hint else "")


def usage_error(message: str, *, field: str | None = None, hint: str = "") -> CommandError:
    """The error of wrong options or inputs."""
    return CommandError(message, code="usage", exit_code=ExitCode.USAGE, field=field, hint=hint)
