"""What of a timeline can be searched by meaning: prompts, completions and text attachments, as passages."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from proofbox.contracts.blocks import Block
from proofbox.contracts.media_types import is_text
from proofbox.contracts.paths import FilePath, UnsafePathError
from proofbox.service.artifacts.conversation_files import CallFiles
from proofbox.service.react.memsearch.chunking import passages
from proofbox.service.text_encoding import as_utf_8
from proofbox.service.timeline.block_writer import now_text
from proofbox.service.timeline.port import PlacedBlock

_TARGETS = {
    "user.prompt": "user",
    "assistant.completion": "assistant",
    "react.completion": "assistant",
    "user.attachment": "attachment",
}
TEXT_CHARS_MAX = 200_000
"""How much of one block is searched, in characters (of an attachment in bytes): some 400 passages."""


@dataclass(frozen=True, slots=True)
class NewPassage:
    """One passage, before it has a vector; the fields of `Passage`."""

    position: int
    turn_id: str
    target: str
    ts: str
    path: str
    text: str


def find_target(block: Block) -> str | None:
    """Which target of a search a block belongs to; None for one that no search looks through."""
    return _TARGETS.get(block.type)


async def extract_passages(placed: PlacedBlock, files: CallFiles) -> list[NewPassage]:
    """The passages of a block; none of a block that nobody searches for. Hidden blocks are found as well.

    Raises:
        StoreFailedError: the artifact store failed.
    """
    block = placed.block
    target = find_target(block)
    if target is None:
        return []
    if target == "attachment":
        texts = await _attachment_passages(block, files)
    else:
        texts = passages((block.text or "")[:TEXT_CHARS_MAX])
    ts = _utc(block.ts)
    return [NewPassage(placed.position, block.turn_id, target, ts, block.path, text) for text in texts]


async def _attachment_passages(block: Block, files: CallFiles) -> Sequence[str]:
    """The name of an attachment, and its text if it is a text; only the name of other types."""
    try:
        path = FilePath.from_logical(block.path)
    except UnsafePathError:
        return passages((block.text or "")[:TEXT_CHARS_MAX])
    text = block.text
    if text is None and is_text(block.mime):
        file = await files.latest(path)
        if file is not None and file.sha256 in {_sha256(block), None}:
            data = await files.read_at_hand(file, TEXT_CHARS_MAX)
            if data is not None:
                data, _ = as_utf_8(data, is_whole=len(data) == file.size_bytes)
                text = data.decode("utf-8-sig", errors="replace")
    return passages(f"{path.rel}\n\n{(text or '')[:TEXT_CHARS_MAX]}")


def _sha256(block: Block) -> str | None:
    """Which version of the attachment the block is about; a later one has a block of its own."""
    try:
        digest = json.loads(str(block.meta.get("digest", "")))
    except (ValueError, RecursionError):
        return None
    value = digest.get("sha256") if isinstance(digest, dict) else None
    return value if isinstance(value, str) else None


def _utc(ts: str) -> str:
    """A time as all passages have it; one that cannot be read, of a loop's own block, counts as now."""
    try:
        when = datetime.fromisoformat(ts)
    except ValueError:
        return now_text()
    when = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")
