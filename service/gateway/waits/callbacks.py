"""The waits of callback tokens, which a service may use before they are stored."""

import asyncio
import time

from proofbox.service.concurrency import Changes
from proofbox.service.gateway.waits.port import StoredWait, WaitStore, wait_topic
from proofbox.service.gateway_errors import NotWaitingError

_EARLY_S = 5.0


class CallbackWaits:
    """Finds the waits of callbacks.

    Args:
        waits: the waits.
        changes: reports when one is stored.
    """

    def __init__(self, waits: WaitStore, changes: Changes) -> None:
        self._waits = waits
        self._changes = changes
        self._looking: dict[str, asyncio.Task[StoredWait | None]] = {}

    async def find(self, wait_id: str) -> StoredWait:
        """Return the wait of a callback token, which may be stored up to 5 s later: the service was fast.

        Callbacks that come at the same time for one wait look together.

        Raises:
            NotWaitingError: the webhook was not answered with 202.
            StoreFailedError: the store failed.
        """
        looking = self._looking.get(wait_id)
        if looking is None:
            looking = self._looking[wait_id] = asyncio.create_task(self._look(wait_id))
            looking.add_done_callback(lambda _: self._looking.pop(wait_id, None))
        wait = await asyncio.shield(looking)  # one that hangs up leaves the others their look
        if wait is None:
            raise NotWaitingError("the call does not wait for a callback; answer its webhook with 202 first")
        return wait

    async def _look(self, wait_id: str) -> StoredWait | None:
        """Read at once, and each time that the wait may have been stored; last when the time is over."""
        ends = time.monotonic() + _EARLY_S
        with self._changes.listen(wait_topic(wait_id)) as listener:
            while (wait := await self._waits.get(wait_id)) is None and (left_s := ends - time.monotonic()) > 0:
                await listener.wait(left_s)
        return wait
