"""A whole cluster on one machine: servers, API processes and workers, each on a host of a `Network`."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import psycopg

from tests.support.scale.brokers import Nats
from tests.support.scale.counter import EffectCounter
from tests.support.scale.network import Network
from tests.support.scale.processes import PORT, Member
from tests.support.scale.servers import S3, Postgres, wait_for
from tests.support.store_check import assert_data_fits

LEASE_S = 6.0
_LEAVE_S = 30.0
_UNDONE_S = 180.0  # after a minute they count as lost, and are looked for each minute
_LINES = 60
_LOCAL = "local"

DEFAULTS: dict[str, object] = {
    "auth": "off",
    "behind_authenticating_proxy": "true",
    "mcp": "false",
    "console": "false",
    "log_level": "info",
    "import_once": "off",  # four workers share the memory of a machine
    "pool_size": 2,
    "pool_max": 8,
    "running_max": 4,
    "sweep_every_s": 1,
    "audit_head_s": 0,
}


class Cluster:
    """Two API processes and four workers by default; a context manager that leaves nothing behind.

    Args:
        apis, workers: how many of each; without workers the one API process runs the calls itself.
        settings: settings of all processes beside `DEFAULTS`.

    Attributes:
        network, postgres, s3, nats, counter: its parts.
        apis, workers: its processes by their hosts: ``api1``, ``worker1``.
        locals: services of one process, beside the cluster.
        folder: data folders and logs.
    """

    def __init__(self, apis: int = 2, workers: int = 4, settings: Mapping[str, object] | None = None) -> None:
        self._stack = contextlib.ExitStack()
        self._settings = dict(settings or {})
        self._counts = (apis, workers)
        self._is_shared = workers > 0
        self.name = f"scale-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        self.database = self.name.replace("-", "_")
        self.apis: dict[str, Member] = {}
        self.workers: dict[str, Member] = {}
        self.locals: dict[str, Member] = {}

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="proofbox-scale-"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self.network = stack.enter_context(Network())
            self.postgres = stack.enter_context(Postgres(self.network))
            self.s3 = stack.enter_context(S3(self.network))
            self.nats = stack.enter_context(Nats(self.network))
            self.counter = stack.enter_context(EffectCounter(self.network))
            self.postgres.make_database(self.database)
            stack.callback(self._end_processes)
            for number in range(1, self._counts[0] + 1):
                self.apis[f"api{number}"] = self.add_member(f"api{number}", "api" if self._is_shared else _LOCAL)
            for number in range(1, self._counts[1] + 1):
                self.workers[f"worker{number}"] = self.add_member(f"worker{number}", "worker")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc: object) -> None:
        if exc[0] is not None:
            self.print_logs()
        self._stack.close()

    @property
    def members(self) -> dict[str, Member]:
        """All processes by their hosts."""
        return self.apis | self.workers | self.locals

    def start(self) -> None:
        """Start all processes: first one that makes the tables, then the others; wait until they are ready."""
        first, *others = (self.apis | self.workers).values()
        first.launch()
        first.wait_until_ready()
        for member in others:
            member.launch()
        for member in others:
            member.wait_until_ready()

    def add_local(self, host: str) -> Member:
        """Add a service of one process, with a database of its own; it is not started."""
        database = f"{self.database}_{host}"
        place = {"database_url": self.postgres.make_database(database), "s3_prefix": f"scale/{self.name}-{host}"}
        member = self.add_member(host, _LOCAL, **place)
        self.locals[host] = member
        return member

    def add_member(self, host: str, role: str, **settings: object) -> Member:
        """Add a process on a host of its own; it is not started."""
        address = self.network.add(host)
        bucket = self.s3.bucket(f"scale/{self.name}")
        own: dict[str, object] = {
            "host": address,
            "port": PORT,
            "allowed_hosts": f'["{address}"]',
            "data_dir": self.folder / host,
            "service_name": self.service_name(host),
            "database_url": self.postgres.url(self.database),
            "s3_bucket": bucket.name,
            "s3_prefix": bucket.prefix,
            "s3_endpoint": bucket.endpoint,
            "s3_access_key": bucket.access_key,
            "s3_secret_key": bucket.secret_key,
            "sandbox_network": f'["{self.counter.endpoint}"]',
            "sandbox_network_ranges": f'["{self.network.subnet}"]',
        }
        if role != _LOCAL:
            shared = {
                "dispatch": "nats",
                "role": role,
                "keys_dir": self.folder / "keys",
                "dispatch_lease_s": LEASE_S,
            }
            own |= shared | self.nats.settings
        values = DEFAULTS | own | self._settings | settings
        return Member(self.network, host, values, self.folder / f"{host}.log")

    def service_name(self, host: str) -> str:
        """The name of a process on the engine: the label of its containers."""
        return f"{self.name}-{host}"

    def containers_of(self, host: str) -> list[str]:
        """The containers of a process, running or not."""
        label = f"label=proofbox.service={self.service_name(host)}"
        command = ["docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", label]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    def assert_fits(self) -> None:
        """Assert that records and files fit each other, once what lost processes left is undone."""
        url = self.postgres.url(self.database)
        with psycopg.connect(url, autocommit=True) as database:
            left = "SELECT name FROM unfinished"
            wait_for(lambda: not database.execute(left).fetchall(), "no save is left unfinished", _UNDONE_S)
        bucket = self.s3.bucket(f"scale/{self.name}")
        assert_data_fits(
            self.folder / "check",
            database_url=url,
            s3_bucket=bucket.name,
            s3_prefix=bucket.prefix,
            s3_endpoint=bucket.endpoint,
            s3_access_key=bucket.access_key,
            s3_secret_key=bucket.secret_key,
        )

    def print_logs(self) -> None:
        """Print the warnings of all processes, for a test that has failed."""
        for host, member in self.members.items():
            lines = [line for line in member.read_log().splitlines() if " INFO " not in line]
            sys.stdout.write("\n".join([f"---- {host}", *lines[-_LINES:], ""]))

    def _end_processes(self) -> None:
        """End all processes at once, and remove the containers of those that were killed."""
        running = [member for member in self.members.values() if member.is_running]
        for member in running:
            assert member.process is not None
            member.process.terminate()
        for member in running:
            member.stop()
        left = [container for host in self.members for container in self.containers_of(host)]
        if left:
            subprocess.run(["docker", "rm", "--force", "--volumes", *left], check=False, capture_output=True)
        with contextlib.suppress(TimeoutError):
            wait_for(lambda: not any(map(self.containers_of, self.members)), "no container is left", _LEAVE_S)
