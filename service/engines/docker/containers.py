"""The port `Containers` over a Docker engine."""

import contextlib
import socket

from contracts.tool_calls import SandboxInfo
from service.core.errors import EngineUnavailableError
from service.core.flavours import Flavour
from service.core.limits import CallLimits
from service.engines.containers import Container, ContainerTransport, LeftContainer
from service.engines.docker.client import EngineClient
from service.engines.docker.container import ContainerSettings, container_config
from service.engines.docker.transport import AttachTransport

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

    @property
    def warm_flavours(self) -> frozenset[Flavour]:
        """See `Containers.warm_flavours`."""
        return frozenset(Flavour)

    async def start(self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: Flavour) -> Container:
        """See `Containers.start`."""
        config = container_config(self._settings, limits, deadline_epoch_s, flavour)
        container_id, connection = await self._client.start(config, name)
        return Container(container_id, lambda: _attached(connection))

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
