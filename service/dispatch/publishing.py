"""Calls that the database has queued are published to the workers."""

import asyncio
from collections import deque
from collections.abc import Iterable

from proofbox.service.dispatch.nats_link import DispatchUnavailableError, NatsLink
from proofbox.service.dispatch.port import DispatchStore

_AT_ONCE = 32


async def publish_calls(link: NatsLink, dispatches: DispatchStore, numbers: Iterable[int]) -> None:
    """Publish calls, the first ones first; those that the NATS servers do not take are due again.

    Raises:
        StoreFailedError: the store failed.
    """
    due, unpublished = deque(numbers), list[int]()

    async def publish() -> None:
        while due and not unpublished:
            number = due.popleft()
            try:
                await link.queue(number)
            except DispatchUnavailableError:
                unpublished.append(number)

    await asyncio.gather(*(publish() for _ in range(min(_AT_ONCE, len(due)))))
    if left := [*unpublished, *due]:
        await dispatches.unpublish(left)
