"""Files of conversations: their bytes on the local disk, their versions in SQLite.

A save is one step for everybody who asks: the rows of all its files appear in one transaction. What it puts on the
disk before that is written down first (table ``unfinished``), so that a save that was cut short, by a full disk or
by a crash, is undone: by itself, by the next save, or when the store is opened again.
"""

import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from contracts.paths import FilePath, Namespace
from service.core.errors import OurError, StoreFailedError
from service.core.scopes import Scope
from service.core.store_ports import NewArtifact, StoredArtifact
from service.stores.hosting import hosted_name, hosted_name_in, hosted_uri, key_of, rn_of
from service.stores.local_files import LocalFiles
from service.stores.sqlite import Database, ensure_conversation, find_conversation, transaction, utc_now
from service.stores.threads import in_thread

T = TypeVar("T")

_PIECE_BYTES = 256 * 1024
_FILE_THREADS = 4  # hashing and syncing: a few at once keep a disk busy

_log = logging.getLogger(__name__)


class LocalArtifactStore:
    """The port ``ArtifactStore`` on a folder.

    Args:
        database: the open database of the same data folder; it keeps other processes out of the folder.
        data_dir: the folder.
    """

    def __init__(self, database: Database, data_dir: Path) -> None:
        self._database = database
        self._files = LocalFiles(data_dir.resolve())
        self._threads: ThreadPoolExecutor | None = None

    async def open(self) -> None:
        """Makes the folders, removes what was left in staging and undoes saves that were cut short.

        Raises:
            StoreFailedError: the folder or the database cannot be used.
            StoreFullError: no space is left.
        """
        self._threads = ThreadPoolExecutor(_FILE_THREADS, "artifact-files")
        try:
            await self._database.write_alone(self._recover)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Waits for what is under way; a second call does nothing."""
        if self._threads is not None:
            self._threads.shutdown()
        self._threads = None

    @asynccontextmanager
    async def staging(self) -> AsyncIterator[Path]:
        """A fresh folder on the store's file system, removed on exit.

        Raises:
            StoreFailedError: it cannot be made.
            StoreFullError: no space is left.
        """
        folder = await self._off_loop(self._files.stage)
        try:
            yield folder
        finally:
            await self._off_loop(partial(self._files.unstage, folder))

    async def save(self, scope: Scope, artifacts: Sequence[NewArtifact]) -> list[StoredArtifact]:
        """Stores all of them as new versions and hosts the external ones, or does nothing.

        The sources are moved or left in staging; either way they are the store's from now on.

        Raises:
            StoreFailedError: a source is not the file it is said to be, or the disk or database failed.
            StoreFullError: no space is left.
        """
        if not artifacts:
            return []
        damaged = await self._off_loop(partial(self._files.seal, artifacts))
        return await self._database.write_alone(partial(self._save, scope, artifacts, damaged))

    async def latest(self, scope: Scope, path: FilePath) -> StoredArtifact | None:
        """The latest version of a path, if there is one."""

        def work(connection: sqlite3.Connection) -> StoredArtifact | None:
            row = connection.execute(
                "SELECT * FROM artifacts WHERE conversation = ? AND turn = ? AND namespace = ? AND rel = ? "
                "ORDER BY version DESC LIMIT 1",
                (find_conversation(connection, scope), path.turn_id, path.namespace.value, path.rel),
            ).fetchone()
            return None if row is None else self._stored(scope, row)

        return await self._database.read(work)

    async def of_turn(self, scope: Scope, turn_id: str) -> list[StoredArtifact]:
        """The latest versions of all files and attachments of a turn, in the order of their paths."""

        def work(connection: sqlite3.Connection) -> list[StoredArtifact]:
            rows = connection.execute(
                "SELECT * FROM artifacts AS found WHERE conversation = ? AND turn = ? AND version = "
                "(SELECT MAX(version) FROM artifacts WHERE conversation = found.conversation "
                "AND turn = found.turn AND namespace = found.namespace AND rel = found.rel)",
                (find_conversation(connection, scope), turn_id),
            ).fetchall()
            return [self._stored(scope, row) for row in rows]

        return sorted(await self._database.read(work), key=lambda artifact: artifact.path)

    async def fetch(self, scope: Scope, artifact: StoredArtifact, staging: Path) -> Path:
        """A link to the bytes of that version, named below ``staging``, its SHA-256 checked.

        A link costs no copy, goes with the staging folder and outlives the blob's own name. It shares the bytes
        of the blob, which is why blobs are read-only files.

        Raises:
            StoreFailedError: this conversation has no such version, or its bytes are missing or damaged.
        """
        sha256, _ = await self._content(scope, artifact)
        return await self._off_loop(partial(self._files.fetch, sha256, staging))

    async def read(self, scope: Scope, artifact: StoredArtifact, start: int, end: int) -> AsyncIterator[bytes]:
        """The bytes from ``start`` to before ``end`` or the file's end, in pieces of at most 256 KiB.

        Raises:
            StoreFailedError: this conversation has no such version, or its bytes are missing or cut off.
        """
        sha256, size_bytes = await self._content(scope, artifact)
        at, end = max(start, 0), min(end, size_bytes)
        while at < end:
            # Opened for each piece: a reader that goes away in the middle leaves no open file behind.
            piece = await self._off_loop(partial(self._files.piece, sha256, at, min(_PIECE_BYTES, end - at)))
            yield piece
            at += len(piece)

    async def fetch_uri(self, scope: Scope, uri: str, staging: Path) -> Path | None:
        """The latest hosted bytes behind a URI of the scope's tenant and project, as `fetch` gives them.

        The URI is looked up among the hosted names in the database; no path that a caller wrote is ever opened,
        so neither ``..`` nor a symbolic link can lead elsewhere.

        Raises:
            StoreFailedError: the bytes are missing or damaged.
        """
        name = hosted_name_in(self._files.hosted, uri)
        if name is None:
            return None

        def work(connection: sqlite3.Connection) -> str | None:
            row = connection.execute(
                "SELECT sha256 FROM artifacts "
                "JOIN conversations ON conversations.id = artifacts.conversation "
                "JOIN principals ON principals.id = conversations.principal "
                "WHERE hosted_name = ? AND tenant = ? AND project = ? ORDER BY version DESC LIMIT 1",
                (name, scope.principal.tenant, scope.principal.project),
            ).fetchone()
            return None if row is None else str(row["sha256"])

        sha256 = await self._database.read(work)
        return None if sha256 is None else await self._off_loop(partial(self._files.fetch, sha256, staging))

    # ---- asked of the database ----

    def _stored(self, scope: Scope, row: sqlite3.Row) -> StoredArtifact:
        path = FilePath(row["turn"], Namespace(row["namespace"]), row["rel"])
        hosted = row["hosted_name"]
        return StoredArtifact(
            path=path,
            version=row["version"],
            size_bytes=row["size_bytes"],
            sha256=row["sha256"],
            mime=row["mime"],
            visibility=row["visibility"],
            description=row["description"],
            created=row["created"],
            hosted_uri=None if hosted is None else hosted_uri(self._files.hosted, hosted),
            rn=None if hosted is None else rn_of(scope, path),
            key=None if hosted is None else key_of(scope, path),
        )

    async def _content(self, scope: Scope, artifact: StoredArtifact) -> tuple[str, int]:
        # Asked by scope and version, not by the hash at hand: a hash must not open another's bytes.
        def work(connection: sqlite3.Connection) -> tuple[str, int]:
            path = artifact.path
            row = connection.execute(
                "SELECT sha256, size_bytes FROM artifacts WHERE conversation = ? AND turn = ? "
                "AND namespace = ? AND rel = ? AND version = ?",
                (
                    find_conversation(connection, scope),
                    path.turn_id,
                    path.namespace.value,
                    path.rel,
                    artifact.version,
                ),
            ).fetchone()
            if row is None:
                raise StoreFailedError(
                    f"version {artifact.version} of {path.logical} is not stored in this conversation"
                )
            return row["sha256"], row["size_bytes"]

        return await self._database.read(work)

    # ---- blocking work ----

    async def _off_loop(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise StoreFailedError("the artifact store is closed")
        return await in_thread(self._threads, work)

    # The rest runs in the writer's thread, so that no two of it ever overlap.

    def _save(
        self,
        scope: Scope,
        artifacts: Sequence[NewArtifact],
        damaged: set[str],
        connection: sqlite3.Connection,
    ) -> list[StoredArtifact]:
        self._undo(connection)
        names = {f"blobs/{artifact.sha256}" for artifact in artifacts}
        names |= {f"hosted/{hosted_name(scope, a.path)}" for a in artifacts if a.visibility == "external"}
        with transaction(connection):
            connection.executemany("INSERT INTO unfinished VALUES (?)", [(name,) for name in names])
        try:
            self._files.place(artifacts, damaged)
            with transaction(connection):
                rows = [_insert(connection, scope, artifact) for artifact in artifacts]
                connection.execute("DELETE FROM unfinished")
                # Last before the commit, so that the hosted file and the latest row change together.
                self._files.host((row["hosted_name"], row["sha256"]) for row in rows if row["hosted_name"])
        except Exception:
            self._undo_soon(connection)
            raise
        return [self._stored(scope, row) for row in rows]

    def _undo_soon(self, connection: sqlite3.Connection) -> None:
        try:
            self._undo(connection)
        except (sqlite3.Error, OurError):
            # Nothing is lost: the names stay in the table for the next save or the next start.
            _log.warning("a failed save could not be undone yet", exc_info=True)

    def _undo(self, connection: sqlite3.Connection) -> None:
        """Gives every name of ``unfinished`` what the committed rows say; removes it if they say nothing."""
        names = [row["name"] for row in connection.execute("SELECT name FROM unfinished").fetchall()]
        for name in names:
            folder, _, rest = name.partition("/")
            if folder == "hosted":
                row = connection.execute(
                    "SELECT sha256 FROM artifacts WHERE hosted_name = ? ORDER BY version DESC LIMIT 1", (rest,)
                ).fetchone()
                if row is None:
                    self._files.remove_hosted(rest)
                else:
                    self._files.host([(rest, row["sha256"])])
            elif connection.execute("SELECT 1 FROM artifacts WHERE sha256 = ?", (rest,)).fetchone() is None:
                self._files.remove_blob(rest)
        if names:
            connection.execute("DELETE FROM unfinished")

    def _recover(self, connection: sqlite3.Connection) -> None:
        self._files.prepare()
        self._undo(connection)


def _insert(connection: sqlite3.Connection, scope: Scope, artifact: NewArtifact) -> sqlite3.Row:
    conversation, _ = ensure_conversation(connection, scope)
    path = artifact.path
    where = (conversation, path.turn_id, path.namespace.value, path.rel)
    # A description is a model's text; SQLite takes no lone surrogates.
    description = artifact.description.encode(errors="replace").decode()
    row: sqlite3.Row = connection.execute(
        "INSERT INTO artifacts (conversation, turn, namespace, rel, version, sha256, size_bytes, mime, "
        "visibility, description, tool_call_id, created, hosted_name) VALUES (?, ?, ?, ?, "
        "(SELECT COALESCE(MAX(version), 0) + 1 FROM artifacts "
        "WHERE conversation = ? AND turn = ? AND namespace = ? AND rel = ?), "
        "?, ?, ?, ?, ?, ?, ?, ?) RETURNING *",
        (
            *where,
            *where,
            artifact.sha256,
            artifact.size_bytes,
            artifact.mime,
            artifact.visibility,
            description,
            artifact.tool_call_id,
            utc_now(),
            hosted_name(scope, path) if artifact.visibility == "external" else None,
        ),
    ).fetchone()
    return row
