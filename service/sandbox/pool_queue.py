"""Calls that wait for a container: their owners are served in turn, the calls of one in the order they came."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from proofbox.service.sandbox.pooled_container import PooledContainer
from proofbox.service.sandbox.preload import PreloadSet

_OWNERS_REMEMBERED = 1_000


@dataclass(slots=True, eq=False)
class Waiter:
    """A call that waits for a container.

    Attributes:
        flavour: what it wants; a bare one serves it as well.
        owner: whose call it is.
        pooled: what it will get.
        since: when it began to wait, on the pool's clock.
        is_only_call: whether its owner has no other call running.
    """

    flavour: PreloadSet
    owner: str
    pooled: asyncio.Future[PooledContainer]
    since: float
    is_only_call: bool = False

    def accepts(self, pooled: PooledContainer) -> bool:
        """Whether a container serves it: a program that wants no libraries may change how they are loaded."""
        return not self.pooled.done() and pooled.flavour in {self.flavour, PreloadSet.BARE}


class PoolQueue:
    """All that wait, in the order in which they came."""

    def __init__(self) -> None:
        self._all: dict[Waiter, None] = {}
        self._turns: OrderedDict[str, None] = OrderedDict()  # owners, the one whose turn comes last at the end

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Waiter]:
        return iter(list(self._all))

    def add(self, waiter: Waiter) -> None:
        """One more; an owner who was never served comes after those who wait."""
        self._all[waiter] = None
        self._turns.setdefault(waiter.owner)
        self._forget_some()

    def remove(self, waiter: Waiter) -> None:
        """It waits no more; again is no harm."""
        self._all.pop(waiter, None)

    def note_served(self, owner: str) -> None:
        """An owner got a container: the others come before him."""
        self._turns[owner] = None
        self._turns.move_to_end(owner)
        self._forget_some()

    def give(self, pooled: PooledContainer, *, only_calls: bool = False) -> bool:
        """Gives a container to the call whose turn it is, of those that it serves; whether there was one.

        Args:
            pooled: the container.
            only_calls: whether it is for owners that have no other call running.
        """
        waiter = self._next_in_turn(pooled, only_calls=only_calls)
        if waiter is None:
            return False
        waiter.pooled.set_result(pooled)
        self.remove(waiter)
        self.note_served(waiter.owner)
        return True

    def _next_in_turn(self, pooled: PooledContainer, *, only_calls: bool) -> Waiter | None:
        first: dict[str, Waiter] = {}
        for waiter in self._all:
            if waiter.owner not in first and waiter.accepts(pooled) and (waiter.is_only_call or not only_calls):
                first[waiter.owner] = waiter
        forgotten = (waiter for owner, waiter in first.items() if owner not in self._turns)
        known = (first[owner] for owner in self._turns if owner in first)
        return next(forgotten, None) or next(known, None)

    def _forget_some(self) -> None:
        if len(self._turns) > _OWNERS_REMEMBERED:
            self._turns.popitem(last=False)
