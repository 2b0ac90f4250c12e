"""The port `Containers` over an OCI runtime that this process starts itself."""

import asyncio
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.public_cause import public_cause
from proofbox.service.sandbox.containers import Container, ContainerTransport, Forks, OrphanContainer
from proofbox.service.sandbox.hardening import CPU_PERIOD_US
from proofbox.service.sandbox.host_info import meminfo
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.linux.seccomp_bpf import compiled
from proofbox.service.sandbox.linux.seccomp_profile import runtime_form
from proofbox.service.sandbox.oci.bundle import BundleSettings, bundle_config
from proofbox.service.sandbox.oci.container_start import Starter
from proofbox.service.sandbox.oci.container_state import DEFAULT_PARENT, ContainerState, boot_of
from proofbox.service.sandbox.oci.image import ImageCache, ImageSource
from proofbox.service.sandbox.oci.runtime import Runtime
from proofbox.service.sandbox.oci.transport import SocketTransport
from proofbox.service.sandbox.oci.zygotes import OciZygotes
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.service_cgroup import ServiceCgroup, TotalLimits, group_name
from proofbox.service.sandbox.zygotes.fork_target import Target, opened
from proofbox.service.sandbox.zygotes.manager import (
    KIND_OF,
    ComingZygotes,
    ContainerForks,
    ImportOnce,
    Start,
    Zygotes,
)

T = TypeVar("T")
_PACKAGE_ROOT = Path(__file__).parents[4]
_CAP_SYS_ADMIN = 21
_CLEANUP_ENDS_WITHIN_S = 10.0
_ORDERLY = b"."
# A shell is the cleanup process: an interpreter would hold 13 MB for as long as the service runs.
_WAITING = ("/bin/sh", "-c", 'IFS= read -r word; exec "$@" "$word"', "cleanup")


@dataclass(frozen=True, slots=True)
class OciSettings:
    """What the operator decides for every container.

    Attributes:
        runtime: name or path of the OCI runtime; empty for the first known one that is there.
        seccomp_profile: our profile, in Docker's form.
        cgroup_parent: one control group above the sandboxes of all services; empty for ``proofbox``.
        service_name: two services on one machine each sweep only their own.
        boot_id: this process of the service.
        cache_dir: where images are unpacked.
        run_dir: where bundles and the runtime's records are while a container exists.
        totals: what all sandboxes may use together.
        start_s: how long the runtime may take to start one.
        threads: how many starts and removals are under way at a time.
        import_once: whether libraries are imported outside of containers and forked into them; see the setting.
        packages: the folder of packages; None if no call gets packages.
    """

    runtime: str
    seccomp_profile: dict[str, Any]
    cgroup_parent: str
    service_name: str
    boot_id: str
    cache_dir: Path
    run_dir: Path
    totals: TotalLimits
    start_s: float
    threads: int
    import_once: ImportOnce
    packages: Path | None = None


@dataclass(frozen=True, slots=True)
class _Connected:
    """What `connect` has found."""

    starter: Starter
    bundle: BundleSettings
    together: ServiceCgroup


class OciContainers:
    """Containers without a daemon: a runtime is started for each, and what is left of one is removed by us."""

    def __init__(self, source: ImageSource, settings: OciSettings) -> None:
        self._source = source
        self._settings = settings
        self._cache = ImageCache(settings.cache_dir)
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="oci")
        self._connected: _Connected | None = None
        self._cleanup: subprocess.Popen[bytes] | None = None
        self._zygotes = ComingZygotes(settings.import_once, self._threads)

    async def connect(self) -> SandboxInfo:
        """See `Containers.connect`."""
        settings = self._settings
        cgroups = await self._call("be used on this machine", usable_cgroups)
        runtime = await self._call("find its runtime", lambda: Runtime.found(settings.runtime, cgroups))
        image = await self._cache.image(self._source)
        name = group_name(settings.service_name)
        parent = "/" + settings.cgroup_parent.strip("/") if settings.cgroup_parent else DEFAULT_PARENT
        place = ContainerState(settings.run_dir / name, f"{parent}/{name}", cgroups)
        try:
            seccomp = runtime_form(settings.seccomp_profile)
        except ValueError as exc:
            raise EngineUnavailableError(str(exc)) from exc
        bundle = BundleSettings(image, seccomp, cgroups.counts_swap, cgroups.seen_inside, settings.packages)
        together = ServiceCgroup(cgroups, place.cgroup, settings.totals)
        await self._call("bound all sandboxes together", together.make)
        starter = Starter(runtime, place, together, settings.start_s)
        self._connected = _Connected(starter, bundle, together)
        await self._call("start its cleanup process", self._ensure_cleanup)
        await self._zygotes.begin(lambda: self._zygote_starter(seccomp))
        return SandboxInfo(engine="oci", runtime=runtime.name, image_digest=image.digest, acquired="cold")

    def _zygote_starter(self, seccomp: dict[str, Any]) -> Start:
        """What starts zygotes; raises NotForkedError."""
        connected = self._there()
        starting = OciZygotes(connected.starter, connected.bundle, self._settings.boot_id, compiled(seccomp))
        starting.remove_left()
        return starting.start

    async def close(self) -> None:
        """See `Containers.close`."""
        await self._zygotes.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._cleanup is not None:
            await asyncio.to_thread(_end, self._cleanup)
        if self._connected is not None:
            self._connected.starter.runtime.close()
        self._cache.release()

    async def ping(self) -> None:
        """See `Containers.ping`."""
        connected = self._there()
        await self._call("be used on this machine", usable_cgroups)
        await self._call("start its runtime", connected.starter.runtime.check)
        if not connected.bundle.image.rootfs.is_dir():
            raise EngineUnavailableError("the unpacked sandbox image is gone; start the service again")

    @property
    def together(self) -> ServiceCgroup | None:
        """See `Containers.together`."""
        return self._connected.together if self._connected else None

    async def memory_bytes(self) -> int:
        """See `Containers.memory_bytes`."""
        return meminfo()["MemAvailable"]

    @property
    def updates_limits(self) -> bool:
        """See `Containers.updates_limits`."""
        return True

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
        container_id = f"{name}-{int(deadline_epoch_s)}"
        imported = await self._imported_by_itself(flavour)
        started = await self._call("start a sandbox", lambda: self._start(container_id, limits, imported, user_id))
        stream, stderr_fd, first_process = started
        zygotes = await self._zygotes.get()
        forks = None if zygotes is None else self._forks_into(zygotes, container_id, first_process, user_id)
        return Container(container_id, lambda: _attach(stream, stderr_fd), forks)

    def _forks_into(self, zygotes: Zygotes, container_id: str, first_process: int, user_id: int) -> Forks:
        place = self._there().starter.place

        def target() -> AbstractContextManager[Target]:
            return opened(place.cgroups, first_process, container_id, user_id)

        return ContainerForks(zygotes, target)

    async def begin_waiting(self, container_id: str, flavour: PreloadSet) -> None:
        """See `Containers.begin_waiting`."""
        if await self._imported_by_itself(flavour) is not PreloadSet.BARE:
            place = self._there().starter.place
            await self._call("raise a share", lambda: place.cgroups.give_full_share(place.cgroup_of(container_id)))

    async def set_limits(self, container_id: str, limits: CallLimits) -> None:
        """See `Containers.set_limits`."""
        place = self._there().starter.place
        await self._call(
            "change the limits of a sandbox",
            lambda: place.cgroups.set_limits(
                place.cgroup_of(container_id),
                memory_bytes=limits.memory_bytes,
                pids=limits.pids,
                cpu_quota_us=int(limits.cpus * CPU_PERIOD_US),
                cpu_period_us=CPU_PERIOD_US,
            ),
        )

    async def name_after(self, container_id: str, name: str, call_name: str) -> None:
        """See `Containers.name_after`: an id cannot change, so the name of the call is in the bundle's folder."""
        bundle = self._there().starter.place.bundle(container_id)
        await self._call(
            f"note the call of {name}", lambda: (bundle / "call").write_text(call_name, encoding="utf-8")
        )

    async def remove(self, container_id: str) -> None:
        """See `Containers.remove`."""
        place = self._there().starter.place
        await self._call("remove a sandbox", lambda: place.remove(container_id))

    async def died_of_memory(self, container_id: str) -> bool:
        """See `Containers.died_of_memory`."""
        place = self._there().starter.place
        return place.cgroups.oom_kills(place.cgroup_of(container_id)) > 0

    async def died_of_processes(self, container_id: str) -> bool:
        """See `Containers.died_of_processes`."""
        del container_id
        return False  # the kernel refuses one more, and nothing dies

    async def list_orphans(self) -> list[OrphanContainer]:
        """See `Containers.list_orphans`."""
        await self._call("start its cleanup process", self._ensure_cleanup)
        ids = await self._call("list sandboxes", self._there().starter.place.containers)
        return [OrphanContainer(found, found.rpartition("-")[0], boot_of(found)) for found in ids]

    def _there(self) -> _Connected:
        if self._connected is None:
            raise EngineUnavailableError("the engine is not started")
        return self._connected

    def _ensure_cleanup(self) -> None:
        """Starts the cleanup process, or another one where it has ended."""
        if self._cleanup is not None and self._cleanup.poll() is None:
            return
        place = self._there().starter.place
        self._cleanup = subprocess.Popen(  # noqa: S603 - our own program
            [
                *_WAITING, sys.executable, "-m", "proofbox.service.sandbox.oci.cleanup_process",
                str(place.folder), place.cgroup, self._settings.boot_id,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=_PACKAGE_ROOT,
            env={"PATH": os.environ.get("PATH", "")},
            start_new_session=True,  # it has to outlive what ends the service
        )  # fmt: skip

    def _start(
        self, container_id: str, limits: CallLimits, flavour: PreloadSet, user_id: int
    ) -> tuple[socket.socket, int, int]:
        """The stream, the reading end of its standard error, its first process (0: it has ended)."""
        connected = self._there()
        place = connected.starter.place
        config = bundle_config(connected.bundle, limits, place.cgroup_of(container_id), user_id, flavour)
        stream, stderr_fd = connected.starter.run(container_id, config)
        [first_process] = place.cgroups.processes(place.cgroup_of(container_id)) or [0]
        return stream, stderr_fd, first_process

    async def _call(self, what: str, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except (OSError, subprocess.SubprocessError) as exc:
            cause = exc.strerror.lower() if isinstance(exc, OSError) and exc.strerror else public_cause(str(exc))
            raise EngineUnavailableError(f"the engine 'oci' could not {what}: {cause}") from exc


def usable_cgroups() -> Cgroups:
    """The control groups, if this process may do what is needed.

    Raises:
        EngineUnavailableError: what is missing, in one sentence.
    """
    if sys.platform != "linux":
        raise EngineUnavailableError("the engine 'oci' needs Linux; set PROOFBOX_ENGINE=docker")
    capabilities = re.search(r"^CapEff:\s*(\w+)$", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
    allowed = capabilities is not None and int(capabilities[1], 16) >> _CAP_SYS_ADMIN & 1
    if os.geteuid() != 0 or not allowed:
        raise EngineUnavailableError(
            "the engine 'oci' needs root with CAP_SYS_ADMIN: run the service as root or set PROOFBOX_ENGINE=docker"
        )
    cgroups = Cgroups.of_machine()
    if lacking := cgroups.missing():
        raise EngineUnavailableError(
            f"the engine 'oci' needs control groups that it can write to, and there is {lacking}: "
            "mount /sys/fs/cgroup writable or set PROOFBOX_ENGINE=docker"
        )
    return cgroups


async def _attach(stream: socket.socket, stderr_fd: int) -> ContainerTransport:
    return await SocketTransport.over(stream, stderr_fd)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Informs the cleanup process that the service ends well, and waits for it."""
    assert process.stdin is not None
    try:
        process.stdin.write(_ORDERLY)
        process.stdin.close()
    except OSError:
        pass  # it is gone already
    try:
        process.wait(_CLEANUP_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
