"""Starting one container of an OCI runtime, with a program in its place that starts nothing."""

from collections import Counter
from pathlib import Path

import pytest

from proofbox.service.sandbox.linux.cgroups import Cgroups
from proofbox.service.sandbox.oci.container_start import Starter
from proofbox.service.sandbox.oci.container_state import ContainerState
from proofbox.service.sandbox.oci.runtime import Runtime
from proofbox.service.sandbox.service_cgroup import ServiceCgroup


@pytest.fixture
def together(tmp_path):
    group = tmp_path / "cgroup" / "service"
    group.mkdir(parents=True)
    (group / "memory.max").touch()
    return ServiceCgroup(Cgroups({}, tmp_path / "cgroup"), "/service", None)


def open_files():
    return Counter(str(file.readlink()) for file in Path("/proc/self/fd").iterdir() if file.is_symlink())


def test_what_fails_after_the_runtime_leaves_no_descriptor_open(tmp_path, together):
    place = ContainerState(
        tmp_path / "folder", "/service", Cgroups({}, None)
    )  # without hierarchies, no group has a place
    starter = Starter(Runtime("true", ("/bin/true",)), place, together, 5)
    before = open_files()
    with pytest.raises(KeyError):
        starter.run("proofbox-1-1-1", {})
    assert not open_files() - before  # those of other tests may end meanwhile
