"""What confines a sandbox is the same under both engines, each told in its own form."""

from dataclasses import replace
from pathlib import Path

import pytest

from proofbox.service.sandbox.docker.container_config import ContainerSettings, container_config
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.oci.bundle import BundleSettings, bundle_config
from proofbox.service.sandbox.oci.image import UnpackedImage
from proofbox.service.sandbox.service_cgroup import TotalLimits

LIMITS = CallLimits(60, 1.5, 1 << 30, 100, 1 << 20, 500, 1, 2, 3, 4, 5)
IMAGE = UnpackedImage(Path("/images/1/rootfs"), "sha256:1", ("python3", "/runner"), ("PATH=/bin",), "/out")
SETTINGS = BundleSettings(IMAGE, {"defaultAction": "SCMP_ACT_ERRNO"}, counts_swap=True, hierarchies={})
V1 = {"memory": Path("/sys/fs/cgroup/memory"), "pids": Path("/cgroups/pids")}


@pytest.fixture
def oci():
    return bundle_config(SETTINGS, LIMITS, "/proofbox/service/1", 20_007)


@pytest.fixture
def docker():
    settings = ContainerSettings("image", "", "{}", "", TotalLimits(0, 0, 0), "service", "boot")
    return container_config(settings, LIMITS, 0, 20_007)["HostConfig"]


def test_folders_that_can_be_written_are_the_same(oci, docker):
    folders = {m["destination"]: ",".join(m["options"]) for m in oci["mounts"] if "size=" in ",".join(m["options"])}
    assert {path: folders[path] for path in docker["Tmpfs"]} == docker["Tmpfs"]
    assert set(folders) - set(docker["Tmpfs"]) == {"/dev", "/dev/shm"}
    assert f"size={docker['ShmSize']}" in folders["/dev/shm"].split(",")
    assert folders["/out"] == ("rw,nosuid,nodev,exec,size=1048576,nr_inodes=500,uid=20007,gid=10001,mode=0755")


def test_limits_are_the_same(oci, docker):
    rlimits = [
        {"Name": r["type"][7:].lower(), "Soft": r["soft"], "Hard": r["hard"]} for r in oci["process"]["rlimits"]
    ]
    resources = oci["linux"]["resources"]
    assert rlimits == docker["Ulimits"]
    assert {"Name": "nofile", "Soft": 1024, "Hard": 4096} in rlimits
    assert resources["memory"] == {"limit": docker["Memory"], "swap": docker["MemorySwap"]}
    assert resources["pids"] == {"limit": docker["PidsLimit"]}
    assert resources["cpu"]["quota"] / resources["cpu"]["period"] == docker["NanoCpus"] / 1e9 == 1.5


def test_there_is_no_capability_no_way_to_new_ones_no_root_and_no_namespace_of_the_machine(oci):
    process = oci["process"]
    assert set(map(tuple, process["capabilities"].values())) == {()}
    assert set(process["capabilities"]) == {"bounding", "effective", "inheritable", "permitted", "ambient"}
    assert (process["noNewPrivileges"], process["user"]["uid"], process["user"]["gid"]) == (True, 20_007, 10001)
    assert oci["root"] == {"path": "/images/1/rootfs", "readonly": True}
    kinds = {"pid", "mount", "ipc", "uts", "network", "cgroup"}
    assert sorted(map(str, oci["linux"]["namespaces"])) == sorted(str({"type": kind}) for kind in kinds)
    assert oci["linux"]["seccomp"] == SETTINGS.seccomp


def test_every_device_is_refused_but_those_that_hold_nothing(oci):
    first, *allowed = oci["linux"]["resources"]["devices"]
    assert first == {"allow": False, "access": "rwm"}
    assert {(d["type"], d["major"], d.get("minor")) for d in allowed} == {
        *[("c", 1, minor) for minor in (3, 5, 7, 8, 9)],
        ("c", 5, 0),
        ("c", 5, 2),
        ("c", 136, None),
    }
    assert {d["access"] for d in allowed} == {"rw"}


def test_nothing_of_the_machine_is_mounted(oci):
    assert {m["type"] for m in oci["mounts"]} == {"proc", "tmpfs", "devpts", "mqueue", "sysfs", "cgroup"}


def test_kernel_files_that_are_masked_or_read_only_are_the_same(oci, docker):
    # Where the number of pseudo-terminals cannot be bounded there are none.
    assert [*oci["linux"]["maskedPaths"], "/dev/pts/ptmx"] == docker["MaskedPaths"]
    assert "max=16" in next(m["options"] for m in oci["mounts"] if m["destination"] == "/dev/pts")
    assert oci["linux"]["readonlyPaths"] == docker["ReadonlyPaths"]


def test_of_version_1_a_sandbox_sees_its_own_group_and_can_only_read_it():
    config = bundle_config(replace(SETTINGS, hierarchies=V1), LIMITS, "/proofbox/service/1", 20_007)
    seen = {m["destination"]: m for m in config["mounts"] if m["destination"].startswith("/sys/fs/cgroup")}
    assert {where: (m["type"], m["source"]) for where, m in seen.items()} == {
        "/sys/fs/cgroup": ("tmpfs", "tmpfs"),
        "/sys/fs/cgroup/memory": ("bind", "/sys/fs/cgroup/memory/proofbox/service/1"),
        "/sys/fs/cgroup/pids": ("bind", "/cgroups/pids/proofbox/service/1"),
    }
    assert all("ro" in m["options"] for m in seen.values() if m["type"] == "bind")
    assert "mode=755" in seen["/sys/fs/cgroup"]["options"]


def test_where_the_kernel_does_not_count_swap_memory_alone_is_bounded():
    config = bundle_config(replace(SETTINGS, counts_swap=False), LIMITS, "/x", 20_007)
    assert config["linux"]["resources"]["memory"] == {"limit": 1 << 30}
