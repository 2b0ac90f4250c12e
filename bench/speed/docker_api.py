"""A floor under our engine ``docker``: what a container of its own costs the daemon, asked as we ask it.

The same image, hardening and program as `DockerRun` has; no command line, no network to set up, no logs; nothing is
checked or kept, and nothing waits ready. Our rate of calls cannot pass this one while each call has a container.
"""

import asyncio
import contextlib
import json
import os
from dataclasses import dataclass
from typing import Any

from bench.speed.docker_run import IMAGE, SECCOMP
from bench.speed.model import DOCKER_API, CallFailedError, Job

_GIB = 1024 * 1024 * 1024
_UNIX = "unix://"
_DEFAULT = "/var/run/docker.sock"
_OK = 300
_STDOUT = 1
_FRAME_HEAD_BYTES = 8


@dataclass(slots=True)
class DockerApi:
    """One container a call: created, attached to, started, read to its end, removed by the daemon.

    Attributes:
        socket: the daemon's.
    """

    socket: str
    name: str = DOCKER_API
    pause_s: float = 0.1

    async def prepare(self, job: Job) -> None:
        """Nothing: floors do jobs without files."""

    async def run(self, job: Job) -> None:
        """See `Side.run`."""
        created = await self._ask("/containers/create", _container(["python3", "-c", job.code or ""]))
        container = f"/containers/{json.loads(created)['Id']}"
        try:
            said = await self._output_of(container)
        except BaseException:
            # The daemon removes by itself only what was started.
            with contextlib.suppress(CallFailedError, OSError):
                await self._ask(f"{container}?force=1", None, method="DELETE")
            raise
        job.check(stdout_of(said), {})

    async def _output_of(self, container: str) -> bytes:
        """Starts a container; the frames of its output, to its end."""
        reader, writer = await asyncio.open_unix_connection(self.socket)
        try:
            writer.write(_request("POST", f"{container}/attach?stream=1&stdout=1&stderr=1", b"", "Upgrade"))
            await reader.readuntil(b"\r\n\r\n")
            await self._ask(f"{container}/start", None)
            return await reader.read()
        finally:
            writer.close()

    async def _ask(self, path: str, value: Any, *, method: str = "POST") -> bytes:
        reader, writer = await asyncio.open_unix_connection(self.socket)
        try:
            writer.write(_request(method, path, b"" if value is None else json.dumps(value).encode(), "close"))
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
        if int(head.split(None, 2)[1]) >= _OK:
            raise CallFailedError(f"{path}: {body.decode(errors='replace')[-2000:]}")
        return body


def daemons_socket() -> str | None:
    """Where the daemon listens on this machine; None if that is no socket of a file system."""
    host = os.environ.get("DOCKER_HOST", _UNIX + _DEFAULT)
    return host.removeprefix(_UNIX) if host.startswith(_UNIX) else None


def _container(command: list[str]) -> dict[str, Any]:
    """What `DOCKER_RUN` asks for, as the API takes it."""
    return {
        "Image": IMAGE,
        "Entrypoint": command,
        "WorkingDir": "/out",
        "NetworkDisabled": True,
        "Labels": {"proofbox.service": f"bench-{os.getpid()}-api"},  # by which a run sees what it left behind
        "AttachStdout": True,
        "AttachStderr": True,
        "HostConfig": {
            "AutoRemove": True,
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges", f"seccomp={SECCOMP.read_text(encoding='utf-8')}"],
            "Memory": _GIB,
            "MemorySwap": _GIB,
            "PidsLimit": 256,
            "LogConfig": {"Type": "none"},
            "Tmpfs": {
                "/out": "rw,nosuid,nodev,size=256m,uid=10001",
                "/tmp": "rw,nosuid,nodev,size=64m,uid=10001",  # noqa: S108 - in the container
            },
        },
    }


def _request(method: str, path: str, body: bytes, connection: str) -> bytes:
    upgrade = "Upgrade: tcp\r\n" if connection == "Upgrade" else ""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: docker\r\nConnection: {connection}\r\n{upgrade}"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def stdout_of(stream: bytes) -> bytes:
    """Standard output, out of the frames of an attach stream: number, three zeros, length, bytes."""
    out, at = b"", 0
    while at + _FRAME_HEAD_BYTES <= len(stream):
        end = at + _FRAME_HEAD_BYTES + int.from_bytes(stream[at + 4 : at + _FRAME_HEAD_BYTES])
        if stream[at] == _STDOUT:
            out += stream[at + _FRAME_HEAD_BYTES : end]
        at = end
    return out
