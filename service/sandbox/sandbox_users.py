"""User ids of sandboxes: each container has its own while it exists.

The kernel counts some things for each user of the machine, across containers: descriptors in flight over sockets,
pages of pipes, pending signals, inotify watches, keys, message queues. With a user of its own, a program that
exhausts one of these counters takes nothing from its neighbours.
"""

import contextlib
import random
import socket
from collections import Counter, deque

_BLOCK = 50
_NAME = "\0proofbox-sandbox-users-{}"


class SandboxUsers:
    """The user ids that containers of this service take in turn.

    Services on one machine take their ids from different blocks of the range. A service claims a block by a name
    of an abstract socket, which the kernel gives once in a network namespace and takes back when the process ends.
    Services that do not share a network namespace, or have claimed all blocks, may draw the same id.
    """

    def __init__(self, first: int, count: int) -> None:
        """Claims nothing yet.

        Args:
            first: the smallest user id of the range, as seen in the container.
            count: how many ids the range has; with more containers than that, ids are shared.
        """
        self._range = range(first, first + count)
        self._unclaimed = list(range(first // _BLOCK, self._range[-1] // _BLOCK + 1))
        random.shuffle(self._unclaimed)  # for those that do not share a network namespace
        self._claims: list[socket.socket] = []
        self._free: deque[int] = deque()
        self._claimed: set[int] = set()
        self._taken: Counter[int] = Counter()

    def take(self) -> int:
        """Returns an id that no container of this service has, the one that has been free for the longest time."""
        while not self._free and self._unclaimed:
            self._claim(self._unclaimed.pop())
        user = self._free.popleft() if self._free else random.choice(self._range)  # noqa: S311 - guards nothing
        self._taken[user] += 1
        return user

    def release(self, user: int) -> None:
        """Gives an id back; its container is gone."""
        self._taken[user] -= 1
        if self._taken[user] <= 0:
            del self._taken[user]
            if user in self._claimed:
                self._free.append(user)

    def close(self) -> None:
        """Leaves all blocks to other services; no container of this one may be left."""
        for claim in self._claims:
            claim.close()
        self._claims.clear()

    def _claim(self, block: int) -> None:
        """Takes the ids of a block, unless another service has it."""
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        with contextlib.suppress(OSError):
            claim.bind(_NAME.format(block))
            self._claims.append(claim)
            ids = [user for user in range(block * _BLOCK, (block + 1) * _BLOCK) if user in self._range]
            self._claimed.update(ids)
            self._free.extend(ids)
            return
        claim.close()
