"""Blocking work beside the loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from proofbox.service.concurrency import run_in_thread


@pytest.fixture
def executor():
    with ThreadPoolExecutor(1) as threads:
        yield threads


async def test_a_result_and_an_exception_come_back(executor):
    assert await run_in_thread(executor, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(executor, lambda: 1 / 0)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancellation_goes_on_only_after_the_work_has_ended(executor, fails):
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def work():
        begun.set()
        may_end.wait()
        ended.append(True)
        if fails:
            raise ZeroDivisionError

    task = asyncio.ensure_future(run_in_thread(executor, work))
    await asyncio.to_thread(begun.wait)
    for _ in range(3):
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    assert (task.done(), ended) == (False, [])
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]
