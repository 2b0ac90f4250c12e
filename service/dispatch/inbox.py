"""Messages of the queue that may be of another release, or of no process of this service."""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from proofbox.service.dispatch.messages import VERSION, QueuedMessage, UnreadableMessageError, decode_queued
from proofbox.service.dispatch.nats_link import NatsLink
from proofbox.service.dispatch.port import DispatchStore

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("proofbox.dispatch")

_NEWER_S, _NEWER_S_MAX = 0.5, 15.0


class QueueInbox:
    """Passes the messages on that this release knows.

    Args:
        link: the NATS servers.
        dispatches: the dispatched calls.
        handle: gets the number of a call, and its message.
    """

    def __init__(
        self, link: NatsLink, dispatches: DispatchStore, handle: Callable[[int, "Msg"], Awaitable[None]]
    ) -> None:
        self._link = link
        self._dispatches = dispatches
        self._handle = handle

    async def handle(self, message: "Msg") -> None:
        """Pass a message on, or give it back to the queue for a newer worker, or set it aside."""
        try:
            found = decode_queued(message.subject, message.data)
        except UnreadableMessageError as exc:
            await self._set_aside(message, exc)
            return
        if found.is_known:
            await self._handle(found.number, message)
        else:
            await self._leave(found, message)

    async def _set_aside(self, message: "Msg", exc: UnreadableMessageError) -> None:
        """Take a message out of the queue; the dead letters have it, for alerts."""
        log.error("%s; it is set aside", exc)
        try:
            number = message.metadata.sequence.stream
            facts = {"message": number, "subject": message.subject[:200], "reason": str(exc)}
            await self._link.set_aside(f"message-{number}", facts)
            await message.term()
        except Exception as failed:  # noqa: BLE001 - it is delivered again after a lease
            log.warning("a message cannot be set aside yet: %s", failed)

    async def _leave(self, found: QueuedMessage, message: "Msg") -> None:
        """Give a message back, unless its call has ended."""
        with suppress(Exception):  # what is delivered again is given back again
            if not await self._dispatches.states([found.number]):
                await message.ack()
                return
        log.warning(
            "call %d: its message has version %d and this worker knows %d; it goes back for a newer worker: "
            "upgrade this one",
            found.number,
            found.version,
            VERSION,
        )
        with suppress(Exception):
            await message.nak(delay=_delay_s(message))


def _delay_s(message: "Msg") -> float:
    """The pause before a message comes again: longer each time."""
    delivered = min(message.metadata.num_delivered or 1, 16)
    return min(_NEWER_S_MAX, _NEWER_S * 2.0 ** (delivered - 1))
