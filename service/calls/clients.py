"""The clients of a call: connections that wait for it, and the grace time after the last of them was lost."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that is to be called later."""

    def cancel(self) -> None:
        """It is not called."""


CallLater = Callable[[float, Callable[[], object]], Timer]
"""Calls something in so many seconds, as `asyncio.AbstractEventLoop.call_later`."""


class CallClients:
    """The connections that wait for one call or follow its events.

    When the last one is lost, a grace time begins; when that is over without a new one, the call is abandoned. A
    connection that joins ends the grace time, and one that is lost later begins it anew.

    Args:
        grace_s: how long the grace time is, in seconds; 0: the call is abandoned at once.
        abandon: called at the end of the grace time, at most once.
        call_later: the clock.
    """

    __slots__ = ("_abandon", "_call_later", "_connected", "_grace_s", "_timer")

    def __init__(self, grace_s: float, abandon: Callable[[], None], call_later: CallLater) -> None:
        self._grace_s = grace_s
        self._call_later = call_later
        self._abandon: Callable[[], None] | None = abandon
        self._connected = 0
        self._timer: Timer | None = None

    def join(self) -> None:
        """A connection asks for the call."""
        self._connected += 1
        self._stop_timer()

    def leave(self) -> None:
        """A connection that had joined was lost, or has read all it wanted."""
        self._connected -= 1
        if self._connected > 0 or self._abandon is None:
            return
        if self._grace_s > 0:
            self._start_timer()
        else:
            self._abandon_call()

    def restart_grace(self) -> None:
        """Restarts a grace time that has begun: a client asked for the status without waiting."""
        if self._timer is not None:
            self._stop_timer()
            self._start_timer()

    def disarm(self) -> None:
        """Ends the watch over connections: the call runs on without clients, or it has ended."""
        self._abandon = None
        self._stop_timer()

    def _start_timer(self) -> None:
        self._timer = self._call_later(self._grace_s, self._abandon_call)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abandon_call(self) -> None:
        abandon, self._abandon, self._timer = self._abandon, None, None
        if abandon is not None:
            abandon()
