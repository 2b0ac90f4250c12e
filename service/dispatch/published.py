"""The events of a call that this worker runs, for the processes that follow it."""

import asyncio
import json
import logging
from typing import TYPE_CHECKING

from proofbox.service.calls.events import CallEvent
from proofbox.service.dispatch.held import HeldCall
from proofbox.service.dispatch.messages import encode_event, encode_replay
from proofbox.service.dispatch.nats_link import NatsLink, end_subscription
from proofbox.service.dispatch.port import StopReason

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

log = logging.getLogger("proofbox.dispatch")

_REPLAYABLE_S = 5.0
"""The time for which events of an ended call can be asked for; its end is also found by a poll."""


class PublishedEvents:
    """Sends the events of a held call, and answers questions about it, within a block.

    Args:
        link: the NATS servers.
        held: the call.
    """

    def __init__(self, link: NatsLink, held: HeldCall) -> None:
        self._link = link
        self._held = held
        self._events = asyncio.Queue[CallEvent | None]()
        self._subscription: Subscription | None = None

    async def __aenter__(self) -> None:
        number = self._held.claim.number
        try:
            self._subscription = await self._link.subscribe(self._link.subject("to", number), self._on_message)
        except Exception as exc:  # noqa: BLE001 - the call runs; its clients look into the database
            log.warning("call %d takes no messages: %s", number, exc)
        self._held.running.events.on_event = self._events.put_nowait
        self._sender = asyncio.create_task(self._send(self._link.subject("events", number)))

    async def __aexit__(self, *_exc: object) -> None:
        self._held.running.events.on_event = None
        self._events.put_nowait(None)
        await self._sender
        if self._subscription is not None:
            self._link.later(_REPLAYABLE_S, end_subscription(self._subscription))

    async def _send(self, subject: str) -> None:
        while (event := await self._events.get()) is not None:
            await self._link.publish(subject, encode_event(event))

    async def _on_message(self, message: "Msg") -> None:
        asked = json.loads(message.data)
        if "stop" in asked:
            self._held.stop(StopReason(asked["stop"]))
        elif message.reply:
            await message.respond(encode_replay(self._held.running.events.after(int(asked["after"]))))
