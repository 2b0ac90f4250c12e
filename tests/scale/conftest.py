"""Clusters on one machine, for `make test-scale`: root, ip, tc and nsenter are needed."""

import os
import shutil

import pytest

_PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "docker": "docker.io"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeats tests that ask for it as often as PROOFBOX_TEST_REPEATS says."""
    if "repeat" in metafunc.fixturenames:
        metafunc.parametrize("repeat", range(1, int(os.environ.get("PROOFBOX_TEST_REPEATS") or "1") + 1))


@pytest.fixture(scope="session", autouse=True)
def machine() -> None:
    """Fails with a reason where namespaces cannot be made."""
    missing = sorted({package for program, package in _PROGRAMS.items() if shutil.which(program) is None})
    assert not missing, f"install {' '.join(missing)}"
    assert os.geteuid() == 0, "network namespaces need root"
