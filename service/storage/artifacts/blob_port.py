"""The byte side of the artifact store, as a port of its own: a local folder, or a bucket."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from contracts.paths import FilePath
from service.artifacts.port import NewArtifact
from service.errors import StoreFailedError
from service.identity import ConversationKey

_SHA256 = re.compile(r"[0-9a-f]{64}")


def checked_sha256(sha256: str) -> str:
    """The same text, which is fit to be a part of a name.

    Raises:
        ValueError: it is no SHA-256 in lower-case hex.
    """
    if _SHA256.fullmatch(sha256) is None:
        raise ValueError(f"'{sha256}' is no SHA-256 in lower-case hex")
    return sha256


def wrong_size(artifact: NewArtifact) -> StoreFailedError:
    """The error of a source that is no regular file, or not as many bytes, as it is said to be."""
    return StoreFailedError(f"the bytes for {artifact.path.logical} are not a file of {artifact.size_bytes} bytes")


@dataclass(frozen=True, slots=True)
class Served:
    """Bytes as somebody outside is to get them.

    Attributes:
        sha256: the hash under which they lie.
        mime: their media type.
        file_name: how the file is to be called when it is saved.
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
        threads: how many blocking calls at one time make sense.
        at_once: how many files one call of `seal`, `place`, `host` or `fetch` best takes.
        piece_bytes: how much one call of `piece` best asks for.
    """

    threads: int
    at_once: int
    piece_bytes: int

    def prepare(self) -> None:
        """Makes what is missing and removes what an earlier life of the service left in staging."""

    def stage(self) -> Path:
        """A fresh local folder."""

    def unstage(self, folder: Path) -> None:
        """Removes a folder of staging; never raises for the file system, the next start tries again."""

    def seal(self, artifacts: Sequence[NewArtifact]) -> None:
        """Makes the sources ready to be stored; they must not change from now on.

        Raises:
            StoreFailedError: one is no regular file of the size it is said to have.
            ValueError: its hash is none.
        """

    def place(self, artifacts: Sequence[NewArtifact]) -> None:
        """Stores the bytes of sealed sources under their hashes, unless they are there and whole; then durable.

        The sources may be moved.
        """

    def end_uploads(self, sha256: str) -> None:
        """Removes what uploads of these bytes left that were cut off."""

    def remove_blob(self, sha256: str) -> None:
        """Removes the bytes of a hash, if they are there."""

    def hosted_name(self, scope: ConversationKey, path: FilePath) -> str:
        """Under which name a file is hosted: no two paths of the service ever share one."""

    def uri_of(self, name: str) -> str:
        """The URI of a hosted name."""

    def name_of_uri(self, uri: str) -> str | None:
        """The hosted name that a URI gives, if it is one of this store; it is looked up and never opened."""

    def host(self, served: Mapping[str, Served]) -> None:
        """Serves stored bytes under hosted names, over what was served before; then durable."""

    def remove_hosted(self, name: str) -> None:
        """Removes a hosted file, if it is there."""

    def fetch(self, hashes: Sequence[str], folder: Path) -> list[Path]:
        """Local files below ``folder`` with the bytes of hashes, checked.

        Raises:
            StoreFailedError: the bytes of one are missing or have changed.
        """

    def piece(self, sha256: str, at: int, size_bytes: int) -> bytes:
        """At least one and at most ``size_bytes`` bytes from ``at`` on.

        Raises:
            StoreFailedError: the bytes are missing or end before ``at``.
        """

    def link(self, served: Served) -> str | None:
        """A URL that gives the bytes to whoever has it, for a while; None if this store has no links."""
