"""The timer of waits: ends those that nobody answers in time."""

import logging
from datetime import UTC, datetime

from proofbox.service.concurrency import Changes
from proofbox.service.errors import OurError
from proofbox.service.gateway.due_timer import DueTimer
from proofbox.service.gateway.waits.answers import WaitAnswers
from proofbox.service.gateway.waits.port import WaitStore

log = logging.getLogger("proofbox.gateway")

_SLEEP_S_MAX = 3_600.0
_AGAIN_S = 1.0


class WaitTimer(DueTimer):
    """Ends waits when they expire; call `WaitAnswers.expire_overdue` first, for those of a stop of the service.

    Args:
        answers: ends them.
        waits: the waits.
        changes: reports when a call begins to wait, on ``topic``.
        topic: see ``changes``.
    """

    def __init__(self, answers: WaitAnswers, waits: WaitStore, changes: Changes, topic: str) -> None:
        super().__init__(changes, topic)
        self._answers = answers
        self._waits = waits

    async def _pass(self) -> float:
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
