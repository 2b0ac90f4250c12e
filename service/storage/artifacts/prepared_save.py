"""A save of files whose bytes are in place: the transaction that completes it, and its end."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection
from typing_extensions import override

from proofbox.service.artifacts.port import (
    NewSave,
    PreparedSave,
    StoredArtifact,
    VersionTakenError,
)
from proofbox.service.calls.claim import CURRENT_CLAIM
from proofbox.service.errors import OurError
from proofbox.service.storage.artifacts import rows, workspace_rows
from proofbox.service.storage.artifacts.blob_port import ServedFile
from proofbox.service.storage.artifacts.rows import ArtifactRow
from proofbox.service.storage.artifacts.save_journal import SaveJournal
from proofbox.service.storage.artifacts.shared_names import BLOBS, HOSTED
from proofbox.service.storage.conversation_rows import ensure_conversation
from proofbox.service.storage.database import Database
from proofbox.service.storage.dispatch.claim_guard import require_claim
from proofbox.service.storage.sources import put_files
from proofbox.service.storage.timelines import append_rows, block_rows


@dataclass(slots=True)
class SqlPreparedSave(PreparedSave):
    """The PreparedSave in the database.

    Attributes:
        new: what is saved.
        names: under which name each file is hosted; None exactly for an internal one.
        hosted: the files to host, by these names.
        save: the save in the journal; empty if there are no bytes.
        after: the save that records what is done after the transaction.
        begun: how many names the journal had of the save when it began.
        build: makes the result of a row.
        undone: the names of ``after``.
    """

    database: Database
    journal: SaveJournal
    new: NewSave
    names: Sequence[str | None]
    hosted: Mapping[str, ServedFile]
    save: str
    after: str
    begun: int
    build: Callable[[ArtifactRow], StoredArtifact]
    undone: set[str] = field(default_factory=set)

    def insert_rows(self, connection: Connection, conversation: int) -> list[StoredArtifact]:
        """Add the rows of the files to a conversation that is locked; may be run again after a deadlock.

        Raises:
            SaveLostError: another process undid the save; its bytes may be gone. Here, or before the commit.
            VersionTakenError: another process stored a later version.
        """
        new = self.new
        undone = {HOSTED + name for name in self.hosted}
        if self.begun:
            rows.end_save(connection, self.save, self.begun)
        if new.replaces is not None:
            self._require_latest(connection, new.replaces)
        added = rows.insert(connection, conversation, list(zip(new.artifacts, self.names, strict=True)))
        if new.workspace is not None:
            old = workspace_rows.insert(connection, conversation, new.workspace)
            undone.update(BLOBS + sha256 for sha256 in old)
        rows.mark_removed(connection, new.scope, [(each.path, each.version) for each in new.removed])
        if undone:
            rows.begin_save(connection, self.after, undone)
            self.undone |= (
                undone  # also if the transaction is rolled back: names that no journal has are passed over
            )
        stored = [replace(self.build(row), follows=follows) for row, follows in added]
        external = [one for one in stored if one.visibility == "external"]
        sids = {row.file: row.sid for row in put_files(connection, conversation, external)}
        done = [replace(one, sid=sids.get(one.path)) for one in stored]
        if new.blocks_of is not None:
            append_rows(connection, conversation, block_rows(new.blocks_of(done)))
        return done

    @override
    async def store(self) -> list[StoredArtifact]:
        claim = CURRENT_CLAIM.get()

        def work(connection: Connection) -> list[StoredArtifact]:
            conversation, _ = ensure_conversation(connection, self.new.scope)
            stored = self.insert_rows(connection, conversation)
            if claim is not None:
                require_claim(connection, claim)
            return stored

        try:
            stored = await self.database.write(work)
        except Exception:
            await self.discard()
            raise
        await self.settle()
        return stored

    @override
    async def settle(self) -> None:
        async with self.new.hold:
            left = self.undone - (await self.journal.host(self.after, self.hosted) if self.hosted else set())
            if left:
                await self.journal.remove(self.after, sorted(left))

    @override
    async def discard(self) -> None:
        async with self.new.hold:
            if self.begun:
                with suppress(OurError):  # the journal tries again
                    await self.journal.undo(self.save)
            if self.undone:  # its transaction may be committed, although the database reported a failure
                await self.journal.remove(self.after, sorted(self.undone))

    def _require_latest(self, connection: Connection, replaces: int) -> None:
        for artifact in self.new.artifacts:
            row = rows.latest(connection, self.new.scope, artifact.path)
            if replaces != (0 if row is None else row.number):
                raise VersionTakenError(f"{artifact.path.logical}: another process stored a later version")
