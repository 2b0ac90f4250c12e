"""Who may run now: so many calls at a time, so many in line, none beyond its deadline, and each caller in turn."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

from proofbox.contracts.problems import FieldError
from proofbox.service.access.quotas import Share
from proofbox.service.errors import QueueFullError, QueueTimeoutError

_DURATION_WEIGHT = 0.2  # of the newest call in the moving average that counts until calls have left a line
_GAPS = 8  # between calls that left a line lately: their mean is the time until the next place
_RETRY_AFTER_S_MAX = 120.0
_WHOLE = Share()


def _all_of_it(_owner: str) -> Share:
    return _WHOLE


class Slot:
    """A slot to run in: a context manager that frees it at the end of its block.

    Args:
        ended: gets its owner and when it began.
        owner: its owner.
        began: when that is.
    """

    __slots__ = ("_began", "_ended", "_owner")

    def __init__(self, ended: Callable[[str, float], None], owner: str, began: float) -> None:
        self._ended = ended
        self._owner = owner
        self._began = began

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_exc: object) -> None:
        self._ended(self._owner, self._began)


class _Line:
    """How fast calls leave a line, as far as it is measured while calls wait there."""

    __slots__ = ("_gaps", "_since")

    def __init__(self) -> None:
        self._gaps: deque[float] = deque(maxlen=_GAPS)
        self._since = 0.0

    def begin(self, now: float) -> None:
        """The first call waits."""
        self._since = now

    def leave(self, now: float) -> None:
        """A call has left."""
        self._gaps.append(now - self._since)
        self._since = now

    def gap_s(self, now: float) -> float | None:
        """The time from one call that leaves to the next; grows while none does; None if none has left yet."""
        if not self._gaps:
            return None
        total = sum(self._gaps)
        return max(total / len(self._gaps), (total + now - self._since) / (len(self._gaps) + 1))


class Departures:
    """How fast calls leave the lines of their owners: when the next place is free.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: Counter[str] = Counter()
        self._all = _Line()
        self._own: dict[str, _Line] = {}  # of owners with calls that wait

    def join(self, owner: str) -> None:
        """A call of an owner waits."""
        now = self._clock()
        if not self._waiting:
            self._all.begin(now)
        if not self._waiting[owner]:
            self._own[owner] = _Line()
            self._own[owner].begin(now)
        self._waiting[owner] += 1

    def leave(self, owner: str) -> None:
        """One that waited has left."""
        now = self._clock()
        self._all.leave(now)
        self._own[owner].leave(now)
        self._waiting[owner] -= 1
        if not self._waiting[owner]:
            del self._waiting[owner], self._own[owner]

    def next_s(self, owner: str | None = None) -> float | None:
        """The time until the next one leaves, of all or of an owner; None if it is not known yet."""
        line = self._all if owner is None else self._own.get(owner, self._all)
        found_s = line.gap_s(self._clock())
        return None if found_s is None else min(_RETRY_AFTER_S_MAX, max(1.0, found_s))


class Admission:
    """A bounded line for each owner of calls, before a bounded number of slots.

    A slot that becomes free goes to the next owner in turn, and there to the call that came first: how many calls
    one owner has in line is felt by that owner only. An owner that has its share of the slots is passed over.

    Args:
        running_max: how many slots there are.
        queue_max: how many calls may wait, of all owners.
        share_of: what one owner may have of both.
        clock: a monotonic clock, in seconds.
    """

    def __init__(
        self,
        *,
        running_max: int,
        queue_max: int,
        share_of: Callable[[str], Share] = _all_of_it,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._running_max = running_max
        self._queue_max = queue_max
        self.share_of = share_of
        """What one owner may have of both."""
        self._running: Counter[str] = Counter()
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns; none is empty
        self._departures = Departures(clock)
        self._mean_s = 1.0

    @property
    def running(self) -> int:
        """Calls that have a slot."""
        return self._running.total()

    def running_of(self, owner: str) -> int:
        """Calls of an owner that have a slot."""
        return self._running[owner]

    @property
    def queued(self) -> int:
        """Calls that wait for one."""
        return sum(map(len, self._lines.values()))

    def queued_of(self, owner: str) -> int:
        """Calls of an owner that wait for one."""
        return len(self._lines.get(owner, ()))

    def has_slot(self, owner: str = "") -> bool:
        """Whether a call of an owner gets a slot at once: one is free, its share has room, and none waits."""
        return owner not in self._lines and self.running < self._running_max and self.has_share(owner)

    def refuse_if_full(self, owner: str = "") -> None:
        """Refuses a call early that `enter` would refuse.

        Raises:
            QueueFullError: as many calls wait as the operator allows, or as the owner may have.
        """
        if self.has_slot(owner):
            return
        own, queued_max = len(self._lines.get(owner, ())), self.share_of(owner).queued
        if queued_max and own >= queued_max:
            message = f"queued_calls: {own} calls of yours wait, {queued_max} may"
            raise QueueFullError(
                f"{message}; come again later",
                retry_after_s=self.next_place_s(owner),
                errors=[FieldError(field="queued_calls", code="queue_full", message=message)],
            )
        if self.queued >= self._queue_max:
            raise QueueFullError(
                f"{self.running} calls run and {self.queued} wait, {self._queue_max} may; come again later",
                retry_after_s=self.next_place_s(),
            )

    async def enter(self, deadline: float, on_queued: Callable[[int], None], owner: str = "") -> Slot:
        """Waits for a slot to run, which has to be entered at once; ``deadline`` is on the monotonic clock.

        ``on_queued`` gets the number of calls before this one; 0 if it has a slot at once.

        Raises:
            QueueFullError: as many calls wait as the operator allows, or as the owner may have.
            QueueTimeoutError: the deadline passed while it waited.
        """
        if self.has_slot(owner):
            on_queued(0)
            self._running[owner] += 1
        else:
            await self._wait(deadline, on_queued, owner)
        return Slot(self._ended, owner, self._clock())

    def _ended(self, owner: str, began: float) -> None:
        self._mean_s += _DURATION_WEIGHT * (self._clock() - began - self._mean_s)
        self._leave(owner)

    async def _wait(self, deadline: float, on_queued: Callable[[int], None], owner: str) -> None:
        self.refuse_if_full(owner)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        on_queued(self._before(owner))
        self._lines.setdefault(owner, deque()).append(turn)
        self._departures.join(owner)
        timer = turn.get_loop().call_later(max(0.0, deadline - time.monotonic()), self._expire, turn, owner)
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._leave(owner)  # the slot came at the same moment
            else:
                self._step_out(owner, turn)
            raise
        finally:
            timer.cancel()
            del turn  # whose exception holds this frame: the two would hold the whole call until a collection

    def _expire(self, turn: asyncio.Future[None], owner: str) -> None:
        if not turn.done():
            turn.set_exception(
                QueueTimeoutError(
                    "the call waited for a free place until its deadline; nothing was run, call again",
                    retry_after_s=self.next_place_s(owner),
                )
            )

    def has_share(self, owner: str) -> bool:
        """Whether an owner has fewer slots than it may have."""
        running_max = self.share_of(owner).running
        return not running_max or self._running[owner] < running_max

    def _before(self, owner: str) -> int:
        """How many calls get a slot before the next one of an owner, if all go on as long."""
        own = len(self._lines.get(owner, ()))
        return own + sum(min(len(line), own + 1) for other, line in self._lines.items() if other != owner)

    def _leave(self, owner: str) -> None:
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        self._hand_on()

    def _hand_on(self) -> None:
        """Gives free slots to the owners in turn."""
        while self.running < self._running_max:
            owner = next((owner for owner in self._lines if self.has_share(owner)), None)
            if owner is None:
                return
            line = self._lines.pop(owner)
            turn = line.popleft()
            if line:
                self._lines[owner] = line  # behind all others
            self._departures.leave(owner)
            if not turn.done():
                turn.set_result(None)
                self._running[owner] += 1

    def _step_out(self, owner: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(owner)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[owner]
            self._departures.leave(owner)

    def next_place_s(self, owner: str | None = None) -> float:
        """The time until a place in the line is free, as calls left it lately; of an owner: in the owner's line."""
        if (measured_s := self._departures.next_s(owner)) is not None:
            return measured_s
        slots = self._running_max
        if owner is not None:
            slots = min(slots, self.share_of(owner).running or slots)
        return min(_RETRY_AFTER_S_MAX, max(1.0, self._mean_s / slots))
