"""Work of a thread that nobody leaves half done."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def finish_in_thread(work: Callable[[], T], stop: Callable[[], None] | None = None) -> T:
    """Runs work in a thread, and waits for its end also if the caller is cancelled: it may write files.

    Args:
        work: what runs in the thread.
        stop: asks the work to end early, when the caller is cancelled.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        while not thread.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([thread])
        if not thread.cancelled():
            thread.exception()  # seen: it is not an error of the event loop
        raise
