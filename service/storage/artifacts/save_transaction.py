"""The transaction that completes a save of files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection

from proofbox.service.artifacts.port import (
    BlocksOf,
    NewArtifact,
    NewWorkspace,
    StoreAwayError,
    StoredArtifact,
    VersionTakenError,
)
from proofbox.service.calls.claim import CURRENT_CLAIM
from proofbox.service.identity import ConversationKey
from proofbox.service.storage.artifacts import rows, workspace_rows
from proofbox.service.storage.artifacts.rows import ArtifactRow
from proofbox.service.storage.artifacts.shared_names import BLOBS, HOSTED
from proofbox.service.storage.conversation_rows import ensure_conversation
from proofbox.service.storage.dispatch.claim_guard import require_claim
from proofbox.service.storage.sources import put_files
from proofbox.service.storage.timelines import append_rows, block_rows


class TakenOverError(StoreAwayError):
    """Another process took this one for lost and undid a save that was under way."""


@dataclass(frozen=True, slots=True)
class NewSave:
    """What `ArtifactStore.save` got; see there."""

    scope: ConversationKey
    artifacts: Sequence[NewArtifact]
    blocks_of: BlocksOf | None
    workspace: NewWorkspace | None
    replaces: int | None


@dataclass(slots=True)
class SaveTransaction:
    """Adds the rows of a save whose bytes are in place; may be run again after a deadlock.

    Attributes:
        new: what is saved.
        names: under which name each file is hosted; None exactly for an internal one.
        save: the save in the journal.
        after: the save that records what is done after the transaction.
        begun: how many names the journal had of the save when it began.
        build: makes the result of a row.
        is_shared: whether other processes save as well: then files are hosted after the transaction.
        undone: the names of ``after``.
    """

    new: NewSave
    names: Sequence[str | None]
    save: str
    after: str
    begun: int
    build: Callable[[ArtifactRow], StoredArtifact]
    is_shared: bool = field(kw_only=True)
    undone: set[str] = field(default_factory=set)

    def __call__(self, connection: Connection) -> list[StoredArtifact]:
        """Add the rows.

        Raises:
            TakenOverError: another process undid the save; its bytes may be gone.
            ClaimLostError: the worker has lost the call.
            VersionTakenError: another process stored a later version.
        """
        new = self.new
        self.undone.clear()
        if rows.end_save(connection, self.save) != self.begun:
            raise TakenOverError("another process took this one for lost, and undid the save; try again")
        conversation, _ = ensure_conversation(connection, new.scope)
        if (claim := CURRENT_CLAIM.get()) is not None:
            require_claim(connection, claim)
        if self.is_shared:
            self._require_latest(connection)
        pairs = list(zip(new.artifacts, self.names, strict=True))
        added = rows.insert(connection, conversation, pairs) if pairs else []
        if new.workspace is not None:
            old = workspace_rows.insert(connection, conversation, new.workspace)
            self.undone.update(BLOBS + sha256 for sha256 in old)
        if self.is_shared:
            self.undone.update(HOSTED + name for name in self.names if name is not None)
        if self.undone:
            rows.begin_save(connection, self.after, self.undone)
        stored = [self.build(row) for row in added]
        external = [one for one in stored if one.visibility == "external"]
        sids = {row.file: row.sid for row in put_files(connection, conversation, external)}
        done = [replace(one, sid=sids.get(one.path)) for one in stored]
        if new.blocks_of is not None:
            append_rows(connection, conversation, block_rows(new.blocks_of(done)))
        return done

    def _require_latest(self, connection: Connection) -> None:
        if self.new.replaces is None:
            return
        for artifact in self.new.artifacts:
            row = rows.latest(connection, self.new.scope, artifact.path)
            if self.new.replaces != (0 if row is None else row.number):
                raise VersionTakenError(f"{artifact.path.logical}: another process stored a later version")
