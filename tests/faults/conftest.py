"""What the faults strike: the service with every server it needs behind a gate, and what is told at the end."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.services.s3_server import STATE, emptied, started

REPOSITORY = Path(__file__).parents[2]
# The service as a process, the operator's view of its containers, and small disks are the same as there.
sys.path[:0] = [str(REPOSITORY / "tests" / folder) for folder in ("security", "store_contract")]

from engine_sides import DockerSide, EngineSide, chosen  # noqa: E402 - found by the line above
from ledger import table  # noqa: E402
from rig import Rig, Servers  # noqa: E402
from rigs import Rigs  # noqa: E402


@pytest.fixture(scope="session")
def engine() -> Iterator[EngineSide]:
    side = chosen()
    yield side
    side.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[], Servers]]:
    """Makes a database and a place in the bucket, for one rig."""
    script = REPOSITORY / "tests" / "services" / "postgres.sh"
    for argument in ("--start", "--print-url"):
        ran = subprocess.run([script, argument], check=True, stdout=subprocess.PIPE, text=True)
    server, names = ran.stdout.strip(), []
    own = replace(started(STATE), prefix=f"tests/{uuid.uuid4().hex}")

    def made() -> Servers:
        name = f"faults_{os.getpid()}_{len(names)}"
        with psycopg.connect(server, autocommit=True) as administrator:
            administrator.execute(f"CREATE DATABASE {name}")
        names.append(name)
        place = replace(own, prefix=f"{own.prefix}/{uuid.uuid4().hex}")
        return Servers(f"{server.rpartition('/')[0]}/{name}", place)

    yield made
    emptied(own)
    with psycopg.connect(server, autocommit=True) as administrator:
        for name in names:
            administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def make_rig(servers: Callable[[], Servers], tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Rig]:
    """Makes a rig on a data folder and a place in the bucket of its own; arguments as for `Rig`."""

    def made(side: DockerSide, **more: Any) -> Rig:
        return Rig(tmp_path_factory.mktemp("rig") / "data", side, servers(), **more)

    return made


@pytest.fixture(scope="session")
def rigs(make_rig: Callable[..., Rig]) -> Iterator[Rigs]:
    side = DockerSide()
    shared = Rigs(lambda: make_rig(side))
    yield shared
    shared.close()
    side.close()


@pytest.fixture
def rig(request: pytest.FixtureRequest, rigs: Rigs) -> Iterator[Rig]:
    yield rigs.rig
    if getattr(request.node, "has_failed", False):
        sys.stdout.write("\n".join(rigs.rig.service.complaints))
        rigs.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.has_failed = True  # type: ignore[attr-defined]  # told to the fixtures
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if lines := table():
        terminalreporter.section("faults")
        for line in lines:
            terminalreporter.write_line(line)
