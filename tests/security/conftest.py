"""The engine that every attack needs, and one service for those that leave it as they found it.

Some tests of confinement start engines of their own, so they need root on Linux.
"""

import os
import platform
import sys
from collections.abc import Iterator

import pytest
from engine_sides import EngineSide, chosen, side_of, tested
from service_process import ServiceProcess, serving

from proofbox.service.app.settings import Settings
from tests.support.engines import can_run_oci

# In the service's own environment: nothing inside a sandbox may ever show it.
CANARY = "canary-3f9c1d7e5b"

# The probe's table of system calls is that of x86_64.
_CAN_START_ENGINES = sys.platform == "linux" and os.geteuid() == 0 and platform.machine() == "x86_64"
# Without root, the engine oci cannot be used either, and nothing can be forked into containers.
collect_ignore = [
    *([] if _CAN_START_ENGINES else ["test_probe.py", "test_running_containers.py", "test_tiers.py"]),
    *([] if can_run_oci() else ["test_without_daemon.py", "test_forked_programs.py"]),
]


@pytest.fixture(scope="session")
def engine() -> Iterator[EngineSide]:
    side = chosen()
    yield side
    side.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What a program can see and do is probed under every engine, everything else under the chosen one."""
    if metafunc.module.__name__ == "test_confinement" and "service" in metafunc.fixturenames:
        metafunc.parametrize("service", tested(), indirect=True, scope="session")


@pytest.fixture(scope="session")
def service(request, tmp_path_factory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("siege") / "data"
    name = getattr(request, "param", Settings().engine)
    side = side_of(name)
    settings = {"engine": name, "tenant": CANARY, "wall_s": 60, "files": 500, "depth": 8}
    with serving(folder, side, pool_size=2, import_once="auto", **settings) as process:
        (folder / "canary.txt").write_text(CANARY, encoding="ascii")
        yield process
    side.close()


@pytest.fixture(scope="session")
def canary() -> str:
    return CANARY
