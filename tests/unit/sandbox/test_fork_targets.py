"""Which processes count as a container's first one: nothing else is ever entered."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from proofbox.service.sandbox.containers import NotForkedError
from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.zygotes.fork_target import opened

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="containers are a matter of Linux")


@pytest.fixture(scope="module")
def cgroups():
    return Cgroups.of_machine()


def test_a_process_of_this_machine_is_no_containers_first(cgroups):
    with (
        pytest.raises(NotForkedError, match="is not the first one of its namespace"),
        opened(cgroups, os.getpid(), "x", 20_000),
    ):
        pass


def test_a_process_that_has_ended_is_told(cgroups):
    done = subprocess.Popen(["true"])
    done.wait()
    with pytest.raises(NotForkedError, match="the container has ended"), opened(cgroups, done.pid, "x", 20_000):
        pass


def test_the_first_process_of_a_namespace_outside_of_the_containers_group_is_refused(cgroups):
    command = ["unshare", "--pid", "--fork", "--kill-child", "sleep", "60"]
    outer = subprocess.Popen(command)
    try:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        while not (found := children.read_text().split()):
            assert outer.poll() is None
        with (
            pytest.raises(NotForkedError, match="is not in the control group of its container"),
            opened(cgroups, int(found[0]), "proofbox-1-1-1", 20_000),
        ):
            pass
    finally:
        outer.kill()
        outer.wait()
