"""Blocking work beside the event loop."""

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(executor: concurrent.futures.Executor | None, work: Callable[[], T]) -> T:
    """Run blocking ``work`` in a thread of ``executor``, or of the loop's own one, to its end.

    Log lines of the thread have the context of the task. A cancellation waits: see `wait_to_end`.

    Raises:
        Exception: whatever ``work`` raises.
    """
    loop = asyncio.get_running_loop()
    return await wait_to_end(loop.run_in_executor(executor, contextvars.copy_context().run, work))


async def wait_to_end(future: asyncio.Future[T]) -> T:
    """Wait for a future that must not be stopped.

    A thread cannot be stopped. When the waiting task is cancelled, the cancellation is raised after the work has
    ended, so that its resources (a staging folder, a connection) are not released while it uses them.

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
