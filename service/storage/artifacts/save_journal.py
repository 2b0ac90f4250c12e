"""The journal of saves: what each save is about to put into the store, and how an incomplete one is undone.

Undoing restores every hosted name from the committed rows, and removes blobs that neither a row nor another save
has. The removal of stored files is the same: its transaction removes rows and records their names, and undoing it
removes the bytes that no row has any more.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from proofbox.service.artifacts.port import NewArtifact
from proofbox.service.errors import OurError
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.blob_port import BlobStore, ServedFile
from proofbox.service.storage.artifacts.key_locks import KeyLocks
from proofbox.service.storage.database import Database

BLOBS, HOSTED = "blobs/", "hosted/"  # prefixes of the names in the journal
_NAMES_AT_ONCE = 100  # so many are locked together, and end in one transaction
_SIDE_BY_SIDE = 4  # few of the byte side's threads: running calls need them
_log = logging.getLogger(__name__)


class SaveJournal:
    """The saves that are under way or incomplete.

    Args:
        database: the database.
        files: the bytes.
        locks: the locks of names in the journal.
        run: runs a blocking call of ``files``.
    """

    def __init__(
        self,
        database: Database,
        files: BlobStore,
        locks: KeyLocks,
        run: Callable[[Callable[[], None]], Awaitable[None]],
    ) -> None:
        self._database = database
        self._files = files
        self._locks = locks
        self._run = run
        self._incomplete: set[str] = set()
        self._undoing = asyncio.Lock()

    async def recover(self) -> None:
        """Undo the saves that an earlier process did not complete.

        Raises:
            StoreFailedError: the bytes or the database cannot be used.
            StoreFullError: no space is left.
        """
        self._incomplete.update(await self._database.read(rows.unfinished_saves))
        await self.undo_incomplete()

    async def begin(self, save: str, names: Iterable[str]) -> None:
        """Record the names that a save is about to change.

        Raises:
            StoreFailedError: the database failed.
            StoreFullError: no space is left.
        """
        await self._database.write(lambda connection: rows.begin_save(connection, save, names))

    async def undo(self, save: str) -> None:
        """Undo a save; one that cannot be undone now is undone by the next save or the next start."""
        self._incomplete.add(save)
        try:
            await self.undo_incomplete()
        except OurError:
            _log.warning("a failed save could not be undone yet", exc_info=True)

    async def undo_incomplete(self) -> None:
        """Undo all incomplete saves.

        Raises:
            StoreFailedError: the bytes or the database cannot be used.
            StoreFullError: no space is left.
        """
        async with self._undoing:
            if not self._incomplete:
                return
            saves = await self._database.read(rows.unfinished_saves)
            for save in sorted(self._incomplete):
                await self._undo_names(save, saves.get(save, []))
                self._incomplete.discard(save)

    async def remove(self, save: str, names: Sequence[str]) -> None:
        """Remove the bytes behind names that a transaction recorded when it removed their rows.

        What cannot be removed now is removed by the next save or the next start.
        """
        try:
            await self._undo_names(save, names)
        except OurError:
            self._incomplete.add(save)
            _log.warning("the bytes of deleted files could not be removed yet", exc_info=True)

    async def _undo_names(self, save: str, names: Sequence[str]) -> None:
        for start in range(0, len(names), _NAMES_AT_ONCE):
            group = names[start : start + _NAMES_AT_ONCE]
            # The names leave the journal before the locks are released: of two that undo the same name, the later
            # one sees that it is the last.
            async with self._locks.held(group):
                # The bytes first: on a full disk their removal makes the room that a hosted name needs.
                for kind in (BLOBS, HOSTED):
                    await self._undo_side_by_side(save, [name for name in group if name.startswith(kind)])
                await self._database.write(partial(rows.end_names, save=save, names=group))

    async def _undo_side_by_side(self, save: str, names: Sequence[str]) -> None:
        for at in range(0, len(names), _SIDE_BY_SIDE):
            undone = (self._undo_name(save, name) for name in names[at : at + _SIDE_BY_SIDE])
            # All of them end before the locks are released.
            for outcome in await asyncio.gather(*undone, return_exceptions=True):
                if outcome is not None:
                    raise outcome

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
