"""The engine that every attack needs, and one service for those that leave it as they found it."""

from collections.abc import Iterator

import pytest
from engine_sides import EngineSide, chosen
from service_process import ServiceProcess, serving

# In the service's own environment: nothing inside a sandbox may ever show it.
CANARY = "canary-3f9c1d7e5b"


@pytest.fixture(scope="session")
def engine() -> Iterator[EngineSide]:
    side = chosen()
    yield side
    side.close()


@pytest.fixture(scope="session")
def service(tmp_path_factory, engine) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("siege") / "data"
    with serving(folder, engine, tenant=CANARY, wall_s=60, files=500, depth=8) as process:
        (folder / "canary.txt").write_text(CANARY, encoding="ascii")
        yield process


@pytest.fixture(scope="session")
def canary() -> str:
    return CANARY
