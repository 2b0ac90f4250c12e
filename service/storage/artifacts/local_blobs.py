"""Artifacts in a local folder: blobs, hosted files, staging.

``blobs/ab/<sha256>`` holds bytes under their hash, ``hosted/<hosted name>`` is a link to a blob, ``staging/`` is
for files on their way. All three are on one file system, so every file gets its place by a rename or a link.
"""

import os
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from typing_extensions import override

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import DamagedBytesError, NewArtifact
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts.blob_port import (
    CHANGED,
    CUT_OFF,
    LOST,
    BlobStore,
    ServedFile,
    checked_sha256,
    is_sha256,
    wrong_size,
)
from proofbox.service.storage.artifacts.durable_files import (
    gone_if_it_fails,
    link,
    link_over,
    make_folders,
    seal,
    sha256_of,
    sync_folders,
    write_durably,
)
from proofbox.service.storage.artifacts.hosted_names import hosted_name, hosted_name_in, hosted_uri
from proofbox.service.storage.artifacts.staging import Staging
from proofbox.service.storage.error_translation import translate_errors


class LocalBlobStore(BlobStore):
    """The BlobStore on the three folders below ``root``."""

    threads = 16  # most of their time they wait for the disk, which writes for all of them at once
    at_once = 16
    piece_bytes = 256 * 1024

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.hosted = self.root / "hosted"
        self._blobs = self.root / "blobs"
        self._staging = Staging(self.root / "staging")
        self._making = threading.Lock()

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Translate errors of the file system."""
        with translate_errors("the artifact folder", self.root):
            yield

    @override
    def prepare(self) -> None:
        with self.translate_errors():
            for folder in (self._blobs, self.hosted):
                folder.mkdir(exist_ok=True)
            self._staging.prepare()
            sync_folders([self.root])

    @override
    def stage(self) -> Path:
        with self.translate_errors():
            return self._staging.stage()

    @override
    def unstage(self, folder: Path) -> None:
        self._staging.unstage(folder)

    def blob(self, sha256: str) -> Path:
        """Return the file of a hash.

        Raises:
            ValueError: it is not a SHA-256 in lower-case hex.
        """
        return self._blobs / checked_sha256(sha256)[:2] / sha256

    @override
    def seal(self, artifacts: Sequence[NewArtifact]) -> None:
        in_files: list[tuple[Path, int]] = []
        for artifact in artifacts:
            checked_sha256(artifact.sha256)
            if artifact.source.path is not None:
                in_files.append((artifact.source.path, artifact.size_bytes))
            elif not artifact.source.has_size(artifact.size_bytes):
                raise wrong_size(artifact)
        with self.translate_errors():
            wrong = seal(in_files)
        if wrong is not None:
            raise wrong_size(next(each for each in artifacts if (each.source.path, each.size_bytes) == wrong))

    @override
    def place(self, artifacts: Sequence[NewArtifact]) -> None:
        with self.translate_errors():
            files: dict[Path, Path] = {}  # by the blobs that they become
            contents: dict[Path, bytes] = {}
            for artifact in artifacts:
                blob, source = self.blob(artifact.sha256), artifact.source.source
                if blob.exists() and sha256_of(blob) == artifact.sha256:
                    continue
                if isinstance(source, bytes):
                    files[blob] = self._passing()
                    contents[files[blob]] = source
                else:
                    files[blob] = source
            with gone_if_it_fails(contents):
                write_durably(contents)
                for folder in {blob.parent for blob in files}:
                    self._make_folder(folder)
                for blob, file in files.items():
                    file.replace(blob)
            sync_folders({blob.parent for blob in files})

    @override
    def hosted_name(self, scope: ConversationKey, path: FilePath) -> str:
        return hosted_name(scope, path)

    @override
    def uri_of(self, name: str) -> str:
        return hosted_uri(name)

    @override
    def name_of_uri(self, uri: str) -> str | None:
        return hosted_name_in(uri)

    @override
    def host(self, served: Mapping[str, ServedFile]) -> None:
        with self.translate_errors():
            folders = set()
            for name, each in served.items():
                target = self.hosted / name
                if target.parent not in folders or not target.parent.is_dir():
                    self._make_folder(target.parent)
                    folders.add(target.parent)
                self._host(self.blob(each.sha256), target)
            sync_folders(folders)

    def _host(self, blob: Path, target: Path) -> None:
        try:
            link_over(blob, target, self._passing)
        except FileNotFoundError:
            if target.parent.is_dir():
                raise  # the blob is missing
            # The folder was removed at this moment with the last file in it.
            with self._making:
                sync_folders(make_folders(target.parent))
                link_over(blob, target, self._passing)

    @override
    def check(self) -> None:
        """Do nothing: the folder is checked with the data folder."""

    @override
    def link(self, served: ServedFile) -> None:
        """Return None: a folder has no links."""

    @override
    def end_uploads(self, sha256: str) -> None:
        """Do nothing: a rename is atomic."""

    def _passing(self) -> Path:
        """Return an unused name on the same file system."""
        return self._staging.folder / f"passing-{uuid.uuid4().hex}"

    def _make_folder(self, folder: Path) -> None:
        # One thread at a time: a folder that another thread created has to be durable before it is used.
        with self._making:
            sync_folders(make_folders(folder))

    @override
    def remove_blob(self, sha256: str) -> None:
        self._remove(self.blob(sha256))

    @override
    def remove_hosted(self, name: str) -> None:
        with self._making:
            self._remove(self.hosted / name)
            # Also its folders, whose names are those of the user and the conversation.
            with suppress(OSError):  # one is not empty
                for folder in (self.hosted / name).parents:
                    if folder == self.hosted:
                        break
                    folder.rmdir()

    def _remove(self, file: Path) -> None:
        with self.translate_errors():
            if file.parent.is_dir():
                file.unlink(missing_ok=True)
                sync_folders([file.parent])

    @override
    def fetch(self, hashes: Sequence[str], folder: Path) -> list[Path]:
        return [self._fetch(sha256, folder) for sha256 in hashes]

    def _fetch(self, sha256: str, folder: Path) -> Path:
        with self.translate_errors():
            blob, fetched = self.blob(sha256), folder / f"fetched-{uuid.uuid4().hex}"
            if not blob.is_file():
                raise DamagedBytesError(LOST, sha256)
            link(blob, fetched)
            if sha256_of(fetched) != sha256:
                raise DamagedBytesError(CHANGED, sha256)
            return fetched

    @override
    def piece(self, sha256: str, at: int, size_bytes: int) -> bytes:
        return self._read(self.blob(sha256), at, size_bytes)

    @override
    def hosted_piece(self, name: str, at: int, size_bytes: int) -> bytes:
        return self._read(self.hosted / name, at, size_bytes)

    def _read(self, file: Path, at: int, size_bytes: int) -> bytes:
        with self.translate_errors():
            try:
                stream = file.open("rb", buffering=0)
            except FileNotFoundError as exc:
                raise DamagedBytesError(LOST) from exc
            with stream:
                piece = os.pread(stream.fileno(), size_bytes, at)
        if not piece:
            raise DamagedBytesError(CUT_OFF)
        return piece

    @override
    def blob_bytes(self, sha256: str) -> int | None:
        return self._size(self.blob(sha256))

    @override
    def hosted_bytes(self, name: str) -> int | None:
        return self._size(self.hosted / name)

    def _size(self, file: Path) -> int | None:
        with self.translate_errors():
            try:
                return file.stat().st_size
            except FileNotFoundError:
                return None

    @override
    def is_linked(self, name: str, sha256: str) -> bool:
        with self.translate_errors():
            try:
                return (self.hosted / name).samefile(self.blob(sha256))
            except FileNotFoundError:
                return False

    @override
    def list_blobs(self) -> Iterator[str]:
        with self.translate_errors():
            yield from (name for _, _, names in os.walk(self._blobs) for name in names if is_sha256(name))

    @override
    def list_hosted(self) -> Iterator[str]:
        with self.translate_errors():
            for folder, _, names in os.walk(self.hosted):
                below = Path(folder).relative_to(self.hosted)
                yield from ((below / name).as_posix() for name in names)
