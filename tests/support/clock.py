"""A clock that a test moves."""

import heapq
import itertools
from collections.abc import Callable


class _Timer:
    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    """The port ``Clock`` of the pool: time passes only in `advance`."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._timers: list[tuple[float, int, _Timer]] = []
        self._count = itertools.count()

    def time(self) -> float:
        return self._now

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> _Timer:
        timer = _Timer(callback)
        heapq.heappush(self._timers, (self._now + delay_s, next(self._count), timer))
        return timer

    def advance(self, seconds: float) -> None:
        """Lets time pass and calls what is due; what that asks for later is called if it is due as well."""
        until = self._now + seconds
        while self._timers and self._timers[0][0] <= until:
            self._now, _, timer = heapq.heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
        self._now = until
