"""What the log lines of a task are about: which request, which call, which phase; follows tasks and threads."""

from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def about(**fields: str) -> Iterator[None]:
    """Says what the lines inside the block are about; what is not said stays as it is around the block."""
    before = _context.get()
    _context.set(replace(before, **fields))
    try:
        yield
    finally:
        # Set, not reset by a token: a generator that is closed by another task than its own may end up here.
        _context.set(before)
