"""What the local artifact store keeps on the disk: blobs, hosted files, staging. Blocking; knows no database.

``blobs/ab/<sha256>`` holds bytes under their hash, ``hosted/<hosted name>`` is a link to a blob, ``staging/`` is
for files on their way. All three are on one file system, so every file gets its place by a rename or a link.
"""

import logging
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.core.errors import StoreFailedError
from service.core.store_ports import NewArtifact
from service.stores.disk import link, link_over, make_folders, seal, sha256_of, sync_folders
from service.stores.failures import translated

_SHA256 = re.compile(r"[0-9a-f]{64}")

_log = logging.getLogger(__name__)


class LocalFiles:
    """The three folders below ``root``; methods that write belong to one thread, but for `stage` and `fetch`.

    All methods raise StoreFailedError or StoreFullError for what the file system refuses.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hosted = root / "hosted"
        self._blobs = root / "blobs"
        self._staging = root / "staging"

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turns errors of the file system into errors of the core."""
        with translated("the artifact folder", self.root):
            yield

    def prepare(self) -> None:
        """Makes the folders and removes what an earlier life of the service left in staging."""
        with self.translated():
            if self._staging.exists():
                shutil.rmtree(self._staging)
            for folder in (self._blobs, self.hosted, self._staging):
                folder.mkdir(exist_ok=True)
            sync_folders([self.root])

    def stage(self) -> Path:
        """A fresh folder in staging."""
        with self.translated():
            folder = self._staging / uuid.uuid4().hex
            folder.mkdir()
            return folder

    def unstage(self, folder: Path) -> None:
        """Removes a folder of staging; never raises for the file system, the next start tries again."""
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            pass
        except OSError:
            _log.warning("a staging folder could not be removed", exc_info=True)

    def blob(self, sha256: str) -> Path:
        """Where the bytes of a hash are.

        Raises:
            ValueError: it is no SHA-256 in lower-case hex.
        """
        if _SHA256.fullmatch(sha256) is None:
            raise ValueError(f"'{sha256}' is no SHA-256 in lower-case hex")
        return self._blobs / sha256[:2] / sha256

    def seal(self, artifacts: Iterable[NewArtifact]) -> set[str]:
        """Makes the sources read-only and durable; the hashes under which other bytes lie in the store.

        Raises:
            StoreFailedError: a source is no regular file of the size it is said to have.
        """
        damaged = set()
        with self.translated():
            for artifact in artifacts:
                if not seal(artifact.source, artifact.size_bytes):
                    raise StoreFailedError(
                        f"the bytes for {artifact.path.logical} are not a file of {artifact.size_bytes} bytes"
                    )
                blob = self.blob(artifact.sha256)
                if blob.exists() and sha256_of(blob) != artifact.sha256:
                    damaged.add(artifact.sha256)
        return damaged

    def place(self, artifacts: Sequence[NewArtifact], damaged: set[str]) -> None:
        """Moves sealed sources to their blobs; one whose bytes are there already stays where it is."""
        replaced = set(damaged)
        changed = set()
        with self.translated():
            for artifact in artifacts:
                blob = self.blob(artifact.sha256)
                if artifact.sha256 in replaced or not blob.exists():
                    changed |= make_folders(blob.parent) | {blob.parent}
                    artifact.source.replace(blob)
                    replaced.discard(artifact.sha256)
            sync_folders(changed)

    def host(self, hosted: Iterable[tuple[str, str]]) -> None:
        """Serves blobs under hosted names (name, SHA-256), in this order, over what was served before."""
        changed = set()
        with self.translated():
            for name, sha256 in hosted:
                target = self.hosted / name
                changed |= make_folders(target.parent) | {target.parent}
                link_over(self.blob(sha256), target, self._staging / f"hosting-{uuid.uuid4().hex}")
            sync_folders(changed)

    def remove_blob(self, sha256: str) -> None:
        """Removes the bytes of a hash, if they are there."""
        self._remove(self.blob(sha256))

    def remove_hosted(self, name: str) -> None:
        """Removes a hosted file, if it is there."""
        self._remove(self.hosted / name)

    def _remove(self, file: Path) -> None:
        with self.translated():
            if file.parent.is_dir():
                file.unlink(missing_ok=True)
                sync_folders([file.parent])

    def fetch(self, sha256: str, folder: Path) -> Path:
        """A link to the bytes of a hash in ``folder``, checked.

        Raises:
            StoreFailedError: the bytes are missing or have changed.
        """
        with self.translated():
            blob, fetched = self.blob(sha256), folder / f"fetched-{uuid.uuid4().hex}"
            if not blob.is_file():
                raise StoreFailedError("the stored bytes of an artifact are missing")
            link(blob, fetched)
            if sha256_of(fetched) != sha256:
                raise StoreFailedError("the stored bytes of an artifact are damaged: their SHA-256 has changed")
            return fetched

    def piece(self, sha256: str, at: int, size_bytes: int) -> bytes:
        """At most ``size_bytes`` bytes from ``at`` on.

        Raises:
            StoreFailedError: the blob is missing or ends before ``at``.
        """
        with self.translated(), self.blob(sha256).open("rb", buffering=0) as stream:
            piece = os.pread(stream.fileno(), size_bytes, at)
        if not piece:
            raise StoreFailedError("the stored bytes of an artifact are cut off")
        return piece
