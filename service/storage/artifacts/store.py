"""Files of conversations: their versions in the database, their bytes in a folder or a bucket.

A save is one step for everybody who asks: the rows of all its files appear in one transaction, with those of the
sources that external files are. Its bytes travel outside of any transaction, so that a slow disk or server holds up
nobody else:

1. a transaction writes down which blobs and hosted names the save is about to touch (table ``unfinished``), while
   files are sealed where they are,
2. the blobs are put in place; what came as bytes is written for that,
3. the hosted files are replaced and one transaction adds the rows, while no other save can touch those names.

A save that was cut short, by a full disk, a server that went away or a crash, is undone from what it wrote down:
by itself, by the next save, or when the store is opened again. Undoing gives every hosted name what the committed
rows say and removes blobs that no row has and no other save is about to have.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from math import ceil
from pathlib import Path
from typing import TypeVar, cast

from sqlalchemy import Connection

from contracts.paths import FilePath
from service.artifacts.port import BlocksOf, NewArtifact, StoredArtifact
from service.concurrency import in_thread, to_its_end
from service.errors import OurError, StoreFailedError
from service.identity import ConversationKey
from service.storage.artifacts import rows
from service.storage.artifacts.blob_port import BlobStore, Served, checked_sha256
from service.storage.artifacts.hosted_names import key_of, rn_of
from service.storage.artifacts.key_locks import KeyLocks
from service.storage.artifacts.rows import ArtifactRow
from service.storage.artifacts.whole_files import read_whole
from service.storage.conversation_rows import ensure_conversation
from service.storage.database import Database
from service.storage.sources import put_files
from service.storage.timelines import append_rows, block_rows
from service.storage.timing import Seen, timed, unseen

T = TypeVar("T")

_YIELDED_BYTES_MAX = 256 * 1024
_BLOBS, _HOSTED = "blobs/", "hosted/"  # how names stand in the table of unfinished saves

_log = logging.getLogger(__name__)


class SqlArtifactStore:
    """The port ``ArtifactStore`` on a database and a place for bytes.

    Args:
        database: an open database, of this service alone.
        files: where the bytes are.
    """

    def __init__(self, database: Database, files: BlobStore) -> None:
        self._database = database
        self._files = files
        self.seen: Seen = unseen
        self._threads: ThreadPoolExecutor | None = None
        self._locks = KeyLocks()
        self._saving: set[asyncio.Task[list[StoredArtifact]]] = set()
        self._failed: set[str] = set()  # saves that are to be undone
        self._undoing = asyncio.Lock()

    async def open(self) -> None:
        """Makes the byte side ready and undoes saves that were cut short.

        Raises:
            StoreFailedError: the byte side or the database cannot be used.
            StoreFullError: no space is left.
        """
        self._threads = ThreadPoolExecutor(self._files.threads, "artifact-files")
        try:
            await self._off_loop(self._files.prepare)
            self._failed.update(await self._database.read(rows.unfinished_saves))
            await self._undo_failed()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Waits for what is under way; a second call does nothing."""
        if self._saving:
            await asyncio.wait(self._saving)
        if self._threads is not None:
            self._threads.shutdown()
        self._threads = None

    @asynccontextmanager
    async def staging(self) -> AsyncIterator[Path]:
        """A fresh folder for files on their way, removed on exit.

        Raises:
            StoreFailedError: it cannot be made.
            StoreFullError: no space is left.
        """
        folder = await self._off_loop(self._files.stage)
        try:
            yield folder
        finally:
            await self._off_loop(partial(self._files.unstage, folder))

    # ---- asked ----

    async def latest(self, scope: ConversationKey, path: FilePath) -> StoredArtifact | None:
        """The latest version of a path, if there is one."""
        row = await self._database.read(lambda connection: rows.latest(connection, scope, path))
        return None if row is None else self._stored(scope, row)

    async def version(self, scope: ConversationKey, path: FilePath, number: int) -> StoredArtifact | None:
        """A version of a path, 1 for the first, if there is one."""
        row = await self._database.read(lambda connection: rows.version(connection, scope, path, number))
        return None if row is None else self._stored(scope, row)

    async def of_turn(self, scope: ConversationKey, turn_id: str) -> list[StoredArtifact]:
        """The latest versions of all files and attachments of a turn, in the order of their paths."""
        found = await self._database.read(lambda connection: rows.of_turn(connection, scope, turn_id))
        return sorted((self._stored(scope, row) for row in found), key=lambda artifact: artifact.path)

    async def listed(self, scope: ConversationKey, after: int, limit: int) -> list[tuple[int, StoredArtifact]]:
        """At most ``limit`` latest versions of files, by their `number_of`, which is greater than ``after``."""
        found = await self._database.read(lambda connection: rows.listed(connection, scope, after, limit))
        return [(row.number, self._stored(scope, row)) for row in found]

    async def recent(self, scope: ConversationKey, limit: int, *, except_turn: str) -> list[StoredArtifact]:
        """The latest versions of at most ``limit`` paths of all turns but one, the newest first."""
        found = await self._database.read(lambda connection: rows.recent(connection, scope, limit, except_turn))
        return [self._stored(scope, row) for row in found]

    async def remove(self, scope: ConversationKey, artifacts: Sequence[StoredArtifact]) -> None:
        """Marks versions as removed from their turn by a program; their rows and bytes stay.

        Raises:
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """
        wanted = [(artifact.path, artifact.version) for artifact in artifacts]
        await self._database.write(lambda connection: rows.mark_removed(connection, scope, wanted))

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

    async def fetch_all(
        self, scope: ConversationKey, artifacts: Sequence[StoredArtifact], staging: Path
    ) -> list[Path]:
        """The same of several, in their order.

        Raises:
            StoreFailedError: this conversation has no such version, or the bytes of one are missing or damaged.
        """
        hashes = [row.sha256 for row in await self._versions(scope, artifacts)]
        parts = await _all(
            self._off_loop(partial(self._files.fetch, part, staging))
            for part in _parts(hashes, self._files.at_once)
        )
        return list(chain.from_iterable(parts))

    async def contents(self, scope: ConversationKey, artifacts: Sequence[StoredArtifact]) -> list[bytes]:
        """The bytes of small versions, all in memory, their SHA-256 checked; in their order.

        Raises:
            StoreFailedError: this conversation has no such version, or the bytes of one are missing or damaged.
        """
        found = await self._versions(scope, artifacts)
        parts = _parts(found, ceil(len(found) / self._files.threads) or 1)
        read = await _all(self._off_loop(partial(read_whole, self._files, part)) for part in parts)
        contents = {sha256: content for contents in read for sha256, content in contents.items()}
        return [contents[row.sha256] for row in found]

    async def _versions(self, scope: ConversationKey, artifacts: Sequence[StoredArtifact]) -> list[ArtifactRow]:
        asked = [(artifact.path, artifact.version) for artifact in artifacts]
        # Asked by scope and version, not by the hash at hand: a hash must not open another's bytes.
        found = await self._database.read(lambda connection: rows.versions(connection, scope, asked))
        for path, number in asked:
            if (path, number) not in found:
                raise _not_stored(path, number)
        return [found[each] for each in asked]

    async def read(
        self, scope: ConversationKey, artifact: StoredArtifact, start: int, end: int
    ) -> AsyncIterator[bytes]:
        """The bytes from ``start`` to before ``end`` or the file's end, in pieces of at most 256 KiB.

        Raises:
            StoreFailedError: this conversation has no such version, or its bytes are missing or cut off.
        """
        row = await self._version(scope, artifact)
        at, end = max(start, 0), min(end, row.size_bytes)
        while at < end:
            # Asked for piece by piece: a reader that goes away in the middle leaves nothing open behind.
            wanted = min(self._files.piece_bytes, end - at)
            piece = await self._off_loop(partial(self._files.piece, row.sha256, at, wanted))
            for begin in range(0, len(piece), _YIELDED_BYTES_MAX):
                yield piece[begin : begin + _YIELDED_BYTES_MAX]
            at += len(piece)

    async def fetch_uri(self, scope: ConversationKey, uri: str, staging: Path) -> Path | None:
        """The latest hosted bytes behind a URI of the scope's tenant and project, as `fetch` gives them.

        The URI is looked up among the hosted names in the database; no name that a caller wrote is ever opened,
        so neither ``..`` nor a symbolic link can lead elsewhere.

        Raises:
            StoreFailedError: the bytes are missing or damaged.
        """
        name = self._files.name_of_uri(uri)
        if name is None:
            return None
        row = await self._database.read(lambda connection: rows.hosted_latest_in(connection, scope, name))
        if row is None:
            return None
        (fetched,) = await self._off_loop(partial(self._files.fetch, [row.sha256], staging))
        return fetched

    async def link(self, scope: ConversationKey, artifact: StoredArtifact) -> str | None:
        """A URL that gives the bytes of that version to whoever has it, for a while; None if there are no links.

        Raises:
            StoreFailedError: this conversation has no such version.
        """
        row = await self._version(scope, artifact)
        return await self._off_loop(partial(self._files.link, _served(row)))

    async def number_of(self, scope: ConversationKey, artifact: StoredArtifact) -> int:
        """The number of that version among all that are stored, the same for ever.

        Raises:
            StoreFailedError: this conversation has no such version.
        """
        return (await self._version(scope, artifact)).number

    async def numbered(self, number: int) -> tuple[ConversationKey, StoredArtifact] | None:
        """The version that has a number, and whose it is, if there is one."""
        found = await self._database.read(partial(rows.numbered, number=number))
        return None if found is None else (found[0], self._stored(*found))

    async def _version(self, scope: ConversationKey, artifact: StoredArtifact) -> ArtifactRow:
        path, number = artifact.path, artifact.version
        row = await self._database.read(lambda connection: rows.version(connection, scope, path, number))
        if row is None:
            raise _not_stored(path, number)
        return row

    def _stored(self, scope: ConversationKey, row: ArtifactRow) -> StoredArtifact:
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
            hosted_uri=None if hosted is None else self._files.uri_of(hosted),
            rn=None if hosted is None else rn_of(scope, row.path),
            key=None if hosted is None else key_of(scope, row.path),
        )

    # ---- saved ----

    async def save(
        self, scope: ConversationKey, artifacts: Sequence[NewArtifact], blocks_of: BlocksOf | None = None
    ) -> list[StoredArtifact]:
        """Stores all of them as new versions, hosts the external ones and makes sources of them, or does nothing.

        The blocks of `blocks_of` are added to the timeline in the same transaction.

        Files are moved or left in staging; either way they are the store's from now on. A save that is
        cancelled goes on to its end.

        Raises:
            StoreFailedError: a source is not the file it is said to be, or the byte side or database failed.
            StoreFullError: no space is left.
        """
        if not artifacts:
            return []
        task = asyncio.ensure_future(self._save(scope, artifacts, blocks_of))
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)
        return await to_its_end(task)

    async def _save(
        self, scope: ConversationKey, artifacts: Sequence[NewArtifact], blocks_of: BlocksOf | None
    ) -> list[StoredArtifact]:
        await self._undo_failed()
        names = [
            self._files.hosted_name(scope, artifact.path) if artifact.visibility == "external" else None
            for artifact in artifacts
        ]
        hosted = {  # the later of two versions of one path is the one that stays
            name: _served(artifact) for name, artifact in zip(names, artifacts, strict=True) if name is not None
        }
        touched = {_BLOBS + checked_sha256(artifact.sha256) for artifact in artifacts}
        touched.update(_HOSTED + name for name in hosted)
        save = uuid.uuid4().hex

        def finish(connection: Connection) -> list[StoredArtifact]:
            rows.end_save(connection, save)
            conversation, _ = ensure_conversation(connection, scope)
            added = rows.insert(connection, conversation, list(zip(artifacts, names, strict=True)))
            stored = [self._stored(scope, row) for row in added]
            external = [one for one in stored if one.visibility == "external"]
            sids = {row.file: row.sid for row in put_files(connection, conversation, external)}
            done = [replace(one, sid=sids.get(one.path)) for one in stored]
            if blocks_of is not None:
                append_rows(connection, conversation, block_rows(blocks_of(done)))
            return done

        try:
            await _all(
                [
                    self._in_parts(self._files.seal, artifacts),
                    self._database.write(lambda connection: rows.begin_save(connection, save, touched)),
                ]
            )
            # Bytes that two files have are placed once: never by two threads at one time.
            once = {artifact.sha256: artifact for artifact in artifacts}
            async with self._locks.held(_BLOBS + sha256 for sha256 in once):
                await self._in_parts(self._files.place, list(once.values()))
            async with self._locks.held(_HOSTED + name for name in hosted):
                # Last before the commit, so that the hosted files and the latest rows change together.
                await self._in_parts(lambda part: self._files.host(dict(part)), list(hosted.items()))
                return await self._database.write(finish)
        except Exception:
            self._failed.add(save)
            await self._undo_soon()
            raise

    # ---- undone ----

    async def _undo_soon(self) -> None:
        try:
            await self._undo_failed()
        except OurError:
            # Nothing is lost: the names stay in the table for the next save or the next start.
            _log.warning("a failed save could not be undone yet", exc_info=True)

    async def _undo_failed(self) -> None:
        async with self._undoing:
            if not self._failed:
                return
            saves = await self._database.read(rows.unfinished_saves)
            for save in sorted(self._failed):
                for name in saves.get(save, []):
                    await self._undo(save, name)
                await self._database.write(partial(rows.end_save, save=save))
                self._failed.discard(save)

    async def _undo(self, save: str, name: str) -> None:
        """Gives a name what the committed rows say; removes it if they say nothing."""
        async with self._locks.held([name]):
            if name.startswith(_HOSTED):
                hosted = name.removeprefix(_HOSTED)
                row = await self._database.read(lambda connection: rows.hosted_latest(connection, hosted))
                if row is None:
                    await self._off_loop(partial(self._files.remove_hosted, hosted))
                else:
                    await self._off_loop(partial(self._files.host, {hosted: _served(row)}))
                return
            sha256 = name.removeprefix(_BLOBS)
            await self._off_loop(partial(self._files.end_uploads, sha256))
            if not await self._database.read(lambda connection: rows.is_wanted(connection, sha256, save)):
                await self._off_loop(partial(self._files.remove_blob, sha256))

    # ---- blocking work ----

    @timed("files")
    async def _off_loop(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise StoreFailedError("the artifact store is closed")
        return await in_thread(self._threads, work)

    async def _in_parts(self, work: Callable[[Sequence[T]], None], all_of: Sequence[T]) -> None:
        """Runs blocking work on as many at a time as suits the files, side by side; all of it ends before this."""
        await _all(self._off_loop(partial(work, part)) for part in _parts(all_of, self._files.at_once))


def _parts(all_of: Sequence[T], size: int) -> list[Sequence[T]]:
    return [all_of[at : at + size] for at in range(0, len(all_of), size)]


async def _all(works: Iterable[Awaitable[T]]) -> list[T]:
    """Waits for all of them, whatever becomes of each; then raises the first error."""
    outcomes = await asyncio.gather(*works, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return cast("list[T]", outcomes)


def _not_stored(path: FilePath, number: int) -> StoreFailedError:
    return StoreFailedError(f"version {number} of {path.logical} is not stored in this conversation")


def _served(artifact: NewArtifact | ArtifactRow) -> Served:
    return Served(artifact.sha256, artifact.mime, artifact.path.rel.rpartition("/")[2])
