"""Wakes those who listen to records in this process when another one has changed them."""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from proofbox.service.concurrency import Changes
from proofbox.service.dispatch.nats_link import NatsLink

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("proofbox.dispatch")

_BEAT_S = 2.0
"""The time within which a change is noticed whose message was lost."""
_LOOK_AGAIN_S = 30.0
"""The same of a process that was killed before it sent the message."""


class ChangeBridge:
    """Sends the topics of the changes of this process, and passes those of the other ones on.

    Messages are numbered and may be lost. Each process sends its last number every two seconds; one that misses a
    number, or has lost its link, wakes all its listeners.

    Args:
        changes: the changes of this process.
        link: the NATS servers.
    """

    def __init__(self, changes: Changes, link: NatsLink) -> None:
        self._changes = changes
        self._link = link
        self._subject = link.subject("changes")
        self._sent = 0
        self._heard: dict[str, int] = {}
        self._sending: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Send and pass on changes within the block.

        Raises:
            DispatchUnavailableError: the link is closed.
        """
        async with self._link.listening(self._subject, self._on_message):
            self._changes.on_own = self._send_changes
            self._link.on_reconnected = self._changes.notify_all
            tasks = [asyncio.create_task(self._beat_for_ever()), asyncio.create_task(self._look_for_ever())]
            try:
                yield
            finally:
                self._changes.on_own = self._link.on_reconnected = None
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, *self._sending, return_exceptions=True)

    def _send_changes(self, topics: Collection[str]) -> None:
        self._sent += 1
        task = asyncio.create_task(self._send(self._sent, topics))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self, number: int, topics: Collection[str]) -> None:
        await self._link.publish(self._subject, json.dumps([self._link.name, number, *topics]).encode())

    async def _on_message(self, message: "Msg") -> None:
        sender, number, *topics = json.loads(message.data)
        if sender == self._link.name:
            return
        heard = self._heard.get(sender, 0)
        self._heard[sender] = max(number, heard)
        if number > heard + bool(topics):
            self._changes.notify_all()
        else:
            self._changes.notify(topics)

    async def _beat_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_S * random.uniform(0.8, 1.2))  # noqa: S311 - not all processes at once
            if not self._sending:  # else it could arrive before the change whose number it has
                await self._send(self._sent, ())

    async def _look_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_AGAIN_S * random.uniform(0.5, 1.5))  # noqa: S311 - not all processes at once
            self._changes.notify_all()
