"""What operators ask of a process, in memory."""

from dataclasses import dataclass, field

from proofbox.contracts.operations import PoolState, ServiceStatus
from proofbox.service.access.api_keys import ApiKey


@dataclass
class FixedOperations:
    """The port `Operations` with values that a test sets.

    Attributes:
        listed: the API keys.
        running: calls of every caller that run.
        queued: calls of every caller that wait.
    """

    listed: list[ApiKey] = field(default_factory=list)
    running: int = 2
    queued: int = 1

    async def status(self) -> ServiceStatus:
        """See `Operations.status`."""
        return ServiceStatus(
            version="1.0",
            boot_id="boot-1",
            started="2026-11-26T09:00:00.000Z",
            state="serving",
            engine="docker",
            engine_up=True,
            running=self.running,
            running_max=4,
            queued=self.queued,
            queue_max=1000,
            pool=[PoolState(flavour="bare", waiting=2, starting=0, wanted=2, taken={"warm": 3})],
            failed_starts=0,
            data_free_bytes=1_000_000,
        )

    async def keys(self) -> list[ApiKey]:
        """See `Operations.keys`."""
        return self.listed

    def calls_of(self, caller: str) -> tuple[int, int]:
        """See `Operations.calls_of`."""
        del caller
        return self.running, self.queued
