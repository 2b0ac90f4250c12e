"""What the log lines of a task are about: which request, which call, which phase; follows tasks and threads."""

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class LogContext:
    """What a line of the log is about; empty where nothing is known.

    Attributes:
        request_id: the HTTP request.
        call_id: the loop's own id of the call.
        conversation_id: its conversation.
        phase: the phase of the call.
        trace_id: the trace, in hex.
    """

    request_id: str = ""
    call_id: str = ""
    conversation_id: str = ""
    phase: str = ""
    trace_id: str = ""


_context: ContextVar[LogContext] = ContextVar("log_context", default=LogContext())  # noqa: B039 - it is frozen


def log_context() -> LogContext:
    """What the running task is about."""
    return _context.get()


class About:
    """A context manager: what the lines inside its block are about. A class for the sake of memory, as `Inside`."""

    __slots__ = ("_before", "_fields")

    def __init__(self, fields: Mapping[str, str]) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        self._before = _context.get()
        _context.set(replace(self._before, **self._fields))

    def __exit__(self, *_exc: object) -> None:
        # Set, not reset by a token: a generator that is closed by another task than its own may end up here.
        _context.set(self._before)


def about(**fields: str) -> About:
    """Sets fields of the log lines inside a ``with`` block; other fields keep their values."""
    return About(fields)
