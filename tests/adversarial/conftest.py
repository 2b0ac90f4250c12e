"""The engine that every attack needs, and one service for those that leave it as they found it."""

from collections.abc import Iterator

import pytest
from engine_sides import EngineSide, can_run_oci, chosen, side_of, tested
from service_process import ServiceProcess, serving

from service.app.settings import Settings

# In the service's own environment: nothing inside a sandbox may ever show it.
CANARY = "canary-3f9c1d7e5b"


@pytest.fixture(scope="session")
def engine() -> Iterator[EngineSide]:
    side = chosen()
    yield side
    side.close()


# Need root: where there is none, the engine oci cannot be used either, and nothing can be forked into containers.
collect_ignore = [] if can_run_oci() else ["test_without_daemon.py", "test_forked_programs.py"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What a program can see and do is probed under every engine, everything else under the chosen one."""
    if metafunc.module.__name__ == "test_confinement" and "service" in metafunc.fixturenames:
        metafunc.parametrize("service", tested(), indirect=True, scope="session")


@pytest.fixture(scope="session")
def service(request, tmp_path_factory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("siege") / "data"
    name = getattr(request, "param", Settings().engine)
    side = side_of(name)
    with serving(folder, side, engine=name, tenant=CANARY, wall_s=60, files=500, depth=8) as process:
        (folder / "canary.txt").write_text(CANARY, encoding="ascii")
        yield process
    side.close()


@pytest.fixture(scope="session")
def canary() -> str:
    return CANARY
