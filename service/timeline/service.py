"""A conversation's timeline: what its loop adds, and the two ways to read it."""

import asyncio
from dataclasses import dataclass

from proofbox.contracts.timeline import (
    AlignedTimeline,
    TimelineAppend,
    TimelineAppended,
    TimelineEntry,
    TimelinePage,
)
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.block_writer import now_text
from proofbox.service.timeline.cache_points import CachePoints, CachePolicy, cache_points
from proofbox.service.timeline.model_text import read_parts, read_text, with_visibility
from proofbox.service.timeline.port import TimelineStore
from proofbox.service.timeline.token_counter import TokenCounter, count_tokens
from proofbox.service.timeline.view import StoredTimelineView
from proofbox.service.timeline.visibility import compute_visibility


@dataclass(frozen=True, slots=True)
class RenderedTimeline:
    """The text that a model reads.

    Attributes:
        text: the text of all blocks after the position that was asked for.
        last: where the timeline ends.
        revision: the position of the block that last changed earlier text; 0 if none ever did.
        tokens: how long the text is.
        cache_points: up to where a prompt cache may hold the text.
    """

    text: str
    last: int
    revision: int
    tokens: int
    cache_points: CachePoints


class Timeline:
    """Reads and extends timelines; the service's own calls and attachments add their blocks by themselves."""

    def __init__(self, store: TimelineStore, tokens: TokenCounter, cache_policy: CachePolicy) -> None:
        self._store = store
        self._tokens = tokens
        self._cache_policy = cache_policy

    async def append(self, scope: ConversationKey, addition: TimelineAppend) -> TimelineAppended:
        """Adds the blocks of a loop.

        Raises:
            TimelineMovedError: the timeline does not end where the loop thinks.
            StoreFailedError, StoreFullError: nothing was added.
        """
        now = now_text()
        blocks = [block if block.ts else block.model_copy(update={"ts": now}) for block in addition.blocks]
        last = await self._store.append(scope, blocks, if_last=addition.if_last)
        return TimelineAppended(last=last)

    async def page(self, scope: ConversationKey, after: int, limit: int) -> TimelinePage:
        """At most ``limit`` blocks after a position, with their base64; those that are hidden now are marked.

        Raises:
            StoreFailedError: the store failed.
        """
        found = await self._store.after(scope, after, limit + 1, binaries=True)
        page = found[:limit]
        memory = StoredTimelineView(self._store, scope)
        blocks = await with_visibility(memory, await compute_visibility(memory), page)
        return TimelinePage(blocks=blocks, last=page[-1].position if page else after, more=len(found) > limit)

    async def aligned(self, scope: ConversationKey, after: int, limit: int) -> AlignedTimeline:
        """At most ``limit`` blocks after a position, without base64, each beside the text that a model reads of it.

        Raises:
            StoreFailedError: the store failed.
        """
        found = await self._store.after(scope, after, limit + 1, binaries=False)
        page = found[:limit]
        memory = StoredTimelineView(self._store, scope)
        read = await read_parts(memory, page, is_end=len(found) <= limit)
        points = await cache_points(memory, self._cache_policy, await memory.last())

        def build() -> list[TimelineEntry]:
            return [
                TimelineEntry(
                    position=placed.position,
                    block=block.model_copy(update={"base64": None}),
                    base64_chars=placed.base64_chars,
                    text=text,
                    tokens=count_tokens(self._tokens, text),
                )
                for placed, block, text in zip(page, read.blocks, read.texts, strict=True)
            ]

        return AlignedTimeline(
            entries=await asyncio.to_thread(build),
            last=page[-1].position if page else after,
            more=len(found) > limit,
            pre_tail=points.pre_tail,
            tail=points.tail,
        )

    async def rendered(self, scope: ConversationKey, after: int) -> RenderedTimeline:
        """The text of all blocks after a position.

        The text after 0 is the text after 0 of any earlier time with more behind it, as long as the revision is
        the same, and ``after`` cuts it between two blocks: what a prompt cache holds stays right.

        Raises:
            StoreFailedError: the store failed.
        """
        memory = StoredTimelineView(self._store, scope)
        read = await read_text(memory, after)
        return RenderedTimeline(
            text=read.text,
            last=max(read.last, after),
            revision=read.revision,
            tokens=await asyncio.to_thread(count_tokens, self._tokens, read.text),
            cache_points=await cache_points(memory, self._cache_policy, read.last),
        )
