"""The journal of saves: what each save is about to put into the store, and how an incomplete one is undone.

Undoing restores every hosted name from the committed rows, and removes blobs that neither a row nor another save
has. The removal of stored files is the same: its transaction removes rows and records their names, and undoing it
removes the bytes that no row has any more.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from sqlalchemy import Connection

from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.errors import OurError
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.blob_port import BlobStore, ServedFile
from proofbox.service.storage.artifacts.key_locks import KeyLocks
from proofbox.service.storage.artifacts.shared_locks import lock_names
from proofbox.service.storage.database import Database

BLOBS, HOSTED = "blobs/", "hosted/"  # prefixes of the names in the journal
_OF = "."  # between a process and its save
_NAMES_AT_ONCE = 100  # so many are locked together, and end in one transaction
_SIDE_BY_SIDE = 4  # few of the byte side's threads: running calls need them
_FAILED_AT_START_MAX = 3  # a start does not wait for more of them: the sweeper's first pass follows it
_log = logging.getLogger(__name__)


class SaveJournal:
    """The saves that are under way or incomplete, and the removals whose bytes are left.

    A name that cannot be undone delays no other name and fails no other save: it stays in the journal. Incomplete
    saves are tried again by the next saves and by `retry`, removals by `retry` alone, and both by the next start.

    Args:
        database: the database.
        files: the bytes.
        locks: the locks of names in the journal.
        run: runs a blocking call of ``files``.
        owner: this process, if others share the database and the bytes; empty if it is alone.
    """

    def __init__(
        self,
        database: Database,
        files: BlobStore,
        locks: KeyLocks,
        run: Callable[[Callable[[], None]], Awaitable[None]],
        owner: str = "",
    ) -> None:
        self._owner = owner
        self._database = database
        self._files = files
        self._locks = locks
        self._run = run
        self._incomplete: dict[str, None] = {}  # in the order in which they are tried
        self._removals: dict[str, None] = {}
        self._undoing = asyncio.Lock()
        self._holding = asyncio.Lock()

    def new_save(self) -> str:
        """A new name of a save; it names this process if others share the journal."""
        return f"{self._owner}{_OF}{uuid.uuid4().hex}" if self._owner else uuid.uuid4().hex

    async def recover_lost(self, living: Collection[str]) -> None:
        """Undo what processes did not complete that are not among the living ones.

        Raises:
            StoreFailedError: the database cannot be used.
        """
        unfinished = await self._database.read(rows.unfinished_saves)
        lost = [save for save in unfinished if save.partition(_OF)[0] not in living]
        self._removals.update(dict.fromkeys(lost))
        await self._retry_removals()

    async def recover(self) -> None:
        """Undo what an earlier process did not complete; what cannot be undone now is left to `retry`.

        A process that shares the journal recovers nothing: others are saving, see `recover_lost`.

        Raises:
            StoreFailedError: the database cannot be used.
            StoreFullError: no space is left in the database.
        """
        if self._owner:
            return
        self._removals.update(dict.fromkeys(await self._database.read(rows.unfinished_saves)))
        await self._retry_removals(_FAILED_AT_START_MAX)

    async def begin(self, save: str, names: Iterable[str]) -> None:
        """Record the names that a save is about to change.

        Raises:
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """

        def work(connection: Connection) -> None:
            if self._owner:
                lock_names(connection, sorted(names), shared=True)
            rows.begin_save(connection, save, names)

        await self._database.write(work)

    async def undo(self, save: str) -> None:
        """Undo a save; one that cannot be undone now is undone by a later save, by `retry` or the next start."""
        self._incomplete[save] = None
        await self.undo_incomplete()

    async def undo_incomplete(self) -> None:
        """Undo incomplete saves until one cannot be undone now: that one is logged, and tried last next time."""
        if not self._incomplete:
            return
        async with self._undoing:
            for save in list(self._incomplete):
                try:
                    await self._undo(save)
                except OurError:
                    self._incomplete[save] = self._incomplete.pop(save)
                    _log.warning("a failed save could not be undone yet", exc_info=True)
                    return
                del self._incomplete[save]

    async def remove(self, save: str, names: Sequence[str]) -> None:
        """Remove the bytes behind names that a transaction recorded when it removed their rows.

        Bytes that cannot be removed now are removed by `retry` or the next start.
        """
        if (error := await self._try_removal(save, names)) is not None:
            _log.warning("the bytes of deleted files could not be removed yet", exc_info=error)

    async def _try_removal(self, save: str, names: Sequence[str]) -> OurError | None:
        try:
            await self._undo_names(save, names)
        except OurError as exc:
            self._removals[save] = None
            return exc
        self._removals.pop(save, None)
        return None

    async def retry(self) -> None:
        """Try again what could not be undone or removed.

        Raises:
            StoreFailedError: the database cannot be used.
        """
        await self.undo_incomplete()
        await self._retry_removals()

    async def _retry_removals(self, failed_max: int | None = None) -> None:
        if not self._removals:
            return
        unfinished = await self._database.read(rows.unfinished_saves)
        errors: list[OurError] = []
        for save in list(self._removals):
            if (error := await self._try_removal(save, unfinished.get(save, []))) is not None:
                errors.append(error)
                if len(errors) == failed_max:
                    break
        if errors:
            _log.warning(
                "the bytes of %d saves or deletions cannot be removed yet", len(errors), exc_info=errors[0]
            )

    async def _undo(self, save: str) -> None:
        unfinished = await self._database.read(rows.unfinished_saves)
        await self._undo_names(save, unfinished.get(save, []))

    async def _undo_names(self, save: str, names: Sequence[str]) -> None:
        """Undo the names that can be undone; the others stay in the journal.

        Raises:
            StoreFailedError, StoreFullError: the first error.
        """
        failed: dict[str, BaseException] = {}
        for start in range(0, len(names), _NAMES_AT_ONCE):
            group = names[start : start + _NAMES_AT_ONCE]
            # The names leave the journal before the locks are released: of two that undo the same name, the later
            # one sees that it is the last.
            async with self._locks.held(group), self._held_elsewhere(group):
                # The bytes first: on a full disk their removal makes the room that a hosted name needs.
                for kind in (BLOBS, HOSTED):
                    failed |= await self._undo_side_by_side(save, [name for name in group if name.startswith(kind)])
                done = [name for name in group if name not in failed]
                if done:
                    await self._database.write(partial(rows.end_names, save=save, names=done))
        for error in failed.values():
            raise error

    @asynccontextmanager
    async def _held_elsewhere(self, names: Sequence[str]) -> AsyncIterator[None]:
        """Keep saves of other processes from beginning with these names: they would find bytes that go away."""
        if not self._owner:
            yield
            return
        # One at a time: each holds a connection of the few that may write.
        async with self._holding, self._database.holding(partial(lock_names, names=names, shared=False)):
            yield

    async def _undo_side_by_side(self, save: str, names: Sequence[str]) -> dict[str, BaseException]:
        """Undo names; the errors of those that cannot be undone now."""
        failed: dict[str, BaseException] = {}
        for at in range(0, len(names), _SIDE_BY_SIDE):
            some = names[at : at + _SIDE_BY_SIDE]
            # All of them end before the locks are released.
            outcomes = await asyncio.gather(*(self._undo_name(save, name) for name in some), return_exceptions=True)
            for name, outcome in zip(some, outcomes, strict=True):
                if isinstance(outcome, OurError):
                    failed[name] = outcome
                elif outcome is not None:
                    raise outcome
        return failed

    async def _undo_name(self, save: str, name: str) -> None:
        if name.startswith(HOSTED):
            hosted = name.removeprefix(HOSTED)
            row = await self._database.read(lambda connection: rows.hosted_latest(connection, hosted))
            if row is None:
                await self._run(partial(self._files.remove_hosted, hosted))
            else:
                await self._run(partial(self._files.host, {hosted: served_file(row)}))
            return
        sha256 = name.removeprefix(BLOBS)
        await self._run(partial(self._files.end_uploads, sha256))
        if not await self._database.read(lambda connection: rows.is_wanted(connection, sha256, save)):
            await self._run(partial(self._files.remove_blob, sha256))


def served_file(artifact: NewArtifact | rows.ArtifactRow) -> ServedFile:
    """Return what the byte side has to know of a hosted file."""
    return ServedFile(artifact.sha256, artifact.mime, artifact.path.rel.rpartition("/")[2])
