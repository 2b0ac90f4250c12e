"""What ``react.read`` shows of a path, and what tells that a model sees the same already."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX
from service.timeline.artifact_versions import digest_of_block, safe_text
from service.timeline.port import PlacedBlock

JSON = "application/json"
EXTRACTED = "extracted"
"""The meta field of a block that has the text of a document, which is not what the file itself holds."""


class CannotLoadError(Exception):
    """Nothing can be shown of a path; the text says why, for the model."""


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """One block that is about to be shown.

    Attributes:
        path: its logical path; None for a digest, which stands at the path of the call's results.
        mime: its media type.
        text: its text.
        base64: its binary content.
        meta: its meta fields.
        mark: what tells whether the same is in view already; None if nothing does.
    """

    path: str | None
    mime: str
    text: str | None = None
    base64: str | None = None
    meta: dict[str, Any] = field(default_factory=dict)
    mark: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What is shown of one path.

    Attributes:
        path: the canonical path.
        pieces: the blocks, in order.
        partly: what is left out, and how to get it; None if nothing is.
        absent: what was asked for beside it and is not there.
    """

    path: str
    pieces: tuple[ShownBlock, ...]
    partly: str | None = None
    absent: tuple[str, ...] = ()


def content_fingerprint(placed: PlacedBlock) -> str | None:
    """What two blocks have in common that show the same: the hash of a file or of a text, and what is carried."""
    block = placed.block
    sha256 = digest_of_block(block).get("sha256")
    if isinstance(sha256, str) and EXTRACTED in block.meta:
        return f"{sha256}:{EXTRACTED}"
    # A stretch of lines and a patch stand at a file's path with its digest, and are not what it says.
    if isinstance(sha256, str) and not {"lines", "bytes", "patch"} & block.meta.keys():
        carried = "text" if block.text is not None else "base64" if placed.base64_chars else "nothing"
        return f"{sha256}:{carried}"
    text = safe_text(block)
    return None if text is None else text_mark(text)


def text_mark(text: str) -> str:
    """The hash of what a block shows of a text: a long one and its cut form have the same."""
    shown = text.removesuffix(TRUNCATED_SUFFIX).encode(errors="replace")[:TEXT_BYTES_MAX]
    return hashlib.sha256(shown.decode(errors="ignore").encode()).hexdigest()
