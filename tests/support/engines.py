"""Which engine runs the containers of a test."""

import os

from proofbox.service.errors import EngineUnavailableError
from proofbox.service.sandbox.oci.containers import usable_cgroups


def can_run_oci() -> bool:
    """Whether this user on this machine may start containers without a daemon."""
    try:
        usable_cgroups()
    except EngineUnavailableError:
        return False
    return True


def quickest_engine() -> str:
    """The engine of tests that are about what a program meets, whatever the engine.

    PROOFBOX_ENGINE, else oci, where a container costs less than half of the processor time, else docker.
    `make tests-docker` runs all of them on Docker.
    """
    return os.environ.get("PROOFBOX_ENGINE") or ("oci" if can_run_oci() else "docker")
