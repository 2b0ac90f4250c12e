"""Pages of the events of spaces; followers that want the same one at the same time share its read."""

import asyncio
from collections.abc import Sequence
from functools import partial

from proofbox.service.concurrency import Changes
from proofbox.service.gateway.spaces.port import SpaceEventStore, StoredSpaceEvent
from proofbox.service.gateway.spaces.tool_inputs import space_topic

PAGE = 50
"""Events of a page: an event of a call may have half a megabyte."""

_Page = Sequence[StoredSpaceEvent]
_Key = tuple[int, int, int]


class SharedPages:
    """Reads pages. All followers of a space wake at once, so an event costs one read, not one for each of them.

    Args:
        events: the stored events.
        changes: reports when a space has changed.
    """

    def __init__(self, events: SpaceEventStore, changes: Changes) -> None:
        self._events = events
        self._changes = changes
        self._running: dict[_Key, asyncio.Future[_Page]] = {}

    async def after(self, row: int, position: int) -> _Page:
        """Return the next `PAGE` events of a space after a position, in order.

        Args:
            row: the space; the caller listens to its topic.
            position: the id of the last event that the caller has.

        Raises:
            StoreFailedError: the store failed.
        """
        # A read that began before the newest change is not joined: it may lack an event.
        key = (row, position, self._changes.stamp(space_topic(row)))
        read = self._running.get(key)
        if read is None:
            read = self._running[key] = asyncio.ensure_future(self._events.after(row, position, PAGE))
            read.add_done_callback(partial(self._end, key))
        return await asyncio.shield(read)  # a follower that leaves does not end it for the others

    def _end(self, key: _Key, read: "asyncio.Future[_Page]") -> None:
        del self._running[key]
        if not read.cancelled():
            read.exception()  # seen, if all its followers have left
