"""The port `Containers` over a Docker engine."""

import contextlib
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from contracts.tool_calls import SandboxInfo
from service.core.errors import EngineUnavailableError
from service.core.flavours import Flavour
from service.core.limits import CallLimits
from service.engines.containers import Container, ContainerTransport, Forks, LeftContainer, NotForkedError
from service.engines.docker.client import EngineClient
from service.engines.docker.container import ContainerSettings, container_config
from service.engines.docker.transport import AttachTransport
from service.engines.docker.zygotes import DockerZygotes, check_machine
from service.engines.forking.seccomp_filter import compiled
from service.engines.forking.target import Target, opened
from service.engines.forking.zygotes import ContainerForks, Start, Zygotes, zygotes_if
from service.engines.oci.cgroups import Cgroups
from service.engines.oci.seccomp import runtime_form

_NAME_RUNTIME_DEFAULT = "runc"
_FORKS_AT_A_TIME = 8


class DockerContainers:
    """Containers that a Docker engine starts and removes for us."""

    def __init__(self, client: EngineClient, settings: ContainerSettings) -> None:
        self._client = client
        self._settings = settings
        self._threads = ThreadPoolExecutor(_FORKS_AT_A_TIME, thread_name_prefix="forking")
        self._zygotes: Zygotes | None = None
        self._cgroups: Cgroups | None = None

    async def connect(self) -> SandboxInfo:
        """See `Containers.connect`."""
        await self._client.connect()
        facts = await self._client.info()
        runtime = self._settings.runtime or facts.get("DefaultRuntime") or _NAME_RUNTIME_DEFAULT
        wanted = self._settings.import_once
        self._zygotes = await zygotes_if(wanted, lambda: self._zygote_starter(runtime), self._threads)
        return SandboxInfo(
            engine="docker",
            runtime=runtime,
            image_digest=await self._client.image_id(self._settings.image),
            acquired="cold",
        )

    def _zygote_starter(self, runtime: str) -> Start:
        """What starts zygotes; raises NotForkedError."""
        check_machine(self._client, runtime)
        self._cgroups = Cgroups.of_machine()
        try:
            seccomp = compiled(runtime_form(json.loads(self._settings.seccomp_profile)))
        except ValueError as exc:
            raise NotForkedError(str(exc)) from exc
        starting = DockerZygotes(self._client, self._settings, seccomp)
        starting.remove_left()
        return starting.start

    async def close(self) -> None:
        """See `Containers.close`."""
        if self._zygotes is not None:
            await self._zygotes.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._client.close()

    async def ping(self) -> None:
        """See `Containers.ping`."""
        await self._client.ping()

    @property
    def warm_flavours(self) -> frozenset[Flavour]:
        """See `Containers.warm_flavours`."""
        return frozenset(Flavour) if self._zygotes is None else frozenset({Flavour.BARE})

    async def start(self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: Flavour) -> Container:
        """See `Containers.start`."""
        config = container_config(self._settings, limits, deadline_epoch_s, flavour)
        container_id, connection = await self._client.start(config, name)
        return Container(container_id, lambda: _attached(connection), await self._forks_into(container_id))

    async def _forks_into(self, container_id: str) -> Forks | None:
        cgroups, zygotes = self._cgroups, self._zygotes
        if cgroups is None or zygotes is None:
            return None
        try:
            first_process = await self._client.first_process(container_id)
        except EngineUnavailableError:
            return None

        def target() -> AbstractContextManager[Target]:
            return opened(cgroups, first_process, container_id)

        return ContainerForks(zygotes, target)

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
