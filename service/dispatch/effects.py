"""Effects of dispatched calls, stored in the transactions of the calls themselves."""

from collections.abc import Callable
from dataclasses import dataclass, field

from proofbox.service.calls.port import Effect


def _ignore(_number: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The place of a new call among those that wait, of its caller and of all; counted for all processes together.

    Attributes:
        caller: who asked.
        published_max: how many of its calls may be in the queue of NATS; more wait in the database for their turn,
            so that the calls of others are never behind all of them. 0: any number.
        running_max: how many of its calls workers may have at a time; more wait likewise. 0: any number.
        queued_max: how many of its calls may wait; more are refused. 0: any number.
        queue_max: how many calls of all callers may wait. None: any number.
        next_s: when a place is free, as far as this process knows; of its caller, and of all.
        on_deferred: gets the number of the call if it waits in the database; in a thread of the database.
    """

    caller: str = ""
    published_max: int = 0
    running_max: int = 0
    queued_max: int = 0
    queue_max: int | None = None
    next_s: tuple[float | None, float | None] = (None, None)
    on_deferred: Callable[[int], None] = field(default=_ignore, compare=False)


@dataclass(frozen=True, slots=True)
class QueueCall(Effect):
    """A new call waits for a worker.

    Attributes:
        key_id: the API key that asked; None without one.
        request_id: the HTTP request.
        detached: whether it runs on without clients.
        queue_s: how long it may wait for a worker; None: for ever.
        place: its place among those that wait; the call is refused with `QueueFullError` if there is none.
    """

    key_id: str | None
    request_id: str
    detached: bool
    queue_s: float | None = None
    place: QueuePlace = QueuePlace()


@dataclass(frozen=True, slots=True)
class EndClaimed(Effect):
    """A call ended that a worker ran; refused with `ClaimLostError` if it has another claim by now.

    Attributes:
        claim: the number of its claim.
        worker: who has it. A number alone may come again after the database has lost its last moments.
    """

    claim: int
    worker: str


@dataclass(frozen=True, slots=True)
class EndExpired(Effect):
    """A call ended whose worker was lost while it ran; refused if the worker has been heard of, or it has ended."""

    claim: int


@dataclass(frozen=True, slots=True)
class EndQueued(Effect):
    """A call ended that no worker has; refused if one has it."""


@dataclass(frozen=True, slots=True)
class SuspendClaimed(Effect):
    """A call began to wait for an answer from outside.

    Attributes:
        claim, worker: see `EndClaimed`.
        events: how many events it has had.
    """

    claim: int
    worker: str
    events: int


@dataclass(frozen=True, slots=True)
class ResumeDispatch(Effect):
    """A call whose wait has ended waits for a worker that runs it on.

    Attributes:
        outcome: how the wait ended, as the JSON text of a `WaitOutcome`.
    """

    outcome: str


@dataclass(frozen=True, slots=True)
class ForgetDispatch(Effect):
    """A call ended in its wait."""
