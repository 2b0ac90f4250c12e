"""What one process does for all processes of a service, as long as it leads."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from proofbox.service.app.gateway import Gateway
from proofbox.service.app.settings import Settings
from proofbox.service.concurrency import RepeatedJob
from proofbox.service.conversations.retention import RetentionSweeper
from proofbox.service.storage.audit_signing import HeadSigner

_UNDONE_EVERY_S = 60.0
log = logging.getLogger("proofbox.dispatch")


class SharedJobs:
    """Timers of waits and plans, the sweeps of runs, retention, the renewal of vectors, and signed heads.

    Heads are signed only with a key and a file that the settings name: all processes have to have the same ones.

    Args:
        settings: the settings.
        gateway: runs, waits and plans.
        upkeep: deletes conversations, and makes outdated vectors again.
        heads: signs heads of audit lines.
        undo_lost: undoes the saves of files that lost processes left.
    """

    def __init__(
        self,
        settings: Settings,
        gateway: Gateway,
        upkeep: Sequence[RetentionSweeper | RepeatedJob],
        heads: HeadSigner,
        undo_lost: Callable[[], Awaitable[None]],
    ) -> None:
        self._gateway = gateway
        self._upkeep = upkeep
        self._heads = heads
        self._undoing = RepeatedJob(undo_lost, _UNDONE_EVERY_S, "the saves of lost processes cannot be undone")
        files = settings.audit_key_file, settings.audit_heads_file
        self._signs = bool(settings.audit_head_s) and None not in files

    async def begin(self) -> None:
        """Begin, because this process leads."""
        log.info("this process does the jobs of the service")
        await self._gateway.start_jobs()
        for job in self._upkeep:
            job.start()
        self._undoing.start(at_once=True)
        if self._signs:
            self._heads.start()

    async def end(self) -> None:
        """End: another process begins."""
        await self._gateway.stop_jobs()
        for job in self._upkeep:
            await job.stop()
        await self._undoing.stop()
        if self._signs:
            await self._heads.stop()
