"""Restoration of a backup into a new data folder: all of it is checked before the folder appears."""

import hashlib
import os
import re
import secrets
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.artifacts.blob_port import ServedFile
from proofbox.service.storage.artifacts.durable_files import READ_ONLY, sync_folders
from proofbox.service.storage.artifacts.local_blobs import LocalBlobStore
from proofbox.service.storage.backup import (
    BLOBS,
    DATABASE,
    FIRST,
    FORMAT,
    HEADS,
    LAST,
    BackupEnd,
    BackupHead,
    named_hashes,
    opened,
    require_sound,
    schema_of,
)
from proofbox.service.storage.conversation_rows import DELETED
from proofbox.service.storage.error_translation import translate_errors
from proofbox.service.storage.migrations import revisions

T = TypeVar("T", BackupHead, BackupEnd)
_PIECE_BYTES = 1024 * 1024
_JSON_BYTES_MAX = 64 * 1024 * 1024  # the hashes of damaged files may be many
_BLOB = re.compile(re.escape(BLOBS) + r"([0-9a-f]{64})")
_HOSTED_AT_ONCE = 100
_DATABASE_FILE = "proofbox.sqlite3"
_OF_FILE_SYSTEMS = frozenset({"lost+found"})  # in the root of an empty disk
# The later versions last, so that they are the ones that stay; not those of conversations that are being deleted.
_HOSTED = """
    SELECT hosted_name, sha256, mime, rel FROM artifacts
    JOIN conversations ON conversations.id = artifacts.conversation
    JOIN principals ON principals.id = conversations.principal
    WHERE hosted_name IS NOT NULL AND principals.tenant <> ?
    ORDER BY version
"""


def restore(file: Path, data_dir: Path) -> tuple[BackupHead, BackupEnd]:
    """Restore a backup.

    The database forgets the keys that signed its audit heads, because their private halves are not in a backup: the
    next start makes another key. The earlier records are put beside, under a name with the time of the backup.

    Args:
        file: the backup.
        data_dir: the folder to make; it may exist if it is empty, also as a mount.

    Raises:
        StoreFailedError: the folder is not empty, the file is no whole backup or was changed, or a newer release
            made it; the folder is as it was.
        StoreFullError: no space is left; the folder is as it was.
    """
    with translate_errors("the data folder", data_dir.absolute().parent):
        is_mount = data_dir.is_mount()
        if data_dir.exists() and not _is_empty(data_dir, _OF_FILE_SYSTEMS if is_mount else frozenset()):
            raise StoreFailedError(
                "data_dir: the folder is not empty; name an empty or new one by PROOFBOX_DATA_DIR"
            )
        parent = data_dir.absolute().parent
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A mounted folder cannot be replaced: it is filled in place.
        fresh = (data_dir if is_mount else parent) / f".{data_dir.name}.{secrets.token_hex(4)}.restoring"
        fresh.mkdir(mode=0o700)
        try:
            head, end = _fill(file, fresh)
            if is_mount:
                _move_up(fresh)
            else:
                fresh.replace(data_dir)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        sync_folders([data_dir if is_mount else parent])
    return head, end


def count_agents(data_dir: Path) -> int:
    """How many agents a restored database has: their webhook secrets change with the key of the data folder."""
    with opened(data_dir / _DATABASE_FILE) as connection:
        # A backup of an earlier release has no agents.
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'agents'").fetchone() is None:
            return 0
        (count,) = connection.execute("SELECT count(*) FROM agents WHERE deleted IS NULL").fetchone()
        return int(count)


def _is_empty(folder: Path, apart_from: frozenset[str]) -> bool:
    return folder.is_dir() and all(path.name in apart_from for path in folder.iterdir())


def _move_up(fresh: Path) -> None:
    """Move what a folder holds into the one above, the database last: no service uses a folder without it."""
    with suppress(PermissionError):  # of another user's folder, whose group may write
        fresh.parent.chmod(0o700)
    for path in sorted(fresh.iterdir(), key=lambda path: path.name == _DATABASE_FILE):
        path.rename(fresh.parent / path.name)
    fresh.rmdir()


def _fill(file: Path, folder: Path) -> tuple[BackupHead, BackupEnd]:
    with _archive(file) as archive:
        unpacked = _Unpacked(folder)
        for member in archive:
            unpacked.take(archive, member)
            archive.members = []  # type: ignore[attr-defined]  # it is not needed again
    head, end = unpacked.whole()
    database = folder / _DATABASE_FILE
    wanted = named_hashes(database)
    if missing := wanted - unpacked.blobs - set(end.damaged):
        raise StoreFailedError(f"the backup lacks {len(missing)} files that its database names; use another one")
    for sha256 in unpacked.blobs - wanted:  # deleted while the backup was made
        unpacked.blob(sha256).unlink()
    _adapt_database(database)
    _host_files(folder, database, wanted & unpacked.blobs)
    if end.heads_sha256 is not None:
        aside = re.sub(r"[^0-9TZ]", "", head.created.partition(".")[0]) + "Z"
        (folder / HEADS).rename(folder / f"{HEADS}.{aside}")
    sync_folders([folder, folder / "blobs", *(folder / "blobs").iterdir()])
    return head, end


@contextmanager
def _archive(file: Path) -> Iterator[tarfile.TarFile]:
    try:
        with tarfile.open(file, "r:") as archive:
            yield archive
    except tarfile.TarError as exc:
        raise StoreFailedError(f"{file.name}: not a whole backup of the service ({exc})") from exc


class _Unpacked:
    """The members of a backup, each checked on its way into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._head: BackupHead | None = None
        self._end: BackupEnd | None = None
        self._hashes: dict[str, str] = {}
        self._blob_bytes = 0
        self.blobs: set[str] = set()

    def blob(self, sha256: str) -> Path:
        """Where the bytes of a hash lie."""
        return self._folder / "blobs" / sha256[:2] / sha256

    def take(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        """Unpack one member.

        Raises:
            StoreFailedError: it belongs to no backup, was changed, or this release cannot read the backup.
        """
        if self._end is not None or not member.isreg() or member.name in self._hashes:
            raise _not_sound(f"the member {member.name[:100]!a} is out of place")
        if self._head is None:
            self._head = self._first(archive, member)
            return
        blob = _BLOB.fullmatch(member.name)
        if blob is not None:
            target = self.blob(blob[1])
            target.parent.mkdir(parents=True, exist_ok=True)
            if self._unpack(archive, member, target) != blob[1]:
                raise _not_sound(f"the bytes of {member.name} have changed")
            target.chmod(READ_ONLY)
            self.blobs.add(blob[1])
            self._blob_bytes += member.size
        elif member.name == DATABASE:
            self._unpack(archive, member, self._folder / _DATABASE_FILE)
        elif member.name == HEADS:
            self._unpack(archive, member, self._folder / HEADS)
        elif member.name == LAST:
            self._end = _parse(archive, member, BackupEnd)
        else:
            raise _not_sound(f"the member {member.name[:100]!a} belongs to no backup")

    @staticmethod
    def _first(archive: tarfile.TarFile, member: tarfile.TarInfo) -> BackupHead:
        if member.name != FIRST:
            raise StoreFailedError("the file is not a backup of the service; name one that 'proofbox backup' made")
        head = _parse(archive, member, BackupHead)
        if head.format != FORMAT or head.schema not in revisions():
            raise StoreFailedError(
                f"the backup was made by release {head.release[:40]} with schema {head.schema[:40].lstrip('0')}, "
                f"and this release knows {revisions()[-1].lstrip('0')}; restore it with the newer release"
            )
        return head

    def _unpack(self, archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> str:
        stream = archive.extractfile(member)
        if stream is None:
            raise _not_sound(f"the member {member.name[:100]!a} has no bytes")
        digest = hashlib.sha256()
        with stream, target.open("xb") as file:
            target.chmod(0o600)
            while piece := stream.read(_PIECE_BYTES):
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        self._hashes[member.name] = digest.hexdigest()
        return self._hashes[member.name]

    def whole(self) -> tuple[BackupHead, BackupEnd]:
        """Check that nothing is missing.

        Raises:
            StoreFailedError: the backup ends too early, or a member was changed.
        """
        if self._head is None or self._end is None:
            raise _not_sound("its end is missing")
        end = self._end
        if (self._hashes.get(DATABASE), self._hashes.get(HEADS)) != (end.database_sha256, end.heads_sha256):
            raise _not_sound("its database or its signed heads have changed")
        if (len(self.blobs), self._blob_bytes) != (end.blobs, end.blob_bytes):
            raise _not_sound("files are missing in it")
        return self._head, end


def _parse(archive: tarfile.TarFile, member: tarfile.TarInfo, model: type[T]) -> T:
    stream = archive.extractfile(member)
    if stream is None or member.size > _JSON_BYTES_MAX:
        raise _not_sound(f"{member.name} is too large")
    try:
        return TypeAdapter(model).validate_json(stream.read())
    except ValidationError as exc:
        raise _not_sound(f"{member.name} cannot be read") from exc


def _not_sound(why: str) -> StoreFailedError:
    return StoreFailedError(f"the backup is damaged or was changed: {why}; use another one")


def _adapt_database(database: Path) -> None:
    with opened(database) as connection:
        require_sound(connection)
        schema_of(connection)
        connection.execute("DELETE FROM audit_keys")


def _host_files(folder: Path, database: Path, there: set[str]) -> None:
    """Make the hosted names, which are links to the bytes."""
    store = LocalBlobStore(folder)
    store.prepare()
    with opened(database) as connection, closing(connection.execute(_HOSTED, (DELETED,))) as found:
        while some := found.fetchmany(_HOSTED_AT_ONCE):
            served = {
                name: ServedFile(sha256, mime, rel.rpartition("/")[2])
                for name, sha256, mime, rel in some
                if sha256 in there
            }
            store.host(served)
