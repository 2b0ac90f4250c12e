"""The port of the tracer: where the time of requests and calls goes, as a tree of spans.

The open span follows its task, so that a phase does not need it as an argument. No attribute of a span may be code,
the content of a file, a secret or the name of a tenant, project or user.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Protocol

Attributes = Mapping[str, str | int | float | bool | None]
"""What is known of a span; None is left out."""


class Span(Protocol):
    """A stretch of time with a name. Quick, and never raises."""

    @property
    def traceparent(self) -> str:
        """Its name in the form of W3C Trace Context; empty without tracing."""

    def start(self, name: str, attributes: Attributes) -> "Span":
        """Begins a span inside of this one."""

    def rename(self, name: str) -> None:
        """Gives it a name that was not known when it began."""

    def set(self, attributes: Attributes) -> None:
        """Sets attributes."""

    def link(self, traceparent: str) -> None:
        """Points to a span of another trace."""

    def fail(self, what: str) -> None:
        """Sets its error, in one word."""

    def end(self) -> None:
        """Ends it."""


class Tracer(Protocol):
    """Begins traces. Quick, and never raises."""

    def trace(self, name: str, attributes: Attributes, headers: Mapping[str, str] | None = None) -> Span:
        """Begins a span of its own, or one inside of the caller's that ``headers`` (lower case) name.

        With headers it is the span of a request that was received.
        """

    def close(self) -> None:
        """Sends what has not been sent. Blocks, but for a moment only."""


class _NoSpan:
    """The span of a service without tracing."""

    traceparent = ""

    def start(self, name: str, attributes: Attributes) -> "Span":  # noqa: ARG002 - the port's
        """See `Span.start`."""
        return self

    def rename(self, name: str) -> None:
        """See `Span.rename`."""

    def set(self, attributes: Attributes) -> None:
        """See `Span.set`."""

    def link(self, traceparent: str) -> None:
        """See `Span.link`."""

    def fail(self, what: str) -> None:
        """See `Span.fail`."""

    def end(self) -> None:
        """See `Span.end`."""


class NoTracer:
    """Traces nothing."""

    def trace(self, name: str, attributes: Attributes, headers: Mapping[str, str] | None = None) -> Span:  # noqa: ARG002
        """See `Tracer.trace`."""
        return NO_SPAN

    def close(self) -> None:
        """See `Tracer.close`."""


NO_SPAN: Span = _NoSpan()
_open: ContextVar[Span] = ContextVar("open_span", default=NO_SPAN)


def open_span() -> Span:
    """The span that the running task is in."""
    return _open.get()


class Inside:
    """A context manager that makes a span the one that is open, and ends it with the block.

    A class, as a generator would take three times the memory, and calls that wait hold several.
    """

    __slots__ = ("_before", "_span")

    def __init__(self, span: Span) -> None:
        self._span = span

    def __enter__(self) -> Span:
        self._before = _open.get()
        if self._span is not self._before:  # they are the same without tracing
            _open.set(self._span)
        return self._span

    def __exit__(self, kind: type[BaseException] | None, _exc: object, _traceback: object) -> None:
        if kind is not None:
            self._span.fail(kind.__name__)
        if self._span is not self._before:
            _open.set(self._before)
        self._span.end()


def inside(span: Span) -> Inside:
    """Makes a span the one that is open for the time of a ``with`` block, and ends it with the block."""
    return Inside(span)


def span(name: str, attributes: Attributes | None = None) -> Inside:
    """A span inside of the one that is open, which begins now and ends with a ``with`` block."""
    return Inside(_open.get().start(name, attributes or {}))


def trace_id_of(traceparent: str) -> str:
    """The trace that a span is part of; empty if there is none."""
    return traceparent[3:35]
