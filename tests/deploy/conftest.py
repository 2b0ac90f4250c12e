"""Fixtures of `make test-deploy`."""

import os
import subprocess
import uuid

import pytest
from deploy_programs import ROOT, docker, short_folder

__all__ = ["service_image", "short_folder"]


@pytest.fixture(scope="session")
def service_image():
    """The image of the wheel in dist, built for these tests."""
    tag = f"proofbox:test-{uuid.uuid4().hex[:8]}"
    environment = {**os.environ, "TAG": tag}
    done = subprocess.run([ROOT / "deploy/build.sh"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    yield tag
    docker("image", "rm", "--force", tag)
