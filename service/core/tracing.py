"""The port of the tracer: where the time of requests and calls goes, as a tree of spans.

The span that is open follows its task, so that a phase need not be told whose it is. Nothing that is put on a span
may be code, the content of a file, a secret or the name of a tenant, project or user.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

Attributes = Mapping[str, str | int | float | bool | None]
"""What is known of a span; None is left out."""


class Span(Protocol):
    """A stretch of time with a name. Quick, and never raises."""

    @property
    def traceparent(self) -> str:
        """Its name in the form of W3C Trace Context; empty if nobody traces."""

    def start(self, name: str, attributes: Attributes) -> "Span":
        """Begins a span inside of this one."""

    def rename(self, name: str) -> None:
        """Gives it a name that was not known when it began."""

    def set(self, attributes: Attributes) -> None:
        """Says more about it."""

    def link(self, traceparent: str) -> None:
        """Points to a span of another trace."""

    def fail(self, what: str) -> None:
        """Says in one word what went wrong."""

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
    """What there is when nobody traces."""

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


@contextmanager
def inside(span: Span) -> Iterator[Span]:
    """Makes a span the one that is open, and ends it with the block."""
    before = _open.get()
    _open.set(span)
    try:
        yield span
    except BaseException as exc:
        span.fail(type(exc).__name__)
        raise
    finally:
        _open.set(before)
        span.end()


@contextmanager
def span(name: str, attributes: Attributes | None = None) -> Iterator[Span]:
    """A span inside of the one that is open, for the time of the block."""
    with inside(_open.get().start(name, attributes or {})) as begun:
        yield begun


def trace_id_of(traceparent: str) -> str:
    """The trace that a span is part of; empty if there is none."""
    return traceparent[3:35]
