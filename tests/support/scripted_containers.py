"""Containers that are streams to a process which plays the runner: all of the service is real, and nothing else."""
# ruff: noqa: ARG002 - a port has arguments that this side of it does not need

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

from proofbox.contracts.tool_call_response import SandboxInfo
from proofbox.service.sandbox.containers import Container, ContainerTransport, OrphanContainer
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.oci.transport import SocketTransport
from proofbox.service.sandbox.preload import PreloadSet

_RUNNER = Path(__file__).with_name("scripted_runner.py")
_MEMORY_BYTES = 16 << 30


class ScriptedContainers:
    """The port ``Containers``; jobs are scripts of `tests.support.scripted_runner`."""

    updates_limits = False
    together = None

    def __init__(self) -> None:
        self._door: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    async def connect(self) -> SandboxInfo:
        command = [sys.executable, _RUNNER]
        self._door, theirs = socket.socketpair()
        with theirs:
            self._process = await asyncio.to_thread(subprocess.Popen, command, stdin=theirs.fileno())
        return SandboxInfo(engine="docker", runtime="runc", image_digest="sha256:0", acquired="cold")

    async def close(self) -> None:
        if self._door is not None and self._process is not None:
            self._door.close()
            await asyncio.to_thread(self._process.wait)

    async def memory_bytes(self) -> int:
        return _MEMORY_BYTES

    async def ping(self) -> None:
        return

    async def prepare(self, flavour: PreloadSet) -> bool:
        return True

    async def start(
        self, name: str, limits: CallLimits, deadline_epoch_s: float, flavour: PreloadSet, user_id: int
    ) -> Container:
        assert self._door is not None
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._door, [b"x"], [theirs.fileno()])
        return Container(name, lambda: _attached(ours))

    async def begin_waiting(self, container_id: str, flavour: PreloadSet) -> None:
        return

    async def set_limits(self, container_id: str, limits: CallLimits) -> None:
        return

    async def name_after(self, container_id: str, name: str, call_name: str) -> None:
        return

    async def remove(self, container_id: str) -> None:
        return

    async def died_of_memory(self, container_id: str) -> bool:
        return False

    async def list_orphans(self) -> list[OrphanContainer]:
        return []


async def _attached(connection: socket.socket) -> ContainerTransport:
    return await SocketTransport.over(connection, -1)
