"""Callbacks that come before the wait of their call is stored."""

import asyncio

from proofbox.service.gateway.waits.answers import WaitAnswers


class LateWaits:
    """A store that has a wait at the third look."""

    def __init__(self):
        self.looks = 0
        self.looked = asyncio.Event()

    async def get(self, wait_id):
        self.looks += 1
        self.looked.set()
        return f"the wait {wait_id}" if self.looks >= 3 else None


async def test_fifty_early_callbacks_of_a_wait_look_as_often_as_one():
    waits = LateWaits()
    answers = WaitAnswers(waits, None, None, None, 60)
    found = await asyncio.gather(*(answers.find_for_callback("wait_1") for _ in range(50)))
    assert (set(found), waits.looks) == ({"the wait wait_1"}, 3)


async def test_a_callback_that_hangs_up_leaves_the_others_their_wait():
    waits = LateWaits()
    answers = WaitAnswers(waits, None, None, None, 60)
    first, second = (asyncio.create_task(answers.find_for_callback("wait_1")) for _ in range(2))
    await waits.looked.wait()
    first.cancel()
    assert await second == "the wait wait_1"
