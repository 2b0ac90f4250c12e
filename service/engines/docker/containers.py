"""The port `Containers` over a Docker engine."""

import contextlib
import socket

from contracts.tool_calls import SandboxInfo
from service.core.errors import EngineUnavailableError
from service.core.flavours import Flavour
from service.core.limits import CallLimits
from service.engines.containers import Container, ContainerTransport, LeftContainer
from service.engines.docker.client import EngineClient
from service.engines.docker.container import FULL_SHARES, ContainerSettings, changing_limits, container_config
from service.engines.docker.transport import AttachTransport
from service.engines.machine import meminfo

_NAME_RUNTIME_DEFAULT = "runc"


class DockerContainers:
    """Containers that a Docker engine starts and removes for us."""

    def __init__(self, client: EngineClient, settings: ContainerSettings) -> None:
        self._client = client
        self._settings = settings

    async def connect(self) -> SandboxInfo:
        """See `Containers.connect`."""
        await self._client.connect()
        facts = await self._client.info()
        return SandboxInfo(
            engine="docker",
            runtime=self._settings.runtime or facts.get("DefaultRuntime") or _NAME_RUNTIME_DEFAULT,
            image_digest=await self._client.image_id(self._settings.image),
            acquired="cold",
        )

    async def close(self) -> None:
        """See `Containers.close`."""
        await self._client.close()

    async def ping(self) -> None:
        """See `Containers.ping`."""
        await self._client.ping()

    async def memory_bytes(self) -> int:
        """See `Containers.memory_bytes`."""
        engine = int((await self._client.info())["MemTotal"])
        here = meminfo()
        # On another machine, or in a VM, what is free there is not told.
        return here["MemAvailable"] if here.get("MemTotal") == engine else engine

    @property
    def updates_limits(self) -> bool:
        """See `Containers.updates_limits`."""
        return "runsc" not in self._settings.runtime  # gVisor cannot

    @property
    def warm_flavours(self) -> frozenset[Flavour]:
        """See `Containers.warm_flavours`."""
        return frozenset(Flavour)

    async def start(self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: Flavour) -> Container:
        """See `Containers.start`."""
        config = container_config(self._settings, limits, deadline_epoch_s, flavour)
        container_id, connection = await self._client.start(config, name)
        return Container(container_id, lambda: _attached(connection))

    async def begin_waiting(self, container_id: str, flavour: Flavour) -> None:
        """See `Containers.begin_waiting`."""
        if flavour is not Flavour.BARE and self.updates_limits:
            await self._client.update(container_id, {"CpuShares": FULL_SHARES})

    async def set_limits(self, container_id: str, limits: CallLimits) -> None:
        """See `Containers.set_limits`."""
        await self._client.update(container_id, changing_limits(limits))

    async def name_after(self, container_id: str, name: str, call_name: str) -> None:
        """See `Containers.name_after`."""
        await self._client.rename(container_id, f"{name}-{call_name}")

    async def remove(self, container_id: str) -> None:
        """See `Containers.remove`."""
        await self._client.remove(container_id)

    async def died_of_memory(self, container_id: str) -> bool:
        """See `Containers.died_of_memory`."""
        with contextlib.suppress(EngineUnavailableError):
            return await self._client.died_of_memory(container_id)
        return False

    async def left(self) -> list[LeftContainer]:
        """See `Containers.left`."""
        return await self._client.left(self._settings.service_name)


async def _attached(connection: socket.socket) -> ContainerTransport:
    return await AttachTransport.over(connection)
