"""The port `Containers` over a Docker engine."""

import contextlib
import logging
import socket
from dataclasses import replace
from typing import Any

from contracts.tool_calls import SandboxInfo
from service.core.errors import EngineUnavailableError
from service.core.flavours import Flavour
from service.core.limits import CallLimits
from service.engines.containers import Container, ContainerTransport, LeftContainer
from service.engines.docker.client import EngineClient
from service.engines.docker.container import FULL_SHARES, ContainerSettings, changing_limits, container_config
from service.engines.docker.gvisor import filters_calls, gvisor_form, is_gvisor
from service.engines.docker.transport import AttachTransport
from service.engines.machine import meminfo

log = logging.getLogger("proofbox.engine")

_NAME_RUNTIME_DEFAULT = "runc"
# As engines say that root inside is somebody else outside; rootless ones run in such a namespace as a whole.
_USER_NAMESPACES = frozenset({"name=userns", "name=rootless"})


class DockerContainers:
    """Containers that a Docker engine starts and removes for us."""

    def __init__(self, client: EngineClient, settings: ContainerSettings) -> None:
        self._client = client
        self._settings = settings

    async def connect(self) -> SandboxInfo:
        """See `Containers.connect`."""
        await self._client.connect()
        facts = await self._client.info()
        name = self._settings.runtime or facts.get("DefaultRuntime") or _NAME_RUNTIME_DEFAULT
        runtime = (facts.get("Runtimes") or {}).get(name) or {}
        gvisor = is_gvisor(name, runtime)
        if gvisor:
            self._use_gvisor(name, runtime)
        has_own_users = bool(_USER_NAMESPACES.intersection(facts.get("SecurityOptions") or ()))
        log.info(
            "sandboxes run on %s, %s a kernel of their own, %s users of their own",
            name,
            "with" if gvisor else "without",
            "with" if has_own_users else "without",
        )
        return SandboxInfo(
            engine="docker",
            runtime=name,
            image_digest=await self._client.image_id(self._settings.image),
            acquired="cold",
            tier="gvisor" if gvisor else "shared_kernel",
            user_namespace=has_own_users,
        )

    def _use_gvisor(self, name: str, runtime: dict[str, Any]) -> None:
        if runtime and not filters_calls(runtime):
            log.warning(
                "the runtime %s is registered without --oci-seccomp, so programs can reach more of its kernel than"
                " they need: add that to its runtimeArgs in the engine's daemon.json",
                name,
            )
        profile = gvisor_form(self._settings.seccomp_profile)
        self._settings = replace(self._settings, seccomp_profile=profile, gvisor=True)

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
        return not self._settings.gvisor

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
        await self._client.update(container_id, changing_limits(self._settings, limits))

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
