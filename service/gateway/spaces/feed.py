"""The events of a space as one client follows them: stored ones in order, and arguments that are being written."""

import json
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field

from proofbox.service.concurrency import Changes, Listener
from proofbox.service.gateway.compact_json import compact_json
from proofbox.service.gateway.spaces.input_stream import PARTIAL_BYTES_MAX, InputStream
from proofbox.service.gateway.spaces.port import Actor, SpaceCursor, SpaceEventStore, StoredSpaceEvent
from proofbox.service.gateway.spaces.records import Json
from proofbox.service.gateway.spaces.shared_pages import PAGE, SharedPages
from proofbox.service.gateway.spaces.tool_inputs import ToolInputs, space_topic

WAITING_MAX = 1_000
"""Events that may wait for a client that reads slowly; with more it gets ``reset``."""
INPUT_EVERY_S = 0.25
"""How often the readable part of arguments is sent with their text."""
_ENDS_OF_STREAM = frozenset({"tool-call.waiting", "tool-call.complete", "tool-call.error"})


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """An event as it is sent.

    Attributes:
        id: its number in the space; None for one that is not stored.
        name: its kind.
        data: JSON text.
    """

    id: int | None
    name: str
    data: str


@dataclass(slots=True)
class _Shown:
    """What a client has of the arguments of one call."""

    run_id: str
    message_id: str
    length: int = 0
    input_s: float = float("-inf")


@dataclass(slots=True)
class _Client:
    """What a client has of a space."""

    cursor: SpaceCursor
    position: int
    shown: dict[tuple[str, str], _Shown] = field(default_factory=dict)
    """By run and tool call: two runs may use the same id of a call."""
    texts: list[tuple[InputStream, int]] = field(default_factory=list)
    """The texts of messages that are being written, and how many characters the client has of each."""


class SpaceFeed:
    """The events of spaces, for those who follow them.

    Args:
        events: the stored events.
        inputs: the arguments that are being written.
        changes: wakes followers.
        now: the monotonic clock.
    """

    def __init__(
        self,
        events: SpaceEventStore,
        inputs: ToolInputs,
        changes: Changes,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events = events
        self._pages = SharedPages(events, changes)
        self._inputs = inputs
        self._changes = changes
        self._now = now
        self._listeners: set[Listener] = set()
        self._is_closed = False

    def close(self) -> None:
        """End all streams: the service stops."""
        self._is_closed = True
        for listener in self._listeners:
            listener.wake()

    async def follow(
        self, actor: Actor, space_id: str, after: int, idle_s: float
    ) -> AsyncGenerator[FeedEvent | None, None]:
        """Return the events of a space after a position, without an end.

        The first events are those that the client missed, or ``reset`` if they are gone. The generator ends
        when the actor is no longer a member, and when the service stops.

        Args:
            actor: who follows.
            space_id: the space.
            after: the id of the last event that the client has; 0: none.
            idle_s: after how many seconds without an event None is yielded, for a heartbeat.

        Raises:
            UnknownSpaceError: the space does not exist, or is not open to the actor. Raised before the first event.
        """
        cursor = await self._events.open(actor, space_id)
        return self._follow(_Client(cursor, after), idle_s)

    async def _follow(self, client: _Client, idle_s: float) -> AsyncGenerator[FeedEvent | None, None]:
        row = client.cursor.row
        with self._changes.listen(space_topic(row)) as listener:
            self._listeners.add(listener)
            try:
                if not client.cursor.first - 1 <= client.position <= client.cursor.last:
                    yield self._reset(client, client.cursor.last)
                for event in await self._resume(client):
                    yield event
                while not self._is_closed:
                    found = await self._pages.after(row, client.position)
                    for event in await self._events_of(client, found):
                        yield event
                    if any(_is_left(client.cursor, stored) for stored in found):
                        return
                    # Changes since the page was read have woken the listener.
                    while len(found) < PAGE and not await listener.wait(idle_s):
                        yield None
            finally:
                self._listeners.discard(listener)

    async def _events_of(self, client: _Client, found: Sequence[StoredSpaceEvent]) -> list[FeedEvent]:
        """The events of a page and the new arguments; or ``reset`` for a client that reads too slowly."""
        if len(found) == PAGE and client.position >= client.cursor.last:
            newest = await self._events.newest(client.cursor.row)
            if newest - client.position > WAITING_MAX:
                return [self._reset(client, newest), *await self._resume(client)]
        events = [event for stored in found for event in self._pass_on(client, stored)]
        return [*events, *self._deltas(client), *self._text_deltas(client)]

    def _reset(self, client: _Client, last: int) -> FeedEvent:
        client.position = last
        client.shown.clear()
        client.texts.clear()
        return FeedEvent(last, "reset", json.dumps({"last": last}))

    async def _resume(self, client: _Client) -> list[FeedEvent]:
        """The calls whose arguments are being written and whose start the client has: with the text so far."""
        await self._end_sent(client.cursor.row)
        written = list(self._inputs.of_space(client.cursor.row))
        open_ids = await self._events.streaming(client.cursor.row) if written else set()
        events = []
        for stream in written:
            started = stream.started
            if started is None or started.message_id not in open_ids or started.event > client.position:
                continue
            shown = _Shown(stream.run_id, started.message_id, len(stream.text))
            client.shown[stream.run_id, stream.tool_call_id] = shown
            data = {
                "stream_id": stream.tool_call_id,
                "message": started.message,
                "resumed": True,
                "text": stream.text,
            }
            events.append(FeedEvent(None, "tool-call.start", compact_json(data)))
        return events

    async def _end_sent(self, row: int) -> None:
        """Show no text any more that another process has sent."""
        ids = [stream.text_id for stream in self._inputs.texts_of_space(row) if stream.text_id is not None]
        if ids:
            self._inputs.end_texts(row, await self._events.sent(row, ids))

    def _pass_on(self, client: _Client, stored: StoredSpaceEvent) -> list[FeedEvent]:
        """A stored event, after the last arguments of a call that it ends; before those of one that it starts."""
        events = []
        client.position = stored.id
        if stored.name == "message.created" and self._inputs.texts_of_space(client.cursor.row):
            message = json.loads(stored.data)["message"]
            self._inputs.end_texts(client.cursor.row, (message["message_id"],))
        if not stored.name.startswith("tool-call."):
            return [FeedEvent(stored.id, stored.name, stored.data)]
        data = json.loads(stored.data)
        call, message = data["stream_id"], data["message"]
        if (
            stored.name in _ENDS_OF_STREAM
            and (shown := client.shown.pop((message["run_id"], call), None)) is not None
        ):
            events += self._delta(call, shown)
        events.append(FeedEvent(stored.id, stored.name, stored.data))
        if stored.name == "tool-call.start":
            shown = _Shown(message["run_id"], message["message_id"])
            if message["tool"]["state"] == "streaming":
                client.shown[shown.run_id, call] = shown
            elif message["tool"]["input"] is not None:
                events.append(_whole_input(call, message))
        return events

    def _deltas(self, client: _Client) -> list[FeedEvent]:
        """The arguments that were written since the client got the last part."""
        events = []
        for (run_id, call), shown in list(client.shown.items()):
            events += self._delta(call, shown)
            stream = self._inputs.find(run_id, call)
            if stream is None or stream.final is not None:
                del client.shown[run_id, call]
        return events

    def _text_deltas(self, client: _Client) -> list[FeedEvent]:
        """What was written of texts since the client got the last part; a client that comes back gets all of it."""
        events, texts = [], []
        lengths = {id(stream): length for stream, length in client.texts}
        for stream in self._inputs.texts_of_space(client.cursor.row):
            length, text = lengths.get(id(stream), 0), stream.message_text
            if len(text) > length:
                data = {
                    "stream_id": stream.tool_call_id,
                    "run_id": stream.run_id,
                    "message_id": stream.text_id,
                    "offset": length,
                    "delta": text[length:],
                }
                events.append(FeedEvent(None, "message.delta", compact_json(data)))
            texts.append((stream, len(text)))
        client.texts = texts
        return events

    def _delta(self, call: str, shown: _Shown) -> list[FeedEvent]:
        stream = self._inputs.find(shown.run_id, call)
        if stream is None or not stream.shows_input:
            return []
        if len(stream.text) <= shown.length and stream.final is None:
            return []
        data: Json = {
            "stream_id": call,
            "message_id": shown.message_id,
            "offset": shown.length,
            "delta": stream.text[shown.length :],
        }
        if stream.final is not None:
            data["input"] = stream.final
        elif self._now() - shown.input_s >= INPUT_EVERY_S and stream.size_bytes <= PARTIAL_BYTES_MAX:
            data["input"], shown.input_s = stream.partial, self._now()
        shown.length = len(stream.text)
        return [FeedEvent(None, "tool-input-delta", compact_json(data))]


def _whole_input(call: str, message: Json) -> FeedEvent:
    """The arguments of a call that was not streamed, as one part."""
    value = message["tool"]["input"]
    data = {
        "stream_id": call,
        "message_id": message["message_id"],
        "offset": 0,
        "delta": compact_json(value),
        "input": value,
    }
    return FeedEvent(None, "tool-input-delta", compact_json(data))


def _is_left(cursor: SpaceCursor, stored: StoredSpaceEvent) -> bool:
    """Whether an event is that the follower left the space."""
    if stored.name != "member.left" or cursor.entity_id is None:
        return False
    return bool(json.loads(stored.data)["entity"]["entity_id"] == cursor.entity_id)
