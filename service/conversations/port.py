"""The port of the store of conversations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from proofbox.contracts.paths import FilePath
from proofbox.service.calls.port import AuditDraft, AuditedLine
from proofbox.service.identity import ConversationKey, Principal


@dataclass(frozen=True, slots=True)
class ConversationSummary:
    """What a conversation holds.

    Attributes:
        number: its number in the store; a later conversation has a greater one.
        conversation_id: its id.
        created: when it was first used: UTC, RFC 3339, ``Z``.
        last_used: when something was last added to it, to the minute.
        turns: how many turns its timeline has.
        files: how many files and attachments it has.
        size_bytes: the bytes of all their versions.
    """

    number: int
    conversation_id: str
    created: str
    last_used: str
    turns: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DeletedCounts:
    """How much a deletion removed.

    Attributes:
        files: files and attachments.
        versions: versions of them.
        size_bytes: the bytes of all these versions.
        calls: calls with their answers.
        blocks: blocks of the timeline; of a file those that lost its content.
    """

    files: int
    versions: int
    size_bytes: int
    calls: int = 0
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion that is done.

    Attributes:
        counts: how much it removed.
        audited: its audit line.
        number: the store's number of a conversation that was deleted; None for a file.
    """

    counts: DeletedCounts
    audited: AuditedLine
    number: int | None = None


DraftOf = Callable[[DeletedCounts], AuditDraft]
"""The audit line of a deletion; called in its transaction, so it must not block."""


class ConversationStore(Protocol):
    """Conversations as a whole. All methods raise StoreFailedError if the store fails."""

    async def page(self, principal: Principal, before: int | None, limit: int) -> list[ConversationSummary]:
        """At most ``limit`` conversations of a principal whose number is less than ``before``, the newest first."""

    async def delete(self, scope: ConversationKey, draft_of: DraftOf, unused_since: str | None = None) -> Deletion:
        """Makes a conversation vanish, in one transaction with its audit line; `purge` removes what it held.

        Args:
            scope: the conversation.
            draft_of: its audit line.
            unused_since: delete it only if it was not used then or later.

        Raises:
            UnknownConversationError: there is none, or it was used since.
            ConversationBusyError: a call of it is open.
            StoreFullError: no space is left.
        """

    async def delete_file(self, scope: ConversationKey, path: FilePath, at: str, draft_of: DraftOf) -> Deletion:
        """Removes all versions of a file with what the timeline has of its content.

        A block that records it is added to the timeline.

        Raises:
            UnknownArtifactError: there is no such file.
            ConversationBusyError: a call of the conversation is open.
            StoreFullError: no space is left.
        """

    async def purge(self, deletion: Deletion) -> None:
        """Removes what a deleted conversation held: rows and bytes.

        Raises:
            StoreFullError: no space is left; `purge_interrupted` removes the rest.
        """

    async def purge_interrupted(self) -> None:
        """Removes what conversations held whose `purge` failed, or ended with an earlier process.

        Also removes the bytes of deleted files that could not be removed before.

        Raises:
            StoreFullError: no space is left.
        """

    def stop_purging(self) -> None:
        """Ends all purges after the step that is under way; the next process goes on with them."""

    async def unused(self, since: str, limit: int, prefix: str = "") -> list[ConversationKey]:
        """At most ``limit`` conversations of all principals without use since ``since``, by their last use.

        Args:
            since: UTC, RFC 3339, ``Z``.
            limit: so many at most.
            prefix: with what their ids begin.
        """


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run of an agent that ended long ago.

    Attributes:
        number: its number in the store.
        tenant: its tenant.
        project: its project.
        agent_id: its agent.
        run_id: its id.
        ended: when it ended: UTC, RFC 3339, ``Z``.
    """

    number: int
    tenant: str
    project: str
    agent_id: str
    run_id: str
    ended: str


RunPosition = tuple[str, int]
"""Where a reader of ended runs stands: when a run ended, and its number."""


@dataclass(frozen=True, slots=True)
class EndedRuns:
    """A page of the runs that ended long ago.

    Attributes:
        due: those of the page that are to be deleted.
        next: where the next page begins; None: this is the last one.
    """

    due: Sequence[EndedRun]
    next: RunPosition | None


class RunRetention(Protocol):
    """The ended runs of agents, and what is stored with them. Methods raise StoreFailedError if the store fails.

    Runs stay whose calls are stored, since these belong to conversations. Messages of runs stay.
    """

    async def delete_answers(self, since: str, limit: int) -> int:
        """Deletes old answers of idempotency keys, at most so many; returns how many. They go before their runs.

        Args:
            since: UTC, RFC 3339, ``Z``.
            limit: so many at most.
        """

    async def ended(
        self, since: str, after: RunPosition | None, limit: int, *, without_unused: bool = False
    ) -> EndedRuns:
        """Reads the next runs that ended before ``since``, the oldest first, and changes nothing.

        Args:
            since: UTC, RFC 3339, ``Z``.
            after: where the page before ended; None: from the first one.
            limit: how many runs are read, at most.
            without_unused: count runs as due whose calls are in conversations without use since ``since`` only:
                those are deleted before the runs.
        """

    async def delete(self, since: str, numbers: Sequence[int]) -> int:
        """Deletes runs with their events in one transaction; returns how many.

        One that has not ended before ``since``, or whose calls are stored, stays.

        Args:
            since: UTC, RFC 3339, ``Z``.
            numbers: the numbers of the runs.
        """
