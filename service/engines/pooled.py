"""The port `SandboxEngine` over containers of any kind: a pool of them, their deadlines, and a sweeper."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass

from contracts.tool_calls import SandboxInfo
from service.core.engine_port import Sandbox, SandboxLostError, SandboxSpec
from service.core.errors import EngineUnavailableError
from service.core.limits import CallLimits
from service.engines.containers import Container, Containers, ContainerTransport, LeftContainer
from service.engines.pool import Box, Pool
from service.engines.runner_sandbox import InspectorBounds, RunnerSandbox, StreamBounds

log = logging.getLogger("proofbox.engine")


@dataclass(frozen=True, slots=True)
class PooledEngineSettings:
    """How sandboxes are kept and lent.

    Attributes:
        boot_id: this life of the service.
        default_limits: the limits of waiting containers, the operator's.
        pool_size: containers kept waiting.
        starts_max: containers starting at a time.
        ready_s: how long a start may take until its runner answers.
        waiting_lifetime_s: when a container that waits is replaced by a younger one.
        call_lifetime_s: how long the longest call may hold a container.
        sweep_every_s: how often leftovers are looked for.
        stream: bounds of the stream to a runner.
        inspector: bounds of the inspector.
    """

    boot_id: str
    default_limits: CallLimits
    pool_size: int
    starts_max: int
    ready_s: float
    waiting_lifetime_s: float
    call_lifetime_s: float
    sweep_every_s: float
    stream: StreamBounds
    inspector: InspectorBounds


class PooledEngine:
    """Fresh, single-use containers; see `SandboxEngine` for the promises.

    A service name has one life at a time (its store keeps others out), so a container of the same service and
    another boot was left by a dead one.
    """

    def __init__(self, containers: Containers, settings: PooledEngineSettings) -> None:
        self._containers = containers
        self._settings = settings
        self._pool = Pool(
            self._start_waiting,
            self._discard,
            size=settings.pool_size,
            starts_max=settings.starts_max,
            age_max_s=settings.waiting_lifetime_s,
        )
        self._info: SandboxInfo | None = None
        self._count = 0
        self._starting: set[str] = set()  # names of containers
        self._held: set[str] = set()  # ids of containers, from their start until their removal was tried
        self._removals: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.Task[None] | None = None
        self.swept = 0
        """Sandboxes of this service that had to be swept in this life of it."""

    @property
    def ready(self) -> int:
        """Sandboxes that wait for a call."""
        return self._pool.ready

    async def start(self) -> None:
        """See `SandboxEngine.start`."""
        self._info = await self._containers.connect()
        swept = await self.sweep()
        if swept:
            log.info("removed %d sandboxes of an earlier life of the service", swept)
        self._pool.fill()
        self._sweeper = asyncio.create_task(self._sweep_for_ever())

    async def stop(self) -> None:
        """See `SandboxEngine.stop`."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
        await self._pool.drain()
        await asyncio.gather(*self._removals, return_exceptions=True)
        with contextlib.suppress(EngineUnavailableError):
            await self._remove_left(lambda left: left.boot_id == self._settings.boot_id)
        await self._containers.close()

    @asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """See `SandboxEngine.open`."""
        if spec.limits.needs_own_container(self._settings.default_limits):
            box = await self._start_box(spec.limits, spec.lifetime_s)
        else:
            box = await self._pool.take()
        expiry = asyncio.get_running_loop().call_later(spec.lifetime_s, self._discard_later, box)
        try:
            yield box.sandbox
        finally:
            expiry.cancel()
            self._discard_later(box)  # after the answer: nobody waits for a removal

    async def ping(self) -> None:
        """See `SandboxEngine.ping`."""
        await self._containers.ping()

    async def sweep(self) -> int:
        """See `SandboxEngine.sweep`."""
        count = await self._remove_left(self._is_left)
        self.swept += count
        return count

    def _is_left(self, found: LeftContainer) -> bool:
        """Not by its deadline: the clock may be set while a call runs."""
        if found.boot_id != self._settings.boot_id:
            return True
        return found.container_id not in self._held and found.name not in self._starting

    async def _remove_left(self, is_left: Callable[[LeftContainer], bool]) -> int:
        count = 0
        for found in await self._containers.left():
            if is_left(found):
                await self._containers.remove(found.container_id)
                count += 1
        return count

    async def _sweep_for_ever(self) -> None:
        while True:
            await asyncio.sleep(self._settings.sweep_every_s)
            try:
                if swept := await self.sweep():
                    log.warning("removed %d sandboxes that should have been gone", swept)
            except EngineUnavailableError as exc:
                log.warning("cannot look for leftovers: %s", exc)
            await self._pool.renew()

    async def _start_waiting(self) -> Box:
        settings = self._settings
        return await self._start_box(
            settings.default_limits, settings.waiting_lifetime_s + settings.call_lifetime_s
        )

    async def _start_box(self, limits: CallLimits, lifetime_s: float) -> Box:
        info = self._info
        if info is None:
            raise EngineUnavailableError("the engine is not started")
        self._count += 1
        name = f"proofbox-{self._settings.boot_id}-{self._count}"
        deadline = time.time() + lifetime_s + self._settings.ready_s
        # A start that is cancelled half-way is finished and then removed: a thread cannot be stopped.
        starting = asyncio.create_task(self._started(name, limits, deadline))
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
        )
        box = Box(container_id, transport, sandbox)
        try:
            async with asyncio.timeout(self._settings.ready_s):
                await box.sandbox.wait_ready()
        except BaseException as exc:
            self._discard_later(box)
            if isinstance(exc, (TimeoutError, SandboxLostError)):
                said = transport.stderr_tail.decode(errors="replace").strip()
                log.warning("a sandbox did not get ready: %s %s", exc, said)
                raise EngineUnavailableError("a sandbox was started but its runner did not answer") from exc
            raise
        return box

    async def _started(self, name: str, limits: CallLimits, deadline_epoch_s: float) -> Container:
        self._starting.add(name)
        try:
            container = await self._containers.start(name, limits, deadline_epoch_s)
            self._held.add(container.container_id)
        finally:
            self._starting.discard(name)
        return container

    async def _abandon(self, starting: asyncio.Task[Container]) -> None:
        with contextlib.suppress(EngineUnavailableError):
            container = await starting
            await self._hang_up(await container.attach(), container.container_id)

    def _discard_later(self, box: Box) -> None:
        self._later(self._discard(box))

    def _later(self, removal: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(removal)
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    async def _discard(self, box: Box) -> None:
        await self._hang_up(box.transport, box.container_id)

    async def _hang_up(self, transport: ContainerTransport, container_id: str) -> None:
        await transport.close()
        try:
            await self._containers.remove(container_id)
        except EngineUnavailableError as exc:
            log.warning("a sandbox could not be removed yet, the sweeper will: %s", exc)
        finally:
            self._held.discard(container_id)
