"""The turns of callers: one sandbox of previews at a time for each, and a bounded line before it."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from proofbox.service.access.quotas import Share
from proofbox.service.calls.admission import Admission
from proofbox.service.errors import QueueFullError, QueueTimeoutError

WAITING_MAX = 8
"""How many previews of one caller may wait."""
WAIT_S_MAX = 60.0
"""How long one waits."""
_NO_LIMIT = 2**31  # of all callers: the slots of the service bound these


class Turns:
    """One turn for each caller: a view that asks for many previews takes one of its slots.

    Args:
        wait_s: how long a preview waits for its turn.
    """

    def __init__(self, wait_s: float = WAIT_S_MAX) -> None:
        self._wait_s = wait_s
        share = Share(running=1, queued=WAITING_MAX)
        self._admission = Admission(running_max=_NO_LIMIT, queue_max=_NO_LIMIT, share_of=lambda _: share)

    @asynccontextmanager
    async def take(self, caller: str) -> AsyncIterator[None]:
        """Wait for the turn of a caller, which ends with the block.

        Raises:
            QueueFullError: `WAITING_MAX` previews of the caller wait.
            QueueTimeoutError: the turn did not come in time.
        """
        try:
            slot = await self._admission.enter(time.monotonic() + self._wait_s, lambda _: None, caller)
        except QueueFullError as exc:
            waiting = self._admission.queued_of(caller)
            raise QueueFullError(
                f"previews: too many of yours wait (limit {WAITING_MAX}, got {waiting + 1}); "
                "ask again when one has been answered",
                retry_after_s=exc.retry_after_s,
            ) from exc
        except QueueTimeoutError as exc:
            raise QueueTimeoutError(
                f"previews: this one waited too long for others of yours (limit {self._wait_s:g} s); ask again",
                retry_after_s=exc.retry_after_s,
            ) from exc
        with slot:
            yield
