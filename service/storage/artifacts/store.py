"""Files of conversations: their versions in the database, their bytes in a folder or a bucket.

A save is atomic for readers: one transaction adds the rows of all its files and of the sources that external files
are. Bytes are written outside of any transaction, so that a slow disk or server delays no other write:

1. a transaction records the blobs that the save is about to add (`save_journal`, table ``unfinished``), while files
   are sealed where they are,
2. the blobs are put in place; contents that came as bytes are written for that,
3. one transaction adds the rows and ends the record: of the files of a call that which stores its answer,
4. the latest rows are hosted: no lock is held over a request to the bytes, and the last one to host a name finds
   the latest row.

An incomplete save (a full disk, a lost server, a crash) is undone from the journal: by itself, by the next save, by
the sweeper, or when the store is opened again. Bytes that cannot be removed fail none of these.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager
from functools import partial
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any, TypeVar, cast

from sqlalchemy import Connection
from typing_extensions import override

from proofbox.contracts.paths import FilePath
from proofbox.service.artifacts.port import (
    BlocksOf,
    DamagedBytesError,
    DeletedFile,
    NewArtifact,
    NewSave,
    PreparedSave,
    SaveLostError,
    StoreAwayError,
    StoredArtifact,
)
from proofbox.service.concurrency import run_in_thread, wait_to_end
from proofbox.service.errors import StoreFailedError
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.blob_port import CHANGED, BlobStore, checked_sha256
from proofbox.service.storage.artifacts.checked_ranges import CheckedRanges
from proofbox.service.storage.artifacts.hosted_names import key_of, rn_of
from proofbox.service.storage.artifacts.key_locks import KeyLocks
from proofbox.service.storage.artifacts.prepared_save import SqlPreparedSave
from proofbox.service.storage.artifacts.rows import ArtifactRow
from proofbox.service.storage.artifacts.save_journal import SaveJournal, served_file
from proofbox.service.storage.artifacts.shared_names import BLOBS
from proofbox.service.storage.artifacts.whole_files import read_whole
from proofbox.service.storage.artifacts.workspaces import SqlWorkspaces, workspace_blob
from proofbox.service.storage.database import Database
from proofbox.service.storage.timing import StoreObserver, ignore, timed

T = TypeVar("T")

_YIELDED_BYTES_MAX = 256 * 1024
_RANGES = "ranges/"  # before the names of locks
_PAUSE_S, _PAUSE_S_MAX = 0.5, 5.0
_TAKEN_MAX = 2  # a process that is paused again and again gives up
_log = logging.getLogger(__name__)


class SqlArtifactStore(SqlWorkspaces):
    """The port ``ArtifactStore`` on a database and a place for bytes.

    Args:
        database: an open database, of this service alone.
        files: where the bytes are.
        owner: this process, if others share the database and the bytes; then `undo_lost` has to be called.
        retry_s: for how long saves and reads of whole files are tried again while the server of the bytes is away.
    """

    def __init__(self, database: Database, files: BlobStore, owner: str = "", retry_s: float = 0.0) -> None:
        self._retry_s = retry_s
        self._database = database
        self._files = files
        self.observer: StoreObserver = ignore
        self._threads: ThreadPoolExecutor | None = None
        self._locks = KeyLocks()
        self._saving: set[asyncio.Future[Any]] = set()
        self._journal = SaveJournal(database, files, self._locks, self._off_loop, owner)
        self._ranges = CheckedRanges(files, self._patiently_off_loop)

    async def open(self) -> None:
        """Make the byte side ready and undoes saves that were cut short.

        Raises:
            StoreFailedError: the byte side or the database cannot be used.
            StoreFullError: no space is left.
        """
        self._threads = ThreadPoolExecutor(self._files.threads, "artifact-files")
        try:
            await self._off_loop(self._files.prepare)
            await self._journal.recover()
        except BaseException:
            await self.close()
            raise

    def check_bytes(self) -> None:
        """Ask whether the bytes can be had; blocking, for seconds at most.

        Raises:
            StoreFailedError: they cannot.
        """
        self._files.check()

    async def close(self) -> None:
        """Wait for what is under way; a second call does nothing."""
        await self._journal.close()
        if self._saving:
            await asyncio.wait(self._saving)
        if self._threads is not None:
            self._threads.shutdown()
        self._threads = None

    @override
    @asynccontextmanager
    async def staging(self) -> AsyncIterator[Path]:
        folder = await self._off_loop(self._files.stage)
        try:
            yield folder
        finally:
            await self._off_loop(partial(self._files.unstage, folder))

    # ---- read ----

    @override
    async def latest(self, scope: ConversationKey, path: FilePath) -> StoredArtifact | None:
        row = await self._database.read(lambda connection: rows.latest(connection, scope, path))
        return None if row is None else self._build_stored(scope, row)

    @override
    async def version(self, scope: ConversationKey, path: FilePath, number: int) -> StoredArtifact | None:
        row = await self._database.read(lambda connection: rows.version(connection, scope, path, number))
        return None if row is None else self._build_stored(scope, row)

    @override
    async def of_turn(self, scope: ConversationKey, turn_id: str) -> list[StoredArtifact]:
        found = await self._database.read(lambda connection: rows.of_turn(connection, scope, turn_id))
        return sorted((self._build_stored(scope, row) for row in found), key=lambda artifact: artifact.path)

    @override
    async def listed(self, scope: ConversationKey, after: int, limit: int) -> list[tuple[int, StoredArtifact]]:
        found = await self._database.read(lambda connection: rows.listed(connection, scope, after, limit))
        return [(row.number, self._build_stored(scope, row)) for row in found]

    @override
    async def newest_of_names(self, scope: ConversationKey, limit: int) -> list[StoredArtifact]:
        found = await self._database.read(lambda connection: rows.newest_of_names(connection, scope, limit))
        return [self._build_stored(scope, row) for row in found]

    @override
    async def hosted_names(self, scope: ConversationKey, names: Collection[str]) -> set[str]:
        return await self._database.read(lambda connection: rows.hosted_names(connection, scope, names))

    @override
    async def deletions(self, scope: ConversationKey) -> dict[FilePath, DeletedFile]:
        return await self._database.read(lambda connection: rows.deletions(connection, scope))

    async def stored_bytes(self, tenant: str, project: str) -> int:
        """How many bytes all versions of the files of a project have; the same bytes twice count twice."""
        return await self._database.read(partial(rows.stored_bytes, tenant=tenant, project=project))

    async def fetch(self, scope: ConversationKey, artifact: StoredArtifact, staging: Path) -> Path:
        """A file below ``staging`` with the bytes of that version, their SHA-256 checked; read-only.

        Raises:
            StoreFailedError: this conversation has no such version, or its bytes are missing or damaged.
        """
        (fetched,) = await self.fetch_all(scope, [artifact], staging)
        return fetched

    @override
    async def fetch_all(
        self, scope: ConversationKey, artifacts: Sequence[StoredArtifact], staging: Path
    ) -> list[Path]:
        found = await self._versions(scope, artifacts)
        hashes = [row.sha256 for row in found]
        try:
            parts = await _all(self._fetch(part, staging) for part in _parts(hashes, self._files.at_once))
        except DamagedBytesError as exc:
            exc.path = next((row.path.logical for row in found if row.sha256 == exc.sha256), "")
            raise
        return list(chain.from_iterable(parts))

    @override
    async def _fetch(self, hashes: Sequence[str], staging: Path) -> list[Path]:
        return await self._patiently(lambda: self._off_loop(partial(self._files.fetch, hashes, staging)))

    @override
    async def contents(self, scope: ConversationKey, artifacts: Sequence[StoredArtifact]) -> list[bytes]:
        found = await self._versions(scope, artifacts)
        parts = _parts(found, ceil(len(found) / self._files.threads) or 1)
        read = await _all(
            self._patiently(partial(self._off_loop, partial(read_whole, self._files, part))) for part in parts
        )
        contents = {sha256: content for contents in read for sha256, content in contents.items()}
        return [contents[row.sha256] for row in found]

    async def _versions(self, scope: ConversationKey, artifacts: Sequence[StoredArtifact]) -> list[ArtifactRow]:
        wanted = [(artifact.path, artifact.version) for artifact in artifacts]
        # By conversation and version, not by hash: a hash does not open the bytes of another conversation.
        found = await self._database.read(lambda connection: rows.versions(connection, scope, wanted))
        for path, number in wanted:
            if (path, number) not in found:
                raise _not_stored(path, number)
        return [found[each] for each in wanted]

    @override
    async def read(
        self, scope: ConversationKey, artifact: StoredArtifact, start: int, end: int
    ) -> AsyncIterator[bytes]:
        row = await self._version(scope, artifact)
        start, end = max(start, 0), min(end, row.size_bytes)
        is_whole = end - start == row.size_bytes
        try:
            async with aclosing(self._whole(row) if is_whole else self._range(row, start, end)) as pieces:
                async for piece in pieces:
                    for begin in range(0, len(piece), _YIELDED_BYTES_MAX):
                        yield piece[begin : begin + _YIELDED_BYTES_MAX]
        except DamagedBytesError as exc:
            exc.path = row.path.logical
            raise

    async def _whole(self, row: ArtifactRow) -> AsyncGenerator[bytes, None]:
        """All bytes of a version; the last piece comes when the SHA-256 of all is known to be right."""
        at, digest = 0, hashlib.sha256()
        while at < row.size_bytes:
            # Asked for piece by piece: a reader that goes away in the middle leaves nothing open behind.
            wanted = min(self._files.piece_bytes, row.size_bytes - at)
            piece = await self._patiently_off_loop(partial(self._piece, row.sha256, at, wanted, digest))
            at += len(piece)
            if at == row.size_bytes and digest.hexdigest() != row.sha256:
                raise DamagedBytesError(CHANGED)
            yield piece

    async def _range(self, row: ArtifactRow, at: int, end: int) -> AsyncGenerator[bytes, None]:
        async with self._locks.held([_RANGES + row.sha256]):  # a reader asks for several at once
            await self._ranges.learn(row.sha256, row.size_bytes)
        while at < end:
            piece = await self._ranges.piece(row.sha256, row.size_bytes, at, end)
            at += len(piece)
            yield piece

    def _piece(self, sha256: str, at: int, wanted: int, digest: "hashlib._Hash") -> bytes:
        """A piece of the bytes of a hash, which goes into the digest of all of them; blocking."""
        piece = self._files.piece(sha256, at, wanted)
        digest.update(piece)
        return piece

    @override
    async def fetch_uri(self, scope: ConversationKey, uri: str, staging: Path) -> Path | None:
        name = self._files.name_of_uri(uri)
        if name is None:
            return None
        row = await self._database.read(lambda connection: rows.hosted_latest_in(connection, scope, name))
        if row is None:
            return None
        (fetched,) = await self._fetch([row.sha256], staging)
        return fetched

    @override
    async def link(self, scope: ConversationKey, artifact: StoredArtifact) -> str | None:
        row = await self._version(scope, artifact)
        return await self._off_loop(partial(self._files.link, served_file(row)))

    @override
    async def number_of(self, scope: ConversationKey, artifact: StoredArtifact) -> int:
        return (await self._version(scope, artifact)).number

    @override
    async def numbered(self, number: int) -> tuple[ConversationKey, StoredArtifact] | None:
        found = await self._database.read(partial(rows.numbered, number=number))
        return None if found is None else (found[0], self._build_stored(*found))

    async def _version(self, scope: ConversationKey, artifact: StoredArtifact) -> ArtifactRow:
        path, number = artifact.path, artifact.version
        row = await self._database.read(lambda connection: rows.version(connection, scope, path, number))
        if row is None:
            raise _not_stored(path, number)
        return row

    def _build_stored(self, scope: ConversationKey, row: ArtifactRow) -> StoredArtifact:
        hosted = row.hosted_name
        return StoredArtifact(
            path=row.path,
            version=row.version,
            size_bytes=row.size_bytes,
            sha256=row.sha256,
            mime=row.mime,
            visibility=row.visibility,
            description=row.description,
            created=row.created,
            removed=row.removed,
            number=row.number,
            tool_call_id=row.tool_call_id,
            hosted_uri=None if hosted is None else self._files.uri_of(hosted),
            rn=None if hosted is None else rn_of(scope, row.path),
            key=None if hosted is None else key_of(scope, row.path),
        )

    # ---- saved ----

    @override
    async def save(
        self,
        scope: ConversationKey,
        artifacts: Sequence[NewArtifact],
        blocks_of: BlocksOf | None = None,
        replaces: int | None = None,
    ) -> list[StoredArtifact]:
        if not artifacts:
            return []
        new = NewSave(scope, artifacts, blocks_of, replaces=replaces)
        for _ in range(_TAKEN_MAX):
            try:
                return await self._patiently(partial(self._save, new))
            except SaveLostError as exc:
                # The bytes may be gone. It begins again, so that what it has left is in the journal in any case.
                _log.warning("a save of files is begun again: %s", exc)
        return await self._patiently(partial(self._save, new))

    async def _save(self, new: NewSave) -> list[StoredArtifact]:
        async def save() -> list[StoredArtifact]:
            return await (await self._prepare(new)).store()

        return await self._to_end(save())

    @override
    async def prepare(self, new: NewSave) -> PreparedSave:
        try:
            return await self._patiently(partial(self._prepare_to_end, new))
        except BaseException:
            await new.hold.aclose()
            raise

    async def _prepare_to_end(self, new: NewSave) -> SqlPreparedSave:
        preparing = asyncio.ensure_future(self._prepare(new))
        try:
            return await self._to_end(preparing)
        except asyncio.CancelledError:
            if not preparing.cancelled() and preparing.exception() is None:
                await self._to_end(preparing.result().discard())
            raise

    async def _prepare(self, new: NewSave) -> SqlPreparedSave:
        await self._journal.undo_incomplete()
        names = [
            self._files.hosted_name(new.scope, artifact.path) if artifact.visibility == "external" else None
            for artifact in new.artifacts
        ]
        hosted = {  # the later of two versions of one path is the one that stays
            name: served_file(artifact)
            for name, artifact in zip(names, new.artifacts, strict=True)
            if name is not None
        }
        blobs = [*new.artifacts, *([] if new.workspace is None else [workspace_blob(new.workspace)])]
        touched = {BLOBS + checked_sha256(blob.sha256) for blob in blobs}
        prepared = SqlPreparedSave(
            database=self._database,
            journal=self._journal,
            new=new,
            names=names,
            hosted=hosted,
            save=self._journal.new_save(),
            after=self._journal.new_save(),
            begun=len(touched),
            build=partial(self._build_stored, new.scope),
        )
        if not blobs:
            return prepared
        try:
            await _all(
                [
                    self._in_parts(self._files.seal, blobs),
                    self._journal.begin(prepared.save, touched),
                ]
            )
            # Bytes that two files have are placed once: never by two threads at one time.
            once = {blob.sha256: blob for blob in blobs}
            async with self._locks.held(BLOBS + sha256 for sha256 in once):
                await self._in_parts(self._files.place, list(once.values()))
        except Exception:
            await self._journal.undo(prepared.save)
            raise
        return prepared

    async def _to_end(self, work: Awaitable[T]) -> T:
        """Do work that is not stopped in its middle, and for which `close` waits."""
        task = asyncio.ensure_future(work)
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)
        return await wait_to_end(task)

    async def remove_after(self, work: Callable[[Connection, str], tuple[T, list[str]]]) -> T:
        """Run a transaction that removes rows, then remove the bytes that no row has any more.

        Args:
            work: gets the connection and the name under which it records the names in the journal; returns its
                result and these names, see `proofbox.service.storage.artifacts.removal`.

        Raises:
            StoreFailedError, StoreFullError: nothing was removed.
            Exception: an exception of ``work``; nothing was removed.
        """
        save = self._journal.new_save()
        result, names = await self._database.write(lambda connection: work(connection, save))
        await self._journal.remove(save, names)
        return result

    async def undo_lost(self, living: Collection[str]) -> None:
        """Undo what processes left that are not among the living ones.

        Raises:
            StoreFailedError: the database cannot be used.
        """
        await self._journal.recover_lost(living)

    async def retry_removals(self) -> None:
        """Remove the bytes whose removal failed before; those that still cannot be removed are logged.

        Raises:
            StoreFailedError: the database cannot be used.
        """
        await self._journal.retry()

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work again while the server of the bytes is away: a program that has ended cannot run again."""
        deadline, pause_s = time.monotonic() + self._retry_s, _PAUSE_S
        while True:
            try:
                return await work()
            except SaveLostError:
                raise
            except StoreAwayError as exc:
                if time.monotonic() + pause_s > deadline:
                    raise
                _log.warning("the bytes of files cannot be had yet: %s", exc)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    # ---- blocking work ----

    async def _patiently_off_loop(self, work: Callable[[], T]) -> T:
        return await self._patiently(partial(self._off_loop, work))

    @timed("files")
    async def _off_loop(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise StoreFailedError("the artifact store is closed")
        return await run_in_thread(self._threads, work)

    async def _in_parts(self, work: Callable[[Sequence[T]], None], all_of: Sequence[T]) -> None:
        """Run blocking work on as many at a time as suits the files, side by side; all of it ends before this."""
        await _all(self._off_loop(partial(work, part)) for part in _parts(all_of, self._files.at_once))


def _parts(all_of: Sequence[T], size: int) -> list[Sequence[T]]:
    return [all_of[at : at + size] for at in range(0, len(all_of), size)]


async def _all(works: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all of them, whatever becomes of each; then raises the first error."""
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return cast("list[T]", outcomes)


def _not_stored(path: FilePath, number: int) -> StoreFailedError:
    return StoreFailedError(f"version {number} of {path.logical} is not stored in this conversation")
