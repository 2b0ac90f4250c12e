"""Databases and buckets of a test's own, on the real servers of `make services`."""

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from released_service import ROOT, ServiceProcess

from tests.services.s3_server import STATE, emptied, started

SERVICES = Path(__file__).parents[1] / "services"


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The URL of an administrator's database on a real server, which is started if it does not run."""
    for argument in ("--start", "--print-url"):
        ran = subprocess.run([SERVICES / "postgres.sh", argument], check=True, stdout=subprocess.PIPE, text=True)
    return ran.stdout.strip()


@pytest.fixture
def administrator(postgres_server):
    """A connection of an administrator."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        yield connection


@pytest.fixture
def database_url(postgres_server, administrator) -> Iterator[str]:
    """The URL of an empty database."""
    name = f"operations_{os.getpid()}_{secrets.token_hex(4)}"
    administrator.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield urlsplit(postgres_server)._replace(path=f"/{name}").geturl()
    administrator.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def bucket():
    """An empty place in the bucket of the server that all tests share."""
    place = replace(started(STATE), prefix=f"operations/{secrets.token_hex(8)}")
    yield place
    emptied(place)


@pytest.fixture
def service(tmp_path) -> Iterator[Callable[..., ServiceProcess]]:
    """Makes services in folders of the test by their names; those that run at its end are stopped."""
    made: list[ServiceProcess] = []

    def make(name: str = "service", checkout: Path = ROOT, **settings: object) -> ServiceProcess:
        made.append(ServiceProcess(tmp_path / name, checkout=checkout, **settings))
        return made[-1]

    yield make
    for process in made:
        process.kill()
