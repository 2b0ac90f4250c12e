"""One service whose engine, database and object store are each behind a gate, and what it must not leave behind."""

import contextlib
import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx
import psycopg
from engine_sides import DockerSide
from service_process import ServiceProcess, eventually, request

from proofbox.service.storage.artifacts.s3_client import Bucket
from tests.services.s3_server import uploads_of
from tests.support.gate import Gate
from tests.support.store_check import assert_data_fits

GONE_WITHIN_S = 30.0  # dockerd waits 10 s for the end of a container that nobody can tell it of any more
CONVERSATION_TURN = "turn_1"


@dataclass(frozen=True)
class Servers:
    """Where the records and the files are."""

    database_url: str
    bucket: Bucket


class Call:
    """One call and its client, who waits for the answer in a thread."""

    def __init__(self, url: str, body: dict[str, Any], **headers: str) -> None:
        self.body = body
        self.response: httpx.Response | None = None
        self.connection = httpx.Client(base_url=url, timeout=300)
        self._headers = headers
        self._thread = threading.Thread(target=self._post, daemon=True)
        self._thread.start()

    def _post(self) -> None:
        # A service that dies, or a client that does, is what these tests are about.
        with contextlib.suppress(httpx.HTTPError, OSError, RuntimeError), self.connection:
            self.response = self.connection.post("/v1/tool-calls", json=self.body, headers=self._headers)

    def answer(self, within_s: float) -> str:
        """What the client got."""
        self._thread.join(within_s)
        assert not self._thread.is_alive(), "the client waits for ever"
        return told(self.response)

    def hang_up(self) -> None:
        """The client goes away: its connection ends."""
        transport = self.connection._transport
        for connection in list(transport._pool.connections):
            stream = connection._connection._network_stream
            stream.get_extra_info("socket").shutdown(2)


def told(response: httpx.Response | None) -> str:
    """An answer in a few words."""
    if response is None:
        return "no answer"
    answer = response.json()
    if response.status_code == 200:
        return "200 ok" if answer["ok"] else f"200 {answer['error']['code']}"
    return f"{response.status_code} {answer['code']}"


class Rig:
    """The service, its servers, their gates.

    Args:
        data_dir: the data folder.
        side: what an operator of the engine sees.
        servers: the database and the bucket.
        engine_socket: the socket of the Docker engine; empty for the one that DOCKER_HOST names.
    """

    def __init__(
        self, data_dir: Path, side: DockerSide, servers: Servers, engine_socket: str = "", **settings: object
    ) -> None:
        self.side = side
        self._servers = servers
        self.engine_gate = Gate(engine_socket or _socket_of(os.environ.get("DOCKER_HOST", "")))
        self.database_gate = Gate(int(urlsplit(servers.database_url).port or 0))
        self.objects_gate = Gate(int(urlsplit(servers.bucket.endpoint).port or 0))
        url = urlsplit(servers.database_url)
        bucket = servers.bucket
        self._files = {
            "s3_bucket": bucket.name,
            "s3_prefix": bucket.prefix,
            "s3_access_key": bucket.access_key,
            "s3_secret_key": bucket.secret_key,
        }
        self.service = ServiceProcess(
            data_dir,
            side,
            **{
                "engine_host": f"tcp://127.0.0.1:{self.engine_gate.port}",
                "database_url": url._replace(
                    netloc=f"{url.username}:{url.password}@127.0.0.1:{self.database_gate.port}"
                ).geturl(),
                "s3_endpoint": f"http://127.0.0.1:{self.objects_gate.port}",
                **self._files,
                "s3_retry_s": 0,
                "pool_size": 0,
                "running_max": 1,
                "sweep_every_s": 0.5,
                "engine_timeout_s": 6,  # a busy machine takes seconds, too
                "ready_s": 30,
                "lost_grace_s": 2,
                "collect_s": 10,
                "shutdown_grace_s": 0.3,
                "inspect_s_per_file": 6,
                "wall_s": 30,
                **settings,
            },
        )
        self.marker = ""
        self.seen_containers: set[str] = set()
        self.kept: list[tuple[dict[str, Any], object]] = []
        """Calls of all cases, and what the service said of them at their end."""

    def __enter__(self) -> Self:
        self.service.start()
        return self

    def __exit__(self, *_: object) -> None:
        for gate in (self.engine_gate, self.database_gate, self.objects_gate):
            gate.open()
        self.service.stop()
        for gate in (self.engine_gate, self.database_gate, self.objects_gate):
            gate.close()

    # ---- calls

    def body(self, code: str, *promised: str | dict[str, Any], **extra: Any) -> dict[str, Any]:
        """A call in a conversation that has a file already, which its turn's workspace brings back."""
        seed = request("open('seed.txt', 'w').write('seed')", "seed.txt")
        planted = self.service.post(seed)
        assert told(planted) == "200 ok", planted.text
        return self.body_without_seed(code, *promised, **extra) | {"conversation_id": seed["conversation_id"]}

    def body_without_seed(self, code: str, *promised: str | dict[str, Any], **extra: Any) -> dict[str, Any]:
        """A call in a conversation of its own, the one whose runs are counted."""
        self.marker, self.seen_containers = f"marker-{uuid.uuid4().hex}", set()
        self.engine_gate.count(self.marker.encode())
        return request(f"# {self.marker}\n{code}", *promised, **extra)

    def call(self, body: dict[str, Any], **headers: str) -> Call:
        return Call(self.service.url, body, **headers)

    @property
    def runs(self) -> int:
        """How often the program was handed to a sandbox: what passed the gate to the engine."""
        return self.engine_gate.seen

    # ---- the database's side

    @contextlib.contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """Nobody else writes to a table for the time of the block."""
        with psycopg.connect(self._servers.database_url) as holder:
            holder.execute(f"LOCK TABLE {table} IN SHARE MODE")
            try:
                yield
            finally:
                holder.rollback()

    def waiting_for_locks(self) -> int:
        with psycopg.connect(self._servers.database_url, autocommit=True) as database:
            row = database.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'proofbox' "
                "AND datname = current_database() AND wait_event_type = 'Lock'"
            ).fetchone()
        assert row is not None
        return int(row[0])

    def end_database_connections(self) -> None:
        """As a server that is restarted does."""
        with psycopg.connect(self._servers.database_url, autocommit=True) as database:
            database.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE application_name = 'proofbox' AND datname = current_database()"
            )

    def open_calls(self) -> int:
        with psycopg.connect(self._servers.database_url, autocommit=True) as database:
            row = database.execute("SELECT count(*) FROM calls WHERE state = 'open'").fetchone()
        assert row is not None
        return int(row[0])

    # ---- what must not be left

    def remember_containers(self) -> None:
        self.seen_containers |= set(self.service.containers())

    def left(self) -> dict[str, object]:
        """What is left of calls that have ended; empty when nothing is."""
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
        groups = {
            str(path) for seen in self.seen_containers for path in Path("/sys/fs/cgroup").glob(f"*/*/{seen}*")
        }
        found: dict[str, object] = {
            # A dockerd that was killed may list one for ever that was removed while it came up.
            "containers": [seen for seen in self.service.containers() if self.service.has(seen)],
            "staged": self.service.staged(),
            "mounts": [seen for seen in self.seen_containers if seen in mounts],
            "control groups": sorted(groups),
            "open calls": self.open_calls(),
            "processes": _processes_of(self.seen_containers),
            "saves": self._unfinished(),
        }
        return {name: value for name, value in found.items() if value}

    def nothing_left(self) -> dict[str, object]:
        return eventually(self.left, lambda left: left == {}, GONE_WITHIN_S)

    def unforeseen(self) -> list[str]:
        """Lines of the log that tell of something that nobody has foreseen."""
        signs = ("unforeseen way", "never retrieved", "Exception in", "was destroyed but it is pending", "ASGI")
        return [line for line in self.service.log.splitlines() if any(sign in line for sign in signs)]

    def assert_fits(self) -> None:
        """The records and files fit each other, past the gates."""
        servers = self._servers
        where = {"database_url": servers.database_url, "s3_endpoint": servers.bucket.endpoint}
        assert_data_fits(self.service.data_dir, **where, **self._files)

    def _unfinished(self) -> list[str]:
        """Uploads and saves that nobody ends."""
        with psycopg.connect(self._servers.database_url, autocommit=True) as database:
            unfinished = [name for (name,) in database.execute("SELECT name FROM unfinished").fetchall()]
        return uploads_of(self._servers.bucket) + unfinished


def _processes_of(containers: set[str]) -> list[str]:
    """Processes, shims among them, that name a container."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().decode(errors="replace")
            if any(seen in words for seen in containers):
                found.append(words.replace("\0", " "))
    return found


def _socket_of(docker_host: str) -> str:
    return docker_host.removeprefix("unix://") or "/var/run/docker.sock"
