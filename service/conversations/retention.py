"""The retention sweeper: deletes conversations, and runs of agents, that are older than the operator allows."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from proofbox.service.conversations.ended_runs import delete_ended_runs
from proofbox.service.conversations.port import RunRetention
from proofbox.service.conversations.service import Conversations
from proofbox.service.observability.metrics_port import Meter

CONVERSATIONS_MAX = 100
"""How many conversations one pass deletes."""
RUNS_MAX = 5_000
"""How many runs, or answers of idempotency keys, one pass deletes."""
_FULL_PASS_PAUSE_S = 5.0  # after a pass that did not come to the end
_PAUSE_S = 0.05  # between two conversations: others write in between
_BUSY_PAUSE_S = 1.0  # while calls wait for a slot
_BUSY_PAUSES_MAX = 30  # a service that is always busy deletes all the same
_log = logging.getLogger("proofbox.retention")


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """Which conversations are deleted, and how often the sweeper looks for them.

    Attributes:
        days: the time without use, in days; 0: none is deleted.
        every_s: the pause between passes, in seconds.
        temporary: with what the ids of conversations begin that are deleted earlier, and after how many seconds.
    """

    days: float
    every_s: float
    temporary: tuple[tuple[str, float], ...] = ()


class RetentionSweeper:
    """Passes in the background, each bounded; also ends the deletions that an earlier process began.

    Args:
        conversations: deletes them.
        policy: which ones.
        is_busy: whether calls wait for a slot; the sweeper waits then.
        meter: counts passes.
        runs: deletes ended runs; None: they stay.
    """

    def __init__(
        self,
        conversations: Conversations,
        policy: RetentionPolicy,
        is_busy: Callable[[], bool],
        meter: Meter,
        runs: RunRetention | None = None,
    ) -> None:
        self._runs = runs
        self._conversations = conversations
        self._policy = policy
        self._is_busy = is_busy
        self._meter = meter
        self._stopping = asyncio.Event()
        self._passes: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin the passes."""
        self._stopping.clear()
        self._passes = asyncio.create_task(self._pass_for_ever())

    async def stop(self) -> None:
        """End them after the deletion that is under way."""
        self._stopping.set()
        if self._passes is not None:
            await self._passes

    async def _pass_for_ever(self) -> None:
        while not self._stopping.is_set():
            is_full = await self._pass()
            await self._sleep(_FULL_PASS_PAUSE_S if is_full else self._policy.every_s)

    async def _pass(self) -> bool:
        """One pass; whether more conversations may be due."""
        try:
            await self._conversations.purge_interrupted()
            rules = [(prefix, timedelta(seconds=seconds)) for prefix, seconds in self._policy.temporary]
            if self._policy.days:
                rules.append(("", timedelta(days=self._policy.days)))
            if not rules:
                return False
            counts = [await self._delete_unused(prefix, age) for prefix, age in rules]
            has_more_runs = await self._delete_runs()
        except Exception:  # noqa: BLE001 - an unforeseen one too: the sweeper outlives it
            _log.exception("a retention pass failed; the next one tries again")
            self._meter.retention_passed(is_complete=False)
            return False
        self._meter.retention_passed(is_complete=True)
        return CONVERSATIONS_MAX in counts or has_more_runs

    async def _delete_unused(self, prefix: str, age: timedelta) -> int:
        return await self._conversations.delete_unused(_ago(age), CONVERSATIONS_MAX, self._wait_until_quiet, prefix)

    async def _delete_runs(self) -> bool:
        """Delete ended runs whose conversations are gone; whether more are due."""
        if self._runs is None or not self._policy.days:
            return False
        since = _ago(timedelta(days=self._policy.days))
        deleted = await delete_ended_runs(self._runs, since, self._meter, self._wait_until_quiet, RUNS_MAX)
        if deleted.runs:
            _log.info("%d runs were deleted that ended before %s", deleted.runs, since)
        return not deleted.is_complete

    async def _wait_until_quiet(self) -> bool:
        """Pause between two conversations, longer while calls wait; False if the service stops."""
        await self._sleep(_PAUSE_S)
        for _ in range(_BUSY_PAUSES_MAX):
            if self._stopping.is_set() or not self._is_busy():
                break
            await self._sleep(_BUSY_PAUSE_S)
        return not self._stopping.is_set()

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()


def _ago(age: timedelta) -> str:
    return (datetime.now(UTC) - age).isoformat(timespec="milliseconds").replace("+00:00", "Z")
