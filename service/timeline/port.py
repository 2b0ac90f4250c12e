"""The port of the store of timelines, and the paths in a block."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from proofbox.contracts.blocks import Block
from proofbox.contracts.paths import UnsafePathError
from proofbox.contracts.timeline import canonical_path
from proofbox.service.identity import ConversationKey


@dataclass(frozen=True, slots=True)
class PlacedBlock:
    """A block at its place in a timeline.

    Attributes:
        position: 1 for the first block of the conversation.
        block: the block; without its base64 where only ``base64_chars`` were asked for.
        base64_chars: how long its base64 is; 0 if it has none.
    """

    position: int
    block: Block
    base64_chars: int = 0


@dataclass(frozen=True, slots=True)
class TurnSpan:
    """Where the blocks of a turn lie; blocks of other turns may lie between them.

    Attributes:
        turn_id: the turn.
        first: the position of its first block.
        last: the position of its last block.
    """

    turn_id: str
    first: int
    last: int


def described_path(block: Block) -> str | None:
    """The logical path that a block's digest describes: a call's meta block, an attachment's; None for others."""
    is_meta = block.path.startswith("tc:") or block.type == "user.attachment.meta"
    if not is_meta or block.mime != "application/json" or block.text is None:
        return None
    try:
        payload = json.loads(block.text)
    except (ValueError, RecursionError):
        return None
    path = payload.get("artifact_path") if isinstance(payload, dict) else None
    return canonicalize(path) if isinstance(path, str) else None


def canonicalize(path: str) -> str:
    """The canonical spelling of a logical path that another program wrote; any other text stays as it is."""
    if path.isascii() and ".tool_calls." not in path:
        return path  # the only spelling that it has
    try:
        return canonical_path(path)
    except UnsafePathError:
        return path


def hidden_path(block: Block) -> str | None:
    """The logical path whose earlier blocks a block hides; None for others.

    Such a block is the result of ``react.hide``, or the notice that a file was deleted.
    """
    path = block.meta.get("hides") if block.type in {"react.tool.result", "react.notice"} else None
    return path if isinstance(path, str) else None


def removed_paths(block: Block) -> list[str]:
    """The physical paths of files that an exec call removed from its turn, by the block of its report."""
    paths = block.meta.get("removed") if block.type == "react.tool.result" else None
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []


class TimelineStore(Protocol):
    """The event logs of conversations: blocks are added, never changed. All methods raise StoreFailedError."""

    async def append(self, scope: ConversationKey, blocks: Sequence[Block], *, if_last: int | None = None) -> int:
        """Adds blocks at the end, all or none; the position of the last one.

        Raises:
            TimelineMovedError: the last position is not ``if_last``.
            StoreFullError: no space is left.
        """

    async def after(
        self, scope: ConversationKey, position: int, limit: int, *, binaries: bool
    ) -> list[PlacedBlock]:
        """At most ``limit`` blocks after a position, in order; without base64 unless ``binaries``."""

    async def last(self, scope: ConversationKey) -> int:
        """The position of the last block; 0 if there is none."""

    async def before(self, scope: ConversationKey, position: int, limit: int) -> list[PlacedBlock]:
        """At most ``limit`` blocks at or before a position, the newest first, without base64."""

    async def of_path(self, scope: ConversationKey, path: str, limit: int, *, binaries: bool) -> list[PlacedBlock]:
        """The newest ``limit`` blocks of a logical path, or whose digest describes it, in order."""

    async def of_call(self, scope: ConversationKey, tool_call_id: str, limit: int) -> list[PlacedBlock]:
        """The first ``limit`` blocks of a call, in order, without base64."""

    async def of_turns(
        self, scope: ConversationKey, turn_ids: Collection[str], *, described: bool
    ) -> list[PlacedBlock]:
        """The blocks of some turns, in order, without base64; with ``described`` only digests and plans."""

    async def files_of_turn(self, scope: ConversationKey, turn_id: str) -> list[str]:
        """The ``fi:`` paths of the blocks of a turn, each once."""

    async def hidings(self, scope: ConversationKey, after: int) -> list[PlacedBlock]:
        """The blocks after a position that hide others (`hidden_path`), in order."""

    async def summaries(self, scope: ConversationKey) -> list[PlacedBlock]:
        """The blocks of type ``conv.range.summary``, in order; their paths begin with ``su:``."""

    async def turns(self, scope: ConversationKey) -> list[TurnSpan]:
        """Where each turn begins and ends, by their beginning."""

    async def group_before(self, scope: ConversationKey, position: int) -> list[PlacedBlock]:
        """The block at ``position`` and those right before it of the same call, in order, without base64."""
