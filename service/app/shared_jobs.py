"""What one process does for all processes of a service, as long as it leads."""

import logging

from proofbox.service.app.gateway import Gateway
from proofbox.service.app.settings import Settings
from proofbox.service.conversations.retention import RetentionSweeper
from proofbox.service.storage.audit_signing import HeadSigner

log = logging.getLogger("proofbox.dispatch")


class SharedJobs:
    """Timers of waits and plans, the sweeps of runs, retention, and signed heads.

    Heads are signed only with a key and a file that the settings name: all processes have to have the same ones.

    Args:
        settings: the settings.
        gateway: runs, waits and plans.
        retention: deletes conversations.
        heads: signs heads of audit lines.
    """

    def __init__(self, settings: Settings, gateway: Gateway, retention: RetentionSweeper, heads: HeadSigner) -> None:
        self._gateway = gateway
        self._retention = retention
        self._heads = heads
        files = settings.audit_key_file, settings.audit_heads_file
        self._signs = bool(settings.audit_head_s) and None not in files

    async def begin(self) -> None:
        """Begin, because this process leads."""
        log.info("this process does the jobs of the service")
        await self._gateway.start_jobs()
        self._retention.start()
        if self._signs:
            self._heads.start()

    async def end(self) -> None:
        """End: another process begins."""
        await self._gateway.stop_jobs()
        await self._retention.stop()
        if self._signs:
            await self._heads.stop()
