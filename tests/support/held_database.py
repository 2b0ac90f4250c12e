"""A database whose transactions stay open until a test lets them go, so that others meet them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from sqlalchemy import text

LONG_S = 20
_BLOCKED = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
)


class HeldDatabase:
    """A database whose writes stay in their transaction after their work until they are let go.

    Attributes:
        has_worked: set once the work of a write is done.
        let_go: lets all writes end.
    """

    def __init__(self, database: Any) -> None:
        self._database = database
        self.has_worked, self.let_go = threading.Event(), threading.Event()

    async def write(self, work: Callable[[Any], Any]) -> Any:
        """As the method of the database."""

        def held(connection: Any) -> Any:
            result = work(connection)
            self.has_worked.set()
            self.let_go.wait(LONG_S)
            return result

        return await self._database.write(held)


async def blocked(database: Any, count: int = 1) -> None:
    """Looks until so many transactions of a PostgreSQL server wait for a lock."""
    while True:
        if await database.read(lambda connection: connection.execute(_BLOCKED).scalar()) >= count:
            return
        await asyncio.sleep(0.01)


async def meet(database: Any, held: HeldDatabase, first: Awaitable[Any], second: Awaitable[Any]) -> tuple[Any, Any]:
    """Begins one write, then another one that waits for it; the results of both, or the error of the second."""
    try:
        beginning = asyncio.ensure_future(first)
        assert await asyncio.to_thread(held.has_worked.wait, LONG_S)
        following = asyncio.ensure_future(second)
        async with asyncio.timeout(LONG_S):
            await blocked(database)
    finally:
        held.let_go.set()
    return await beginning, await following
