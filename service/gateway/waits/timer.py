"""The timer of waits: ends those that nobody answers in time."""

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime

from proofbox.service.concurrency import Changes
from proofbox.service.errors import OurError
from proofbox.service.gateway.waits.answers import WaitAnswers
from proofbox.service.gateway.waits.port import WaitStore

log = logging.getLogger("proofbox.gateway")

_SLEEP_S_MAX = 3_600.0
_AGAIN_S = 1.0


class WaitTimer:
    """Ends waits when they expire.

    Args:
        answers: ends them.
        waits: the waits.
        changes: reports when a call begins to wait, on ``topic``.
        topic: see ``changes``.
    """

    def __init__(self, answers: WaitAnswers, waits: WaitStore, changes: Changes, topic: str) -> None:
        self._answers = answers
        self._waits = waits
        self._changes = changes
        self._topic = topic
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look; call `WaitAnswers.expire_overdue` before, for the time when the service was down."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends; a wait that is being ended is ended to the end."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        with self._changes.listen(self._topic) as opened:
            while True:
                await opened.wait(await self._expire())

    async def _expire(self) -> float:
        """Ends what has expired; how long to sleep, in seconds, unless a call begins to wait."""
        try:
            await self._answers.expire_overdue()
            upcoming = await self._waits.next_expiry()
            if upcoming is None:
                return _SLEEP_S_MAX
            left_s = (datetime.fromisoformat(upcoming) - datetime.now(UTC)).total_seconds()
        except OurError as exc:
            log.warning("waits that have expired cannot be ended yet: %s", exc)
            return _AGAIN_S
        except Exception:
            log.exception("a wait could not be ended")
            return _AGAIN_S
        # One that could not be ended is tried again, but not in a loop; clocks may also be set.
        return min(max(left_s, 0.001) if left_s > 0 else _AGAIN_S, _SLEEP_S_MAX)
