"""What a call can look back at: the conversation's stored timeline, or the one that its loop hands in."""

from collections.abc import Sequence
from typing import Protocol

from contracts.blocks import Block
from contracts.tool_calls import ToolCallRequest
from service.core.scopes import Scope
from service.core.store_ports import PlacedBlock, TimelineStore, described_path, hidden_path


class Memory(Protocol):
    """The blocks of one conversation, as a call finds them. All methods raise StoreFailedError."""

    async def last(self) -> int:
        """The position of the last block; 0 if there is none."""

    async def before(self, position: int, limit: int) -> list[PlacedBlock]:
        """At most ``limit`` blocks at or before a position, the newest first, without base64."""

    async def of_path(self, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """The newest ``limit`` blocks of a logical path, or whose digest describes it, in order."""

    async def of_call(self, tool_call_id: str, limit: int) -> list[PlacedBlock]:
        """The first ``limit`` blocks of a call, in order, without base64."""

    async def files_of_turn(self, turn_id: str) -> list[str]:
        """The ``fi:`` paths of the blocks of a turn, each once."""

    async def hidings(self, after: int) -> list[PlacedBlock]:
        """The blocks after a position that hide others, in order."""


class StoredMemory:
    """The stored timeline of a conversation."""

    def __init__(self, store: TimelineStore, scope: Scope) -> None:
        self._store = store
        self._scope = scope

    async def last(self) -> int:
        """See `Memory.last`."""
        return await self._store.last(self._scope)

    async def before(self, position: int, limit: int) -> list[PlacedBlock]:
        """See `Memory.before`."""
        return await self._store.before(self._scope, position, limit)

    async def of_path(self, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """See `Memory.of_path`."""
        return await self._store.of_path(self._scope, path, limit, binaries=binaries)

    async def of_call(self, tool_call_id: str, limit: int) -> list[PlacedBlock]:
        """See `Memory.of_call`."""
        return await self._store.of_call(self._scope, tool_call_id, limit)

    async def files_of_turn(self, turn_id: str) -> list[str]:
        """See `Memory.files_of_turn`."""
        return await self._store.files_of_turn(self._scope, turn_id)

    async def hidings(self, after: int) -> list[PlacedBlock]:
        """See `Memory.hidings`."""
        return await self._store.hidings(self._scope, after)


class HandedMemory:
    """The timeline that came with a call; its blocks have the positions 1, 2, 3 and so on."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._placed = [
            PlacedBlock(position, block, len(block.base64 or "")) for position, block in enumerate(blocks, start=1)
        ]

    async def last(self) -> int:
        """See `Memory.last`."""
        return len(self._placed)

    async def before(self, position: int, limit: int) -> list[PlacedBlock]:
        """See `Memory.before`."""
        return self._placed[max(position - limit, 0) : position][::-1]

    async def of_path(self, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """See `Memory.of_path`; base64 is there in any case."""
        del binaries
        return [p for p in self._placed if path in {p.block.path, described_path(p.block)}][-limit:]

    async def of_call(self, tool_call_id: str, limit: int) -> list[PlacedBlock]:
        """See `Memory.of_call`."""
        return [p for p in self._placed if p.block.call_id == tool_call_id][:limit]

    async def files_of_turn(self, turn_id: str) -> list[str]:
        """See `Memory.files_of_turn`."""
        paths = (p.block.path for p in self._placed if p.block.turn_id == turn_id)
        return list(dict.fromkeys(path for path in paths if path.startswith("fi:")))

    async def hidings(self, after: int) -> list[PlacedBlock]:
        """See `Memory.hidings`."""
        return [p for p in self._placed[after:] if hidden_path(p.block) is not None]


def memory_of(store: TimelineStore, scope: Scope, request: ToolCallRequest) -> Memory:
    """What a call looks back at: the timeline that it brings, else the stored one."""
    return StoredMemory(store, scope) if request.timeline is None else HandedMemory(request.timeline)
