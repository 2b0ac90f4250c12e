"""The programs of `make test-deploy`, and processes that end with their test."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENGINE = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
"""The socket of the engine."""
PROGRAMS = Path(os.environ.get("PROOFBOX_TEST_DEPLOY_PROGRAMS", ROOT / ".deploy-programs")).absolute()
DEBIAN = PROGRAMS / "debian" / "root"
_READY_S = 60


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose sockets have names that are short enough."""
    folder = Path(tempfile.mkdtemp(prefix="pbx-"))
    yield folder
    shutil.rmtree(folder)


def debian_environment() -> dict[str, str]:
    """The environment of a program that is unpacked, not installed."""
    libraries = ":".join(map(str, DEBIAN.glob("usr/lib/*-linux-gnu")))
    return {**os.environ, "LD_LIBRARY_PATH": libraries}


def docker(*arguments: object) -> str:
    """What the client of the engine prints; it has to succeed."""
    done = subprocess.run(["docker", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_compose(
    folder: Path, *arguments: object, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run Docker Compose.

    Args:
        folder: of its files, where it is run.
        arguments: of its command line.
        environment: all of its environment.
    """
    command = [PROGRAMS / "docker-compose", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def run_promtool(*arguments: object) -> tuple[int, str]:
    """Run Prometheus's tool: its exit status and output."""
    command = [DEBIAN / "usr/bin/promtool", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@contextmanager
def running(
    command: list[object], environment: dict[str, str], log: Path, is_ready: Callable[[], bool]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until a block ends.

    Args:
        command: the program with its arguments.
        environment: its environment.
        log: its output.
        is_ready: whether it can be used.
    """
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(map(str, command)), env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + _READY_S
        while not is_ready():
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        process.wait(_READY_S)
