"""Places of names that are resolved at the same time: tenants share them fairly, and so do calls of a tenant."""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Protocol

_OF_TENANT_MAX = 4


class Places(Protocol):
    """Bounds the names that are resolved at the same time.

    A place is held until the lookup itself has ended: one that nobody waits for any more still has its thread.
    """

    async def take(self) -> None:
        """Waits for a place."""

    def give_back(self) -> None:
        """A lookup has ended."""


class CallPlaces:
    """The places of one call, each of which takes one of its tenant's as well.

    Args:
        count: how many.
        of_tenant: those of its tenant; None: no bound.
    """

    def __init__(self, count: int, of_tenant: Places | None = None) -> None:
        self._free = asyncio.Semaphore(count)
        self._of_tenant = of_tenant

    async def take(self) -> None:
        """See `Places.take`."""
        await self._free.acquire()
        if self._of_tenant is not None:
            try:
                await self._of_tenant.take()
            except BaseException:
                self._free.release()
                raise

    def give_back(self) -> None:
        """See `Places.give_back`."""
        self._free.release()
        if self._of_tenant is not None:
            self._of_tenant.give_back()


class TenantShares:
    """All places, of which a tenant takes another one only while more are free than it has.

    So a tenant with none finds one free, whatever a few others hold: two that hold all they get leave 2 of 8. A
    place that comes back goes to the tenant with the fewest, of those to the one that has waited the longest.

    Args:
        count: how many there are.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def of(self, tenant: str) -> "TenantPlaces":
        """The places of one tenant."""
        return TenantPlaces(self, tenant)

    async def take(self, tenant: str) -> None:
        """Waits for a place of a tenant."""
        if tenant not in self._waiting and self._may_take(tenant):
            self._give_to(tenant)
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if mine.cancelled():
                self._leave(tenant, mine)
            else:
                self.give_back(tenant)  # it was given in the same moment
            raise

    def give_back(self, tenant: str) -> None:
        """A lookup of a tenant has ended."""
        self._free += 1
        self._held[tenant] -= 1
        if not self._held[tenant]:
            del self._held[tenant]
        self._give_on()

    def _may_take(self, tenant: str) -> bool:
        held = self._held.get(tenant, 0)
        return held < min(_OF_TENANT_MAX, self._free)

    def _give_to(self, tenant: str) -> None:
        self._free -= 1
        self._held[tenant] = self._held.get(tenant, 0) + 1

    def _give_on(self) -> None:
        """Gives free places to those that wait."""
        while candidates := [tenant for tenant in self._waiting if self._may_take(tenant)]:
            tenant = min(candidates, key=lambda each: self._held.get(each, 0))
            waiting = self._waiting.pop(tenant)
            first = waiting.popleft()
            if waiting:
                self._waiting[tenant] = waiting  # behind the others
            if not first.done():
                self._give_to(tenant)
                first.set_result(None)

    def _leave(self, tenant: str, mine: "asyncio.Future[None]") -> None:
        waiting = self._waiting.get(tenant)
        if waiting is None:
            return
        with suppress(ValueError):
            waiting.remove(mine)
        if not waiting:
            del self._waiting[tenant]


class TenantPlaces:
    """The port `Places` of one tenant."""

    def __init__(self, shares: TenantShares, tenant: str) -> None:
        self._shares = shares
        self._tenant = tenant

    async def take(self) -> None:
        """See `Places.take`."""
        await self._shares.take(self._tenant)

    def give_back(self) -> None:
        """See `Places.give_back`."""
        self._shares.give_back(self._tenant)
