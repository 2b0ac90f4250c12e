"""A service process that a benchmark kills and starts again on the same records."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from bench.lean_http import LeanClient
from bench.serving import ROOT

_POLL_S = 0.01
_START_S_MAX = 120.0
_NO_SANDBOXES = {"pool_size": 0, "import_once": "off", "audit_head_s": 0}
"""These tools run no program: no containers are started beside what is measured."""


class ServiceProcess:
    """A service without keys.

    Args:
        folder: its data folder.
        settings: its settings, by their names.
    """

    def __init__(self, folder: Path, **settings: object) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        own = {"data_dir": folder, "port": self.port, "service_name": f"bench-gateway-{os.getpid()}"}
        values = _NO_SANDBOXES | own | settings
        self._environment = {f"PROOFBOX_{name.upper()}": str(value) for name, value in values.items()}
        self._process: asyncio.subprocess.Process | None = None
        self.client = LeanClient(self.port)

    @property
    def pid(self) -> int:
        """The process."""
        if self._process is None:
            raise RuntimeError("the service was not started")
        return self._process.pid

    async def start(self, path: str = "/readyz") -> float:
        """Start the process; the time until the first request for ``path`` is answered 200, in seconds.

        Raises:
            RuntimeError: it ended, or did not answer within two minutes.
        """
        self.client = LeanClient(self.port)
        began = time.perf_counter()
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "proofbox.cli",
            "serve",
            cwd=ROOT,
            env={**os.environ, **self._environment},
            stderr=asyncio.subprocess.DEVNULL,
        )
        while (took := time.perf_counter() - began) < _START_S_MAX and self._process.returncode is None:
            try:
                if (await self.client.send("GET", path, b"")).status == 200:  # noqa: PLR2004
                    return time.perf_counter() - began
            except (OSError, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(_POLL_S)
        raise RuntimeError(f"the service did not answer (after {took:.0f} s)")

    async def kill(self) -> None:
        """End the process as a power cut does."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """End the process as an operator does, if it runs."""
        if self._process is not None:
            await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        await self.client.__aexit__()
        if process is not None and process.returncode is None:
            process.send_signal(number)
            await process.wait()

    async def send(self, method: str, path: str, body: Any = None, *, expected: int = 200, lease: int = 0) -> Any:
        """The JSON of an answer.

        Raises:
            RuntimeError: the answer has another status.
        """
        answer = await self.client.send(
            method, path, b"" if body is None else json.dumps(body).encode(), lease=lease
        )
        if answer.status != expected:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.text[:500]}")
        return answer.json()
