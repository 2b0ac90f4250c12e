"""Pulls calls from the queue: never more than the worker has room for."""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from proofbox.service.dispatch.nats_link import NatsLink, end_subscription
from proofbox.service.dispatch.streams import WORKERS

if TYPE_CHECKING:
    from nats.aio.msg import Msg

log = logging.getLogger("proofbox.dispatch")

_EXPIRES_S = 2.0
_LATE_S = 0.5
_AGAIN_S = 0.5
_BATCH_MAX = 256
_DELETED = " Deleted"
"""The text of status 409 if the stream or the consumer was deleted."""


class CallPuller:
    """Asks the consumer of all workers for as many calls as there is room.

    Args:
        link: the NATS servers.
        room: waits until there is room, and returns for how many.
        take: gets a message; returns at once.
    """

    def __init__(self, link: NatsLink, room: Callable[[], Awaitable[int]], take: Callable[["Msg"], None]) -> None:
        self._link = link
        self._room = room
        self._take = take

    async def pull_for_ever(self) -> None:
        """Pull until the task is cancelled."""
        while True:
            try:
                await self._pull()
            except Exception as exc:  # noqa: BLE001 - the link comes back, and calls with it
                log.warning("no calls can be pulled: %s: %s", type(exc).__name__, exc)
            await asyncio.sleep(_AGAIN_S)

    async def _pull(self) -> None:
        inbox, messages = self._link.client.new_inbox(), asyncio.Queue["Msg"]()

        async def on_message(message: "Msg") -> None:
            messages.put_nowait(message)

        subscription = await self._link.subscribe(inbox, on_message)
        try:
            while True:
                await self._ask(min(await self._room(), _BATCH_MAX), inbox, messages)
        finally:
            await end_subscription(subscription)
            while not messages.empty():
                with suppress(Exception):  # it is delivered again after a lease
                    await _nak(messages.get_nowait())

    async def _ask(self, wanted: int, inbox: str, messages: "asyncio.Queue[Msg]") -> None:
        """One request for so many calls; ends when all came, or the server reports that no more do."""
        ask = json.dumps({"batch": wanted, "expires": int(_EXPIRES_S * 1e9)}).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._link.stream}.{WORKERS}"
        await self._link.client.publish(subject, ask, reply=inbox)
        while wanted:
            try:
                async with asyncio.timeout(_EXPIRES_S + _LATE_S):
                    message = await messages.get()
            except TimeoutError:
                self._link.doubt()
                return  # the server or the link was lost: ask again
            if (status := (message.headers or {}).get("Status")) is not None and not message.data:
                if status in {"404", "503"} or _DELETED in (message.headers or {}).get("Description", ""):
                    self._link.doubt()
                if status not in {"404", "408", "409", "100"}:
                    log.info("the queue of calls answers %s: %s", status, message.headers)
                if status in {"409", "503"}:
                    await asyncio.sleep(_AGAIN_S)
                if status != "100":
                    return
                continue
            wanted -= 1
            self._take(message)


async def _nak(message: "Msg") -> None:
    """Give back a message that came after the worker began to stop, or lost its link."""
    if message.reply and message.data:
        await message.nak()
