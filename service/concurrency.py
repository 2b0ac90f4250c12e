"""Blocking work beside the event loop."""

import asyncio
import concurrent.futures
import contextlib
import contextvars
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(executor: concurrent.futures.Executor, work: Callable[[], T]) -> T:
    """Runs ``work`` in a thread of ``executor``, to its end: see `ended`.

    What it logs is about the same call as what the task logs.

    Raises:
        Exception: whatever ``work`` raises.
    """
    return await ended(executor.submit(contextvars.copy_context().run, work))


async def ended(work: concurrent.futures.Future[T]) -> T:
    """Waits for work of a thread that must not be stopped, as `to_its_end` does.

    The loop turns twice until the task goes on. By the ways of asyncio, a future of its own and a shield around it,
    it would turn three times.

    Raises:
        Exception: whatever the work raises.
    """
    loop = asyncio.get_running_loop()
    has_ended = loop.create_future()

    def wake() -> None:
        if not has_ended.done():
            has_ended.set_result(None)

    def wake_soon(_: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(wake)

    work.add_done_callback(wake_soon)
    try:
        await has_ended
    except asyncio.CancelledError:
        while not work.done():
            has_ended = loop.create_future()
            with contextlib.suppress(asyncio.CancelledError):
                await has_ended
        raise
    return work.result()


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
