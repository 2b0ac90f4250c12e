"""An engine whose sandboxes are streams to a process that plays the runner; the service is all real."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from contracts.tool_calls import SandboxInfo
from service.core.engine_port import Sandbox, SandboxSpec
from service.engines.oci.transport import SocketTransport
from service.engines.runner_sandbox import InspectorBounds, RunnerSandbox, StreamBounds

_RUNNER = Path(__file__).with_name("scripted_runner.py")
_INFO = SandboxInfo(engine="docker", runtime="runc", image_digest="sha256:0", acquired="warm")
_BOUNDS = StreamBounds(pass_on_bytes=10_000, grace_s=10, collect_s=60)
_INSPECTOR = InspectorBounds(10, 1, 1, 1, 1)


class ScriptedEngine:
    """The port ``SandboxEngine``; jobs are scripts of `tests.fakes.scripted_runner`.

    Args:
        size: sandboxes that wait.
    """

    def __init__(self, size: int = 2) -> None:
        self.swept = 0
        self._size = size
        self._ready: deque[tuple[SocketTransport, RunnerSandbox]] = deque()
        self._later: set[asyncio.Task[None]] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None

    @property
    def ready(self) -> int:
        return len(self._ready)

    async def start(self) -> None:
        self._door, theirs = socket.socketpair()
        command = [sys.executable, _RUNNER]
        self._process = await asyncio.to_thread(subprocess.Popen, command, stdin=theirs.fileno())
        theirs.close()
        for _ in range(self._size):
            self._ready.append(await self._opened())

    async def stop(self) -> None:
        while self._later:
            await asyncio.gather(*self._later)
        while self._ready:
            await self._ready.popleft()[0].close()
        if self._door is not None and self._process is not None:
            self._door.close()
            await asyncio.to_thread(self._process.wait)

    @contextlib.asynccontextmanager
    async def open(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        del spec
        transport, sandbox = self._ready.popleft() if self._ready else await self._opened()
        try:
            yield sandbox
        finally:
            task = asyncio.ensure_future(self._renew(transport))
            self._later.add(task)
            task.add_done_callback(self._later.discard)

    async def ping(self) -> None:
        return

    async def sweep(self) -> int:
        return 0

    async def _renew(self, used: SocketTransport) -> None:
        await used.close()
        if len(self._ready) < self._size:
            self._ready.append(await self._opened())

    async def _opened(self) -> tuple[SocketTransport, RunnerSandbox]:
        assert self._door is not None
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._door, [b"x"], [theirs.fileno()])
        transport = await SocketTransport.over(ours, -1)
        sandbox = RunnerSandbox(transport, _INFO, _BOUNDS, _INSPECTOR, died_of_memory=_nobody_died)
        await sandbox.wait_ready()
        return transport, sandbox


async def _nobody_died() -> bool:
    return False
