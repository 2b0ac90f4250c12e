"""The port of the bytes of artifacts: a local folder or a bucket."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.errors import StoreFailedError
from proofbox.service.identity import ConversationKey

CHANGED = "the stored bytes of an artifact are damaged: their SHA-256 has changed"
LOST = "the stored bytes of an artifact are missing"
CUT_OFF = "the stored bytes of an artifact are cut off"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def checked_sha256(sha256: str) -> str:
    """Return the text if it can be part of a name.

    Raises:
        ValueError: it is not a SHA-256 in lower-case hex.
    """
    if not is_sha256(sha256):
        raise ValueError(f"'{sha256}' is not a SHA-256 in lower-case hex")
    return sha256


def is_sha256(name: str) -> bool:
    """Whether a name is a SHA-256 in lower-case hex."""
    return _SHA256.fullmatch(name) is not None


def wrong_size(artifact: NewArtifact) -> StoreFailedError:
    """Return the error of a source that is not a regular file of its declared size."""
    return StoreFailedError(f"the bytes for {artifact.path.logical} are not a file of {artifact.size_bytes} bytes")


@dataclass(frozen=True, slots=True)
class ServedFile:
    """Bytes as a client gets them.

    Attributes:
        sha256: the hash of the bytes.
        mime: their media type.
        file_name: the name that the client saves them under.
    """

    sha256: str
    mime: str
    file_name: str


class BlobStore(Protocol):
    """Blobs under their SHA-256, hosted files under their names, staging folders. Blocking; knows no database.

    All methods raise StoreFailedError or StoreFullError for what the disk or the server refuses. Those that write
    one blob or one hosted name are never called for it at the same time; all others may be. Those that take several
    files stop at the first that fails; which of the others are done by then is left open.

    Attributes:
        threads: the best number of concurrent calls.
        at_once: the best number of files for one call of `seal`, `place`, `host` or `fetch`.
        piece_bytes: the best size for one call of `piece`.
    """

    threads: int
    at_once: int
    piece_bytes: int

    def prepare(self) -> None:
        """Create missing folders and remove what an earlier process left in staging."""

    def check(self) -> None:
        """Ask what is not on this machine whether it can be used; it answers within seconds."""

    def stage(self) -> Path:
        """A fresh local folder."""

    def unstage(self, folder: Path) -> None:
        """Remove a folder of staging; never raises for the file system, the next start tries again."""

    def seal(self, artifacts: Sequence[NewArtifact]) -> None:
        """Prepare the sources for storing; they do not change from now on.

        Raises:
            StoreFailedError: one is not a regular file of its declared size.
            ValueError: its hash is invalid.
        """

    def place(self, artifacts: Sequence[NewArtifact]) -> None:
        """Store the bytes of sealed sources under their hashes, unless they are there; durable on return.

        The sources may be moved.
        """

    def end_uploads(self, sha256: str) -> None:
        """Remove the rest of interrupted uploads of these bytes."""

    def remove_blob(self, sha256: str) -> None:
        """Remove the bytes of a hash, if they are there."""

    def hosted_name(self, scope: ConversationKey, path: FilePath) -> str:
        """Return the name under which a file is hosted; unique for each path of the service."""

    def uri_of(self, name: str) -> str:
        """The URI of a hosted name."""

    def name_of_uri(self, uri: str) -> str | None:
        """The hosted name that a URI gives, if it is one of this store; it is compared and never opened."""

    def host(self, served: Mapping[str, ServedFile]) -> None:
        """Host stored bytes under names, in place of earlier bytes; durable on return."""

    def remove_hosted(self, name: str) -> None:
        """Remove a hosted file, if it is there."""

    def fetch(self, hashes: Sequence[str], folder: Path) -> list[Path]:
        """Local files below ``folder`` with the bytes of hashes, checked.

        Raises:
            DamagedBytesError: the bytes of one are missing or have changed.
        """

    def piece(self, sha256: str, at: int, size_bytes: int) -> bytes:
        """At least one and at most ``size_bytes`` bytes from ``at`` on.

        Raises:
            DamagedBytesError: the bytes are missing or end before ``at``.
        """

    def blob_bytes(self, sha256: str) -> int | None:
        """How many bytes a hash has; None if they are missing."""

    def list_blobs(self) -> Iterator[str]:
        """The hashes that have bytes, in no order; others may be added and removed meanwhile."""

    def list_hosted(self) -> Iterator[str]:
        """The hosted names, in no order; others may be added and removed meanwhile."""

    def hosted_bytes(self, name: str) -> int | None:
        """How many bytes a hosted file has; None if it is missing."""

    def hosted_piece(self, name: str, at: int, size_bytes: int) -> bytes:
        """As `piece`, of a hosted file."""

    def is_linked(self, name: str, sha256: str) -> bool:
        """Whether a hosted file and the bytes of a hash are one file, so that a change of one changes both."""

    def link(self, served: ServedFile) -> str | None:
        """Create a URL with which anyone can read the bytes for a while; None without links."""
