"""A service of the tests' own: a process with a data folder below a temporary one."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from proofbox.service.access.api_keys import Permission
from tests.services.free_ports import choose_ports

_READY_S = 120
EVERY_SCOPE = ("--scopes", ",".join(Permission))
"""The options of a key that may do everything."""
_PROGRAM = [sys.executable, "-m", "proofbox.cli"]


@dataclass(frozen=True)
class Served:
    """A running service: its URL without a slash at the end, its port, its key ("" if it needs none)."""

    url: str
    port: int
    key: str
    data_dir: Path

    def add_key(self, name: str, *options: str) -> str:
        """Make a key with the usual scopes and return its secret; the service knows it within a second."""
        return _create_key(name, {**os.environ, "PROOFBOX_DATA_DIR": str(self.data_dir)}, *options)

    def call(self, code: str, conversation: str, call: str, **params: object) -> dict[str, object]:
        """Run a Python program and return the answer."""
        body = {
            "tool_id": "exec_tools.execute_code_python", "tool_call_id": call, "conversation_id": conversation,
            "turn_id": "turn_1", "params": params or {"explore": True}, "code": code,
        }  # fmt: skip
        headers = {"Authorization": f"Bearer {self.key}"} if self.key else {}
        answer = httpx.post(f"{self.url}/v1/tool-calls", json=body, headers=headers, timeout=120, trust_env=False)
        answer.raise_for_status()
        found: dict[str, object] = answer.json()
        return found


@contextlib.contextmanager
def serving(folder: Path, *, needs_key: bool = False, **settings: str) -> Iterator[Served]:
    """Run a service until the block ends."""
    environment = {
        **os.environ, "PROOFBOX_DATA_DIR": str(folder / "data"), "PROOFBOX_PORT": "0",
        "PROOFBOX_POOL_SIZE": "1", "PROOFBOX_AUTH": "required" if needs_key else "auto", **settings,
    }  # fmt: skip
    key = ""
    if needs_key:
        key = _create_key("console", environment)
    with _running(folder, environment) as (_, url):
        yield Served(url, int(url.rpartition(":")[2]), key, folder / "data")


class MortalService:
    """A service that a test kills and starts again, at the same port with the same data.

    Args:
        folder: where its data and its log are.
    """

    def __init__(self, folder: Path) -> None:
        self._port = choose_ports(["service"], {})["service"]
        self.url = f"http://127.0.0.1:{self._port}"
        self._folder = folder
        self._lives = contextlib.ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it serves."""
        environment = {
            **os.environ, "PROOFBOX_DATA_DIR": str(self._folder / "data"), "PROOFBOX_PORT": str(self._port),
            "PROOFBOX_POOL_SIZE": "0", "PROOFBOX_IMPORT_ONCE": "off",
        }  # fmt: skip
        self._process, _ = self._lives.enter_context(_running(self._folder, environment))

    def kill(self) -> None:
        """End it as a power cut does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(60)

    def close(self) -> None:
        """End it."""
        self._lives.close()


@contextlib.contextmanager
def _running(folder: Path, environment: dict[str, str]) -> "Iterator[tuple[subprocess.Popen[bytes], str]]":
    log, address = folder / "log", folder / "address"
    address.unlink(missing_ok=True)
    environment = {**environment, "PROOFBOX_ADDRESS_FILE": str(address)}
    with log.open("wb") as out:
        process = subprocess.Popen([*_PROGRAM, "serve"], env=environment, stderr=out, stdout=out)
    try:
        yield process, _wait_until_ready(address, process, log)
    finally:
        process.terminate()
        process.wait(60)


def _create_key(name: str, environment: dict[str, str], *options: str) -> str:
    command = [*_PROGRAM, "keys", "create", "--name", name, "--json", *options]
    made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return str(json.loads(made.stdout)["secret"])


def _wait_until_ready(address: Path, process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(FileNotFoundError, httpx.TransportError):
            url = address.read_text(encoding="ascii").strip()
            if httpx.get(f"{url}/readyz", trust_env=False).status_code == httpx.codes.OK:
                return url
        time.sleep(0.2)
    raise AssertionError(log.read_text())
