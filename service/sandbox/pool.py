"""Containers that are created, started and waiting before a call comes; each serves one call and is gone.

A call takes a container of its flavour that waits, else a bare one, else it waits for one that is started for it.
Starts for calls that wait go first; what is started goes to their owners in turn, so that many calls of one delay a
call of another by one start. What waits is refilled a moment after it was taken, few at a time, and not
while calls use all of the machine, or while any call runs and enough still wait.

A few bare ones are a reserve, which only a caller without another running call may take: a caller with many calls
drains what waits, and its other calls wait for starts of their own. The reserve is refilled before anything else is
started; while calls wait, by half of the starts at most.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Literal

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.errors import EngineUnavailableError, ShuttingDownError
from proofbox.service.sandbox.clock import Clock, Timer
from proofbox.service.sandbox.pool_queue import PoolQueue, Waiter
from proofbox.service.sandbox.pool_sizing import Demands, PoolPolicy
from proofbox.service.sandbox.pooled_container import PooledContainer
from proofbox.service.sandbox.preload import PreloadSet

log = logging.getLogger("proofbox.pool")

Took = Literal["warm", "bare", "cold", "own"]
"""What a call got: a container of its flavour that waited, a bare one that waited instead, one that was started for
lack of them, or one with limits of its own, which none that waits can have."""

_REFILL_AFTER_S = 0.15  # most calls are over by then
_LOOK_AGAIN_S = 0.1
# Calls may hold all places for minutes without using a core: so often one container is started nevertheless.
_HELD_BACK_S_MAX = 2.0
_RETRY_S, _RETRY_S_MAX = 0.25, 5.0
_UNLOADED_S_MAX = 60.0  # between containers that were to have libraries and had to start without
_ENOUGH_SHARE = 0.5  # of what should wait: with that many left, a start can wait for the calls that run
_OLD_SHARE = 0.8  # of the age at which a waiting container is not given to a call any more
_SURPLUS = 1  # stays, so that a number that wavers starts and removes nothing
_FAILED_MAX = 3  # starts in a row: the engine answers, and starts nothing
_FAILED_S = 30.0  # after the last of them a start may work again: where nothing waits, only a call would show it


@dataclass(slots=True)
class PoolCounts:
    """What has happened since the service started.

    Attributes:
        taken: calls by the flavour they wanted and what they got.
        failed: starts that failed.
        ended: containers that waited and had to go: ended by themselves, or gave no answer.
        starts: containers started, to wait or for a call that waits, by flavour.
        start_s: how long that took, by flavour, in seconds.
    """

    taken: Counter[tuple[PreloadSet, Took]] = field(default_factory=Counter)
    failed: int = 0
    ended: int = 0
    starts: Counter[PreloadSet] = field(default_factory=Counter)
    start_s: dict[PreloadSet, float] = field(default_factory=lambda: dict.fromkeys(PreloadSet, 0.0))


class Pool:
    """Keeps containers waiting.

    Args:
        start: starts one of a flavour, or none while that one's libraries cannot be had; may be cancelled.
        discard: has one removed, later.
        policy: how many, how long; can be replaced.
        load: the share of the machine that calls use, 1 for all of it.
        clock: time and timers.
    """

    def __init__(
        self,
        start: Callable[[PreloadSet], Awaitable[PooledContainer | None]],
        discard: Callable[[PooledContainer], None],
        policy: PoolPolicy,
        *,
        load: Callable[[], float],
        clock: Clock,
    ) -> None:
        self._start = start
        self._discard = discard
        self.policy = policy
        self._load = load
        self._clock = clock
        self._demands = Demands()
        self._ready: dict[PreloadSet, deque[PooledContainer]] = {flavour: deque() for flavour in PreloadSet}
        self._waiting = PoolQueue()
        self._starting: dict[asyncio.Task[bool], PreloadSet] = {}
        self._for_reserve: set[asyncio.Task[bool]] = set()
        self._reserve_at = 0.0
        self._begun_for_reserve = False  # the last start
        self._timer: Timer | None = None
        self._paused: dict[PreloadSet, Timer] = {}  # flavours whose libraries could not be had, until the next try
        self._unloaded_s: dict[PreloadSet, float] = {}
        self._refilled = clock.time()
        self._retry_s = 0.0
        self._retry_at = 0.0
        self._failed_in_row = 0
        self._failure: EngineUnavailableError | None = None
        self._has_started = False
        self._failed_at = 0.0
        self._stopped = False
        self.counts = PoolCounts()

    def require_starts(self) -> None:
        """Check that containers can be started.

        Raises:
            EngineUnavailableError: none has started yet, or the last starts failed, the newest a moment ago.
        """
        if not self._has_started:
            raise EngineUnavailableError(
                f"no sandbox could be started yet: {self._failure}"
                if self._failed_in_row
                else "the first sandbox is being started"
            )
        if self._failed_in_row >= _FAILED_MAX and self._clock.time() - self._failed_at < _FAILED_S:
            raise EngineUnavailableError(
                f"the last {self._failed_in_row} starts of a sandbox failed: {self._failure}"
            )

    def note_started(self) -> None:
        """A container was started, by the pool or without it."""
        self._has_started = True
        self._failed_in_row = 0

    def note_failed(self, exc: Exception) -> EngineUnavailableError:
        """A start failed, of the pool or without it; the error for whoever waited for it."""
        self.counts.failed += 1
        self._failed_in_row += 1
        self._failed_at = self._clock.time()
        failure = EngineUnavailableError("a sandbox could not be started")
        self._failure = failure = exc if isinstance(exc, EngineUnavailableError) else failure
        return failure

    @property
    def ready(self) -> int:
        """Containers that wait for a call."""
        return sum(len(waiting) for waiting in self._ready.values())

    def waiting(self, flavour: PreloadSet) -> int:
        """Containers of a flavour that wait for a call."""
        return len(self._ready[flavour])

    def starting(self, flavour: PreloadSet) -> int:
        """Containers of a flavour that are being started."""
        return sum(started is flavour for started in self._starting.values())

    def wanted(self) -> dict[PreloadSet, int]:
        """How many should wait."""
        return self._demands.wanted(self.policy, self._clock.time())

    async def take(
        self, flavour: PreloadSet = PreloadSet.BARE, owner: str = "", *, is_only_call: bool = True
    ) -> PooledContainer:
        """The next container; its ``info.acquired`` is whether it waited.

        Args:
            flavour: what its interpreter should have imported.
            owner: whose call it is for; those whose calls have to wait are served in turn.
            is_only_call: whether the owner has no other call running: only then the reserve is open to it.

        Raises:
            EngineUnavailableError: the engine could not start one.
            ShuttingDownError: the pool is being drained.
        """
        if self._stopped:
            raise ShuttingDownError("the service is shutting down")
        self._demands.of[flavour].arrived(self._clock.time())
        for found in dict.fromkeys((flavour, PreloadSet.BARE)):
            pooled = await self._take_waiting(found, is_only_call=is_only_call)
            if pooled is not None:
                self._reserve_at = self._clock.time() + _REFILL_AFTER_S
                self._refill_after(_REFILL_AFTER_S)
                self._waiting.note_served(owner)
                return self._hand_out(pooled, flavour, "warm" if found is flavour else "bare")
        return self._hand_out(await self._start_for(flavour, owner, is_only_call=is_only_call), flavour, "cold")

    def _hand_out(self, pooled: PooledContainer, flavour: PreloadSet, took: Took) -> PooledContainer:
        self.counts.taken[flavour, took] += 1
        pooled.sandbox.info = _report_acquired(pooled, warm=took != "cold")
        return pooled

    async def _start_for(self, flavour: PreloadSet, owner: str, *, is_only_call: bool) -> PooledContainer:
        if self._stopped:  # while a container that waited was asked
            raise ShuttingDownError("the service is shutting down")
        future: asyncio.Future[PooledContainer] = asyncio.get_running_loop().create_future()
        waiter = Waiter(flavour, owner, future, self._clock.time(), is_only_call)
        self._waiting.add(waiter)
        self._start_for_calls()
        try:
            return await waiter.pooled
        except asyncio.CancelledError:
            if waiter.pooled.done() and not waiter.pooled.cancelled() and waiter.pooled.exception() is None:
                self._put(waiter.pooled.result())
            raise
        finally:
            self._waiting.remove(waiter)

    async def _take_waiting(self, flavour: PreloadSet, *, is_only_call: bool) -> PooledContainer | None:
        """A container that has waited and can be used, and is not reserved for others."""
        waiting = self._ready[flavour]
        is_open = is_only_call or flavour is not PreloadSet.BARE
        while waiting and self.policy.may_take(len(waiting), is_only_call=is_open):
            pooled = waiting.popleft()
            if await self._can_be_used(pooled):
                return pooled
        return None

    async def _can_be_used(self, pooled: PooledContainer) -> bool:
        """Whether a container is fit for a call; one that is not is discarded."""
        fit = False
        try:
            fit = self._age_s(pooled) < self.policy.age_max_s and await self._answers(pooled)
        finally:
            if not fit:
                self._discard(pooled)
        return fit

    async def _answers(self, pooled: PooledContainer) -> bool:
        if pooled.transport.is_open and await pooled.sandbox.answers():
            return True
        self.counts.ended += 1
        log.warning("a waiting sandbox had ended by itself or gave no answer: %s", pooled.container_id[:12])
        return False

    def _age_s(self, pooled: PooledContainer) -> float:
        return self._clock.time() - pooled.born

    async def renew(self) -> None:
        """Replaces containers that ended, hang or get old, and removes what is not wanted any more.

        To be called again and again. Of the old ones it replaces one of a flavour at a time: those that were
        started together do not leave the pool empty together.
        """
        for flavour, waiting in self._ready.items():
            surplus = len(waiting) - self._most(flavour)
            if surplus <= 0 and waiting and self._age_s(waiting[0]) > _OLD_SHARE * self.policy.age_max_s:
                surplus = 1
            for pooled in list(waiting):
                if pooled not in waiting:  # taken meanwhile
                    continue
                waiting.remove(pooled)
                if surplus > 0:
                    surplus -= 1
                    self._discard(pooled)
                elif await self._can_be_used(pooled):
                    self._put(pooled, for_reserve=flavour is PreloadSet.BARE)
        self._refill_after(0)

    def _most(self, flavour: PreloadSet) -> int:
        wanted = self.wanted()[flavour]
        return wanted + _SURPLUS if wanted else 0

    def fill(self) -> None:
        """Begins to start what should wait."""
        self._refill_after(0)

    def _refill_after(self, seconds: float) -> None:
        """Looks after a while whether containers are missing; a look that is near already stays."""
        if self._timer is None and not self._stopped:
            self._timer = self._clock.call_later(seconds, self._refill)

    def _refill(self) -> None:
        self._timer = None
        if self._stopped:
            return
        now = self._clock.time()
        self._refill_reserve(now)
        flavour = self._most_missing(now)
        if flavour is None or self._waiting or len(self._starting) >= max(1, self.policy.starts_max // 2):
            return  # the end of a start brings us back
        if now < self._retry_at:
            self._refill_after(self._retry_at - now)
        elif self._yields(now) and now - self._refilled < _HELD_BACK_S_MAX:
            self._refill_after(_LOOK_AGAIN_S)
        else:
            self._refilled = now
            self._begin(flavour)
            self._refill_after(0)

    def _refill_reserve(self, now: float) -> None:
        """Begins to start what the reserve lacks, also while calls wait; not while its last taker may still run."""
        lacks = self.policy.reserved - self.waiting(PreloadSet.BARE) - len(self._for_reserve)
        if lacks <= 0:
            return
        at = max(self._reserve_at, self._retry_at)
        if now < at:
            self._refill_after(at - now)
        elif len(self._starting) < self.policy.starts_max and self._is_turn_of_reserve():
            self._begin(PreloadSet.BARE, for_reserve=True)  # else the end of a start brings us back

    def _is_turn_of_reserve(self) -> bool:
        """Whether calls that wait leave it a start: half of them; of a single one every second."""
        if not self._waiting:
            return True
        if self.policy.starts_max == 1 and self._begun_for_reserve:
            return False
        return len(self._for_reserve) < max(1, self.policy.starts_max // 2)

    def _yields(self, now: float) -> bool:
        """Whether calls that run go first: all of them where they use the machine, any where enough still wait."""
        load = self._load()
        wanted = sum(self._demands.wanted(self.policy, now).values())
        return load >= 1 or (load > 0 and self.ready >= _ENOUGH_SHARE * wanted)

    def _most_missing(self, now: float) -> PreloadSet | None:
        """The flavour of which the smallest share waits or is being started; None if nothing is missing."""
        shares: dict[PreloadSet, float] = {}
        for flavour, wanted in self._demands.wanted(self.policy, now).items():
            there = len(self._ready[flavour]) + self.starting(flavour)
            if there < wanted and flavour not in self._paused:
                shares[flavour] = there / wanted
        return min(shares, key=shares.__getitem__) if shares else None

    def _start_for_calls(self) -> None:
        """One start for each call that waits; bare ones, as importing takes the same time in the call."""
        reserve = len(self._for_reserve)
        bare = self.starting(PreloadSet.BARE) - reserve
        for _ in range(min(len(self._waiting), self.policy.starts_max - reserve) - bare):
            self._begin(PreloadSet.BARE)

    def _begin(self, flavour: PreloadSet, *, for_reserve: bool = False) -> None:
        # In a context of its own: it is not a part of the call that happened to ask for it.
        start = self._start_one(flavour, for_reserve=for_reserve)
        task = asyncio.get_running_loop().create_task(start, context=Context())
        self._starting[task] = flavour
        self._begun_for_reserve = for_reserve
        if for_reserve:
            self._for_reserve.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[bool]) -> None:
        del self._starting[task]
        self._for_reserve.discard(task)
        if not self._stopped:
            self._refill_reserve(self._clock.time())
            self._start_for_calls()
            serves_call = not task.cancelled() and task.result()
            self._refill_after(_REFILL_AFTER_S if serves_call else 0)

    async def _start_one(self, flavour: PreloadSet, *, for_reserve: bool) -> bool:
        """Starts one; whether a call that waited got it."""
        began = self._clock.time()
        try:
            pooled = await self._start(flavour)
        except Exception as exc:  # noqa: BLE001 - whatever went wrong, a call that waits gets it
            # A caller gets the sentence alone; the operator also needs the engine's own words.
            cause = getattr(exc.__cause__, "explanation", exc.__cause__)
            log.warning("a sandbox could not be started: %s%s", exc, f": {cause}" if cause else "")
            self._failed(exc, began, for_reserve=for_reserve)
            return False
        if pooled is None:
            self._pause(flavour, _RETRY_S)
            return False
        if pooled.flavour is flavour:
            self._unloaded_s.pop(flavour, None)
        else:
            self._unloaded_s[flavour] = min(_UNLOADED_S_MAX, 2 * self._unloaded_s.get(flavour, _RETRY_S))
            self._pause(flavour, self._unloaded_s[flavour])
        took_s = self._clock.time() - began
        self._retry_s = self._retry_at = 0.0
        self.note_started()
        self._demands.of[flavour].refilled(took_s)
        self.counts.starts[flavour] += 1
        self.counts.start_s[flavour] += took_s
        pooled.born = self._clock.time()
        return self._put(pooled, for_reserve=for_reserve)

    def _pause(self, flavour: PreloadSet, pause_s: float) -> None:
        """Begins no start of a flavour for a while."""

        def end() -> None:
            self._paused.pop(flavour, None)
            self._refill_after(0)

        if (earlier := self._paused.get(flavour)) is not None:
            earlier.cancel()
        self._paused[flavour] = self._clock.call_later(pause_s, end)

    def _failed(self, exc: Exception, began: float, *, for_reserve: bool) -> None:
        """One failure answers one call, but none that came after that start ``began``: it gets one of its own.

        So does each call that waits while the reserve is refilled.

        What only waits is tried again after a pause that grows.
        """
        error = self.note_failed(exc)
        self._retry_s = min(_RETRY_S_MAX, max(_RETRY_S, 2 * self._retry_s))
        self._retry_at = self._clock.time() + self._retry_s
        for waiter in () if for_reserve else self._waiting:
            if not waiter.pooled.done() and waiter.since <= began:
                waiter.pooled.set_exception(error)
                return

    def _put(self, pooled: PooledContainer, *, for_reserve: bool = False) -> bool:
        """Gives a container to a call that waits and that it serves, or lets it wait; whether a call got it."""
        if self._stopped:
            self._discard(pooled)
            return False
        is_lacking = self.waiting(PreloadSet.BARE) < self.policy.reserved
        if self._waiting.give(pooled, only_calls=for_reserve and is_lacking):
            return True
        self._ready[pooled.flavour].append(pooled)
        return False

    async def drain(self) -> None:
        """Takes no more calls and discards what waits."""
        self._stopped = True
        for timer in (self._timer, *self._paused.values()):
            if timer is not None:
                timer.cancel()
        self._timer = None
        starting = list(self._starting)
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)
        for waiter in self._waiting:
            self._waiting.remove(waiter)
            if not waiter.pooled.done():
                waiter.pooled.set_exception(ShuttingDownError("the service is shutting down"))
        for waiting in self._ready.values():
            while waiting:
                self._discard(waiting.popleft())


def _report_acquired(pooled: PooledContainer, *, warm: bool) -> SandboxInfo:
    return pooled.sandbox.info.model_copy(update={"acquired": "warm" if warm else "cold"})
