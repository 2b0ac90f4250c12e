"""Calls that wait in the database for the turn of their caller: published as soon as there is room for them."""

import asyncio
import logging

from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.port import DispatchStore
from proofbox.service.dispatch.publishing import publish_calls
from proofbox.service.errors import OurError

log = logging.getLogger("proofbox.dispatch")

_CALLERS_MAX = 1000
_PUBLISHED_MIN = 16


def published_max(running_max: int) -> int:
    """Return the limit of calls of one caller in the queue of NATS, if workers run so many calls each.

    A call waits for at most as many calls of each other caller; fewer would leave workers without work while the
    next ones are published.
    """
    return max(_PUBLISHED_MIN, 2 * running_max)


class Turns:
    """Publishes the next calls of callers.

    Args:
        link: the NATS servers.
        dispatches: the dispatched calls.
        published_max: how many calls of one caller may be in the queue.
    """

    def __init__(self, link: NatsLink, dispatches: DispatchStore, published_max: int) -> None:
        self._link = link
        self._dispatches = dispatches
        self._published_max = published_max
        self._publishing: asyncio.Task[None] | None = None
        self._callers: set[str] = set()
        self._has_callers = asyncio.Event()

    def note(self, caller: str) -> None:
        """Note that there may be room for calls of a caller."""
        self._callers.add(caller)
        self._has_callers.set()

    def start(self) -> None:
        """Begin to publish calls of the callers that are noted."""
        self._publishing = asyncio.create_task(self._publish_for_ever())

    async def stop(self) -> None:
        """Stop publishing."""
        if self._publishing is not None:
            self._publishing.cancel()
            await asyncio.gather(self._publishing, return_exceptions=True)

    async def _publish_for_ever(self) -> None:
        while True:
            await self._has_callers.wait()
            self._has_callers.clear()
            callers, self._callers = self._callers, set()
            for caller in callers:
                try:
                    await self._publish(caller)
                except OurError as exc:
                    log.warning("calls that wait for their turn cannot be published: %s", exc)
                except Exception:
                    log.exception("calls that wait for their turn cannot be published")

    async def sweep(self) -> None:
        """Publish what calls that ended without a worker made room for.

        Raises:
            StoreFailedError: the store failed.
        """
        for caller in await self._dispatches.waiting_callers(_CALLERS_MAX):
            await self._publish(caller)

    async def _publish(self, caller: str) -> None:
        numbers = await self._dispatches.release_turns(caller, self._published_max)
        await publish_calls(self._link, self._dispatches, numbers)
