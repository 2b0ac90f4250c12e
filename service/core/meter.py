"""The port of the counters: who is told what became of calls."""

from dataclasses import dataclass, field
from typing import Protocol

from contracts.tool_calls import ToolCallResponse


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


class Meter(Protocol):
    """Counts; quick, and never raises."""

    def call_ended(self, call: EndedCall) -> None:
        """A call has its one answer."""


class NoMeter:
    """Counts nothing: for calls that nobody watches."""

    def call_ended(self, call: EndedCall) -> None:
        """See `Meter.call_ended`."""
