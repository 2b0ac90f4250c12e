"""A service of its own for a benchmark: its own process, data folder and port, removed at the end."""

import asyncio
import contextlib
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent
_READY_TRIES = 300


@contextlib.asynccontextmanager
async def serving(**settings: object) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a running service; ``settings`` are the service's, by their names.

    Raises:
        RuntimeError: it did not get ready within half a minute.
    """
    with socket.socket() as free, tempfile.TemporaryDirectory(prefix="proofbox-bench-") as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        own = {f"PROOFBOX_{name.upper()}": str(value) for name, value in settings.items()}
        environment = {**os.environ, "PROOFBOX_DATA_DIR": folder, "PROOFBOX_PORT": str(port), **own}
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "service.cli",
            "serve",
            cwd=ROOT,
            env=environment,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
                await _ready(client)
                yield client
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
