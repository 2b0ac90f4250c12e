"""What the turn of a call has, looked up while the call itself is registered: two waits for the store in one."""

import asyncio
from collections.abc import Awaitable, Callable

from service.core.errors import OurError
from service.core.turn_files import CallFiles


class LookAhead:
    """A look at the stores that changes nothing, so that a call may turn out to be known, or be refused.

    It holds for a call that gets its place at once: what ran while another waited may have written to its turn.

    Args:
        look: what is looked up.
    """

    __slots__ = ("_look", "_looking")

    def __init__(self, look: Callable[[], Awaitable[CallFiles]]) -> None:
        self._look = look
        self._looking: asyncio.Task[CallFiles | None] | None = None

    def begin(self) -> None:
        """Begins to look; once."""
        self._looking = asyncio.create_task(self._looked())

    async def files(self) -> CallFiles | None:
        """What was found; None if nobody has looked, or the store failed, which may be over by now."""
        looking, self._looking = self._looking, None
        return None if looking is None else await looking

    async def _looked(self) -> CallFiles | None:
        try:
            return await self._look()
        except OurError:
            return None
