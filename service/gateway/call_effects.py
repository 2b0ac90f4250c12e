"""What is stored with a call of a run: that the run takes it, and that it has ended."""

from dataclasses import dataclass

from proofbox.service.calls.port import Effect
from proofbox.service.gateway.posting import RecordEnding
from proofbox.service.identity import Principal


@dataclass(frozen=True, slots=True)
class AcceptRunCall(Effect):
    """A run takes a call, if the sender's lease is its newest one and has not passed; the lease is extended.

    Attributes:
        principal: on whose behalf.
        run_id: the run.
        lease: the sender's lease.
        lease_s: how long the lease is.
    """

    principal: Principal
    run_id: str
    lease: int
    lease_s: float


@dataclass(frozen=True, slots=True)
class EndRunCall(Effect):
    """A call of a run has its answer: the event ``call.answered``, and the lease is extended.

    Attributes:
        lease_s: how long the lease is.
    """

    lease_s: float


@dataclass(frozen=True, slots=True)
class EndLostCall(Effect):
    """A call that cannot be prepared again has its answer: what it waits for, its record, and as `EndRunCall`.

    A call that is of no run is left as it is.

    Attributes:
        ending: how its record ends, if it has one.
        lease_s: how long the lease is.
    """

    ending: RecordEnding
    lease_s: float
