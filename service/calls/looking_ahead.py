"""What the turn of a call has, looked up while the call itself is registered: two waits for the store in one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from service.artifacts.conversation_files import CallFiles
from service.errors import OurError

log = logging.getLogger("proofbox.calls")


class LookAhead:
    """A look at the stores that changes nothing, so that a call may turn out to be known, or be refused.

    It holds for a call that gets its place at once and has nothing else to do before it wants to know: what ran
    meanwhile may have written to its turn.

    Args:
        look: what is looked up; None if that would not hold.
    """

    __slots__ = ("_look", "_looking")

    def __init__(self, look: Callable[[], Awaitable[CallFiles]] | None) -> None:
        self._look = look
        self._looking: asyncio.Task[CallFiles | None] | None = None

    def begin(self) -> None:
        """Begins to look, if there is what to look at; once."""
        if self._look is not None:
            self._looking = asyncio.create_task(self._looked(self._look))

    async def files(self) -> CallFiles | None:
        """What was found; None if nobody looked, or it failed: that may be over by now, or will be met again."""
        looking, self._looking = self._looking, None
        return None if looking is None else await looking

    async def _looked(self, look: Callable[[], Awaitable[CallFiles]]) -> CallFiles | None:
        try:
            return await look()
        except OurError:
            return None
        except Exception:  # nobody may ever ask for it
            log.exception("to look ahead failed in an unforeseen way")
            return None
