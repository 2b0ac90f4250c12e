"""The membership of a process in a service of many, and the jobs that one of them does at a time."""

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from proofbox.service.dispatch.port import Lead, MemberStore
from proofbox.service.errors import OurError

log = logging.getLogger("proofbox.dispatch")

_BEATS = 3
_RESIGNED_AFTER = 2 / 3  # of the lease, as the claims of a worker

_LATE_S = 0.1
"""The delay after the end of another's lead before a process asks for it: random, so that not all ask at once."""

Jobs = Callable[[], Awaitable[None]]


def list_leads() -> Collection[Lead]:
    """Return all leads: those that a process with all its links may have."""
    return tuple(Lead)


class Membership:
    """Reports that a process is running, and runs the jobs of the service in the one that leads.

    A process that cannot report stops its jobs before another one leads. All jobs are written so that two processes
    that run one for a moment do no harm: each of their changes compares and sets.

    Args:
        members: the processes.
        boot_id: this one.
        role: what it does.
        lease_s: for how long a report counts, in seconds.
        wants: what this process could lead now.
    """

    def __init__(
        self,
        members: MemberStore,
        boot_id: str,
        role: str,
        lease_s: float,
        wants: Callable[[], Collection[Lead]] = list_leads,
    ) -> None:
        self._members = members
        self._boot_id = boot_id
        self._role = role
        self._lease_s = lease_s
        self._wanted = wants
        self._free_in_s = math.inf
        self._leads_queue = False
        self.on_report: Callable[[float], None] | None = None
        """Called after each report with the time when it began, on the steady clock: the database answers."""
        self.on_lead: Callable[[], None] | None = None
        """Called when this process begins or ends to lead anything."""
        self._jobs: tuple[Jobs, Jobs] | None = None
        self._wants = False
        self._leads = False
        self._is_stopping = False
        self._changing: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._beats: asyncio.Task[None] | None = None

    @property
    def leads(self) -> bool:
        """Whether this process runs the jobs."""
        return self._leads

    @property
    def leads_queue(self) -> bool:
        """Whether this process cares for the messages of the queue."""
        return self._leads_queue

    async def start(self, begin: Jobs, end: Jobs) -> None:
        """Begin to report, and to run the jobs if this process leads.

        The two never run at the same time, and reports go on while one of them runs.

        Args:
            begin: starts the jobs.
            end: stops them.

        Raises:
            StoreFailedError: the store failed.
        """
        self._jobs = begin, end
        await self._beat()
        self._beats = asyncio.create_task(self._beat_for_ever())
        if self._changing is not None:
            await asyncio.wait([self._changing])

    async def stop(self) -> None:
        """Stop the jobs, and report that the process stops."""
        self._is_stopping = True
        if self._beats is None:
            return
        self._beats.cancel()
        with suppress(asyncio.CancelledError):
            await self._beats
        if self._beating is not None:  # or it would renew the lease after the process has left
            await asyncio.wait([self._beating])
        self._resign()
        if self._changing is not None:
            await self._changing
        try:
            await self._members.leave(self._boot_id)
        except OurError as exc:
            log.info("this process is taken for lost, not for stopped: %s", exc)

    async def _beat_for_ever(self) -> None:
        pause_s = self._lease_s / _BEATS
        while True:
            free_in_s = max(0.0, self._free_in_s) + random.uniform(0.01, _LATE_S)  # noqa: S311 - no secret
            await asyncio.sleep(min(pause_s, free_in_s))
            self._beating = beating = asyncio.create_task(self._beat())
            done, _ = await asyncio.wait([beating], timeout=self._lease_s * _RESIGNED_AFTER - pause_s)
            if not done:
                self._resign()
                await asyncio.wait([beating])
            if not beating.cancelled() and (exc := beating.exception()) is not None:
                log.warning("this process cannot report that it runs: %s", exc)
                self._free_in_s = math.inf
                self._resign()

    async def _beat(self) -> None:
        began = time.monotonic()
        reported = await self._members.beat(self._boot_id, self._role, self._lease_s, self._wanted())
        self._free_in_s = reported.free_in_s
        is_young = time.monotonic() - began < self._lease_s * _RESIGNED_AFTER
        self._want(reported.leads if is_young else ())
        if self.on_report is not None:
            self.on_report(began)

    def _resign(self) -> None:
        self._want(())

    def _want(self, leading: Collection[Lead]) -> None:
        """Note what this process leads; one task makes it so that the jobs run, or do not."""
        leads, was = Lead.JOBS in leading, (self._wants, self._leads_queue)
        self._leads_queue = Lead.QUEUE in leading and not self._is_stopping
        self._wants = leads and not self._is_stopping
        if self._wants != self._leads and (self._changing is None or self._changing.done()):
            self._changing = asyncio.create_task(self._change())
        if self.on_lead is not None and was != (self._wants, self._leads_queue):
            self.on_lead()

    async def _change(self) -> None:
        if self._jobs is None:
            raise AssertionError("the jobs are known before the first report")
        begin, end = self._jobs
        while self._wants != self._leads:
            self._leads = self._wants
            try:
                await (begin if self._leads else end)()
            except Exception:
                log.exception("the jobs of the service could not be %s", "started" if self._leads else "stopped")
