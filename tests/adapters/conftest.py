"""A running service for the tests of one framework, and the examples of `docs/adapters.md` as programs.

They run in an environment of the framework (``make test-adapters``); the service runs in that of Proofbox.
"""

import os
import subprocess
import sys

import pytest

from tests.support.served import REPOSITORY, served


@pytest.fixture(scope="session")
def service_url(tmp_path_factory):
    """The URL of a service of its own."""
    with served(tmp_path_factory.mktemp("service"), os.environ["SERVICE_PYTHON"]) as url:
        yield url


@pytest.fixture
def run_example(service_url, tmp_path):
    """Runs a program of examples/adapters in a folder of its own; what it prints."""

    def run(name):
        environment = {**os.environ, "PROOFBOX_URL": service_url, "PYTHONPATH": str(REPOSITORY)}
        program = [sys.executable, str(REPOSITORY / "examples/adapters" / name)]
        ran = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run
