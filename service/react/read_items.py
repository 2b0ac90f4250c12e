"""The blocks that ``react.read`` shows of a path, and fingerprints that find the same content in view."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from proofbox.contracts.blocks import TEXT_BYTES_MAX, TRUNCATED_SUFFIX
from proofbox.service.timeline.artifact_versions import parse_digest, redact_text
from proofbox.service.timeline.port import PlacedBlock

JSON = "application/json"
EXTRACTED = "extracted"
"""The meta field of a block that has the text of a document, which is not what the file itself holds."""


class CannotLoadError(Exception):
    """Nothing can be shown of a path; the text is the reason, for the model."""


@dataclass(frozen=True, slots=True)
class ShownBlock:
    """One block that is about to be shown.

    Attributes:
        path: its logical path; None for a digest, which stands at the path of the call's results.
        mime: its media type.
        text: its text.
        base64: its binary content.
        meta: its meta fields.
        mark: the fingerprint of the content; None if it has none.
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


def fingerprint_block(placed: PlacedBlock) -> str | None:
    """What two blocks have in common that show the same: the hash of a file or of a text, and what is carried."""
    block = placed.block
    sha256 = parse_digest(block).get("sha256")
    if isinstance(sha256, str) and EXTRACTED in block.meta:
        return f"{sha256}:{EXTRACTED}"
    # A stretch of lines and a patch stand at a file's path with its digest, and are not its content.
    if isinstance(sha256, str) and not {"lines", "bytes", "patch"} & block.meta.keys():
        carried = "text" if block.text is not None else "base64" if placed.base64_chars else "nothing"
        return f"{sha256}:{carried}"
    text = redact_text(block)
    return None if text is None else fingerprint_text(text)


def fingerprint_text(text: str) -> str:
    """The hash of what a block shows of a text: a long one and its cut form have the same."""
    shown = text.removesuffix(TRUNCATED_SUFFIX).encode(errors="replace")[:TEXT_BYTES_MAX]
    return hashlib.sha256(shown.decode(errors="ignore").encode()).hexdigest()
