"""The engines on which tests run programs with network and packages: Docker, and with the slow tests all."""

import os
from typing import Any

import pytest

from tests.support.engines import can_run_oci

GVISOR = "gvisor"


def program_engines() -> list[Any]:
    """The parameters of a fixture; in a run whose engine is gVisor already, that one alone."""
    if "runsc" in os.environ.get("PROOFBOX_RUNTIME", ""):
        return ["docker"]
    others = [*(["oci"] if can_run_oci() else []), GVISOR]
    return ["docker", *(pytest.param(name, marks=pytest.mark.slow) for name in others)]


def engine_settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of the engine of a parameter."""
    if request.param != GVISOR:
        return {"engine": request.param}
    host = request.getfixturevalue("private_docker").host
    return {"engine": "docker", "engine_host": host, "runtime": "runsc", "ready_s": 120}
