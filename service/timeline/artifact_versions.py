"""Artifacts of a conversation, reconstructed from the blocks of its timeline.

A *meta piece* is a block whose text is the digest of the artifact (a call's meta block, an attachment's); any other
block at the logical path is content. The pieces of one call are one version; the latest
one is what the path means, hidden or not. A block that ``react.read`` brought back is a copy, not a version.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.blocks import TRUNCATED_SUFFIX, Block
from proofbox.contracts.logical_paths import TurnPath
from proofbox.contracts.media_types import OCTET_STREAM
from proofbox.contracts.paths import call_path, is_call_id, is_turn_id
from proofbox.service.timeline.port import PlacedBlock, canonicalize, described_path
from proofbox.service.timeline.view import TimelineView
from proofbox.service.visible_text import visible_text

HOSTING_FIELDS = frozenset({"hosted_uri", "rn", "key", "local_path"})
"""What a digest of another program may hold and no model may read."""
BLOCKS_MAX = 200
"""How many of an artifact's newest blocks are read."""
_READERS = frozenset({"react.read", "fetch_ctx"})
_PATCHERS = frozenset({"react.patch"})
_OF_ONE_CALL = frozenset({"code", "notes", "call", "notice", "result"})
_SHA256_HEX = 64


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an artifact.

    Attributes:
        path: its logical path.
        tool_call_id: the call that made it; None for what no call made.
        tool_id: the tool that the call was of, where its call block or the digest has it.
        digest: the safe digest: no hosting field, whatever the blocks held; empty if there is none.
        hosted_uri: where its bytes are hosted, for the service alone.
        content: the block that carries it, if there is one.
        position: of its last block.
        ts: when its last block was written.
        edited: an earlier version exists.
    """

    path: str
    tool_call_id: str | None
    tool_id: str | None
    digest: Mapping[str, Any]
    hosted_uri: str | None
    content: PlacedBlock | None
    position: int
    ts: str
    edited: bool

    @property
    def mime(self) -> str:
        """Its media type: the digest's, else the content block's."""
        value = self.digest.get("mime")
        if isinstance(value, str) and value:
            return value
        return self.content.block.mime if self.content is not None else OCTET_STREAM

    @property
    def sha256(self) -> str | None:
        """Its SHA-256 in hex, if the digest has it."""
        value = self.digest.get("sha256")
        return value.lower() if isinstance(value, str) and len(value) == _SHA256_HEX else None

    @property
    def size_bytes(self) -> int | None:
        """Its size, if the digest has it."""
        value = self.digest.get("size_bytes")
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    @property
    def has_payload(self) -> bool:
        """Whether its content block carries text or base64."""
        return self.content is not None and (self.content.block.text is not None or self.content.base64_chars > 0)

    @property
    def is_whole_text(self) -> bool:
        """Whether the text of its content block may be all of it; `holds` checks given bytes."""
        text = None if self.content is None else self.content.block.text
        if text is None:
            return False
        if self.sha256 is not None:
            return True
        # Without a hash to check, a patch's text is the patch, and a cut text is a part.
        return self.tool_id not in _PATCHERS and not text.endswith(TRUNCATED_SUFFIX)

    def holds(self, content: bytes) -> bool:
        """Whether bytes have the size and hash of the digest, as far as it has them."""
        if self.size_bytes is not None and self.size_bytes != len(content):
            return False
        return self.sha256 is None or hashlib.sha256(content).hexdigest() == self.sha256


@dataclass(slots=True)
class _Group:
    """The blocks of one version, as they are found."""

    call_id: str | None
    digest: dict[str, Any] = field(default_factory=dict)
    has_meta: bool = False
    content: PlacedBlock | None = None
    carried: dict[str, Any] = field(default_factory=dict)
    hosted_uri: str | None = None
    position: int = 0
    ts: str = ""

    def add(self, placed: PlacedBlock, *, is_meta: bool) -> None:
        block = placed.block
        self.position, self.ts = placed.position, block.ts
        if is_meta:
            self.has_meta = True
            self.digest = _object(block.text) or self.digest
            self._note_uri(self.digest)
            return
        self.content = placed
        self.carried = parse_digest(block) or self.carried
        physical = block.meta.get("physical_path")
        if isinstance(physical, str):
            self.carried.setdefault("physical_path", physical)
        self._note_uri(self.carried)
        self._note_uri(block.meta)

    def _note_uri(self, fields: Mapping[str, Any]) -> None:
        uri = fields.get("hosted_uri")
        if isinstance(uri, str) and uri:
            self.hosted_uri = uri


def find_call_id(block: Block) -> str | None:
    """The tool call that a block belongs to; loops put it in different places."""
    value = block.call_id or block.meta.get("tool_call_id")
    return value if isinstance(value, str) and value else None


def parse_digest(block: Block) -> dict[str, Any]:
    """The digest that a content block carries; empty if it carries none."""
    return _object(block.meta.get("digest")) or {}


def redact_digest(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A digest without its hosting fields and without what it leaves blank."""
    return {name: value for name, value in fields.items() if name not in HOSTING_FIELDS and value is not None}


def redact_text(block: Block) -> str | None:
    """The text of a block as a model may read it: a JSON object loses its hosting fields."""
    fields = _object(block.text) if block.mime == "application/json" else None
    if not fields or not HOSTING_FIELDS & fields.keys():
        return block.text
    safe = {name: value for name, value in fields.items() if name not in HOSTING_FIELDS}
    return visible_text(json.dumps(safe, ensure_ascii=False))


def build_versions(
    path: str, placed: Iterable[PlacedBlock], tools: Mapping[str, str], *, has_earlier: bool = False
) -> list[Version]:
    """The versions of an artifact, the oldest first.

    Args:
        path: its logical path.
        placed: its blocks, in order: those at the path, and those whose digest describes it.
        tools: the call map: which tool a call was of.
        has_earlier: there are older blocks than these.
    """
    versions: list[Version] = []
    for group in _group_blocks(path, placed):
        call_id = group.call_id
        if tools.get(call_id or "") in _READERS and versions:
            continue
        digest = {**group.carried, **group.digest}
        if group.carried or group.digest:
            digest["artifact_path"] = path
        edited = bool(versions) or has_earlier or digest.get("edited") is True
        if edited and digest:
            digest["edited"] = True
        maker = digest.get("tool_call_id") if tools.get(call_id or "") in _READERS else call_id
        tool_id = tools.get(maker or "") or digest.get("tool_id")
        versions.append(
            Version(
                path=path,
                tool_call_id=maker if isinstance(maker, str) else None,
                tool_id=tool_id if isinstance(tool_id, str) and tool_id not in _READERS else None,
                digest=redact_digest(digest),
                hosted_uri=group.hosted_uri,
                content=group.content,
                position=group.position,
                ts=group.ts,
                edited=edited,
            )
        )
    return versions


def _group_blocks(path: str, placed: Iterable[PlacedBlock]) -> list[_Group]:
    groups: list[_Group] = []
    of_calls: dict[str, _Group] = {}
    for item in placed:
        block = item.block
        if {"lines", "bytes", "extracted"} & block.meta.keys() and described_path(block) is None:
            continue  # a stretch, or the text of a document, that react.read showed
        is_meta = block.type == "user.attachment.meta" or described_path(block) == path
        call_id = find_call_id(block)
        group = of_calls.get(call_id) if call_id is not None else _open_end(groups, is_meta=is_meta)
        if group is None:
            group = _Group(call_id)
            groups.append(group)
            if call_id is not None:
                of_calls[call_id] = group
        group.add(item, is_meta=is_meta)
    return groups


def _open_end(groups: Sequence[_Group], *, is_meta: bool) -> _Group | None:
    """The last group, if a piece that no call made still belongs to it: a digest begins a new version."""
    last = groups[-1] if groups else None
    if last is None or last.call_id is not None or is_meta or last.content is not None:
        return None
    return last


async def find_versions(memory: TimelineView, path: str) -> list[Version]:
    """The versions of what a logical path names, the oldest first; the last one is what it means now.

    Args:
        memory: the conversation's blocks.
        path: the canonical logical path.

    Raises:
        StoreFailedError: the store failed.
    """
    placed = await memory.of_path(path, BLOCKS_MAX, binaries=False)
    return build_versions(path, placed, await map_calls(memory, placed), has_earlier=len(placed) >= BLOCKS_MAX)


async def map_calls(memory: TimelineView, placed: Iterable[PlacedBlock]) -> dict[str, str]:
    """Which tool each call of some blocks was of, by their call blocks.

    Raises:
        StoreFailedError: the store failed.
    """
    turns = {call_id: item.block.turn_id for item in placed if (call_id := find_call_id(item.block)) is not None}
    tools = {}
    for call_id, turn_id in turns.items():
        tool_id = await _tool_of(memory, turn_id, call_id)
        if tool_id is not None:
            tools[call_id] = tool_id
    return tools


async def _tool_of(memory: TimelineView, turn_id: str, call_id: str) -> str | None:
    if not is_turn_id(turn_id) or not is_call_id(call_id):
        return None
    for item in await memory.of_path(call_path(turn_id, call_id), 2, binaries=False):
        payload = _object(item.block.text) or {}
        tool_id = payload.get("tool_id")
        # Not a call block that react.read brought back: that one is of another call.
        if item.block.type == "react.tool.call" and isinstance(tool_id, str):
            return tool_id
    return None


async def find_latest_blocks(memory: TimelineView, path: TurnPath) -> list[PlacedBlock]:
    """What stands at the path of a prompt, a call, a plan and so on: the blocks of the call that wrote there last.

    Blocks that ``react.read`` brought back do not count; those of no call stand each for itself. They come without
    base64, which `TimelineView.at` has.

    Raises:
        StoreFailedError: the store failed.
    """
    placed = await memory.of_path(str(path), BLOCKS_MAX, binaries=False)
    placed = [item for item in placed if canonicalize(item.block.path) == str(path)]
    if not placed:
        return []
    own = [item for item in placed if find_call_id(item.block) == path.item_id]
    if own and path.kind in _OF_ONE_CALL:
        return own
    tools = await map_calls(memory, placed)
    written = [item for item in placed if tools.get(find_call_id(item.block) or "") not in _READERS] or placed
    last = find_call_id(written[-1].block)
    return written[-1:] if last is None else [item for item in written if find_call_id(item.block) == last]


def pick_main_block(placed: Sequence[PlacedBlock]) -> PlacedBlock:
    """The main one of some blocks at one path: a report or a result, before the digests of what was made."""
    reports = [item for item in placed if described_path(item.block) is None]
    return (reports or list(placed))[-1]


def has_path(blocks: Iterable[Block] | None, path: str) -> bool:
    """Whether blocks of a timeline hold a version of a logical path."""
    return path in collect_paths(blocks)


def collect_paths(blocks: Iterable[Block] | None) -> frozenset[str]:
    """The logical paths that blocks of a timeline hold or describe."""
    found = {path for block in blocks or () for path in (canonicalize(block.path), described_path(block))}
    return frozenset(path for path in found if path)


def _object(value: object) -> dict[str, Any] | None:
    """A JSON object, given as its text or as itself; None for anything else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return dict(value) if isinstance(value, dict) else None
