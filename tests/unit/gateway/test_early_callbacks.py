"""Callbacks that come before the wait of their call is stored."""

import asyncio

from proofbox.service.concurrency import Changes
from proofbox.service.gateway.waits.callbacks import CallbackWaits
from proofbox.service.gateway.waits.port import wait_topic


class LateWaits:
    """A store that has a wait once it is told so."""

    def __init__(self):
        self.is_stored = False
        self.looked = asyncio.Event()

    async def get(self, wait_id):
        self.looked.set()
        return f"the wait {wait_id}" if self.is_stored else None


async def test_a_callback_that_hangs_up_leaves_the_others_their_wait():
    waits, changes = LateWaits(), Changes()
    callbacks = CallbackWaits(waits, changes)
    first, second = (asyncio.create_task(callbacks.find("wait_1")) for _ in range(2))
    await waits.looked.wait()
    first.cancel()
    waits.is_stored = True
    changes.announce([wait_topic("wait_1")])
    assert await second == "the wait wait_1"
