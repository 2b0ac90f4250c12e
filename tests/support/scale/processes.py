"""Processes of the service on hosts of a `Network`: they can be ended with SIGKILL and started again."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.scale.network import Network
from tests.support.scale.servers import REPOSITORY, wait_for

PORT = 8080
_END_S = 60.0
_LOG_TAIL = 4_000


@dataclass
class Member:
    """One process of the service.

    Attributes:
        network, host: where it runs.
        settings: its settings by their names, as ``data_dir``.
        log: the file of its log; each start adds to it.
    """

    network: Network
    host: str
    settings: dict[str, object]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def url(self) -> str:
        """The URL of its HTTP server."""
        return f"http://{self.network.address_of(self.host)}:{PORT}"

    @property
    def pid(self) -> int:
        """The process."""
        assert self.process is not None
        return self.process.pid

    @property
    def is_running(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    def launch(self) -> None:
        """Start it, and return at once."""
        own = {f"PROOFBOX_{name.upper()}": str(value) for name, value in self.settings.items()}
        outside = {name: value for name, value in os.environ.items() if not name.startswith("PROOFBOX_")}
        command = self.network.command(self.host, sys.executable, "-m", "proofbox.cli", "serve")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, cwd=REPOSITORY, env=outside | own, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait_until_ready(self) -> None:
        """Wait until it answers that it is ready.

        Raises:
            RuntimeError: it has ended, with the end of its log.
            TimeoutError: it is not ready in time.
        """
        try:
            wait_for(self._is_ready, f"{self.host} is ready")
        except TimeoutError as exc:
            raise TimeoutError(f"{exc}; the end of its log: {self.read_log()[-_LOG_TAIL:]}") from exc

    def kill(self) -> None:
        """End it with SIGKILL."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it as an operator does, or with SIGKILL if it takes too long."""
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def read_log(self) -> str:
        """Its log."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def _is_ready(self) -> bool:
        assert self.process is not None
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.host} ended: {self.read_log()[-_LOG_TAIL:]}")
        try:
            with urllib.request.urlopen(f"{self.url}/readyz", timeout=2) as response:
                return bool(response.status == 200)
        except (OSError, urllib.error.URLError):
            return False
