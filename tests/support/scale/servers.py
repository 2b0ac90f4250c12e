"""The stores of a cluster, PostgreSQL and S3, each on a host of a `Network`."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psycopg

from proofbox.service.storage.artifacts.s3_client import Bucket
from tests.support.scale.network import Network

REPOSITORY = Path(__file__).resolve().parents[3]
SERVICES = REPOSITORY / "tests" / "services"
START_S = 60.0
_POSTGRES_PORT = 5432
_POLL_S = 0.05


def wait_for(is_there: Callable[[], bool], what: str, within_s: float = START_S) -> None:
    """Look until something is there.

    Raises:
        TimeoutError: it is not in time.
    """
    deadline = time.monotonic() + within_s
    while not is_there():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {within_s:g} s")
        time.sleep(_POLL_S)


class Postgres:
    """A PostgreSQL server, which counts statements. Its data are worthless: it does not wait for the disk."""

    def __init__(self, network: Network, host: str = "postgres") -> None:
        self._network, self._host = network, host
        self._password = secrets.token_hex(16)
        self._folder = Path(tempfile.mkdtemp(prefix="proofbox-scale-postgres-", dir="/var/tmp"))
        self._process: subprocess.Popen[bytes] | None = None
        self.address = network.add(host)

    def __enter__(self) -> Self:
        find = [str(SERVICES / "postgres.sh"), "--print-bin"]
        programs = Path(subprocess.run(find, check=True, capture_output=True, text=True).stdout.strip())
        (self._folder / "password").write_text(self._password)
        subprocess.run(["chown", "-R", "postgres", self._folder], check=True)
        data, password = str(self._folder / "data"), str(self._folder / "password")
        as_server = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        make = [str(programs / "initdb"), "-D", data, "-U", "proofbox", "--pwfile", password]
        more = ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C.UTF-8", "--no-sync"]
        subprocess.run([*as_server, *make, *more], check=True, cwd="/", capture_output=True)
        with Path(data, "pg_hba.conf").open("a") as access:
            access.write(f"host all all {self._network.subnet} scram-sha-256\n")
        values = {
            "listen_addresses": self.address,
            "unix_socket_directories": "",
            "max_connections": "400",
            "fsync": "off",
            "full_page_writes": "off",
            "synchronous_commit": "off",
            "shared_preload_libraries": "pg_stat_statements",
        }
        options = [word for name, value in values.items() for word in ("-c", f"{name}={value}")]
        command = [*as_server, str(programs / "postgres"), "-D", data, "-p", str(_POSTGRES_PORT), *options]
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                self._network.command(self._host, *command), cwd="/", stdout=log, stderr=log
            )
        wait_for(self._answers, f"PostgreSQL on {self.address}; see {self._folder / 'log'}")
        with psycopg.connect(self.url("postgres"), autocommit=True) as administrator:
            administrator.execute("CREATE EXTENSION pg_stat_statements")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)  # at once, connections or not
            self._process.wait(START_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, database: str) -> str:
        """The URL of a database."""
        return f"postgresql://proofbox:{self._password}@{self.address}:{_POSTGRES_PORT}/{database}"

    def make_database(self, name: str) -> str:
        """Make a database; its URL."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as administrator:
            administrator.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def count_statements(self, database: str) -> tuple[int, int]:
        """How many statements and transactions a database has had."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as administrator:
            row = administrator.execute(
                "SELECT (SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE dbid = d.oid), "
                "s.xact_commit + s.xact_rollback FROM pg_database d JOIN pg_stat_database s ON s.datid = d.oid "
                "WHERE d.datname = %s",
                (database,),
            ).fetchone()
        assert row is not None
        return int(row[0]), int(row[1])

    def count_connections(self, database: str) -> dict[str, int]:
        """How many connections each host has to a database."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as administrator:
            query = "SELECT host(client_addr), count(*) FROM pg_stat_activity WHERE datname = %s GROUP BY 1"
            rows = administrator.execute(query, (database,)).fetchall()
        return {self._network.host_of(address): count for address, count in rows}

    def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended: {(self._folder / 'log').read_text()[-2000:]}")
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True


class S3:
    """An S3 server, the one of `s3.sh`, with data of its own."""

    def __init__(self, network: Network, host: str = "s3") -> None:
        self._network, self.host = network, host
        self._folder = Path(tempfile.mkdtemp(prefix="proofbox-scale-s3-"))
        self.address = network.add(host)
        self._settings: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._run("--start")
        lines = (self._folder / "s3" / "settings").read_text().split()
        self._settings = dict(line.split("=", 1) for line in lines)
        return self

    def __exit__(self, *_: object) -> None:
        self._network.mend(self.host)
        self._run("--clean")
        shutil.rmtree(self._folder, ignore_errors=True)

    def bucket(self, prefix: str) -> Bucket:
        """A place in its bucket."""
        return Bucket(
            name=self._settings["PROOFBOX_S3_BUCKET"],
            prefix=prefix,
            endpoint=self._settings["PROOFBOX_S3_ENDPOINT"],
            access_key=self._settings["PROOFBOX_S3_ACCESS_KEY"],
            secret_key=self._settings["PROOFBOX_S3_SECRET_KEY"],
        )

    @property
    def port(self) -> int:
        """Its port for S3."""
        return int(self._settings["S3_PORT"])

    def count_requests(self) -> int:
        """How many requests it has had."""
        url = f"http://{self.address}:{self._settings['METRICS']}/metrics"
        with urllib.request.urlopen(url, timeout=10) as page:
            lines = page.read().decode().splitlines()
        counts = (float(line.split()[-1]) for line in lines if line.startswith("SeaweedFS_s3_request_total{"))
        return round(sum(counts))

    def _run(self, mode: str) -> None:
        own = {"SERVICES_DIR": str(self._folder), "SERVICES_HOST": self.address}
        command = self._network.command(self.host, str(SERVICES / "s3.sh"), mode)
        ran = subprocess.run(command, env={**os.environ, **own}, check=False, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
