"""Server-sent events: lines of a stream, with heartbeats between them."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Protocol

from proofbox.service.api.responses import NO_STORE

EVENT_STREAM = "text/event-stream"
EVENT_ID_MAX = 2**63 - 1
HEARTBEAT = b": keep-alive\n\n"
# X-Accel-Buffering: nginx would otherwise hold small events back.
HEADERS = {**NO_STORE, "Content-Type": EVENT_STREAM, "X-Accel-Buffering": "no"}
LINE_END = re.compile(r"\r\n|\r|\n")


class NumberedEvent(Protocol):
    """An event with an id, from which a client goes on."""

    @property
    def id(self) -> int:
        """Its number in its stream."""

    @property
    def name(self) -> str:
        """Its kind."""

    @property
    def data(self) -> str:
        """Its data."""


async def event_lines(events: AsyncIterator[NumberedEvent], heartbeat_s: float) -> AsyncGenerator[bytes, None]:
    """Yield events as server-sent events, and heartbeats between them."""
    upcoming = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            # Waiting, not cancelling: an iterator that is cancelled in its wait is at its end.
            done, _ = await asyncio.wait({upcoming}, timeout=heartbeat_s)
            if not done:
                yield HEARTBEAT
                continue
            event = upcoming.result()
            if event is None:
                return
            yield _line(event)
            upcoming = asyncio.ensure_future(anext(events, None))
    finally:
        upcoming.cancel()
        await asyncio.gather(upcoming, return_exceptions=True)
        if isinstance(events, AsyncGenerator):
            await events.aclose()


def _line(event: NumberedEvent) -> bytes:
    data = "".join(f"data: {line}\n" for line in LINE_END.split(event.data))
    return f"id: {event.id}\nevent: {event.name}\n{data}\n".encode()
