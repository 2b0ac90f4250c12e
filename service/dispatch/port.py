"""The port of the store of dispatched calls: who may run which call, and until when.

All times are of the store's clock, so the clocks of processes may differ.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from proofbox.service.calls.port import CallKey, CallState, StoredCall
from proofbox.service.dispatch.differences import Member, ProcessFacts


class DispatchState(StrEnum):
    """The state of a dispatched call."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    """A worker has it; its program has not begun."""
    STARTED = "started"
    """Its program may have begun: it never runs again."""
    SUSPENDED = "suspended"
    """It waits for an answer from outside."""
    DEAD = "dead"
    """It was lost too often before its program began; an operator decides."""


class StopReason(StrEnum):
    """The reason to end a call."""

    CANCELLED = "cancelled"
    ABANDONED = "abandoned"


class Refusal(StrEnum):
    """The reason why a worker does not get a call."""

    GONE = "gone"
    """It has ended, waits, or is not stored."""
    TAKEN = "taken"
    """Another worker has it."""
    LOST = "lost"
    """Its worker was lost while it ran: it has to be ended."""
    DEAD = "dead"
    """It was set aside, now or before."""


@dataclass(frozen=True, slots=True)
class ClaimedCall:
    """A call that a worker may run.

    Attributes:
        stored: the call, whose principal has the API key that asked.
        claim: the number of the claim, which rises with each.
        request_id: the HTTP request.
        stop: why it is to be ended; None if it is to be run.
        events: how many events it has had.
        outcome: how the wait ended after which it runs on, as JSON text; None if it has not waited.
        caller: who asked.
        makes_room: whether calls of that caller may wait in the database until this one has ended.
    """

    stored: StoredCall
    claim: int
    request_id: str
    stop: StopReason | None
    events: int
    outcome: str | None = None
    caller: str = ""
    makes_room: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A call that a worker does not get.

    Attributes:
        why: the reason.
        claim: the number of the newest claim.
        again_in_s: of one that is taken: when that claim expires, in seconds.
        stored: of one that was lost: the call.
    """

    why: Refusal
    claim: int = 0
    again_in_s: float = 0.0
    stored: StoredCall | None = None


@dataclass(frozen=True, slots=True)
class QueuedCall:
    """A call that is to be published.

    Attributes:
        number: `StoredCall.number`.
        claim: the number of its newest claim; 0 if it had none.
    """

    number: int
    claim: int


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The terms on which a worker gives a call back.

    Attributes:
        counts: whether the claim counts as one of those after which a call is set aside.
        again_s: after which time the call is published again if its message was lost.
    """

    counts: bool = False
    again_s: float = 0.0


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The result of the request to end a call.

    Attributes:
        state: where the call stands.
        worker: which worker has it.
    """

    state: DispatchState
    worker: str | None


@dataclass(frozen=True, slots=True)
class DeadCall:
    """A call in the dead letter.

    Attributes:
        number: `StoredCall.number`.
        key: its name.
        tool_id: its tool.
        attempts: how many workers lost it.
        reason: what happened to it.
        created: when it was accepted: UTC, RFC 3339, ``Z``.
    """

    number: int
    key: CallKey
    tool_id: str
    attempts: int
    reason: str
    created: str


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The dispatched calls and the workers, at one moment.

    Attributes:
        waiting: calls that wait for a worker.
        oldest_waiting_s: how long the oldest one of them has waited, in seconds; 0 without one. A call that was
            released, or runs on after a wait, does not count: it is older than its place in the queue.
        held: calls that workers have.
        set_aside: dead letters.
        expired: calls whose worker was lost: their claims have expired.
        due: waiting calls that have to be published.
        overdue: waiting calls whose deadline has passed.
        workers: processes that live and run calls.
    """

    waiting: int
    oldest_waiting_s: float
    held: int
    set_aside: int
    expired: int
    due: int
    overdue: int
    workers: int


class DispatchStore(Protocol):
    """Dispatched calls. All methods raise StoreFailedError if the store fails."""

    async def claim(self, number: int, worker: str, lease_s: float, attempts_max: int) -> ClaimedCall | Refused:
        """Give a call to a worker for ``lease_s`` seconds, if no other one has it.

        A call that was claimed ``attempts_max`` times and never began is set aside.
        """

    async def start(self, number: int, claim: int, worker: str, lease_s: float) -> bool:
        """Record that the program of a claimed call may begin; False if the claim is not valid any more."""

    async def renew(
        self, worker: str, lease_s: float, claims: Collection[tuple[int, int]]
    ) -> Mapping[int, tuple[int, StopReason | None]]:
        """Prolong those of the claims that have not expired.

        Args:
            worker: who has them.
            lease_s: for how long they are valid from now on.
            claims: the numbers of the calls and of their claims; of no others.

        Returns:
            The numbers of the claims by call, and why a call is to be ended.
        """

    async def release(self, number: int, claim: int, worker: str, given: GivenBack) -> bool:
        """Give a call back whose program has not begun, as its worker knows; False if it has the call no longer."""

    async def read_figures(self) -> QueueFigures:
        """Return the counts of calls and workers, and of calls that need something done."""

    async def lost(self, limit: int) -> Sequence[QueuedCall]:
        """Claims that have expired."""

    async def expire(self, number: int, claim: int) -> StoredCall | None:
        """Take an expired claim away: a call that has not begun is queued again, one that has is returned."""

    async def due(self, again_s: float, limit: int) -> Sequence[QueuedCall]:
        """Queued calls that have to be published; each is due again ``again_s`` seconds later."""

    async def unpublish(self, numbers: Sequence[int]) -> None:
        """Record that queued calls of `due` were not published: they are due now."""

    async def release_turns(self, caller: str, published_max: int) -> Sequence[int]:
        """Give the oldest calls of a caller that wait for their turn a place in the queue, as far as there is room.

        Args:
            caller: who asked for them.
            published_max: how many of its calls may be in the queue at a time.

        Returns:
            Their numbers: they have to be published.
        """

    async def waiting_callers(self, limit: int) -> Sequence[str]:
        """Callers of whom calls wait for their turn."""

    async def left(self, limit: int) -> Sequence[StoredCall]:
        """Open calls that were never queued: a service of one process accepted or resumed them, and was lost."""

    async def overdue(self, limit: int) -> Sequence[StoredCall]:
        """Queued calls whose deadline has passed."""

    async def request_stop(self, number: int, reason: StopReason) -> StopAnswer | None:
        """Record that a call is to be ended; None if it is not dispatched any more.

        One that runs on without clients is not abandoned.
        """

    async def keep(self, number: int) -> None:
        """Record that a call runs on without clients."""

    async def withdraw(self, number: int) -> bool:
        """Remove an open call that no worker has, so that it may come again; False if one has it."""

    async def states(self, numbers: Sequence[int]) -> Mapping[int, tuple[CallState, DispatchState | None]]:
        """Return the states of those of the calls that have not ended."""

    async def dead(self, limit: int) -> Sequence[DeadCall]:
        """The calls that were set aside, the oldest first."""

    async def release_dead(self, number: int) -> bool:
        """Queue a call again that was set aside; False if it is not."""


class Lead(StrEnum):
    """A duty that one process at a time has for all; each duty may be with another process."""

    JOBS = "jobs"
    """The jobs of the service, which need the database alone."""
    QUEUE = "queue"
    """The messages of the queue: a process whose link to the NATS servers is up."""


@dataclass(frozen=True, slots=True)
class Reported:
    """The answer to the report of a process.

    Attributes:
        leads: what it leads.
        free_in_s: in how many seconds the lead of another process ends, unless that one reports; the next of them.
    """

    leads: frozenset[Lead]
    free_in_s: float


class MemberStore(Protocol):
    """The processes of a service. All methods raise StoreFailedError if the store fails."""

    async def beat(self, boot_id: str, role: str, lease_s: float, wants: Collection[Lead]) -> Reported:
        """Record that a process counts as living for ``lease_s`` seconds more.

        Of each `Lead` one process has it at a time; if it is not heard of any more, or does not want it, another
        one may.

        Args:
            boot_id: the process.
            role: what it does.
            lease_s: see above.
            wants: what it could lead.
        """

    async def describe(self, boot_id: str, facts: ProcessFacts) -> None:
        """Record what a process that has reported is like."""

    async def members(self) -> Sequence[Member]:
        """The processes that live, in the order of their ids."""

    async def leave(self, boot_id: str) -> None:
        """Record that a process stops."""

    async def living(self) -> frozenset[str]:
        """The boot ids of the processes that live, and of those that may: for a minute after their time."""
