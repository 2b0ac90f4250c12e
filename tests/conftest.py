"""Engines of the tests' own, which a test may restart and kill; started when the first test asks for one."""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.private_docker import PrivateDocker


@pytest.fixture(scope="session")
def private_docker() -> Iterator[PrivateDocker]:
    """A Docker engine with the sandbox image, on which ``runsc`` is a runtime. A test leaves it running."""
    engine = PrivateDocker()
    try:
        yield engine.start()
    finally:
        engine.stop()


@pytest.fixture(scope="session")
def remapped_docker() -> Iterator[PrivateDocker]:
    """The same with ``userns-remap``: root inside of a container is nobody outside of it."""
    engine = PrivateDocker(remapped=True)
    try:
        yield engine.start()
    finally:
        engine.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Under gVisor, marks the tests whose claim it cannot keep with what happens instead."""
    if "runsc" not in os.environ.get("PROOFBOX_RUNTIME", ""):
        return
    exceptions = tomllib.loads(Path(__file__).with_name("gvisor_exceptions.toml").read_text())
    for item in items:
        path, _, name = item.nodeid.partition("::")
        if why := exceptions.get(path, {}).get(name.partition("[")[0]):
            item.add_marker(pytest.mark.xfail(reason=why, strict=False))
