"""The events of one call: numbered from 1, kept while anybody may still ask, exactly one terminal one."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from contracts.events import TERMINAL_EVENTS, EventName


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
    """All events of one call so far, and those who follow them."""

    def __init__(self) -> None:
        self._events: list[CallEvent] = []
        self._grown = asyncio.Event()

    @property
    def is_ended(self) -> bool:
        """Whether the terminal event is there."""
        return bool(self._events) and self._events[-1].name in TERMINAL_EVENTS

    def append(self, name: EventName, data: str) -> None:
        """Adds an event; after the terminal one nothing is added any more."""
        if self.is_ended:
            return
        self._events.append(CallEvent(len(self._events) + 1, name, data))
        self._grown.set()
        self._grown = asyncio.Event()

    async def follow(self, after: int) -> AsyncIterator[CallEvent]:
        """The events with an id above ``after``, as they come; ends after the terminal one."""
        at = max(0, after)
        while True:
            grown = self._grown
            while at < len(self._events):
                yield self._events[at]
                at += 1
            if self.is_ended:
                return
            await grown.wait()
