"""The journal of saves: what each save is about to put into the store, and how an incomplete one is undone.

Undoing restores every hosted name from the committed rows, and removes blobs that neither a row nor another save
has. The removal of stored files is the same: its transaction removes rows and records their names, and undoing it
removes the bytes that no row has any more.
"""

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from sqlalchemy import Connection

from proofbox.service.artifacts.port import NewArtifact, StoreAwayError
from proofbox.service.errors import OurError
from proofbox.service.storage.artifacts import rows
from proofbox.service.storage.artifacts.blob_port import BlobStore, ServedFile
from proofbox.service.storage.artifacts.key_locks import KeyLocks
from proofbox.service.storage.artifacts.shared_names import (
    BLOBS,
    HOSTED,
    REMOVING,
    NamesBusyError,
    begin_shared,
    end_removals,
    take_over,
)
from proofbox.service.storage.database import Database

_OF = "."  # between a process and its save
_NAMES_AT_ONCE = 100  # so many are locked together, and end in one transaction
_SIDE_BY_SIDE = 4  # few of the byte side's threads: running calls need them
_BUSY_PAUSE_S, _BUSY_S_MAX = 0.05, 10.0  # bytes are removed in one request
_REMOVED_WITHIN_S = 30.0  # less than the time after which others take a process for lost
_FAILED_AT_START_MAX = 3  # a start does not wait for more of them: the sweeper's first pass follows it
_RETRY_S, _RETRY_S_MAX = 5.0, 3600.0
_log = logging.getLogger(__name__)


class SaveJournal:
    """The saves that are under way or incomplete, and the removals whose bytes are left.

    A name that cannot be undone delays no other name and fails no other save: it stays in the journal. Incomplete
    saves are tried again by the next saves, and all that is left by a task, ever more rarely, by `retry` and by the
    next start.

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
        self._closing = asyncio.Event()
        self._retrying: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Try nothing again any more, once what is under way has ended."""
        self._closing.set()
        if self._retrying is not None:
            await self._retrying

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
        """Record the names that a save is about to change, once none of their bytes is about to be removed.

        Raises:
            StoreFailedError: the database failed.
            StoreAwayError: another process takes long to remove the same bytes.
            StoreFullError: no space is left.
        """
        if not self._owner:
            await self._database.write(partial(rows.begin_save, save=save, names=names))
            return None
        deadline, pause_s = time.monotonic() + _BUSY_S_MAX, _BUSY_PAUSE_S
        while True:
            try:
                return await self._database.write(partial(begin_shared, save=save, names=names))
            except NamesBusyError:
                if time.monotonic() + pause_s > deadline:
                    raise
            await asyncio.sleep(pause_s)
            pause_s *= 2

    async def undo(self, save: str) -> None:
        """Undo a save; what cannot be undone now is tried again later, and by the next start."""
        self._incomplete[save] = None
        await self.undo_incomplete()

    async def undo_incomplete(self) -> None:
        """Undo incomplete saves until one cannot be undone now: that one is logged, and tried last next time."""
        if self._owner:  # only the process that leads calls `retry`
            self._incomplete.update(self._removals)
            self._removals.clear()
        if not self._incomplete:
            return
        async with self._undoing:
            for save in list(self._incomplete):
                try:
                    await self._undo(save)
                except OurError:
                    self._incomplete.pop(save, None)
                    self._incomplete[save] = None
                    self._retry_later()
                    _log.warning("a failed save could not be undone yet", exc_info=True)
                    return
                self._incomplete.pop(save, None)

    async def remove(self, save: str, names: Sequence[str]) -> None:
        """Remove the bytes behind names that a transaction recorded when it removed their rows.

        Bytes that cannot be removed now are removed later, or by the next start.
        """
        if (error := await self._try_removal(save, names)) is not None:
            _log.warning("the bytes of deleted files could not be removed yet", exc_info=error)

    async def host(self, save: str, hosted: Mapping[str, ServedFile]) -> set[str]:
        """Host files whose rows are stored, and whose names their transaction recorded in the journal.

        Other processes may host the same names meanwhile, so the latest rows are read afterwards: a name stays in
        the journal if its latest row is not the file that was hosted.

        Args:
            save: the save that has the names in the journal.
            hosted: the files, by the names under which they are hosted.

        Returns:
            The names that have left the journal; `remove` tries the others again.
        """
        async with self._locks.held(HOSTED + name for name in hosted):
            hosting = (self._run(partial(self._files.host, {name: each})) for name, each in hosted.items())
            outcomes = await asyncio.gather(*hosting, return_exceptions=True)
            done = {name: hosted[name] for name, outcome in zip(hosted, outcomes, strict=True) if outcome is None}
            try:
                return await self._database.write(partial(_end_latest, save=save, hosted=done)) if done else set()
            except OurError:
                return set()

    async def _try_removal(self, save: str, names: Sequence[str]) -> OurError | None:
        try:
            await self._undo_names(save, names)
        except OurError as exc:
            self._removals[save] = None
            self._retry_later()
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

    def _retry_later(self) -> None:
        if self._retrying is None or self._retrying.done():
            self._retrying = asyncio.create_task(self._retry_until_done())

    async def _retry_until_done(self) -> None:
        pause_s = _RETRY_S
        while self._incomplete or self._removals:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._closing.wait()
            if self._closing.is_set():
                return
            with suppress(OurError):  # the database is away, too
                await self.retry()
            pause_s = min(2 * pause_s, _RETRY_S_MAX)

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
            async with self._locks.held(name.removeprefix(REMOVING) for name in group):
                if self._owner:
                    failed |= await self._undo_shared(save, group)
                    continue
                # The names leave the journal before the locks are released: of two that undo the same name, the
                # later one sees that it is the last. The bytes first: on a full disk their removal makes the room
                # that a hosted name needs.
                for kind in (BLOBS, HOSTED):
                    failed |= await self._undo_side_by_side(save, [name for name in group if name.startswith(kind)])
                done = [name for name in group if name not in failed]
                if done:
                    await self._database.write(partial(rows.end_names, save=save, names=done))
        for error in failed.values():
            raise error

    async def _undo_shared(self, save: str, names: Sequence[str]) -> dict[str, BaseException]:
        """Undo names beside other processes; the errors of those that cannot be undone now.

        The names belong to this process first, so that no other one undoes them, and no save is completed without
        its bytes.
        """
        own = save if save.startswith(f"{self._owner}{_OF}") else self.new_save()
        taken = await self._database.write(partial(take_over, save=save, into=own, names=names))
        if not taken:
            return {}
        try:
            failed = await self._undo_side_by_side(own, taken)
            done = [name for name in taken if name not in failed]
            await self._database.write(partial(end_removals, save=own, done=done, failed=list(failed)))
        except BaseException:
            self._removals[own] = None
            raise
        if failed:
            self._removals[own] = None
        return failed

    async def _undo_side_by_side(self, save: str, names: Sequence[str]) -> dict[str, BaseException]:
        """Undo names; the errors of those that cannot be undone now."""
        failed: dict[str, BaseException] = {}
        until = time.monotonic() + _REMOVED_WITHIN_S
        for at in range(0, len(names), _SIDE_BY_SIDE):
            some = names[at : at + _SIDE_BY_SIDE]
            # All of them end before the locks are released.
            outcomes = await asyncio.gather(
                *(self._undo_name(save, name, until) for name in some), return_exceptions=True
            )
            for name, outcome in zip(some, outcomes, strict=True):
                if isinstance(outcome, OurError):
                    failed[name] = outcome
                elif outcome is not None:
                    raise outcome
        return failed

    async def _undo_name(self, save: str, name: str, until: float) -> None:
        if name.startswith(HOSTED):
            await self._settle(name.removeprefix(HOSTED))
            return
        sha256 = name.removeprefix(REMOVING).removeprefix(BLOBS)
        if name.startswith(REMOVING):
            await self._run(partial(self._remove_marked, sha256, until))
            return
        await self._run(partial(self._files.end_uploads, sha256))
        if not await self._database.read(lambda connection: rows.is_wanted(connection, sha256, save)):
            await self._run(partial(self._files.remove_blob, sha256))

    def _remove_marked(self, sha256: str, until: float) -> None:
        for remove in (self._files.end_uploads, self._files.remove_blob):
            if time.monotonic() > until:  # others may take this process for lost: bytes may be there again
                raise StoreAwayError("the removal of bytes took too long; it is tried again")
            remove(sha256)

    async def _settle(self, hosted: str) -> None:
        """Make a hosted file the one of the latest row, or remove it.

        Others may do the same meanwhile, so the row is read again afterwards: the last one to host reads what it
        has hosted, or hosts again.
        """
        row = await self._database.read(lambda connection: rows.hosted_latest(connection, hosted))
        while True:
            error: OurError | None = None
            try:
                if row is None:
                    await self._run(partial(self._files.remove_hosted, hosted))
                else:
                    await self._run(partial(self._files.host, {hosted: served_file(row)}))
            except OurError as exc:  # the bytes of a row that was removed meanwhile are not there
                error = exc
            if self._owner:
                hosted_row = row
                row = await self._database.read(lambda connection: rows.hosted_latest(connection, hosted))
                if _number_of(row) != _number_of(hosted_row):
                    continue
            if error is not None:
                raise error
            return


def _number_of(row: rows.ArtifactRow | None) -> int | None:
    return None if row is None else row.number


def _end_latest(connection: Connection, save: str, hosted: Mapping[str, ServedFile]) -> set[str]:
    """Remove those hosted names of a save from the journal under which the latest row is hosted; returns them."""
    latest = rows.newest_hosted(connection, hosted)
    done = {HOSTED + name for name, row in latest.items() if served_file(row) == hosted[name]}
    if done:
        rows.end_names(connection, save, sorted(done))
    return done


def served_file(artifact: NewArtifact | rows.ArtifactRow) -> ServedFile:
    """Return what the byte side has to know of a hosted file."""
    return ServedFile(artifact.sha256, artifact.mime, artifact.path.rel.rpartition("/")[2])
