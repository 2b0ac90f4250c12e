"""Blocking work beside the loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from proofbox.service.concurrency import RepeatedJob, run_in_thread
from proofbox.service.errors import StoreFailedError


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


class Rounds:
    """Counts rounds; the first ones fail."""

    def __init__(self, *failures):
        self.failures = list(failures)
        self.done = asyncio.Queue()

    async def work(self):
        self.done.put_nowait(len(self.failures))
        if self.failures:
            raise self.failures.pop()


async def test_a_round_that_fails_is_logged_and_the_next_one_follows(caplog):
    rounds = Rounds(ValueError("unforeseen"), StoreFailedError("the database is away"))
    job = RepeatedJob(rounds.work, 0.001, "rows cannot be swept", spread=0.5)
    job.start()
    assert [await rounds.done.get() for _ in range(4)] == [2, 1, 0, 0]
    await job.stop()
    [known, unforeseen] = caplog.records
    assert (known.getMessage(), known.exc_info) == ("rows cannot be swept: the database is away", None)
    assert (unforeseen.getMessage(), unforeseen.exc_info[0]) == ("rows cannot be swept", ValueError)


async def test_a_job_begins_after_a_pause_or_at_once_and_a_wake_ends_the_pause():
    rounds, pauses = Rounds(), []

    def pause_s():
        pauses.append(len(pauses))
        return 3_600.0

    job = RepeatedJob(rounds.work, pause_s, "nothing")
    job.start(at_once=True)
    await rounds.done.get()
    job.wake()
    await rounds.done.get()
    await job.stop()
    assert (rounds.done.empty(), pauses) == (True, [0, 1, 2])
    job.start()
    await job.stop()
    await job.stop()
    assert rounds.done.empty()


async def test_a_job_is_stopped_in_the_middle_of_a_round():
    began = asyncio.Event()

    async def work():
        began.set()
        await asyncio.Event().wait()

    job = RepeatedJob(work, 0.0, "nothing")
    job.start()
    await began.wait()
    await job.stop()
