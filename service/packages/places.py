"""Places to install packages in: tenants take turns, and so do the callers of a tenant."""

import contextlib
from collections.abc import Callable

from proofbox.contracts.problems import FieldError
from proofbox.service.access.quotas import Share
from proofbox.service.calls.admission import Admission
from proofbox.service.errors import QueueFullError
from proofbox.service.identity import Principal

_UNBOUNDED = 2**31


class InstallPlaces:
    """A bounded number of places, which nobody holds alone.

    A tenant has at most all places but one, and at most as many waiting calls as the line has room left: however
    many keys it has, a call of another tenant finds room in line, and is the next in turn. Within a tenant each
    caller has a line of its own.

    Args:
        running_max: how many places there are.
        queue_max: how many calls may wait, of all tenants.
        share_of: what one caller may have of both.
    """

    def __init__(
        self, running_max: int, queue_max: int, share_of: Callable[[str], Share] = lambda _: Share()
    ) -> None:
        self._running_max = running_max
        self._queue_max = queue_max
        self._share_of = share_of
        # Who waits there has been let in already: see `_require_room`.
        self._tenants = Admission(running_max=running_max, queue_max=_UNBOUNDED, share_of=lambda _: self._of_tenant)
        self._callers: dict[str, Admission] = {}

    @property
    def _of_tenant(self) -> Share:
        return Share(max(1, self._running_max - 1))

    @property
    def running(self) -> int:
        """Calls that have a place."""
        return self._tenants.running

    @property
    def queued(self) -> int:
        """Calls that wait for one."""
        return sum(map(self.queued_of, self._callers))

    def running_of(self, tenant: str) -> int:
        """Calls of a tenant that have a place."""
        return self._tenants.running_of(tenant)

    def queued_of(self, tenant: str) -> int:
        """Calls of a tenant that wait for one: for their turn in it, or for that of the tenant."""
        callers = self._callers.get(tenant)
        return 0 if callers is None else callers.queued + self._tenants.queued_of(tenant)

    async def enter(self, deadline: float, principal: Principal) -> contextlib.ExitStack:
        """Waits for a place, which the stack gives back when it is closed.

        Args:
            deadline: on the monotonic clock.
            principal: who asks.

        Raises:
            QueueFullError: as many calls wait as may, or as the tenant or the caller may have.
            QueueTimeoutError: the deadline passed while it waited.
        """
        tenant, caller = principal.tenant, principal.caller
        callers = self._callers.get(tenant)
        if callers is None:
            running_max = self._of_tenant.running
            callers = Admission(running_max=running_max, queue_max=self._queue_max, share_of=self._share_of)
            self._callers[tenant] = callers
        with contextlib.ExitStack() as stack:
            stack.callback(self._forget, tenant)
            if not (callers.has_slot(caller) and self._tenants.has_slot(tenant)):
                self._require_room(tenant)
            stack.enter_context(await callers.enter(deadline, _ignore, caller))
            stack.enter_context(await self._tenants.enter(deadline, _ignore, tenant))
            return stack.pop_all()

    def _require_room(self, tenant: str) -> None:
        own, free = self.queued_of(tenant), self._queue_max - self.queued
        if own >= free:
            message = f"packages: {own} calls of the tenant wait to install packages, and {max(0, free)} more may"
            raise QueueFullError(
                f"{message} wait of all tenants; come again later",
                retry_after_s=self._tenants.next_place_s(tenant),
                errors=[FieldError(field="packages", code="queue_full", message=message)],
            )

    def _forget(self, tenant: str) -> None:
        """Forgets a tenant of which nothing runs or waits."""
        callers = self._callers.get(tenant)
        if callers is not None and not callers.running and not callers.queued:
            del self._callers[tenant]


def _ignore(_before: int) -> None:
    pass
