"""Locks by name: one holder for each name, no deadlock, nothing kept."""

import asyncio

from proofbox.service.storage.artifacts.key_locks import KeyLocks


async def test_of_two_that_want_one_name_the_second_waits_and_others_do_not():
    locks, told = KeyLocks(), []

    async def hold(who, names, *, until=None):
        async with locks.held(names):
            told.append(f"{who} has it")
            if until is not None:
                await until.wait()
        told.append(f"{who} is done")

    end = asyncio.Event()
    first = asyncio.ensure_future(hold("first", ["a"], until=end))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(hold("second", ["a"]))
    await hold("other", ["b"])
    assert told == ["first has it", "other has it", "other is done"]
    end.set()
    await asyncio.gather(first, second)
    assert told[3:] == ["first is done", "second has it", "second is done"]


async def test_names_in_any_order_and_twice_never_wait_for_each_other_for_ever():
    locks = KeyLocks()

    async def hold(names):
        async with locks.held(names):
            await asyncio.sleep(0)

    await asyncio.gather(*(hold(names) for names in (["a", "b"], ["b", "a"], ["b", "b", "a"]) for _ in range(20)))
    assert locks._locks == {}


async def test_a_waiting_task_that_is_cancelled_leaves_the_name_to_the_next():
    locks = KeyLocks()

    async def hold(names):
        async with locks.held(names):
            return True

    async with locks.held(["a"]):
        gone = asyncio.ensure_future(hold(["a"]))
        waiting = asyncio.ensure_future(hold(["a"]))
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.wait([gone])
    assert (await waiting, gone.cancelled(), locks._locks) == (True, True, {})
