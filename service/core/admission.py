"""Who may run now: so many calls at a time, so many in line, none beyond its deadline."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from service.core.errors import QueueFullError, QueueTimeoutError

_DURATION_WEIGHT = 0.2  # of the newest call in the moving average that Retry-After is computed from
_RETRY_AFTER_S_MAX = 120.0


class Admission:
    """A bounded queue in order of arrival, before a bounded number of places."""

    def __init__(self, *, running_max: int, queue_max: int) -> None:
        self._running_max = running_max
        self._queue_max = queue_max
        self._running = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._mean_s = 1.0

    @property
    def running(self) -> int:
        """Calls that have a place."""
        return self._running

    @property
    def queued(self) -> int:
        """Calls that wait for one."""
        return len(self._line)

    def refuse_if_full(self) -> None:
        """Says at the door what `place` would say.

        Raises:
            QueueFullError: as many calls wait as the operator allows.
        """
        if self._running >= self._running_max and len(self._line) >= self._queue_max:
            raise QueueFullError(
                f"{self._running} calls run and {len(self._line)} wait, {self._queue_max} may; come again later",
                retry_after_s=self._retry_after_s(),
            )

    @asynccontextmanager
    async def place(self, deadline: float, on_queued: Callable[[int], None]) -> AsyncIterator[None]:
        """A place to run, held until the block is left; ``deadline`` is on the monotonic clock.

        ``on_queued`` is told how many calls are before this one; 0 if it has a place at once.

        Raises:
            QueueFullError: as many calls wait as the operator allows.
            QueueTimeoutError: the deadline passed while it waited.
        """
        await self._enter(deadline, on_queued)
        began = time.monotonic()
        try:
            yield
        finally:
            self._mean_s += _DURATION_WEIGHT * (time.monotonic() - began - self._mean_s)
            self._leave()

    async def _enter(self, deadline: float, on_queued: Callable[[int], None]) -> None:
        if self._running < self._running_max and not self._line:
            self._running += 1
            on_queued(0)
            return
        self.refuse_if_full()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        on_queued(len(self._line))
        self._line.append(turn)
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                await turn
        except BaseException as exc:
            if turn.done() and not turn.cancelled():
                self._leave()  # the place came at the same moment
            elif turn in self._line:
                self._line.remove(turn)
            if isinstance(exc, TimeoutError):
                raise QueueTimeoutError(
                    "the call waited for a free place until its deadline; nothing was run, call again",
                    retry_after_s=self._retry_after_s(),
                ) from exc
            raise

    def _leave(self) -> None:
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)  # the place is handed on, so the count stays
                return
        self._running -= 1

    def _retry_after_s(self) -> float:
        return min(_RETRY_AFTER_S_MAX, max(1.0, self._mean_s * (len(self._line) + 1) / self._running_max))
