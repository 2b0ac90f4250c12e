"""The service as it is shipped: a process of its own, used over HTTP only."""

import base64
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import httpx
from engine_sides import EngineSide

from proofbox.service.app.sandbox_engine import service_name
from proofbox.service.app.settings import Settings

T = TypeVar("T")
REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON_TOOL = "exec_tools.execute_code_python"
# Far above what anything here needs: it ends a test that would hang, and is no claim about speed.
PATIENCE_S = 60.0
PAUSE_S, PAUSE_S_MAX = 0.05, 0.25
# A service that starts many times makes no containers and imports no libraries that its test does not need.
_QUICK: dict[str, object] = {"pool_size": 1, "pool_reserve": 0, "import_once": "off"}
_LISTENS = re.compile(r"running on (http://\S+)")
_numbers = itertools.count(1)


def eventually(look: Callable[[], T], wanted: Callable[[T], bool], within_s: float = PATIENCE_S) -> T:
    """Looks until it sees what is wanted, or the time is over; what it saw last.

    It looks ever less often: many a look starts a process, for which what it waits for has to make room.
    """
    deadline, pause_s = time.monotonic() + within_s, PAUSE_S
    while True:
        seen = look()
        if wanted(seen) or time.monotonic() > deadline:
            return seen
        time.sleep(pause_s)
        pause_s = min(PAUSE_S_MAX, pause_s * 1.2)


class ServiceProcess:
    """One life of the service on a data folder."""

    def __init__(self, data_dir: Path, side: EngineSide, **settings: object) -> None:
        self.data_dir = data_dir
        self.name = service_name(Settings(data_dir=data_dir))
        self._side = side
        self._settings = settings
        self._log_path = data_dir.with_name(f"{data_dir.name}-{uuid.uuid4().hex[:8]}.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.client: httpx.Client = httpx.Client()
        self.url = ""
        self.lives = 0
        """How often it has been started."""
        self.environment: dict[str, str] = {}
        """Variables of the process beside its settings."""

    def set(self, **settings: object) -> None:
        """Changes settings for the next life."""
        self._settings.update(settings)

    def launch(self) -> None:
        """Starts the process and returns at once."""
        settings = {f"PROOFBOX_{name.upper()}": str(value) for name, value in (_QUICK | self._settings).items()}
        environment = {**os.environ, "PROOFBOX_DATA_DIR": str(self.data_dir), "PROOFBOX_PORT": "0"}
        environment |= {"PROOFBOX_LOG_LEVEL": "info", **settings}
        environment |= self.environment
        self.lives += 1
        with self._log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "proofbox.cli", "serve"],
                cwd=REPOSITORY,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def start(self) -> "ServiceProcess":
        """Starts the process and waits until it listens."""
        self.launch()
        assert self.process is not None
        # The first one on a machine unpacks the image.
        eventually(
            lambda: (self._listens(), self.process.poll()), lambda seen: any(x is not None for x in seen), 300
        )
        assert self._listens() is not None, self.log
        self.url = str(self._listens())
        self.client.close()
        # More connections than any test makes calls at a time.
        limits = httpx.Limits(max_connections=100, max_keepalive_connections=0)
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_S * 2, limits=limits)
        return self

    def _listens(self) -> str | None:
        found = _LISTENS.search(self.log)
        return found[1] if found else None

    @property
    def log(self) -> str:
        return self._log_path.read_text(errors="replace")

    @property
    def complaints(self) -> list[str]:
        """The lines of the log, but for what was only noted."""
        return [line for line in self.log.splitlines() if " INFO " not in line]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self, within_s: float = PATIENCE_S) -> int:
        """Waits for the end of the process; its exit status."""
        assert self.process is not None
        return self.process.wait(within_s)

    def stop(self) -> None:
        """Ends the process, whatever state it is in, and removes what it may have left."""
        self.client.close()
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for container in self.containers():
            self._side.remove(container)

    # ---- the engine's side

    def containers(self) -> list[str]:
        """All containers of this service, running or not."""
        return self._side.containers(self.name)

    def has(self, container: str) -> bool:
        return self._side.is_there(container)

    def processes_in(self, container: str) -> str:
        """The command lines of a container's processes; empty when it is gone."""
        return self._side.commands_in(container)

    def kill_container(self, container: str) -> None:
        self._side.kill(container)

    def busy(self) -> list[str]:
        """The containers in which a program runs: one named ``sleeper`` to tell it from a waiting interpreter."""
        return [container for container in self.containers() if "sleep 987" in self.processes_in(container)]

    def end_sleeps(self) -> None:
        """Lets the programs go on that are busy: what they wait for is ended from outside."""
        for container in self.containers():
            self._side.end_sleeps(container)

    # ---- the client's side

    def ready_containers(self) -> int:
        """How many containers wait for a call."""
        lines = self.client.get("/metrics").text.splitlines()
        return int(float(next(line for line in lines if line.startswith("proofbox_pool_ready ")).split()[1]))

    def post(self, body: dict[str, Any], **headers: str) -> httpx.Response:
        return self.client.post("/v1/tool-calls", json=body, headers=headers)

    def call(self, code: str, *promised: str | dict[str, Any], **extra: Any) -> dict[str, Any]:
        """Runs a call that the service has to answer with 200; the answer."""
        response = self.post(request(code, *promised, **extra))
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def probe(self, code: str, **extra: Any) -> Any:
        """What a program leaves in ``probe.json``."""
        answer = self.call(f"import json\ntold = {{}}\n{code}\n{_TELL}", "probe.json", **extra)
        assert answer["ok"], answer["report"]
        return json.loads(content(answer, "probe.json"))

    def look_at(self, body: dict[str, Any]) -> httpx.Response:
        """The status of a call, or that it is not known."""
        path = f"/v1/tool-calls/{body['tool_call_id']}"
        return self.client.get(path, params={"conversation_id": body["conversation_id"]})

    def status(self, body: dict[str, Any]) -> dict[str, Any]:
        response = self.look_at(body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def cancel(self, body: dict[str, Any]) -> httpx.Response:
        path = f"/v1/tool-calls/{body['tool_call_id']}"
        return self.client.delete(path, params={"conversation_id": body["conversation_id"]})

    def staged(self) -> list[str]:
        """What lies in staging folders."""
        return sorted(str(path.relative_to(self.data_dir)) for path in self.data_dir.rglob("staging/*"))


_TELL = "open('probe.json', 'w').write(json.dumps(told))"


def request(code: str, *promised: str | dict[str, Any], **extra: Any) -> dict[str, Any]:
    """The body of a call in a conversation of its own; params beside the contract go in by ``params_…``."""
    number = next(_numbers)
    contract = [
        {"filename": entry, "description": "promised"} if isinstance(entry, str) else entry
        for entry in promised or ("out.txt",)
    ]
    params = {key.removeprefix("params_"): extra.pop(key) for key in list(extra) if key.startswith("params_")}
    return {
        "tool_id": PYTHON_TOOL,
        "tool_call_id": f"call_{number}",
        "conversation_id": f"siege_{os.getpid()}_{number}",
        "turn_id": "turn_1",
        "params": {"contract": contract, **params},
        "code": code,
        **extra,
    }


def content(answer: dict[str, Any], name: str) -> str:
    """The text of a produced file, from its content block."""
    [block] = [b for b in answer["blocks"] if b["path"] == f"fi:turn_1.files/{name}" and "digest" in b["meta"]]
    if "base64" in block:
        return base64.b64decode(block["base64"]).decode()
    return str(block["text"])


def verdicts(answer: dict[str, Any]) -> dict[str, str]:
    """The verdicts of a call's artifacts by their path below files/, or below the turn."""
    return {
        a["physical_path"].removeprefix("turn_1/").removeprefix("files/"): a["verdict"] for a in answer["artifacts"]
    }


@contextlib.contextmanager
def serving(data_dir: Path, side: EngineSide, **settings: object) -> Iterator[ServiceProcess]:
    """A service that listens, and is ended and cleaned up after."""
    service = ServiceProcess(data_dir, side, **settings)
    try:
        yield service.start()
    finally:
        service.stop()
