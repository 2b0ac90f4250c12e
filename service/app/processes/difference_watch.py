"""The watch over processes whose settings or releases differ: a warning in the log of the one that leads."""

import logging
import time

from proofbox.service.dispatch.differences import find_differences
from proofbox.service.dispatch.port import MemberStore

log = logging.getLogger("proofbox.dispatch")

_PAUSE_S = 5.0


class DifferenceWatch:
    """Reports each difference once, and once more if it comes again after it was gone.

    Args:
        members: the processes.
    """

    def __init__(self, members: MemberStore) -> None:
        self._members = members
        self._known: frozenset[str] = frozenset()
        self._next = 0.0

    async def look(self) -> None:
        """Look for differences, at most every few seconds.

        Raises:
            StoreFailedError: the store failed.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PAUSE_S
        found = frozenset(find_differences(await self._members.members()))
        for difference in sorted(found - self._known):
            log.warning("the processes of this service differ: %s", difference)
        self._known = found
