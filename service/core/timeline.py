"""A conversation's timeline: what its loop adds, and the two ways to read it."""

from dataclasses import dataclass

from contracts.timeline import TimelineAppend, TimelineAppended, TimelinePage
from service.core.rendered import RenderedView
from service.core.scopes import Scope
from service.core.store_ports import TimelineStore

_READ_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class RenderedTimeline:
    """The text that a model reads.

    Attributes:
        text: the text of all blocks after the position that was asked for.
        last: the position of the last of them.
    """

    text: str
    last: int


class Timeline:
    """Reads and extends timelines; the service's own calls and attachments add their blocks by themselves."""

    def __init__(self, store: TimelineStore) -> None:
        self._store = store

    async def append(self, scope: Scope, addition: TimelineAppend) -> TimelineAppended:
        """Adds the blocks of a loop.

        Raises:
            TimelineMovedError: the timeline does not end where the loop thinks.
            StoreFailedError, StoreFullError: nothing was added.
        """
        last = await self._store.append(scope, addition.blocks, if_last=addition.if_last)
        return TimelineAppended(last=last)

    async def page(self, scope: Scope, after: int, limit: int) -> TimelinePage:
        """At most ``limit`` blocks after a position, with their base64.

        Raises:
            StoreFailedError: the store failed.
        """
        found = await self._store.after(scope, after, limit + 1, binaries=True)
        kept = found[:limit]
        last = kept[-1].position if kept else after
        return TimelinePage(blocks=[placed.block for placed in kept], last=last, more=len(found) > limit)

    async def rendered(self, scope: Scope, after: int) -> RenderedTimeline:
        """The text of all blocks after a position.

        The text after 0 is the text after 0 of any earlier time with more behind it, and ``after`` cuts it between
        two blocks: what a prompt cache holds stays right.

        Raises:
            StoreFailedError: the store failed.
        """
        before = await self._store.group_before(scope, after) if after else []
        view = RenderedView(turns=True, before=before)
        parts: list[str] = []
        last = after
        while found := await self._store.after(scope, last, _READ_AT_ONCE, binaries=False):
            parts += [view.part(placed) for placed in found]
            last = found[-1].position
        return RenderedTimeline("".join(parts), last)
