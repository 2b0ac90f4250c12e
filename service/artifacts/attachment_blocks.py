"""The blocks of an attachment: what a timeline shows of a file that the user sent."""

import base64
from typing import Any

from proofbox.contracts.blocks import Block
from proofbox.service.artifacts.found_file import format_digest
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.timeline.block_writer import now_text

_AUTHOR = "user"


def build_attachment_blocks(
    stored: StoredArtifact, content: bytes | None, encoding: str | None = None
) -> list[Block]:
    """The meta block with the safe digest, and the file's own block.

    Args:
        stored: the version that was stored.
        content: its bytes, if its block carries them.
        encoding: that of a text that is not UTF-8.
    """
    digest = format_digest(
        {
            "artifact_path": stored.path.logical,
            "physical_path": stored.path.physical,
            "mime": stored.mime,
            "kind": "file",
            "visibility": stored.visibility,
            "ts": stored.created,
            "size_bytes": stored.size_bytes,
            "sha256": stored.sha256,
            **({} if encoding is None else {"encoding": encoding}),
            **({"edited": True} if stored.version > 1 else {}),
            **({} if stored.sid is None else {"sid": stored.sid}),
        }
    )
    meta = {"digest": digest, **stored.hosting(), "physical_path": stored.path.physical}
    text = None if content is None else base64.b64encode(content).decode("ascii")
    return [
        _block("user.attachment.meta", stored, "application/json", text=digest),
        _block("user.attachment", stored, stored.mime, base64=text, meta=meta),
    ]


def _block(kind: str, stored: StoredArtifact, mime: str, **fields: Any) -> Block:
    path = stored.path
    return Block(
        type=kind, author=_AUTHOR, turn_id=path.turn_id, ts=now_text(), mime=mime, path=path.logical, **fields
    )
