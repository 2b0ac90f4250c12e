"""The right of a worker to run one call, and to write its end."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from proofbox.service.calls.port import CallNotStoredError, Effect
from proofbox.service.errors import OurError, ServiceError


class ClaimLostError(CallNotStoredError):
    """Another process has the call by now, or ended it: this one writes no end."""


class ShareTakenError(OurError):
    """The caller of a claimed call runs as many calls on this worker as it may: another worker may have room."""

    where = "admission"


@dataclass(frozen=True, slots=True)
class ClaimId:
    """What names a claim in the database.

    Attributes:
        call: the number of the call.
        claim: the number of the claim.
        worker: the process that has it.
    """

    call: int
    claim: int
    worker: str


CURRENT_CLAIM: ContextVar[ClaimId | None] = ContextVar("current_claim", default=None)
"""The claim under which this task works: stores write files for it only while the worker has it."""


class Claim(Protocol):
    """A claimed call; its number rises with each claim of the call, and each write names it.

    Attributes:
        is_lost: whether the worker may not go on: another one has the call, or might have it soon.
    """

    is_lost: bool

    def prepare_start(self) -> None:
        """Begin what `start` waits for, while the call gets its sandbox."""

    async def start(self) -> None:
        """Record that the program of the call may begin; a second call does nothing.

        Raises:
            ClaimLostError: it may not.
            StoreFailedError: the store failed; it may not.
        """

    def end_effects(self) -> Sequence[Effect]:
        """What is stored with the end of the call; it refuses the end if the claim was lost."""

    def suspend_effects(self, events: int) -> Sequence[Effect]:
        """What is stored when the call begins to wait, after so many events."""

    async def release(self, why: ServiceError) -> bool:
        """Give the call back before its program began, for another worker; False if that is not possible.

        Args:
            why: what this worker cannot begin it for.
        """
