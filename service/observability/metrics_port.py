"""The port of the metrics: it counts calls, requests and uses of the stores."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from proofbox.contracts.tool_call_response import ToolCallResponse


@dataclass(frozen=True, slots=True)
class EndedCall:
    """A call that has its answer.

    Attributes:
        tool_id: the tool.
        code: ``ok``, or the code of its error or problem.
        seconds: from its claim to its stored answer.
        response: the answer; None for a problem.
    """

    tool_id: str
    code: str
    seconds: float
    response: ToolCallResponse | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServedRequest:
    """An HTTP request that was answered.

    Attributes:
        method: its method, ``_OTHER`` for one that HTTP does not know.
        route: the template of its route; ``-`` if no route has its path.
        status: the status of the answer; 499 if the client went away first.
        seconds: from its head to the end of its answer.
    """

    method: str
    route: str
    status: int
    seconds: float

    @property
    def ms(self) -> float:
        """The same in milliseconds."""
        return round(self.seconds * 1_000, 3)


@dataclass(frozen=True, slots=True)
class DeletedData:
    """Data that was deleted.

    Attributes:
        kind: ``conversation`` or ``file``.
        reason: ``request`` or ``retention``.
        files: how many files and attachments.
        size_bytes: the bytes of all their versions.
    """

    kind: str
    reason: str
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric that is read on each scrape.

    Attributes:
        name: without ``proofbox_``.
        what: what it is, in a sentence.
        labels: the names of its labels.
        values: a number for each combination of labels.
        only_grows: it is a counter, else a gauge.
    """

    name: str
    what: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]
    only_grows: bool = False


class Meter(Protocol):
    """Counts; quick, and never raises."""

    def request_ended(self, request: ServedRequest) -> None:
        """A request has its answer."""

    def call_ended(self, call: EndedCall) -> None:
        """A call has its one answer."""

    def data_deleted(self, deleted: DeletedData) -> None:
        """A conversation or a file was deleted."""

    def retention_passed(self, *, is_complete: bool) -> None:
        """A pass of the retention sweeper has ended; incomplete: it failed."""

    def add_readings(self, read: Callable[[], Iterable[Reading]]) -> None:
        """Have more values read on each scrape; ``read`` asks no server."""


class NoMeter:
    """Counts nothing."""

    def request_ended(self, request: ServedRequest) -> None:
        """See `Meter.request_ended`."""

    def call_ended(self, call: EndedCall) -> None:
        """See `Meter.call_ended`."""

    def data_deleted(self, deleted: DeletedData) -> None:
        """See `Meter.data_deleted`."""

    def retention_passed(self, *, is_complete: bool) -> None:
        """See `Meter.retention_passed`."""

    def add_readings(self, read: Callable[[], Iterable[Reading]]) -> None:
        """See `Meter.add_readings`."""
