"""The port of the store of waits, and the changes of waits that are stored with a change of their call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from proofbox.service.calls.port import CallKey, Effect
from proofbox.service.gateway.posting import Posting, RecordedCall, WaitCard
from proofbox.service.gateway.spaces.port import Actor
from proofbox.service.gateway.waits.replies import TakenReplies

SHOWS_INPUT = "shows_input"
"""The entry of a wait's ``spec``: whether the record of its call has the input when nobody is asked any more."""
WAITS_TOPIC = "waits opened"
"""Announced when a call begins to wait, and when a wait for replies has all of them."""
RUN_WAITS_MAX = 20
"""Open waits of one run."""


def wait_topic(wait_id: str) -> str:
    """Return the topic of changes that is announced when a wait is stored."""
    return f"wait {wait_id}"


class WaitState(StrEnum):
    """Where a wait stands."""

    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class OpenWait(Effect):
    """A call begins to wait: the wait, the card that asks for an answer, and the status of its run.

    Attributes:
        wait_id: its id.
        kind: what it is for.
        call: the call, as its record in a space shows it.
        posting: where that is.
        expires: until when an answer is taken: UTC, RFC 3339, ``Z``.
        card: what the record shows while a person is asked; None if nobody in a space is.
        spec: what the end of the wait needs to know, as JSON; a process that starts later has nothing else.
        lease_s: see `CloseWait`.
    """

    wait_id: str
    kind: str
    call: RecordedCall
    posting: Posting
    expires: str
    card: WaitCard | None = None
    spec: dict[str, Any] = field(default_factory=dict)
    lease_s: float = 60.0


@dataclass(frozen=True, slots=True)
class CloseWait(Effect):
    """A pending wait ends, by an answer or without one; one that is not pending any more raises `WaitMovedError`.

    Attributes:
        wait_id: the wait.
        state: how it ended.
        at: when: UTC, RFC 3339, ``Z``. An answer has to come before the wait expires, an expiry after that.
        answer: the answer, as JSON text.
        answer_sha256: its hash, by which the same answer is known when it comes again.
        answered_by: who answered.
        lease_s: how long the holder of the run has to go on after its last wait.
        replies: of a wait for replies: how many it has; with another number now it has not ended so. Such a wait is
            answered whenever it is complete.
    """

    wait_id: str
    state: WaitState
    at: str
    answer: str | None = None
    answer_sha256: str | None = None
    answered_by: str | None = None
    lease_s: float = 60.0
    replies: int | None = None


@dataclass(frozen=True, slots=True)
class CancelWaits(Effect):
    """The call ends whatever it waits for; a call that does not wait is left as it is.

    Attributes:
        lease_s: see `CloseWait`.
    """

    lease_s: float = 60.0


class WaitMovedError(Exception):
    """The wait is not pending any more, or it is too early or too late for this end; nothing was stored."""


@dataclass(frozen=True, slots=True)
class StoredWait:
    """A wait as the store knows it.

    Attributes:
        wait_id: its id.
        kind: what it is for.
        state: where it stands.
        expires: until when an answer is taken.
        spec: what was stored when it began.
        call: the call that waits.
        run_id: its run.
        space_id: the space that shows it; None if no person is asked.
        message_id: the record there.
        answer: the answer, as JSON text.
        answer_sha256: its hash.
        answered_by: who answered.
    """

    wait_id: str
    kind: str
    state: WaitState
    expires: str
    spec: dict[str, Any]
    call: CallKey
    run_id: str | None
    space_id: str | None
    message_id: str | None
    answer: str | None
    answer_sha256: str | None
    answered_by: str | None


@dataclass(frozen=True, slots=True)
class AskedWait:
    """A record in a space, whoever is about to answer it.

    Attributes:
        entity_id: the member that acts; None: nobody, who may read all spaces of the project.
        entity_type: ``human`` or ``agent``; None with no member.
        wait: the newest wait that asked for an answer there; None if none did.
    """

    entity_id: str | None
    entity_type: str | None
    wait: StoredWait | None


class WaitStore(Protocol):
    """The waits of calls. All methods raise StoreFailedError if the store fails."""

    async def of_call(self, key: CallKey) -> StoredWait | None:
        """The newest wait of a call; None if it never waited."""

    async def of_message(self, actor: Actor, space_id: str, message_id: str) -> AskedWait:
        """The newest wait that a record in a space asked an answer for, and who is about to answer.

        Raises:
            UnknownSpaceError: there is no such space, or it is not open to the actor.
            UnknownMessageError: it has no such message.
            UnknownEntityError, MissingPermissionError: the actor names an entity that it may not be.
        """

    async def get(self, wait_id: str) -> StoredWait | None:
        """The wait of an id."""

    async def replies(self, wait_id: str) -> TakenReplies:
        """The replies that a wait has so far."""

    async def overdue(self, now: str, limit: int) -> Sequence[StoredWait]:
        """Pending waits that have expired, in the order in which they did; with those that have all replies."""

    async def drop(self, wait_id: str) -> bool:
        """Cancels a pending wait whose call does not wait; whether it was one."""

    async def next_expiry(self) -> str | None:
        """When the next pending wait expires; None if none is pending."""
