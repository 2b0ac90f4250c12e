"""A service of its own for a benchmark: its own process, data folder and port, removed at the end."""

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from bench.lean_http import LeanClient

ROOT = Path(__file__).parent.parent
_READY_TRIES = 300


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    Attributes:
        client: for its API.
        lean: the same for calls that are timed.
        pid: its process.
        name: what its containers carry as their label ``proofbox.service``.
    """

    client: httpx.AsyncClient
    lean: LeanClient
    pid: int
    name: str


@contextlib.asynccontextmanager
async def serving(**settings: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a running service; ``settings`` are the service's, by their names.

    Raises:
        RuntimeError: it did not get ready within half a minute.
    """
    async with service_running(**settings) as service:
        yield service.client


@contextlib.asynccontextmanager
async def service_running(**settings: object) -> AsyncIterator[Service]:
    """The same with its process.

    Raises:
        RuntimeError: it did not get ready within half a minute.
    """
    with socket.socket() as free, tempfile.TemporaryDirectory(prefix="proofbox-bench-") as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        name = f"bench-{os.getpid()}-{Path(folder).name}"
        settings = {"service_name": name, "data_dir": folder, "port": port, **settings}
        own = {f"PROOFBOX_{setting.upper()}": str(value) for setting, value in settings.items()}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "proofbox.cli",
            "serve",
            cwd=ROOT,
            env={**os.environ, **own},
            stderr=asyncio.subprocess.DEVNULL,
        )
        # A thousand calls may wait at one time, each on a connection of its own.
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=64)
        try:
            async with (
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=300, limits=limits) as client,
                LeanClient(port) as lean,
            ):
                await _ready(client)
                yield Service(client, lean, process.pid, name)
        finally:
            process.terminate()
            await process.wait()


async def _ready(client: httpx.AsyncClient) -> None:
    for _ in range(_READY_TRIES):
        with contextlib.suppress(httpx.TransportError):
            if (await client.get("/readyz")).status_code == httpx.codes.OK:
                return
        await asyncio.sleep(0.1)
    raise RuntimeError("the service did not get ready")
