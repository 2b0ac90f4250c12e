"""Containers that are created, started and waiting before a call comes; each serves one call and is gone.

A call takes the next container that is ready; if none is, it waits for the next start. Starts are few at a time,
so that they do not slow each other down, and cover what waits first.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from contracts.tool_calls import SandboxInfo
from service.core.errors import EngineUnavailableError, ShuttingDownError
from service.engines.containers import ContainerTransport
from service.engines.runner_sandbox import RunnerSandbox

log = logging.getLogger("proofbox.pool")

_REFILL_AFTER_S = 0.15
_PAUSES_S = (0.25, 0.5, 1.0, 2.0, 5.0)  # after starts that failed, one after another


@dataclass(slots=True)
class Box:
    """One started container.

    Attributes:
        container_id: its id.
        transport: the stream to its runner.
        sandbox: the sandbox behind it, ready for a call.
        born: when it was started, on the monotonic clock.
    """

    container_id: str
    transport: ContainerTransport
    sandbox: RunnerSandbox
    born: float = field(default_factory=time.monotonic)


class Pool:
    """Keeps ``size`` containers ready, at most ``starts_max`` starting at a time, none older than ``age_max_s``."""

    def __init__(
        self,
        start: Callable[[], Awaitable[Box]],
        discard: Callable[[Box], Awaitable[None]],
        *,
        size: int,
        starts_max: int,
        age_max_s: float,
    ) -> None:
        self._start = start
        self._discard = discard
        self._size = size
        self._starts_max = starts_max
        self._age_max_s = age_max_s
        self._ready: deque[Box] = deque()
        self._waiting: deque[asyncio.Future[Box]] = deque()
        self._starting: set[asyncio.Task[None]] = set()
        self._refill: asyncio.TimerHandle | None = None
        self._failed = 0  # starts, one after another
        self._stopped = False

    @property
    def ready(self) -> int:
        """Containers that wait for a call."""
        return len(self._ready)

    async def take(self) -> Box:
        """The next container; its ``info.acquired`` says whether it was ready before.

        Raises:
            EngineUnavailableError: the engine could not start one.
            ShuttingDownError: the pool is being drained.
        """
        if self._stopped:
            raise ShuttingDownError("the service is shutting down")
        box = await self._ready_box()
        if box is not None:
            box.sandbox.info = _acquired(box, warm=True)
            self._fill_soon()
            return box
        waiter: asyncio.Future[Box] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self.fill()
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._put(waiter.result())
            raise
        finally:
            with contextlib.suppress(ValueError):
                self._waiting.remove(waiter)

    async def _ready_box(self) -> Box | None:
        while self._ready:
            box = self._ready.popleft()
            if self._is_fit(box):
                return box
            await self._discard(box)
        return None

    def _is_fit(self, box: Box) -> bool:
        if not box.transport.is_open:
            log.warning("a waiting sandbox had ended by itself: %s", box.container_id[:12])
            return False
        return time.monotonic() - box.born < self._age_max_s

    async def renew(self) -> None:
        """Replaces containers that waited too long or ended by themselves."""
        unfit = [box for box in self._ready if not self._is_fit(box)]
        for box in unfit:
            self._ready.remove(box)
            await self._discard(box)
        self.fill()

    def _fill_soon(self) -> None:
        """Most calls are over in a moment: what replaces their container is not to compete with them."""
        self._fill_after(_REFILL_AFTER_S)

    def _fill_after(self, seconds: float) -> None:
        if self._refill is None:
            self._refill = asyncio.get_running_loop().call_later(seconds, self.fill)

    def fill(self) -> None:
        """Starts what is missing: one for each call that waits, and the pool's size beside."""
        if self._refill is not None:
            self._refill.cancel()
            self._refill = None
        missing = self._size + len(self._waiting) - len(self._ready) - len(self._starting)
        for _ in range(min(missing, self._starts_max - len(self._starting))):
            if self._stopped:
                return
            task = asyncio.create_task(self._start_one())
            self._starting.add(task)
            task.add_done_callback(self._started)

    def _started(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        if task.cancelled() or task.exception() is not None:
            return
        if self._failed and not self._waiting:
            # An engine that is away is not asked without end; a call that comes asks it at once.
            self._fill_after(_PAUSES_S[self._failed - 1])
        else:
            self.fill()

    async def _start_one(self) -> None:
        try:
            box = await self._start()
        except Exception as exc:  # noqa: BLE001 - whatever went wrong, a call that waits is told
            self._failed = min(self._failed + 1, len(_PAUSES_S))
            log.warning("a sandbox could not be started: %s", exc)
            error = exc if isinstance(exc, EngineUnavailableError) else None
            while self._waiting:
                waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_exception(error or EngineUnavailableError("a sandbox could not be started"))
                    return  # one failure answers one call
            return
        self._failed = 0
        self._put(box)

    def _put(self, box: Box) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                box.sandbox.info = _acquired(box, warm=False)
                waiter.set_result(box)
                return
        self._ready.append(box)

    async def drain(self) -> None:
        """Takes no more calls and removes what waits."""
        self._stopped = True
        if self._refill is not None:
            self._refill.cancel()
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_exception(ShuttingDownError("the service is shutting down"))
        while self._ready:
            await self._discard(self._ready.popleft())


def _acquired(box: Box, *, warm: bool) -> SandboxInfo:
    return box.sandbox.info.model_copy(update={"acquired": "warm" if warm else "cold"})
