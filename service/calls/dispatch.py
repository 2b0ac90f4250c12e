"""The port `Dispatch`: from an accepted call to the process that runs it; by default the same one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from proofbox.service.calls.call_runner import CallRunner
from proofbox.service.calls.port import Effect, StoredCall
from proofbox.service.calls.running import RunningCall
from proofbox.service.calls.tool import PreparedCall
from proofbox.service.identity import Principal


@dataclass(frozen=True, slots=True)
class Accepted:
    """What is known of a new call besides its request.

    Attributes:
        principal: on whose behalf, with the API key.
        request_id: the HTTP request.
        detached: whether it runs on without clients.
    """

    principal: Principal
    request_id: str
    detached: bool


class Dispatch(Protocol):
    """Decides which process runs an accepted call.

    Attributes:
        is_local: whether this process runs all calls that it accepts; then only `begin` is used.
    """

    is_local: bool

    def admit(self, caller: str) -> None:
        """Refuse a new call early.

        Raises:
            QueueFullError: too many calls wait; a dispatch to other processes counts when the call is stored.
        """

    def stored_with(self, accepted: Accepted) -> Sequence[Effect]:
        """The changes that are stored with a new call, in one transaction."""

    def begin(self, runner: CallRunner, running: RunningCall, call: PreparedCall, stored: StoredCall) -> None:
        """Begin to see a new call to its end: run it here, or have it run elsewhere and follow it."""

    async def join(self, stored: StoredCall) -> None:
        """An open call of another process has clients here, too: that process does not abandon it any more.

        Raises:
            StoreFailedError: the store failed.
        """

    def follow(self, runner: CallRunner, running: RunningCall, stored: StoredCall) -> None:
        """Begin to follow such a call."""


class LocalDispatch:
    """Runs each call in the process that accepted it."""

    is_local = True

    def admit(self, caller: str) -> None:
        """See `Dispatch.admit`."""

    def stored_with(self, accepted: Accepted) -> Sequence[Effect]:  # noqa: ARG002 - a port
        """See `Dispatch.stored_with`."""
        return ()

    def begin(self, runner: CallRunner, running: RunningCall, call: PreparedCall, stored: StoredCall) -> None:  # noqa: ARG002
        """See `Dispatch.begin`."""
        runner.start(running, call, call.run)

    async def join(self, stored: StoredCall) -> None:
        """See `Dispatch.join`."""

    def follow(self, runner: CallRunner, running: RunningCall, stored: StoredCall) -> None:  # noqa: ARG002
        """See `Dispatch.follow`."""
        raise AssertionError("no other process has calls")
