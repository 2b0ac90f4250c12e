"""A backup of a data folder in one file: the records in SQLite and the bytes of files; the service may run.

The file is a tar archive: ``backup.json`` describes it, ``blobs/<sha256>`` are the bytes, ``database.sqlite3``
is a snapshot that SQLite makes in one transaction, and ``end.json`` closes it with hashes. Signed audit heads are
read before the snapshot, bytes after the snapshot that names them. If a deletion removes some of them in between,
the next snapshot does not name them, and that one is stored; so each file that the stored snapshot names is in the
archive.

Not in it: the private keys that sign download links and audit heads, so that who reads a backup cannot sign.
"""

import hashlib
import io
import json
import os
import secrets
import sqlite3
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from proofbox.service.errors import StoreFailedError
from proofbox.service.storage.artifacts.durable_files import sha256_of, sync_folders
from proofbox.service.storage.conversation_rows import utc_now
from proofbox.service.storage.error_translation import translate_errors

FORMAT = "proofbox-backup-1"
DATABASE, HEADS, FIRST, LAST = "database.sqlite3", "audit-heads.jsonl", "backup.json", "end.json"
BLOBS = "blobs/"
_SNAPSHOTS_MAX = 3
_BUSY_TIMEOUT_S = 30
_ROLE = "the backup"


@dataclass(frozen=True, slots=True)
class BackupHead:
    """What a backup is: its first member.

    Attributes:
        format: how it is to be read.
        release: the release that made it.
        schema: the schema of its database.
        created: when: UTC, RFC 3339, ``Z``.
    """

    format: str
    release: str
    schema: str
    created: str


@dataclass(frozen=True, slots=True)
class BackupEnd:
    """What a whole backup has: its last member.

    Attributes:
        database_sha256: the hash of its database.
        heads_sha256: the hash of its records of signed audit heads; None if there were none.
        blobs: how many different contents of files it has.
        blob_bytes: their bytes.
        damaged: hashes of contents that were missing or damaged in the data folder already.
    """

    database_sha256: str
    heads_sha256: str | None
    blobs: int
    blob_bytes: int
    damaged: tuple[str, ...] = ()


class Backup:
    """Writes the backup of a data folder.

    Args:
        data_dir: the data folder.
        heads: the file of the records of signed audit heads.
        release: the release that makes it.
        progress: called with a line for people now and then.
    """

    def __init__(self, data_dir: Path, heads: Path, release: str, progress: Callable[[str], None]) -> None:
        self._data_dir = data_dir
        self._heads = heads
        self._release = release
        self._progress = progress
        self._written: set[str] = set()
        self._blob_bytes = 0

    def write(self, target: Path) -> BackupEnd:
        """Write the backup; the file appears when it is whole.

        Raises:
            StoreFailedError: the target exists, the folder has no database, or something cannot be read or written.
            StoreFullError: no space is left.
        """
        if target.exists():
            raise StoreFailedError(f"{target.name}: the file exists; name another one or move it away")
        database = self._data_dir / "proofbox.sqlite3"
        if not database.is_file():
            raise StoreFailedError("data_dir: the folder has no database of the service; set PROOFBOX_DATA_DIR")
        with translate_errors(_ROLE, target.absolute().parent):
            part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
            try:
                with os.fdopen(
                    os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
                ) as stream:
                    end = self._write(stream, database, target.absolute().parent)
                    stream.flush()
                    os.fsync(stream.fileno())
                os.link(part, target)  # not a rename: the file that somebody made meanwhile stays
            except FileExistsError as exc:
                raise StoreFailedError(f"{target.name}: the file exists; name another one or move it away") from exc
            finally:
                part.unlink(missing_ok=True)
            sync_folders([target.absolute().parent])
        return end

    def _write(self, stream: BinaryIO, database: Path, beside: Path) -> BackupEnd:
        with (
            tempfile.TemporaryDirectory(prefix=".proofbox-backup-", dir=beside) as folder,
            tarfile.open(fileobj=stream, mode="w", dereference=True) as archive,  # hosted files are links
        ):
            # Before the snapshot, which then has every line that a head signs.
            heads = self._read_heads()
            snapshot = Path(folder) / DATABASE
            schema = _take_snapshot(database, snapshot)
            _add_json(archive, FIRST, BackupHead(FORMAT, self._release, schema, utc_now()))
            damaged = self._add_blobs(archive, snapshot)
            for _ in range(_SNAPSHOTS_MAX - 1):
                if not damaged:
                    break
                # They were deleted after the snapshot, or are lost: a later snapshot decides.
                _take_snapshot(database, snapshot)
                damaged = self._add_blobs(archive, snapshot)
            heads_sha256 = None if heads is None else _add_heads(archive, heads)
            archive.add(snapshot, DATABASE, filter=_anonymous)
            end = BackupEnd(
                sha256_of(snapshot), heads_sha256, len(self._written), self._blob_bytes, tuple(sorted(damaged))
            )
            _add_json(archive, LAST, end)
            return end

    def _add_blobs(self, archive: tarfile.TarFile, snapshot: Path) -> set[str]:
        """Add what the snapshot names and the archive does not have; what is not there as it should be."""
        wanted = sorted(named_hashes(snapshot) - self._written)
        damaged = set()
        for number, sha256 in enumerate(wanted):
            if number and number % 1_000 == 0:
                self._progress(f"{number} of {len(wanted)} files")
            size_bytes = self._add_blob(archive, sha256)
            if size_bytes is None:
                damaged.add(sha256)
            else:
                self._written.add(sha256)
                self._blob_bytes += size_bytes
        return damaged

    def _add_blob(self, archive: tarfile.TarFile, sha256: str) -> int | None:
        blob = self._data_dir / "blobs" / sha256[:2] / sha256
        with suppress(FileNotFoundError):
            # Twice read, and the second time from memory: a tar archive cannot take a member back.
            size_bytes = blob.stat().st_size
            if sha256_of(blob) == sha256:
                archive.add(blob, f"{BLOBS}{sha256}", filter=_anonymous)
                archive.members = []  # type: ignore[attr-defined]  # what was written is not needed again
                return size_bytes
        return None

    def _read_heads(self) -> bytes | None:
        try:
            return self._heads.read_bytes()
        except FileNotFoundError:
            return None


def _add_heads(archive: tarfile.TarFile, content: bytes) -> str:
    _add_bytes(archive, HEADS, content)
    return hashlib.sha256(content).hexdigest()


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o600
    return member


def _add_json(archive: tarfile.TarFile, name: str, value: BackupHead | BackupEnd) -> None:
    _add_bytes(archive, name, json.dumps(asdict(value), indent=2).encode())


def _add_bytes(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), 0o600
    archive.addfile(member, io.BytesIO(content))


@contextmanager
def opened(database: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file that exists."""
    name = f"file:{quote(str(database.resolve()))}?mode=rw"
    with closing(sqlite3.connect(name, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None)) as connection:
        yield connection


def _take_snapshot(database: Path, into: Path) -> str:
    """Copy the database as it is at one moment, and check the copy; its schema."""
    into.unlink(missing_ok=True)
    with opened(database) as source, closing(sqlite3.connect(into)) as copy:
        source.backup(copy)  # in one step, so that no writer makes it begin again
        copy.execute("PRAGMA journal_mode = DELETE")
        require_sound(copy)
        return schema_of(copy)


def require_sound(connection: sqlite3.Connection) -> None:
    """Require that a database is whole.

    Raises:
        StoreFailedError: it is damaged.
    """
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise StoreFailedError(f"the database of artifacts, sources and calls is damaged: {found[:200]}")


def schema_of(connection: sqlite3.Connection) -> str:
    """The schema of a database of the service.

    Raises:
        StoreFailedError: it has none.
    """
    try:
        found = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    except sqlite3.OperationalError:
        found = None
    if found is None:
        raise StoreFailedError("the database has no schema number; it is not one of the service")
    return str(found[0])


def named_hashes(database: Path) -> set[str]:
    """The hashes of all files and workspaces that a database has."""
    with opened(database) as connection:
        known = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = list(connection.execute("SELECT DISTINCT sha256 FROM artifacts"))
        if "workspaces" in known:  # since schema 3
            found += connection.execute("SELECT DISTINCT sha256 FROM workspaces")
        return {sha256 for (sha256,) in found}
