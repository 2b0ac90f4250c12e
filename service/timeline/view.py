"""What a call can look back at: the conversation's stored timeline, or the one that its loop hands in."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Protocol

from proofbox.contracts.blocks import Block
from proofbox.contracts.tool_call_request import ToolCallRequest
from proofbox.service.identity import ConversationKey
from proofbox.service.timeline.port import (
    PlacedBlock,
    TimelineStore,
    TurnSpan,
    canonicalize,
    described_path,
    hidden_path,
    removed_paths,
)


class TimelineView(Protocol):
    """The blocks of one conversation, as a call finds them. All methods raise StoreFailedError."""

    async def last(self) -> int:
        """The position of the last block; 0 if there is none."""

    async def before(self, position: int, limit: int) -> list[PlacedBlock]:
        """At most ``limit`` blocks at or before a position, the newest first, without base64."""

    async def after(self, position: int, limit: int) -> list[PlacedBlock]:
        """At most ``limit`` blocks after a position, in order, without base64."""

    async def group_before(self, position: int) -> list[PlacedBlock]:
        """The block at ``position`` and those right before it of the same call, in order, without base64."""

    async def of_path(self, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """The newest ``limit`` blocks of a logical path, or whose digest describes it, in order."""

    async def at(self, position: int) -> PlacedBlock | None:
        """The block at a position, with its base64; None if there is none."""

    async def files_of_turn(self, turn_id: str) -> list[str]:
        """The ``fi:`` paths that the blocks of a turn have or describe, each once."""

    async def newest_files(self, limit: int) -> list[str]:
        """The newest ``fi:`` paths that blocks have or describe, each once; none if the artifact store has them."""

    async def removals(self) -> dict[str, int]:
        """The physical paths that programs removed, with the position of the report; none if the store has them."""

    async def hidings(self, after: int) -> list[PlacedBlock]:
        """The blocks after a position that hide others, in order."""

    async def summaries(self) -> list[PlacedBlock]:
        """The blocks of type ``conv.range.summary``, in order."""

    async def turns(self) -> list[TurnSpan]:
        """Where each turn begins and ends, by their beginning."""

    async def digests_of(self, turn_ids: Collection[str]) -> list[PlacedBlock]:
        """The blocks of some turns that hold a digest or a plan, in order, without base64."""


class StoredTimelineView:
    """The stored timeline of a conversation."""

    def __init__(self, store: TimelineStore, scope: ConversationKey) -> None:
        self._store = store
        self._scope = scope

    async def last(self) -> int:
        """See `TimelineView.last`."""
        return await self._store.last(self._scope)

    async def before(self, position: int, limit: int) -> list[PlacedBlock]:
        """See `TimelineView.before`."""
        return await self._store.before(self._scope, position, limit)

    async def after(self, position: int, limit: int) -> list[PlacedBlock]:
        """See `TimelineView.after`."""
        return await self._store.after(self._scope, position, limit, binaries=False)

    async def group_before(self, position: int) -> list[PlacedBlock]:
        """See `TimelineView.group_before`."""
        return await self._store.group_before(self._scope, position)

    async def of_path(self, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """See `TimelineView.of_path`."""
        return await self._store.of_path(self._scope, path, limit, binaries=binaries)

    async def at(self, position: int) -> PlacedBlock | None:
        """See `TimelineView.at`."""
        found = await self._store.after(self._scope, position - 1, 1, binaries=True)
        return found[0] if found and found[0].position == position else None

    async def files_of_turn(self, turn_id: str) -> list[str]:
        """See `TimelineView.files_of_turn`."""
        return await self._store.files_of_turn(self._scope, turn_id)

    async def newest_files(self, limit: int) -> list[str]:
        """See `TimelineView.newest_files`."""
        del limit
        return []

    async def removals(self) -> dict[str, int]:
        """See `TimelineView.removals`."""
        return {}

    async def hidings(self, after: int) -> list[PlacedBlock]:
        """See `TimelineView.hidings`."""
        return await self._store.hidings(self._scope, after)

    async def summaries(self) -> list[PlacedBlock]:
        """See `TimelineView.summaries`."""
        return await self._store.summaries(self._scope)

    async def turns(self) -> list[TurnSpan]:
        """See `TimelineView.turns`."""
        return await self._store.turns(self._scope)

    async def digests_of(self, turn_ids: Collection[str]) -> list[PlacedBlock]:
        """See `TimelineView.digests_of`."""
        return await self._store.of_turns(self._scope, turn_ids, described=True)


class SuppliedTimelineView:
    """The timeline that came with a call; its blocks have the positions 1, 2, 3 and so on."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._placed = [
            PlacedBlock(position, block, len(block.base64 or "")) for position, block in enumerate(blocks, start=1)
        ]
        self._of_path: dict[str, list[PlacedBlock]] | None = None

    async def last(self) -> int:
        """See `TimelineView.last`."""
        return len(self._placed)

    async def before(self, position: int, limit: int) -> list[PlacedBlock]:
        """See `TimelineView.before`."""
        return self._placed[max(position - limit, 0) : position][::-1]

    async def after(self, position: int, limit: int) -> list[PlacedBlock]:
        """See `TimelineView.after`; base64 is there in any case."""
        return self._placed[position : position + limit]

    async def group_before(self, position: int) -> list[PlacedBlock]:
        """See `TimelineView.group_before`."""
        group = self._placed[max(position - 1, 0) : position]
        call_id = group[0].block.call_id if group else None
        while call_id is not None and (first := group[0].position) > 1:
            if self._placed[first - 2].block.call_id != call_id:
                break
            group.insert(0, self._placed[first - 2])
        return group

    async def of_path(self, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """See `TimelineView.of_path`; base64 is there in any case."""
        del binaries
        if self._of_path is None:
            self._of_path = await asyncio.to_thread(_by_path, self._placed)
        return self._of_path.get(path, [])[-limit:]

    async def at(self, position: int) -> PlacedBlock | None:
        """See `TimelineView.at`."""
        return self._placed[position - 1] if 1 <= position <= len(self._placed) else None

    async def files_of_turn(self, turn_id: str) -> list[str]:
        """See `TimelineView.files_of_turn`."""
        return list(_file_paths(placed for placed in self._placed if placed.block.turn_id == turn_id))

    async def newest_files(self, limit: int) -> list[str]:
        """See `TimelineView.newest_files`."""
        return list(islice(_file_paths(reversed(self._placed)), limit))

    async def removals(self) -> dict[str, int]:
        """See `TimelineView.removals`."""
        found: dict[str, int] = {}
        for placed in self._placed:
            for path in removed_paths(placed.block):
                found[path] = placed.position
        return found

    async def hidings(self, after: int) -> list[PlacedBlock]:
        """See `TimelineView.hidings`."""
        return [p for p in self._placed[after:] if hidden_path(p.block) is not None]

    async def summaries(self) -> list[PlacedBlock]:
        """See `TimelineView.summaries`."""
        return [p for p in self._placed if p.block.type == "conv.range.summary"]

    async def turns(self) -> list[TurnSpan]:
        """See `TimelineView.turns`."""
        spans: dict[str, TurnSpan] = {}
        for placed in self._placed:
            turn_id, position = placed.block.turn_id, placed.position
            first = spans[turn_id].first if turn_id in spans else position
            spans[turn_id] = TurnSpan(turn_id, first, position)
        return list(spans.values())

    async def digests_of(self, turn_ids: Collection[str]) -> list[PlacedBlock]:
        """See `TimelineView.digests_of`."""
        return [
            p
            for p in self._placed
            if p.block.turn_id in turn_ids and (p.block.type == "react.plan" or described_path(p.block) is not None)
        ]


def _file_paths(placed: Iterable[PlacedBlock]) -> dict[str, None]:
    """The ``fi:`` paths of blocks, and those that their digests describe, in order."""
    paths = (path for item in placed for path in (canonicalize(item.block.path), described_path(item.block)))
    return dict.fromkeys(path for path in paths if path is not None and path.startswith("fi:"))


def _by_path(placed: Sequence[PlacedBlock]) -> dict[str, list[PlacedBlock]]:
    """Blocks by their path and by the path that they describe; built once: a loop's whole timeline may be in it."""
    found: dict[str, list[PlacedBlock]] = {}
    for item in placed:
        for path in {canonicalize(item.block.path), described_path(item.block)} - {None}:
            found.setdefault(path or "", []).append(item)
    return found


def timeline_for(store: TimelineStore, scope: ConversationKey, request: ToolCallRequest) -> TimelineView:
    """What a call looks back at: the timeline that it brings, else the stored one."""
    return StoredTimelineView(store, scope) if request.timeline is None else SuppliedTimelineView(request.timeline)
