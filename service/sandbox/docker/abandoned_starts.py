"""Containers that were created and never started, because their service was killed in between."""

import time
from collections.abc import Callable, Iterable

_REQUESTS_OF_A_START = 2
"""Between the creation of a container and the end of its start; the client gives up each after its timeout."""


class AbandonedStarts:
    """Finds them among the containers of all services, by how long they have been there.

    The engine removes containers that end, but not those that never began. A service that runs starts its
    container or gives up in a bounded time, so nobody has to look for its process, which may be on another
    machine. No two clocks are compared: the time counts from when the container was first seen.

    Args:
        request_s: how long one request to the engine may take.
        clock: gives seconds of a clock that only grows.
    """

    def __init__(self, request_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._after_s = _REQUESTS_OF_A_START * request_s
        self._clock = clock
        self._seen: dict[str, float] = {}

    def find(self, created: Iterable[str]) -> set[str]:
        """Return those that have been there for longer than any start takes.

        Args:
            created: ids of all containers that have not been started now.
        """
        now = self._clock()
        self._seen = {container_id: self._seen.get(container_id, now) for container_id in created}
        return {container_id for container_id, seen in self._seen.items() if now - seen > self._after_s}
