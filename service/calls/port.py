"""The port of the store of calls, with its records of calls and audit lines."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from proofbox.contracts.blocks import Block
from proofbox.service.artifacts.port import PreparedSave, StoredArtifact
from proofbox.service.errors import StoreFailedError
from proofbox.service.identity import ConversationKey, Principal


class CallState(StrEnum):
    """Where a call stands in the store."""

    OPEN = "open"
    WAITING = "waiting"
    """It has run up to a question and waits for the answer; it outlives the process of the service."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Effect:
    """A change of records outside `calls`, stored in the same transaction as a change of a call.

    A subclass is a frozen dataclass with all that the change needs; the store has a function for each subclass.
    That function may raise a ServiceError: then no part of the transaction is stored.
    """

    __slots__ = ()


class EffectRefusedError(Exception):
    """An effect cannot be stored because of what the model asked for; the call is answered with that.

    Args:
        code: the stable code.
        message: one sentence for the model: what is wrong, what to do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class CallKey:
    """The name of a call: its conversation and the loop's own id."""

    scope: ConversationKey
    tool_call_id: str


@dataclass(frozen=True, slots=True)
class AuditDraft:
    """An audit line on its way into its chain.

    Attributes:
        ended: when the call ended: UTC, RFC 3339, ``Z``.
        text: the line as a JSON object in ASCII, without its number and the hash of the line before it.
    """

    ended: str
    text: str


@dataclass(frozen=True, slots=True)
class AuditedLine:
    """An audit line in its chain.

    Attributes:
        text: the line, a JSON object in ASCII.
        sha256: its SHA-256, in hex.
    """

    text: str
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredCall:
    """A call as the store knows it.

    Attributes:
        key: its name.
        payload_sha256: the hash of the request, see `registration.payload_sha256`.
        state: where it stands.
        boot_id: the process of the service that accepted it.
        created: when: UTC, RFC 3339, ``Z``.
        request: the request, as JSON text.
        answer: the response (state done) or the problem (failed, cancelled), as JSON text; None while it is open or
            waiting.
        partial_response: of a call that was cancelled: its blocks and what it had printed, as the JSON text of a
            response; of one whose answer has not all of its output: that alone. None if it left nothing more.
        audited: the audit line that was stored with the answer; only `CallStore.finish` returns it.
        wait: of a waiting call: what it waits for, as the JSON text of a `Wait`.
        wait_spec: of a call of a run that has no answer: what its newest wait stored, else what its acceptance
            bound, as JSON text.
        number: its number among all calls of the store, rising.
        is_queued: it is open, waits for a slot, and no part of it ran.
    """

    key: CallKey
    payload_sha256: str
    state: CallState
    boot_id: str
    created: str
    request: str
    answer: str | None
    partial_response: str | None = None
    audited: AuditedLine | None = None
    wait: str | None = None
    wait_spec: str | None = None
    number: int = 0
    is_queued: bool = False

    @property
    def is_ended(self) -> bool:
        """Whether it has its answer."""
        return self.answer is not None


@dataclass(frozen=True, slots=True)
class Alongside:
    """What goes with an answer besides its blocks and audit line.

    Attributes:
        was: the state in which the call has to be: open or waiting.
        partial_response: what it left beside its answer, see `StoredCall`.
        effects: changes of other records.
        is_refusal: no part of the call was run: the next request under its id takes its place.
    """

    was: CallState = CallState.OPEN
    partial_response: str | None = None
    effects: Sequence[Effect] = ()
    is_refusal: bool = False


ALONE = Alongside()
"""The answer of an open call with nothing beside it."""


@dataclass(frozen=True, slots=True)
class StoredEnd:
    """The end of a call as it is stored; see `CallStore.finish`."""

    state: CallState
    answer: str
    blocks: Sequence[Block] = ()
    audit: AuditDraft | None = None
    also: Alongside = ALONE


@dataclass(frozen=True, slots=True)
class NewCall:
    """A call that is to be registered.

    Attributes:
        key: its name.
        payload_sha256: the hash of the request.
        request: the request, as JSON text.
        boot_id: the process of the service that accepts it.
        idempotency_key: a second name that the client gave it, unique for the principal.
        effects: what is stored with it, if it is new.
        is_queued: it will wait for a slot.
    """

    key: CallKey
    payload_sha256: str
    request: str
    boot_id: str
    idempotency_key: str | None
    effects: Sequence[Effect] = field(default=())
    is_queued: bool = False


class CallNotStoredError(StoreFailedError):
    """A call is to be answered that the store does not know: its records were taken away."""


class CallStore(Protocol):
    """Accepted calls and their one answer. All methods raise StoreFailedError if the store fails."""

    async def claim(self, call: NewCall) -> tuple[StoredCall, bool]:
        """Registers a call, or finds the one that has its key or its idempotency key; True if it is new.

        The effects of a new call are stored with it. A call that was refused gives its key away: its blocks leave
        the timeline, but for its notices, which the blocks of the new call follow; its audit line stays.

        Raises:
            IdReusedError: the key or the idempotency key is taken by another payload.
            StoreFullError: no space is left.
            ServiceError: an effect refused.
        """

    async def finish(
        self,
        key: CallKey,
        state: CallState,
        answer: str,
        blocks: Sequence[Block] = (),
        audit: AuditDraft | None = None,
        also: Alongside = ALONE,
    ) -> StoredCall:
        """Stores the answer of a call, its blocks on the timeline, its audit line and the effects, all or none.

        A call that is not in the state ``also.was`` stays as it is, and nothing is stored. What is stored now.

        Raises:
            CallNotStoredError: no such call is stored.
            StoreFullError: no space is left.
            ServiceError: an effect refused.
        """

    async def finish_with_files(
        self,
        key: CallKey,
        save: PreparedSave,
        build: Callable[[Sequence[StoredArtifact]], StoredEnd],
        was: CallState = CallState.OPEN,
    ) -> StoredCall:
        """As `finish`, with the files of the call: all or none.

        Args:
            key: the call.
            save: the files.
            build: its end, built from the stored files within the transaction, maybe more than once.
            was: the state in which the call has to be; else nothing is stored.

        Returns:
            The call as it is stored now; its answer is the very text that was built, if that is stored.

        Raises:
            SaveLostError: the files are not there any more.
            Exception: as `finish`, and what ``build`` raises.
        """

    async def suspend(self, key: CallKey, effects: Sequence[Effect]) -> StoredCall | None:
        """Lets an open call wait, with the effects, one of which stores what it waits for; what is stored now.

        A call that is not open stays as it is: None.

        Raises:
            CallNotStoredError: no such call is stored.
            StoreFullError: no space is left.
            EffectRefusedError: an effect refused; the call is still open.
        """

    async def resume(self, key: CallKey, boot_id: str, effects: Sequence[Effect]) -> StoredCall | None:
        """Opens a waiting call for a process of the service, with the effects; what is stored now.

        A call that does not wait stays as it is: None. Raises as `finish` does.
        """

    async def mark_queued(self, key: CallKey, boot_id: str, *, is_queued: bool) -> None:
        """Records whether an open call of a process waits for a slot: then the next start runs it."""

    async def forget(self, key: CallKey) -> None:
        """Removes an open call that was refused before anything ran, so that it may come again."""

    async def find(self, principal: Principal, tool_call_id: str) -> list[StoredCall]:
        """The calls of that id in all conversations of the principal."""

    async def left_open(self, boot_id: str) -> list[StoredCall]:
        """Open calls of other processes of the service than ``boot_id``."""

    async def newest_requests(self, scope: ConversationKey, limit: int, chars_max: int) -> list[tuple[str, str]]:
        """The ids and requests, as JSON text, of the newest answered calls of a conversation, the newest first.

        Args:
            scope: the conversation.
            limit: how many.
            chars_max: longer requests are left out.
        """


@dataclass(frozen=True, slots=True)
class RecentCall:
    """A call without its request and answer.

    Attributes:
        number: its number among all calls that are stored, rising.
        conversation_id: its conversation.
        tool_call_id: the loop's own id.
        state: where it stands.
        created: when it was accepted: UTC, RFC 3339, ``Z``.
        audit_line: its audit line, as JSON text; None while it is open.
        request: the request of a call that is open or waits, as JSON text, if it is small; else None.
    """

    number: int
    conversation_id: str
    tool_call_id: str
    state: CallState
    created: str
    audit_line: str | None
    request: str | None


class RecentCalls(Protocol):
    """The calls of the last hours. All methods raise StoreFailedError if the store fails."""

    async def recent(self, principal: Principal, since: str, before: int | None, limit: int) -> list[RecentCall]:
        """At most ``limit`` calls of a principal, the newest first.

        Args:
            principal: whose calls.
            since: only those that were accepted at this time or later: UTC, RFC 3339, ``Z``.
            before: only those with a smaller number; None: from the newest.
            limit: how many at most.
        """
