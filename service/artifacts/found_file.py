"""A file of a conversation that was found: in the artifact store, or in the blocks of a timeline."""

import base64
import binascii
import json
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import StoredArtifact
from proofbox.service.file_content import FileContent
from proofbox.service.timeline.artifact_versions import Version
from proofbox.service.visible_text import visible_text

Origin = Literal["store", "asset", "uri", "timeline"]


@dataclass(frozen=True, slots=True)
class ConversationFile:
    """A file or an attachment of a turn: a version of the artifact store, or one that only blocks know.

    Attributes:
        path: its path.
        mime: its media type.
        created: when it was made.
        size_bytes: its size; None if it is not known.
        stored: the version of the artifact store, if it is there.
        version: its version in the blocks, if the store does not have it.
        fetched: its bytes, once they were fetched.
    """

    path: FilePath
    mime: str
    created: str
    size_bytes: int | None
    stored: StoredArtifact | None = None
    version: Version | None = None
    fetched: "Fetched | None" = None

    @property
    def sha256(self) -> str | None:
        """The SHA-256 of its latest version, in hex; None if no digest has it."""
        if self.stored is not None:
            return self.stored.sha256
        if self.fetched is not None:
            return self.fetched.sha256
        return None if self.version is None else self.version.sha256

    @classmethod
    def of_store(cls, stored: StoredArtifact) -> Self:
        """A version of the artifact store."""
        return cls(stored.path, stored.mime, stored.created, stored.size_bytes, stored=stored)

    @classmethod
    def of_version(cls, path: FilePath, version: Version) -> Self:
        """A version that only blocks have."""
        size_bytes = version.size_bytes or _carried_bytes(version)
        return cls(path, version.mime, version.ts, size_bytes, version=version)

    def digest(self) -> dict[str, Any]:
        """The safe digest of a stored or fetched file, by what is known without a block."""
        fields: dict[str, Any] = {
            "artifact_path": self.path.logical,
            "physical_path": self.path.physical,
            "mime": self.mime,
            "kind": "file",
        }
        if self.stored is not None:
            fields |= {
                "visibility": self.stored.visibility,
                "edited": True if self.stored.version > 1 else None,
                "ts": self.stored.created,
            }
        fields |= {"size_bytes": self.size_bytes, "sha256": self.sha256}
        if self.stored is not None:
            fields["description"] = self.stored.description or None
        return {name: value for name, value in fields.items() if value is not None}

    def with_content(self, fetched: "Fetched") -> Self:
        """The file with its bytes at hand, and their size for sure."""
        return replace(self, size_bytes=fetched.size_bytes, fetched=fetched)


@dataclass(frozen=True, slots=True)
class Fetched:
    """The bytes of a file, in a local file, or those of a small one.

    Attributes:
        source: its content; a local file is valid while its staging folder is.
        size_bytes: how many.
        sha256: their SHA-256, in hex.
        origin: where they came from.
        ms: how long it took to fetch and check them, if that was before they were asked for; of files that were
            fetched together, each one's share.
    """

    source: FileContent
    size_bytes: int
    sha256: str
    origin: Origin
    ms: float = 0.0


def format_digest(fields: object) -> str:
    """A digest as the text of its block."""
    return visible_text(json.dumps(fields, ensure_ascii=False))


def decode_base64(text: str) -> bytes | None:
    """The bytes of a base64 text; None if it is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None


def _carried_bytes(version: Version) -> int | None:
    """The size of a file without a digest, by its content block."""
    if version.content is None or not version.has_payload:
        return None
    text = version.content.block.text
    return len(text.encode(errors="replace")) if text is not None else version.content.base64_chars * 3 // 4
