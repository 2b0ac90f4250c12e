"""Who may run now: so many calls at a time, so many in line, none beyond its deadline, and each caller in turn."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable

from proofbox.contracts.problems import FieldError
from proofbox.service.access.quotas import Share
from proofbox.service.errors import QueueFullError, QueueTimeoutError

_DURATION_WEIGHT = 0.2  # of the newest call in the moving average that Retry-After is computed from
_RETRY_AFTER_S_MAX = 120.0
_WHOLE = Share()


def _all_of_it(_owner: str) -> Share:
    return _WHOLE


class Slot:
    """A slot to run in: a context manager that frees it at the end of its block.

    Args:
        ended: gets its owner and how many seconds it was held.
        owner: its owner.
    """

    __slots__ = ("_began", "_ended", "_owner")

    def __init__(self, ended: Callable[[str, float], None], owner: str) -> None:
        self._ended = ended
        self._owner = owner
        self._began = time.monotonic()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_exc: object) -> None:
        self._ended(self._owner, time.monotonic() - self._began)


class Admission:
    """A bounded line for each owner of calls, before a bounded number of slots.

    A slot that becomes free goes to the next owner in turn, and there to the call that came first: how many calls
    one owner has in line is felt by that owner only. An owner that has its share of the slots is passed over.

    Args:
        running_max: how many slots there are.
        queue_max: how many calls may wait, of all owners.
        share_of: what one owner may have of both.
    """

    def __init__(self, *, running_max: int, queue_max: int, share_of: Callable[[str], Share] = _all_of_it) -> None:
        self._running_max = running_max
        self._queue_max = queue_max
        self.share_of = share_of
        """What one owner may have of both."""
        self._running: Counter[str] = Counter()
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns; none is empty
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
        return owner not in self._lines and self.running < self._running_max and self._may_run(owner)

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
                retry_after_s=self._retry_after_s(),
                errors=[FieldError(field="queued_calls", code="queue_full", message=message)],
            )
        if self.queued >= self._queue_max:
            raise QueueFullError(
                f"{self.running} calls run and {self.queued} wait, {self._queue_max} may; come again later",
                retry_after_s=self._retry_after_s(),
            )

    async def enter(self, deadline: float, on_queued: Callable[[int], None], owner: str = "") -> Slot:
        """Waits for a slot to run, which has to be entered at once; ``deadline`` is on the monotonic clock.

        ``on_queued`` gets the number of calls before this one; 0 if it has a slot at once.

        Raises:
            QueueFullError: as many calls wait as the operator allows, or as the owner may have.
            QueueTimeoutError: the deadline passed while it waited.
        """
        if self.has_slot(owner):
            self._running[owner] += 1
            on_queued(0)
        else:
            await self._wait(deadline, on_queued, owner)
        return Slot(self._ended, owner)

    def _ended(self, owner: str, took_s: float) -> None:
        self._mean_s += _DURATION_WEIGHT * (took_s - self._mean_s)
        self._leave(owner)

    async def _wait(self, deadline: float, on_queued: Callable[[int], None], owner: str) -> None:
        self.refuse_if_full(owner)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        on_queued(self._before(owner))
        self._lines.setdefault(owner, deque()).append(turn)
        timer = turn.get_loop().call_later(max(0.0, deadline - time.monotonic()), self._expire, turn)
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

    def _expire(self, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            turn.set_exception(
                QueueTimeoutError(
                    "the call waited for a free place until its deadline; nothing was run, call again",
                    retry_after_s=self._retry_after_s(),
                )
            )

    def _may_run(self, owner: str) -> bool:
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
            owner = next((owner for owner in self._lines if self._may_run(owner)), None)
            if owner is None:
                return
            line = self._lines.pop(owner)
            turn = line.popleft()
            if line:
                self._lines[owner] = line  # behind all others
            if not turn.done():
                turn.set_result(None)
                self._running[owner] += 1

    def _step_out(self, owner: str, turn: asyncio.Future[None]) -> None:
        line = self._lines.get(owner)
        if line is not None and turn in line:
            line.remove(turn)
            if not line:
                del self._lines[owner]

    def _retry_after_s(self) -> float:
        return min(_RETRY_AFTER_S_MAX, max(1.0, self._mean_s * (self.queued + 1) / self._running_max))
