"""A timer over stored times: it sleeps until the next one, and wakes when these times change."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress

from proofbox.service.concurrency import Changes


class DueTimer(ABC):
    """Does what is due, again and again.

    Args:
        changes: announces changes of the stored times.
        topic: what these changes are announced as.
    """

    def __init__(self, changes: Changes, topic: str) -> None:
        self._changes = changes
        self._topic = topic
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin; what is due already is done at once."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; what has begun in the stores is done to the end."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def _run(self) -> None:
        with self._changes.listen(self._topic) as changed:
            while True:
                await changed.wait(await self._pass())

    @abstractmethod
    async def _pass(self) -> float:
        """Do what is due and log what fails; return how long to sleep, in seconds, unless the times change."""
