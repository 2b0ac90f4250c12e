"""The membership of a process in a service of many, and the jobs that one of them does at a time."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from proofbox.service.dispatch.differences import ProcessFacts
from proofbox.service.dispatch.port import NO_FACTS, MemberStore
from proofbox.service.errors import OurError

log = logging.getLogger("proofbox.dispatch")

_BEATS = 3
_RESIGNED_AFTER = 2 / 3  # of the lease, as the claims of a worker

Jobs = Callable[[], Awaitable[None]]


class Membership:
    """Reports that a process is running, and runs the jobs of the service in the one that leads.

    A process that cannot report stops its jobs before another one leads. All jobs are written so that two processes
    that run one for a moment do no harm: each of their changes compares and sets.

    Args:
        members: the processes.
        boot_id: this one.
        role: what it does.
        lease_s: for how long a report counts.
        facts: what this one reports of itself.
    """

    def __init__(
        self, members: MemberStore, boot_id: str, role: str, lease_s: float, facts: ProcessFacts = NO_FACTS
    ) -> None:
        self._facts = facts
        self._members = members
        self._boot_id = boot_id
        self._role = role
        self._lease_s = lease_s
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
        self._want(leads=False)
        if self._changing is not None:
            await self._changing
        try:
            await self._members.leave(self._boot_id)
        except OurError as exc:
            log.info("this process is taken for lost, not for stopped: %s", exc)

    async def _beat_for_ever(self) -> None:
        pause_s = self._lease_s / _BEATS
        while True:
            await asyncio.sleep(pause_s)
            self._beating = beating = asyncio.create_task(self._beat())
            done, _ = await asyncio.wait([beating], timeout=self._lease_s * _RESIGNED_AFTER - pause_s)
            if not done:
                self._want(leads=False)
                await asyncio.wait([beating])
            if not beating.cancelled() and (exc := beating.exception()) is not None:
                log.warning("this process cannot report that it lives: %s", exc)
                self._want(leads=False)

    async def _beat(self) -> None:
        began = time.monotonic()
        leads = await self._members.beat(self._boot_id, self._role, self._lease_s, self._facts)
        self._want(leads=leads and time.monotonic() - began < self._lease_s * _RESIGNED_AFTER)

    def _want(self, *, leads: bool) -> None:
        """Note whether the jobs are to run; one task makes it so."""
        self._wants = leads and not self._is_stopping
        if self._wants != self._leads and (self._changing is None or self._changing.done()):
            self._changing = asyncio.create_task(self._change())

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
