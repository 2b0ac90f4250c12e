"""Waits for what has no event of its own: a file, a log line, a state of another process."""

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object], within_s: float = 60.0) -> None:
    """Look until something is true; the time limit is for a busy machine, and only a fault reaches it.

    Raises:
        TimeoutError: it is not true in time.
    """
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.005)
