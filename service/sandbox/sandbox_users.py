"""User ids of sandboxes: each container has its own while it exists.

The kernel counts some things for each user of the machine, across containers: descriptors in flight over sockets,
pages of pipes, pending signals, inotify watches, keys, message queues. With a user of its own, a program that
exhausts one of these counters takes nothing from its neighbours.
"""

import random
from dataclasses import dataclass, field


@dataclass
class SandboxUsers:
    """The user ids that containers of this service take in turn.

    Two services on one machine draw from the same range, at random: that they meet is possible and unlikely.

    Attributes:
        first: the smallest user id of the range, as seen in the container.
        count: how many ids the range has; with more containers than that, ids are shared.
    """

    first: int
    count: int
    _taken: set[int] = field(default_factory=set, init=False)

    def take(self) -> int:
        """Returns an id that no container of this service has."""
        free = self.count - len(self._taken)
        start = random.randrange(self.count)  # noqa: S311 - spreads services, guards nothing
        for offset in range(self.count if free > 0 else 1):
            user = self.first + (start + offset) % self.count
            if user not in self._taken:
                break
        self._taken.add(user)
        return user

    def release(self, user: int) -> None:
        """Gives an id back; its container is gone."""
        self._taken.discard(user)
