"""Engines of the tests' own, which a test may restart and kill; started when the first test asks for one."""

from collections.abc import Iterator

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
