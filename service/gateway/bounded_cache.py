"""A cache that is bounded in number and size; the least recently used entries leave it."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Values by keys.

    Args:
        count_max: how many entries it has at most.
        bytes_max: the size of all of them; a value that is larger is not stored.
    """

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._size_bytes = 0

    def find(self, key: K) -> V | None:
        """Return the value of a key; None if there is none."""
        if key not in self._entries:
            return None
        self._entries.move_to_end(key)
        return self._entries[key][0]

    def add(self, key: K, value: V, size_bytes: int) -> None:
        """Store a value; others leave if there is no room for it.

        Args:
            key: its key; the value that this has is replaced.
            value: the value.
            size_bytes: what it counts as.
        """
        if key in self._entries:
            self._size_bytes -= self._entries.pop(key)[1]
        self._entries[key] = (value, size_bytes)
        self._size_bytes += size_bytes
        while len(self._entries) > self._count_max or self._size_bytes > self._bytes_max:
            _, (_, left_bytes) = self._entries.popitem(last=False)
            self._size_bytes -= left_bytes
