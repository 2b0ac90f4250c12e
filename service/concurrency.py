"""Blocking work beside the event loop."""

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(executor: concurrent.futures.Executor, work: Callable[[], T]) -> T:
    """Runs ``work`` in a thread of ``executor``, to its end: see `to_its_end`.

    What it logs is about the same call as what the task logs.

    Raises:
        Exception: whatever ``work`` raises.
    """
    loop = asyncio.get_running_loop()
    return await to_its_end(loop.run_in_executor(executor, contextvars.copy_context().run, work))


async def to_its_end(future: asyncio.Future[T]) -> T:
    """Waits for a future that must not be stopped.

    A thread can't be stopped: when the waiting task is cancelled, the cancellation goes on only after the work
    has ended, so that nothing the work uses (a staging folder, a connection) is taken away under its hands.

    Raises:
        Exception: whatever the future raises.
    """
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        if not future.cancelled():
            future.exception()  # seen: the loop would report it as never retrieved
        raise
