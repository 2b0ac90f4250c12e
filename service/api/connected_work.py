"""Work that lasts no longer than the connection of its client."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from fastapi import Request

T = TypeVar("T")


async def run_until_disconnected(request: Request, work: Awaitable[T]) -> T | None:
    """Await the work, or cancel it and return None when the client goes away.

    Args:
        request: the request; its body was read, or is not wanted.
        work: what answers it.

    Raises:
        Exception: whatever the work raises.
    """
    task = asyncio.ensure_future(work)
    leaving = asyncio.create_task(disconnected(request))
    either: set[asyncio.Future[Any]] = {task, leaving}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        leaving.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


async def disconnected(request: Request) -> None:
    """Wait until the client has gone away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
