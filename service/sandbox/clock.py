"""Time and timers of the pool, as a port: tests have a clock of their own."""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """Something that will be called."""

    def cancel(self) -> None:
        """It will not be called."""


class Clock(Protocol):
    """Time and timers."""

    def time(self) -> float:
        """Now, in seconds of a clock that never goes back."""

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """Calls something once, after so many seconds."""


class LoopClock:
    """The port `Clock` of the running event loop."""

    def time(self) -> float:
        """See `Clock.time`."""
        return time.monotonic()

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> Timer:
        """See `Clock.call_later`."""
        return asyncio.get_running_loop().call_later(delay_s, callback)
