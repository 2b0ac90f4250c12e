"""The events of one call: numbered from 1, kept while anybody may still ask, exactly one terminal one."""

import asyncio
import json
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from dataclasses import dataclass
from operator import attrgetter

from proofbox.contracts.events import TERMINAL_EVENTS, EventName
from proofbox.contracts.tool_call_response import ProgramOutput


@dataclass(frozen=True, slots=True)
class CallEvent:
    """One event as it goes over the wire.

    Attributes:
        id: 1, 2, 3 … within the call.
        name: its kind.
        data: JSON text of its model.
    """

    id: int
    name: EventName
    data: str


class EventLog:
    """All events of one call so far, and those who follow them.

    Args:
        events: those that are known.
        before: how many came before these, in another process.
    """

    def __init__(self, events: Iterable[CallEvent] = (), before: int = 0) -> None:
        self._events: list[CallEvent] = list(events)
        self._before = before
        self.on_event: Callable[[CallEvent], None] | None = None
        """Gets each new event."""
        # Of the next event; created for the first follower, for most calls have none.
        self._grown: asyncio.Event | None = None
        self._is_stopped = False

    def __len__(self) -> int:
        """How many events there are."""
        return len(self._events)

    @property
    def last_id(self) -> int:
        """The id of the last event."""
        return self._events[-1].id if self._events else self._before

    @property
    def is_ended(self) -> bool:
        """Whether the terminal event is there."""
        return bool(self._events) and self._events[-1].name in TERMINAL_EVENTS

    def append(self, name: EventName, data: str) -> None:
        """Adds an event; after the terminal one nothing is added any more."""
        self.put(CallEvent(self.last_id + 1, name, data))

    def put(self, event: CallEvent) -> None:
        """Adds an event of another process; one that is known already is not added."""
        if self.is_ended or event.id <= self.last_id:
            return
        self._events.append(event)
        if self.on_event is not None:
            self.on_event(event)
        if self._grown is not None:
            self._grown.set()
            self._grown = None

    def stop(self) -> None:
        """Ends for those who follow it without a terminal event: the service stops, and the call does not."""
        self._is_stopped = True
        if self._grown is not None:
            self._grown.set()

    def after(self, event_id: int) -> list[CallEvent]:
        """The events with a larger id."""
        return self._events[bisect_right(self._events, event_id, key=attrgetter("id")) :]

    def before_end(self) -> list[CallEvent]:
        """The events but the terminal one."""
        return [event for event in self._events if event.name not in TERMINAL_EVENTS]

    def printed(self) -> ProgramOutput:
        """What the program has printed so far, as the output events have it."""
        texts: dict[str, list[str]] = {"stdout": [], "stderr": [], "both": []}
        truncated = False
        for event in self._events:
            if event.name in {"stdout", "stderr"}:
                piece = json.loads(event.data)
                texts[event.name].append(piece["text"])
                texts["both"].append(piece["text"])
                truncated = truncated or piece["truncated"]
        stdout, stderr, combined = ("".join(pieces) for pieces in texts.values())
        return ProgramOutput(stdout=stdout, stderr=stderr, combined=combined, truncated=truncated)

    async def follow(self, after: int) -> AsyncIterator[CallEvent]:
        """The events with an id above ``after``, as they come, to the terminal one, or until it is stopped."""
        at = len(self._events) - len(self.after(after))
        while True:
            while at < len(self._events):
                event = self._events[at]
                at += 1
                if event.id > after:  # the first ones may still be on their way from another process
                    yield event
            if self.is_ended or self._is_stopped:
                return
            self._grown = self._grown or asyncio.Event()
            await self._grown.wait()


class EndedCalls:
    """The events of calls that have ended, the youngest of them, within a number of bytes.

    The terminal event is not among them: it is the call's answer, which the store has.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._events: OrderedDict[Hashable, list[CallEvent]] = OrderedDict()

    def add(self, key: Hashable, log: EventLog) -> None:
        """Remembers the events of a call; the oldest calls go when there are too many."""
        self._forget(key)
        self._events[key] = log.before_end()
        self._bytes += _size(self._events[key])
        while self._bytes > self._bytes_max:
            self._forget(next(iter(self._events)))

    def events_of(self, key: Hashable) -> list[CallEvent]:
        """What is remembered of a call; nothing of one that ended long ago."""
        return self._events.get(key, [])

    def forget_those(self, is_meant: Callable[[Hashable], bool]) -> None:
        """Forgets the events of some calls."""
        for key in [key for key in self._events if is_meant(key)]:
            self._forget(key)

    def _forget(self, key: Hashable) -> None:
        self._bytes -= _size(self._events.pop(key, []))


def _size(events: list[CallEvent]) -> int:
    return sum(len(event.data) for event in events)
