"""A service as an operator has it: a process that is stopped, killed and started again at the same address."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx

from tests.services.free_ports import choose_ports

ROOT = Path(__file__).parents[2]
_LISTENS = re.compile(r"running on http://\S+")
_START_S = 90.0
_STOP_S = 60.0


class NotStartedError(Exception):
    """The service ended before it listened; the message is its output."""


class ServiceProcess:
    """The service on a data folder.

    Args:
        folder: where its data folder and its log are.
        checkout: the sources that run: these, or those of an earlier release.
        settings: its settings, by their names.
    """

    def __init__(self, folder: Path, *, checkout: Path = ROOT, **settings: object) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.settings: dict[str, object] = {
            "data_dir": folder / "data",
            "port": choose_ports(["service"], {})["service"],  # it is started again there
            "pool_size": 2,
            "import_once": "off",
            "shutdown_grace_s": 5,
            **settings,
        }
        self.checkout = checkout
        self._log = folder / "service.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns when it listens.

        Raises:
            NotStartedError: it ended before.
        """
        before = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "proofbox.cli", "serve"],
                cwd=self.checkout,
                env=self._environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + _START_S
        while not _LISTENS.search(text := self._log.read_bytes()[before:].decode()):
            if process.poll() is not None:
                raise NotStartedError(text)
            assert time.monotonic() < deadline, text
            time.sleep(0.05)
        self._process = process

    def stop(self) -> None:
        """End it as an operator does: running calls may end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._end(signal.SIGKILL)

    def command(self, *arguments: object) -> "subprocess.CompletedProcess[str]":
        """Run a command of the program with the settings of the service."""
        return subprocess.run(
            [sys.executable, "-m", "proofbox.cli", *map(str, arguments)],
            cwd=self.checkout,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=_START_S,
            check=False,
        )

    def client(self, **headers: str) -> httpx.Client:
        """A client of its API."""
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    @property
    def data_dir(self) -> Path:
        """Its data folder."""
        return Path(str(self.settings["data_dir"]))

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(str(self.settings["port"]))

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text()

    def _environment(self) -> dict[str, str]:
        given = {f"PROOFBOX_{name.upper()}": str(value) for name, value in self.settings.items()}
        return {**os.environ, "PYTHONPATH": str(self.checkout), **given}

    def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait(_STOP_S)
