"""What operators ask of the process: slots, queue, pool, engine, and the keys."""

import asyncio
import math
from dataclasses import dataclass

from proofbox.contracts.operations import PoolState, ServiceStatus
from proofbox.contracts.provenance import AuditService
from proofbox.service.access.api_keys import ApiKey
from proofbox.service.access.authenticator import Keyring
from proofbox.service.app.settings import Settings
from proofbox.service.calls.admission import Admission
from proofbox.service.calls.service import Calls
from proofbox.service.sandbox.engine import PooledEngine
from proofbox.service.sandbox.pool import Pool
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.storage.artifacts.disk_usage import free_bytes
from proofbox.service.timeline.block_writer import now_text


@dataclass(frozen=True, slots=True)
class ProcessParts:
    """The parts of the process that know its state.

    Attributes:
        admission: slots and queue.
        engine: the containers.
        calls: whether the service stops.
        keyring: the API keys.
        audited: release and boot id.
    """

    admission: Admission
    engine: PooledEngine
    calls: Calls
    keyring: Keyring
    audited: AuditService


class ProcessOperations:
    """The port `Operations` of the routes.

    Args:
        settings: the settings.
        parts: the parts of the process.
    """

    def __init__(self, settings: Settings, parts: ProcessParts) -> None:
        self._settings = settings
        self._parts = parts
        self._started = now_text()

    async def status(self) -> ServiceStatus:
        """See `Operations.status`."""
        settings, parts = self._settings, self._parts
        free = await asyncio.to_thread(free_bytes, settings.data_dir)
        return ServiceStatus(
            version=parts.audited.version,
            boot_id=parts.audited.boot_id,
            started=self._started,
            state="draining" if parts.calls.is_closing else "serving",
            engine=settings.engine,
            engine_up=parts.engine.is_up,
            running=parts.admission.running,
            running_max=settings.running_max,
            queued=parts.admission.queued,
            queue_max=settings.queue_max,
            pool=_pool_states(parts.engine.pool),
            failed_starts=parts.engine.pool.counts.failed,
            data_free_bytes=None if math.isnan(free) else int(free),
        )

    async def keys(self) -> list[ApiKey]:
        """See `Operations.keys`."""
        return await self._parts.keyring.all()

    def calls_of(self, caller: str) -> tuple[int, int]:
        """See `Operations.calls_of`."""
        admission = self._parts.admission
        return admission.running_of(caller), admission.queued_of(caller)


def _pool_states(pool: Pool) -> list[PoolState]:
    wanted = pool.wanted()
    return [
        PoolState(
            flavour=flavour,
            waiting=pool.waiting(flavour),
            starting=pool.starting(flavour),
            wanted=wanted[flavour],
            taken={got: count for (asked, got), count in sorted(pool.counts.taken.items()) if asked is flavour},
        )
        for flavour in PreloadSet
    ]
