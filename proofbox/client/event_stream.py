"""Server-sent events of calls: bytes in, typed events out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, get_args

from pydantic import BaseModel

from proofbox.contracts.events import (
    TERMINAL_EVENTS,
    EventName,
    OutputEvent,
    QueuedEvent,
    StartedEvent,
)
from proofbox.contracts.gateway.waits import Wait
from proofbox.contracts.network import NetworkConnection
from proofbox.contracts.problems import Problem
from proofbox.contracts.tool_call_response import ToolCallResponse

E = TypeVar("E")
EVENT_BYTES_MAX = 512 * 1024 * 1024
EventData: TypeAlias = (
    QueuedEvent | StartedEvent | OutputEvent | NetworkConnection | Wait | ToolCallResponse | Problem
)
_MODELS: dict[str, type[BaseModel]] = {
    "queued": QueuedEvent,
    "started": StartedEvent,
    "stdout": OutputEvent,
    "stderr": OutputEvent,
    "connection": NetworkConnection,
    "waiting": Wait,
    "result": ToolCallResponse,
    "error": Problem,
}
assert set(_MODELS) == set(get_args(EventName))


@dataclass(frozen=True, slots=True)
class CallEvent:
    """An event of a call.

    Attributes:
        id: its number; the first has 1.
        name: ``queued``, ``started``, ``stdout``, ``stderr``, ``connection``, ``waiting``, ``result`` or
            ``error``.
        data: what it carries.
    """

    id: int
    name: EventName
    data: EventData

    @property
    def text(self) -> str:
        """What the program printed; empty for events that are not output."""
        return self.data.text if isinstance(self.data, OutputEvent) else ""

    @property
    def is_last(self) -> bool:
        """Whether the call has ended with it."""
        return self.name in TERMINAL_EVENTS


class EventStreamError(ValueError):
    """The bytes are not a stream of events of this service."""


class EventParser(Generic[E]):
    """Parses a stream of server-sent events, which may be cut anywhere; comments and unknown events are skipped.

    Args:
        build: makes an event of the values of its fields; None for one that is unknown.
    """

    def __init__(self, build: Callable[[dict[str, list[str]]], E | None]) -> None:
        self._build = build
        self._rest = bytearray()
        self._searched = 0
        self._fields: dict[str, list[str]] = {}

    def feed(self, piece: bytes) -> Iterator[E]:
        """Return the events that a piece completes.

        Raises:
            EventStreamError: an event is too large, or is not what its name promises.
        """
        self._rest += piece
        if len(self._rest) > EVENT_BYTES_MAX:
            raise EventStreamError(f"an event has more than {EVENT_BYTES_MAX:,} bytes")
        for line in self._lines():
            if line:
                self._take(line.decode(errors="replace"))
            elif self._fields:
                fields, self._fields = self._fields, {}
                event = self._build(fields)
                if event is not None:
                    yield event

    def _lines(self) -> Iterator[bytes]:
        """The complete lines: the service ends them with a line feed; a carriage return before it is dropped."""
        while (end := self._rest.find(b"\n", self._searched)) >= 0:
            line = bytes(self._rest[:end])
            del self._rest[: end + 1]
            self._searched = 0
            yield line.removesuffix(b"\r")
        self._searched = len(self._rest)

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        if name:  # a line that begins with a colon is a comment
            self._fields.setdefault(name, []).append(value.removeprefix(" "))


def build_event(
    fields: Mapping[str, list[str]],
    models: Mapping[str, type[BaseModel]],
    make: Callable[[str, str, Any], E],
) -> E | None:
    """Build an event of its fields; None if this client does not know it.

    Args:
        fields: the values of each field.
        models: the model of the data by the name of the event.
        make: makes the event of its id, name and data; a ValueError shows that the id is none.

    Raises:
        EventStreamError: it is not what its name promises.
    """
    name, number = (fields.get(key, [""])[-1] for key in ("event", "id"))
    model = models.get(name)
    if model is None:
        return None
    try:
        return make(number, name, model.model_validate_json("\n".join(fields.get("data", [])), extra="ignore"))
    except ValueError as exc:  # also of pydantic
        raise EventStreamError(f"an event '{name}' is not what this client knows: {exc}") from exc


def build_call_event(fields: Mapping[str, list[str]]) -> CallEvent | None:
    """Build an event of a call of its fields; None if this client does not know it.

    Raises:
        EventStreamError: it is not what its name promises.
    """
    return build_event(fields, _MODELS, _make_call_event)


def _make_call_event(number: str, name: str, data: Any) -> CallEvent:
    return CallEvent(int(number), name, data)  # type: ignore[arg-type]  # name is a key of _MODELS
