"""The port `SandboxEngine` over containers of any kind: a pool of them, their deadlines, and a sweeper."""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.errors import EngineUnavailableError
from proofbox.service.observability.tracing import NoTracer, Tracer, inside, open_span
from proofbox.service.public_cause import public_cause
from proofbox.service.sandbox.clock import Clock, LoopClock
from proofbox.service.sandbox.containers import Container, Containers, ContainerTransport, OrphanContainer
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.pool import Pool
from proofbox.service.sandbox.pool_sizing import PoolPolicy
from proofbox.service.sandbox.pooled_container import PooledContainer
from proofbox.service.sandbox.port import Sandbox, SandboxLostError, SandboxSpec
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.runner.requests import InspectorBounds
from proofbox.service.sandbox.runner.sandbox import RunnerSandbox, StreamBounds
from proofbox.service.sandbox.sandbox_users import SandboxUsers
from proofbox.service.sandbox.service_cgroup import ServiceCgroup

log = logging.getLogger("proofbox.engine")

_START = "sandbox.start"
_SHARE_OF_MEMORY = 1 / 8
_BEGIN_AGAIN_S = 1.0
_TRY_AGAIN_S_MAX = 15.0  # a reply that no start works is as old as that
_LIBRARIES_NEED_BYTES = 256 * 1024 * 1024
_REMOVED_AFTER_S = 0.04  # removing takes CPU that storing the files and answering need at that moment
_REMOVED_WITHIN_S = 0.4
_NAMED_AFTER_S = 1.0  # nobody sees a container that is gone before
_NAMED_CHARS_MAX = 80
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class PooledEngineSettings:
    """How sandboxes are pooled and handed out.

    Attributes:
        boot_id: this process of the service.
        default_limits: the limits of waiting containers, the operator's.
        pool: how many wait, and how long. Its ``memory_bytes`` is a share of what there is if it is 0.
        ready_s: how long a start may take until its runner answers.
        call_lifetime_s: how long the longest call may hold a container.
        sweep_every_s: how often orphans are removed.
        stream: bounds of the stream to a runner.
        inspector: bounds of the inspector.
        users: the user ids that containers run as.
    """

    boot_id: str
    default_limits: CallLimits
    pool: PoolPolicy
    ready_s: float
    call_lifetime_s: float
    sweep_every_s: float
    stream: StreamBounds
    inspector: InspectorBounds
    users: SandboxUsers


class PooledEngine:
    """Fresh, single-use containers; see `SandboxEngine` for the promises.

    A service name has one process at a time (its store keeps others out), so a container of the same service and
    another boot was left by a dead one. `Containers.list_orphans` lists no others of another boot that are in use.
    """

    def __init__(
        self,
        containers: Containers,
        settings: PooledEngineSettings,
        load: Callable[[], float] = lambda: 0.0,
        clock: Clock | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._containers = containers
        self._settings = settings
        self._load = load
        self._tracer = tracer or NoTracer()
        self._clock = clock or LoopClock()
        self.pool = Pool(
            self._start_waiting,
            self._discard_later,
            settings.pool,
            load=load,
            clock=self._clock,
        )
        """The containers that wait."""
        self._users = settings.users
        self._user_of: dict[str, int] = {}  # by the ids of containers, until they are removed
        self._info: SandboxInfo | None = None
        self._count = 0
        self._starting: set[str] = set()  # names of containers
        self._held: set[str] = set()  # ids of containers, from their start until their removal was tried
        # Ids of containers that the last sweep removed: an engine may be slow.
        self._going: frozenset[str] = frozenset()
        self._removals: set[asyncio.Task[None]] = set()
        self._pauses: set[asyncio.Event] = set()
        self._stopping = False
        self._began = asyncio.Event()  # what an earlier process left is gone, or the engine is away
        self._jobs: list[asyncio.Task[None]] = []
        self.swept = 0
        """Sandboxes of this service that had to be swept in this process of it."""
        self.is_up = False
        """Whether the engine answered when it was asked last."""

    @property
    def together(self) -> ServiceCgroup | None:
        """What bounds all sandboxes together; None where that is not in this process's hands."""
        return self._containers.together

    async def start(self) -> None:
        """See `SandboxEngine.start`."""
        self._info = await self._containers.connect()
        self.is_up = True
        self._jobs = [asyncio.create_task(self._begin()), asyncio.create_task(self._sweep_for_ever())]

    async def _begin(self) -> None:
        """Removes what an earlier process left, then fills the pool; without one, tries whether a start works."""
        try:
            while not await self._is_swept():
                self._began.set()  # calls get the engine's own error
                await self._pause(_BEGIN_AGAIN_S)
        finally:
            self._began.set()
        self.pool.fill()
        pause_s = _BEGIN_AGAIN_S
        while not any(self.pool.wanted().values()) and not await self._is_tried():
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, _TRY_AGAIN_S_MAX)

    async def _is_swept(self) -> bool:
        """Whether what an earlier process left is gone and the memory of the pool is known."""
        policy = self._settings.pool
        try:
            if swept := await self.sweep():
                log.info("removed %d sandboxes of an earlier process of the service", swept)
            if not policy.memory_bytes:
                share = int(await self._containers.memory_bytes() * _SHARE_OF_MEMORY)
                self.pool.policy = replace(policy, memory_bytes=share)
        except EngineUnavailableError as exc:
            log.warning("the container engine does not answer, the pool stays empty: %s", exc)
            return False
        return True

    async def _is_tried(self) -> bool:
        """Starts one container for nobody; whether it worked."""
        try:
            pooled = await self._start_counted(self._settings.default_limits, self._settings.ready_s)
        except EngineUnavailableError as exc:
            log.warning("a sandbox could not be started: %s", exc)
            return False
        await self._discard(pooled)
        return True

    async def stop(self) -> None:
        """See `SandboxEngine.stop`."""
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        self._stopping = True
        for pause in self._pauses:
            pause.set()
        await self.pool.drain()
        await asyncio.gather(*self._removals, return_exceptions=True)
        with contextlib.suppress(EngineUnavailableError):
            await self._remove_left(lambda left: left.boot_id == self._settings.boot_id)
        await self._containers.close()
        self._users.close()

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """See `SandboxEngine.open`."""
        pooled = await self._take(spec)
        if not spec.is_bare:
            pooled = await self._become(pooled, spec)
        expiry = self._clock.call_later(spec.lifetime_s, lambda: self._discard_later(pooled))
        naming = self._clock.call_later(_NAMED_AFTER_S, lambda: self._later(self._name(pooled, spec.call_name)))
        log.debug("call %s has container %s", spec.call_name, pooled.container_id[:12])
        try:
            yield pooled.sandbox
        finally:
            expiry.cancel()
            naming.cancel()
            # After the answer: nobody waits for a removal. What ran in it is gone once files were collected.
            self._later(self._discard_in_time(pooled) if pooled.sandbox.is_over else self._discard(pooled))

    async def _become(self, pooled: PooledContainer, spec: SandboxSpec) -> PooledContainer:
        """Puts what the call will import into the container that was taken, where that can be forked in."""
        try:
            await pooled.sandbox.become(spec.flavour)
        except SandboxLostError as exc:
            log.warning("a sandbox was lost before its call, which takes another: %s", exc)
            self._discard_later(pooled)
            return await self._take(spec)
        except BaseException:
            self._discard_later(pooled)
            raise
        return pooled

    async def _take(self, spec: SandboxSpec) -> PooledContainer:
        default, limits = self._settings.default_limits, spec.limits
        updates = limits.needs_update(default)
        if limits.needs_own_container(default) or (updates and not self._containers.updates_limits):
            return await self._own(spec)
        # What has imported libraries may hold more already than a small limit allows.
        flavour = spec.flavour if limits.memory_bytes >= _LIBRARIES_NEED_BYTES else PreloadSet.BARE
        flavour = PreloadSet.BARE if spec.is_bare else flavour
        pooled = await self.pool.take(flavour, spec.owner, is_only_call=spec.is_only_call)
        if spec.is_bare and pooled.sandbox.flavour is not PreloadSet.BARE:
            self._discard_later(pooled)
            return await self._own(spec)
        if not updates:
            return pooled
        try:
            await self._containers.set_limits(pooled.container_id, limits)
        except EngineUnavailableError as exc:
            log.warning("the limits of a waiting sandbox cannot be changed: %s", exc)
            self._discard_later(pooled)
            return await self._own(spec)
        except BaseException:
            self._discard_later(pooled)
            raise
        return pooled

    async def _own(self, spec: SandboxSpec) -> PooledContainer:
        """A container for one call: bare, as importing takes the same time in the call."""
        pooled = await self._start_counted(spec.limits, spec.lifetime_s)
        self.pool.counts.taken[spec.flavour, "own"] += 1
        return pooled

    async def _start_counted(self, limits: CallLimits, lifetime_s: float) -> PooledContainer:
        """One without the pool, whose outcome counts there nevertheless."""
        try:
            pooled = await self._start_pooled(limits, lifetime_s, PreloadSet.BARE)
        except Exception as exc:
            self.pool.note_failed(exc)
            raise
        self.pool.note_started()
        return pooled

    async def _name(self, pooled: PooledContainer, call_name: str) -> None:
        with contextlib.suppress(EngineUnavailableError):
            await self._containers.name_after(
                pooled.container_id, pooled.name, _ODD.sub("_", call_name)[:_NAMED_CHARS_MAX]
            )

    async def ping(self) -> None:
        """See `SandboxEngine.ping`."""
        await self._containers.ping()
        self.pool.require_starts()

    async def sweep(self) -> int:
        """See `SandboxEngine.sweep`."""
        held = frozenset(self._held)  # one that is discarded while they are listed is not left behind
        count = await self._remove_left(lambda found: found.container_id not in held and self._is_left(found))
        self.swept += count
        return count

    def _is_left(self, found: OrphanContainer) -> bool:
        """Not by its deadline: the clock may be set while a call runs."""
        if found.boot_id != self._settings.boot_id:
            return True
        return found.container_id not in self._held and found.name not in self._starting

    async def _remove_left(self, is_left: Callable[[OrphanContainer], bool]) -> int:
        left = [found.container_id for found in await self._containers.list_orphans() if is_left(found)]
        before, self._going = self._going, frozenset()
        for container_id in left:
            await self._containers.remove(container_id)
            self._release_user(container_id)
            self._going |= {container_id}
        return len(self._going - before)

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.sweep_every_s)
            await self._sweep_and_log()
            await self.pool.renew()

    async def _sweep_and_log(self) -> None:
        """Sweep; log once that the engine does not answer, and once that it answers again."""
        try:
            if swept := await self.sweep():
                log.warning("removed %d sandboxes that should have been gone", swept)
        except EngineUnavailableError as exc:
            if self.is_up:
                log.warning("the container engine does not answer, calls fail: %s", exc)
            self.is_up = False
            return
        if not self.is_up:
            log.warning("the container engine answers again")
        self.is_up = True

    async def _start_waiting(self, flavour: PreloadSet) -> PooledContainer | None:
        """Starts one to wait; None if its libraries cannot be had now, as a bare one serves a call as well then."""
        settings = self._settings
        lifetime_s = settings.pool.age_max_s + settings.call_lifetime_s
        if not await self._containers.prepare(flavour) and flavour is not PreloadSet.BARE:
            return None
        pooled = await self._start_pooled(settings.default_limits, lifetime_s, flavour)
        pooled.flavour = pooled.sandbox.flavour  # no fork may have been possible after all
        try:
            await self._containers.begin_waiting(pooled.container_id, flavour)
        except BaseException:
            self._discard_later(pooled)
            raise
        return pooled

    async def _start_pooled(self, limits: CallLimits, lifetime_s: float, flavour: PreloadSet) -> PooledContainer:
        # A part of the call that has to wait for it; a trace of its own if it is to wait for a call.
        inner, attributes = open_span(), {"proofbox.flavour": str(flavour)}
        with inside(
            inner.start(_START, attributes) if inner.traceparent else self._tracer.trace(_START, attributes)
        ):
            return await self._started_pooled(limits, lifetime_s, flavour)

    async def _started_pooled(self, limits: CallLimits, lifetime_s: float, flavour: PreloadSet) -> PooledContainer:
        info = self._info
        if info is None:
            raise EngineUnavailableError("the engine is not started")
        await self._began.wait()
        self._count += 1
        name = f"proofbox-{self._settings.boot_id}-{self._count}"
        deadline = time.time() + lifetime_s + self._settings.ready_s
        # A start that is cancelled half-way is finished and then removed: a thread cannot be stopped.
        starting = asyncio.create_task(self._container(name, limits, deadline, flavour))
        try:
            container = await asyncio.shield(starting)
        except asyncio.CancelledError:
            self._later(self._abandon(starting))
            raise
        transport = await container.attach()
        container_id = container.container_id
        sandbox = RunnerSandbox(
            transport,
            info,
            self._settings.stream,
            self._settings.inspector,
            died_of_memory=lambda: self._containers.died_of_memory(container_id),
            died_of_processes=lambda: self._containers.died_of_processes(container_id),
            forks=container.forks,
        )
        pooled = PooledContainer(container_id, name, transport, sandbox, flavour)
        try:
            async with asyncio.timeout(self._settings.ready_s):
                await pooled.sandbox.wait_ready(flavour)
        except BaseException as exc:
            self._discard_later(pooled)
            if isinstance(exc, (TimeoutError, SandboxLostError)):
                stderr = transport.stderr_tail.decode(errors="replace").strip()
                log.warning("a sandbox did not get ready: %s %s", exc, stderr)
                cause = public_cause(stderr)
                raise EngineUnavailableError(
                    f"a sandbox was started but its runner did not answer{cause and f': {cause}'}"
                ) from exc
            raise
        return pooled

    async def _container(
        self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: PreloadSet
    ) -> Container:
        self._starting.add(name)
        user = self._users.take()
        try:
            container = await self._containers.start(name, limits, deadline_epoch_s, flavour, user)
        except BaseException:
            self._users.release(user)
            raise
        finally:
            self._starting.discard(name)
        self._held.add(container.container_id)
        self._user_of[container.container_id] = user
        return container

    async def _abandon(self, starting: asyncio.Task[Container]) -> None:
        with contextlib.suppress(EngineUnavailableError):
            container = await starting
            await self._hang_up(await container.attach(), container.container_id)

    def _discard_later(self, pooled: PooledContainer) -> None:
        self._later(self._discard(pooled))

    def _later(self, task_of: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(task_of)
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def _discard_in_time(self, pooled: PooledContainer) -> None:
        """Discards a container a moment later, or when no call runs, which may be its own, but soon."""
        until = self._clock.time() + _REMOVED_WITHIN_S
        await self._pause(_REMOVED_AFTER_S)
        while self._load() > 0 and self._clock.time() < until and not self._stopping:
            await self._pause(_REMOVED_AFTER_S)
        await self._discard(pooled)

    async def _pause(self, seconds: float) -> None:
        """Waits, but not while the engine stops."""
        over = asyncio.Event()
        timer = self._clock.call_later(seconds, over.set)
        self._pauses.add(over)
        if not self._stopping:
            await over.wait()
        self._pauses.discard(over)
        timer.cancel()

    async def _discard(self, pooled: PooledContainer) -> None:
        await self._hang_up(pooled.transport, pooled.container_id)

    async def _hang_up(self, transport: ContainerTransport, container_id: str) -> None:
        await transport.close()
        try:
            await self._containers.remove(container_id)
            self._release_user(container_id)
        except EngineUnavailableError as exc:
            log.warning("a sandbox could not be removed yet, the sweeper will: %s", exc)
        finally:
            self._held.discard(container_id)

    def _release_user(self, container_id: str) -> None:
        """The container is removed; one of an earlier process of the service has no user of ours."""
        if (user := self._user_of.pop(container_id, None)) is not None:
            self._users.release(user)
