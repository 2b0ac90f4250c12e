"""The port `Containers` over a Docker engine."""

import asyncio
import contextlib
import json
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.containers import Container, NotForkedError, OrphanContainer
from proofbox.service.sandbox.docker.client import EngineClient
from proofbox.service.sandbox.docker.container_config import (
    FULL_SHARES,
    ContainerSettings,
    changing_limits,
    container_config,
)
from proofbox.service.sandbox.docker.direct_socket import DirectSocketError, take_socket
from proofbox.service.sandbox.docker.gvisor import TOO_MANY_TASKS, filters_calls, gvisor_form, is_gvisor
from proofbox.service.sandbox.docker.own_users import own_users_form
from proofbox.service.sandbox.docker.podman import PodmanFiles, is_podman
from proofbox.service.sandbox.docker.transport import AttachTransport
from proofbox.service.sandbox.docker.zygotes import DockerZygotes, check_machine
from proofbox.service.sandbox.host_info import meminfo
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.linux.seccomp_bpf import compiled
from proofbox.service.sandbox.linux.seccomp_profile import runtime_form
from proofbox.service.sandbox.oci.container_state import DEFAULT_PARENT
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.service_cgroup import ServiceCgroup, group_name
from proofbox.service.sandbox.zygotes.fork_target import Target, opened
from proofbox.service.sandbox.zygotes.manager import KIND_OF, ComingZygotes, ContainerForks, Start

log = logging.getLogger("proofbox.engine")

_NAME_RUNTIME_DEFAULT = "runc"
_FORKS_AT_A_TIME = 8
# How engines express that root inside is somebody else outside; rootless ones run in such a namespace as a whole.
_ROOTLESS = "name=rootless"
_USER_NAMESPACES = frozenset({"name=userns", _ROOTLESS})
_SYSTEMD, _SLICE = "systemd", ".slice"
_DRIVERS = frozenset({"cgroupfs", _SYSTEMD})


class DockerContainers:
    """Containers that a Docker engine starts and removes for us."""

    def __init__(self, client: EngineClient, settings: ContainerSettings) -> None:
        self._client = client
        self._settings = settings
        self._threads = ThreadPoolExecutor(_FORKS_AT_A_TIME, thread_name_prefix="forking")
        self._zygotes = ComingZygotes(settings.import_once, self._threads)
        self._cgroups: Cgroups | None = None
        self._together: ServiceCgroup | None = None
        self._podman_files = PodmanFiles()
        self._no_direct_socket_level = logging.WARNING

    async def connect(self) -> SandboxInfo:
        """See `Containers.connect`."""
        await self._client.connect()
        facts = await self._client.info()
        name = self._settings.runtime or facts.get("DefaultRuntime") or _NAME_RUNTIME_DEFAULT
        runtime = (facts.get("Runtimes") or {}).get(name) or {}
        gvisor = is_gvisor(name, runtime)
        has_own_users = bool(_USER_NAMESPACES.intersection(facts.get("SecurityOptions") or ()))
        if gvisor:
            self._use_gvisor(name, runtime)
        elif has_own_users:
            profile = own_users_form(self._settings.seccomp_profile)
            self._settings = replace(self._settings, seccomp_profile=profile)
        if is_podman(await self._client.version()):
            await self._use_podman()
        await asyncio.to_thread(self._bound_together, facts)
        await self._client.watch_deaths(self._settings.service_name, exits=gvisor)
        log.info(
            "isolation: %s, %s, %s; docs/isolation.md describes the tiers",
            name,
            "a kernel of its own" if gvisor else "shared kernel",
            "user namespace" if has_own_users else "no user namespace",
        )
        image_digest = await self._client.image_id(self._settings.image)
        await self._zygotes.begin(lambda: self._zygote_starter(name))
        return SandboxInfo(
            engine="docker",
            runtime=name,
            image_digest=image_digest,
            acquired="cold",
            tier="gvisor" if gvisor else "shared_kernel",
            user_namespace=has_own_users,
        )

    def _zygote_starter(self, runtime: str) -> Start:
        """What starts zygotes; raises NotForkedError."""
        if self._settings.podman_files is not None:
            raise NotForkedError("the engine is Podman")
        check_machine(self._client, runtime)
        self._cgroups = Cgroups.of_machine()
        try:
            seccomp = compiled(runtime_form(json.loads(self._settings.seccomp_profile)))
        except ValueError as exc:
            raise NotForkedError(str(exc)) from exc
        starting = DockerZygotes(self._client, self._settings, seccomp)
        starting.remove_left()
        return starting.start

    def _use_gvisor(self, name: str, runtime: dict[str, Any]) -> None:
        if runtime and not filters_calls(runtime):
            log.warning(
                "the runtime %s is registered without --oci-seccomp, so programs can reach more of its kernel than"
                " they need: add that to its runtimeArgs in the engine's daemon.json",
                name,
            )
        profile = gvisor_form(self._settings.seccomp_profile)
        self._settings = replace(self._settings, seccomp_profile=profile, gvisor=True)

    async def _use_podman(self) -> None:
        if not self._client.is_on_this_machine:
            raise EngineUnavailableError(
                "the engine is Podman on another machine, where it cannot read the seccomp profile of this one; "
                "run the service on the engine's machine"
            )
        try:
            path = await asyncio.to_thread(self._podman_files.write, self._settings.seccomp_profile)
        except OSError as exc:
            raise EngineUnavailableError(f"the files for Podman cannot be written: {exc.strerror}") from exc
        self._settings = replace(self._settings, podman_files=path)

    def _bound_together(self, facts: dict[str, Any]) -> None:
        """Puts all sandboxes below one group, and bounds it if the engine is on this machine and we may."""
        settings = self._settings
        parent = cgroup_parent(facts, settings.cgroup_parent, settings.service_name)
        self._settings = replace(settings, cgroup_parent=parent)
        why = _not_in_our_hands(facts, parent)
        if not why:
            try:
                together = ServiceCgroup(Cgroups.of_machine(), parent, settings.totals)
                together.make()
                self._together = together
            except OSError as exc:
                why = f"the control group {parent} cannot be made: {exc.strerror}"
        if why:
            log.info("nothing of ours bounds all sandboxes together (%s): see docs/engines.md", why)

    async def close(self) -> None:
        """See `Containers.close`."""
        await self._zygotes.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._client.close()
        await asyncio.to_thread(self._podman_files.remove)
        if self._together is not None:
            await asyncio.to_thread(self._together.remove)

    @property
    def together(self) -> ServiceCgroup | None:
        """See `Containers.together`."""
        return self._together

    async def ping(self) -> None:
        """See `Containers.ping`."""
        await self._client.ping()

    async def memory_bytes(self) -> int:
        """See `Containers.memory_bytes`."""
        engine = int((await self._client.info())["MemTotal"])
        here = meminfo()
        # On another machine, or in a VM, what is free there is unknown.
        return here["MemAvailable"] if here.get("MemTotal") == engine else engine

    @property
    def updates_limits(self) -> bool:
        """See `Containers.updates_limits`."""
        return self._settings.updates_limits

    async def prepare(self, flavour: PreloadSet) -> bool:
        """See `Containers.prepare`."""
        zygotes = await self._zygotes.get()
        return zygotes is None or await zygotes.first_of(KIND_OF[flavour])

    async def _imported_by_itself(self, flavour: PreloadSet) -> PreloadSet:
        """What the interpreter that a container starts itself is to import."""
        return flavour if await self._zygotes.get() is None else PreloadSet.BARE

    async def start(
        self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: PreloadSet, user_id: int
    ) -> Container:
        """See `Containers.start`."""
        if self._together is not None:
            await asyncio.to_thread(self._together.keep)
        imported = await self._imported_by_itself(flavour)
        config = container_config(self._settings, limits, deadline_epoch_s, user_id, imported)
        container_id, connection = await self._client.start(config, name)
        if self._together is not None:
            await asyncio.to_thread(self._together.bound_tcp, container_id)
        cgroups, zygotes = self._cgroups, await self._zygotes.get()
        if cgroups is None or zygotes is None:
            return Container(container_id, lambda: AttachTransport.over(connection))
        first_process = await self._first_process(cgroups, container_id)

        def target() -> AbstractContextManager[Target]:
            return opened(cgroups, first_process, container_id, user_id)

        take_direct_socket = partial(self._take_socket, first_process, container_id)
        attach = partial(AttachTransport.over, connection, take_direct_socket)
        return Container(container_id, attach, ContainerForks(zygotes, target))

    async def _take_socket(self, first_process: int, container_id: str) -> socket.socket:
        """See `TakeSocket`."""
        try:
            return await take_socket(first_process, container_id, socket.SOCK_STREAM)
        except DirectSocketError as exc:
            log.log(
                self._no_direct_socket_level,
                "the stream to a sandbox goes through the engine, which is slower: %s",
                exc,
            )
            self._no_direct_socket_level = logging.DEBUG  # it will be the same with each
            raise

    async def _first_process(self, cgroups: Cgroups, container_id: str) -> int:
        """As this machine counts; 0, which is nobody's, if it has ended."""
        if self._together is not None:
            # Its control group is known, and spares a request to the engine.
            group = f"{self._together.path}/{container_id}"
            processes = await asyncio.to_thread(cgroups.processes, group)
            if len(processes) == 1 and processes[0]:  # 0 is one of a namespace that this one cannot see into
                return processes[0]
        with contextlib.suppress(EngineUnavailableError):
            return await self._client.first_process(container_id)
        return 0

    async def begin_waiting(self, container_id: str, flavour: PreloadSet) -> None:
        """See `Containers.begin_waiting`."""
        if self.updates_limits and await self._imported_by_itself(flavour) is not PreloadSet.BARE:
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

    async def died_of_processes(self, container_id: str) -> bool:
        """See `Containers.died_of_processes`."""
        if not self._settings.gvisor:
            return False  # the kernel refuses one more, and nothing dies
        with contextlib.suppress(EngineUnavailableError):
            return await self._client.exit_code(container_id) == TOO_MANY_TASKS
        return False

    async def list_orphans(self) -> list[OrphanContainer]:
        """See `Containers.list_orphans`."""
        return await self._client.list_orphans(self._settings.service_name)


def cgroup_parent(facts: dict[str, Any], wanted: str, service_name: str) -> str:
    """The group that a service's containers go below, as the engine takes it; empty for the engine's own.

    Args:
        facts: the engine's description of itself.
        wanted: the operator's setting.
        service_name: whose containers they are.
    """
    driver = facts.get("CgroupDriver")
    if not wanted and (driver not in _DRIVERS or _ROOTLESS in (facts.get("SecurityOptions") or ())):
        return ""
    parent = wanted or DEFAULT_PARENT.strip("/")
    if driver == _SYSTEMD:
        return parent if parent.endswith(_SLICE) else f"{parent}{_SLICE}"
    return f"/{parent.strip('/')}/{group_name(service_name)}"


def _not_in_our_hands(facts: dict[str, Any], parent: str) -> str:
    """Why this process cannot bound that group; empty if it can."""
    if not parent:
        return "the engine keeps its own groups"
    if meminfo().get("MemTotal") != facts.get("MemTotal"):
        return "the engine is on another machine"
    if parent.endswith(_SLICE):
        return f"{parent} is systemd's"
    return Cgroups.of_machine().missing() or ""
