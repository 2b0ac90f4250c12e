"""One lock for each name that is held or awaited."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager


class KeyLocks:
    """Locks by name, within one event loop."""

    def __init__(self) -> None:
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def held(self, names: Iterable[str]) -> AsyncIterator[None]:
        """Hold the locks of all names; taken in order, so that no two tasks can wait for each other."""
        held: list[str] = []
        try:
            for name in sorted(set(names)):
                await self._take(name)
                held.append(name)
            yield
        finally:
            for name in held:
                self._locks[name][0].release()
                self._leave(name)

    async def _take(self, name: str) -> None:
        lock, users = self._locks.get(name) or (asyncio.Lock(), 0)
        self._locks[name] = lock, users + 1
        try:
            await lock.acquire()
        except BaseException:
            self._leave(name)
            raise

    def _leave(self, name: str) -> None:
        lock, users = self._locks.pop(name)
        if users > 1:
            self._locks[name] = lock, users - 1
