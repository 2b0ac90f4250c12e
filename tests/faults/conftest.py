"""What the faults strike: the service with every server it needs behind a gate, and what is told at the end."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from tests.services.s3_server import STATE, started

REPOSITORY = Path(__file__).parents[2]
# The service as a process, and the operator's view of its containers, are the same as there.
sys.path.insert(0, str(REPOSITORY / "tests" / "adversarial"))

from engine_sides import DockerSide  # noqa: E402 - found by the line above
from ledger import table  # noqa: E402
from rig import Rig, Servers  # noqa: E402


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """A database of this run's own, and a bucket."""
    script = REPOSITORY / "tests" / "services" / "postgres.sh"
    for argument in ("--start", "--print-url"):
        ran = subprocess.run([script, argument], check=True, stdout=subprocess.PIPE, text=True)
    server, name = ran.stdout.strip(), f"faults_{os.getpid()}"
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(f"CREATE DATABASE {name}")
    yield Servers(f"{server.rpartition('/')[0]}/{name}", started(STATE))
    with psycopg.connect(server, autocommit=True) as administrator:
        administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def rig(servers: Servers, tmp_path: Path) -> Iterator[Rig]:
    side = DockerSide()
    with Rig(tmp_path / "data", side, replace(servers, bucket=replace(servers.bucket, prefix=tmp_path.name))) as made:
        yield made
    side.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if lines := table():
        terminalreporter.section("faults")
        for line in lines:
            terminalreporter.write_line(line)
