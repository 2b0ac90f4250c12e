"""The engines on which tests run programs with network and packages: both, and gVisor with the slow tests."""

import os
from typing import Any

import pytest

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.oci.containers import usable_cgroups

GVISOR = "gvisor"


def program_engines() -> list[Any]:
    """The parameters of a fixture; in a run whose engine is gVisor already, that one alone."""
    if "runsc" in os.environ.get("PROOFBOX_RUNTIME", ""):
        return ["docker"]
    gvisor = pytest.param(GVISOR, marks=pytest.mark.slow)
    try:
        usable_cgroups()
    except EngineUnavailableError:
        return ["docker", gvisor]
    return ["docker", "oci", gvisor]


def engine_settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of the engine of a parameter."""
    if request.param != GVISOR:
        return {"engine": request.param}
    host = request.getfixturevalue("private_docker").host
    return {"engine": "docker", "engine_host": host, "runtime": "runsc", "ready_s": 120}
