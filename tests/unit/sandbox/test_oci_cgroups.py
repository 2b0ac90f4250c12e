"""Control groups of either version, as folders."""

from pathlib import Path

import pytest

from proofbox.service.sandbox.linux.cgroups import Cgroups

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
    "32 30 0:28 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup cgroup rw,memory\n"
    "33 30 0:29 / /sys/fs/cgroup/systemd rw,nosuid shared:11 - cgroup cgroup rw,xattr,name=systemd\n"
)
UNIFIED = "34 30 0:30 / /sys/fs/cgroup/unified rw,nosuid shared:12 - cgroup2 cgroup2 rw\n"
OTHERS = "22 1 254:0 / / rw - ext4 /dev/vda rw\n35 30 0:27 /docker/1 /mnt/x ro - cgroup cgroup rw,pids\n"


@pytest.mark.parametrize(
    ("mounts", "v1", "v2", "is_v2", "is_hybrid"),
    [
        (V2, set(), "/sys/fs/cgroup", True, False),
        (V1, {"cpu", "cpuacct", "memory", "xattr", "systemd"}, None, False, False),
        (V1 + UNIFIED, {"cpu", "cpuacct", "memory", "xattr", "systemd"}, "/sys/fs/cgroup/unified", False, True),
    ],
    ids=["v2", "v1", "hybrid"],
)
def test_hierarchies_are_found_where_they_are_mounted(mounts, v1, v2, is_v2, is_hybrid):
    found = Cgroups.of_machine(OTHERS + mounts)
    assert (set(found.v1), found.v2 and str(found.v2)) == (v1, v2)
    assert (found.is_v2, found.is_hybrid) == (is_v2, is_hybrid)


def test_a_machine_without_a_controller_is_told_which_one_is_missing(tmp_path):
    assert Cgroups({"memory": tmp_path, "cpu": tmp_path}, None).missing() == "no cgroup controller pids, devices"
    (tmp_path / "cgroup.controllers").write_text("cpu memory io\n")
    assert Cgroups({}, tmp_path).missing() == "no cgroup controller pids"
    (tmp_path / "cgroup.controllers").write_text("cpu memory io pids\n")
    assert Cgroups({}, tmp_path).missing() is None


@pytest.mark.parametrize("version", [1, 2])
def test_kills_for_memory_and_processes_are_read_from_the_group(tmp_path, version):
    group = tmp_path / "a" / "b"
    group.mkdir(parents=True)
    name = "memory.oom_control" if version == 1 else "memory.events"
    (group / name).write_text("under_oom 0\noom 7\noom_kill 3\n")
    (group / "cgroup.procs").write_text("12\n34\n")
    cgroups = Cgroups({"memory": tmp_path}, None) if version == 1 else Cgroups({}, tmp_path)
    assert (cgroups.oom_kills("/a/b"), cgroups.processes("/a/b")) == (3, [12, 34])
    assert (cgroups.oom_kills("/a/gone"), cgroups.processes("/a/gone")) == (0, [])


def test_a_group_goes_in_every_hierarchy_and_one_that_is_gone_is_fine(tmp_path):
    roots = {name: tmp_path / name for name in ("memory", "pids")}
    for root in roots.values():
        (root / "a" / "b").mkdir(parents=True)
    cgroups = Cgroups(roots, tmp_path / "unified")
    assert cgroups.children("/a") == {"b"}
    cgroups.remove("/a/b", within_s=0)
    cgroups.remove("/a/b", within_s=0)
    assert [list((root / "a").iterdir()) for root in roots.values()] == [[], []]


def test_a_group_that_does_not_go_is_told(tmp_path):
    Path(tmp_path, "a", "busy").mkdir(parents=True)
    with pytest.raises(OSError, match="not empty"):
        Cgroups({"memory": tmp_path}, None).remove("/a", within_s=0)


LOWERED = {"memory_bytes": 1000, "pids": 7, "cpu_quota_us": 50_000, "cpu_period_us": 100_000}


@pytest.fixture
def v1(tmp_path):
    roots = {name: tmp_path / name for name in ("memory", "pids", "cpu")}
    for root in roots.values():
        (root / "a").mkdir(parents=True)
    return Cgroups(roots, None)


def written(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_limits_of_a_group_are_written_where_each_version_has_them(tmp_path):
    (tmp_path / "a").mkdir()
    Cgroups({}, tmp_path).set_limits("/a", **LOWERED)
    assert written(tmp_path) == {"memory.max": "1000", "pids.max": "7", "cpu.max": "50000 100000"}


def test_memory_and_swap_together_are_bounded_where_the_kernel_counts_them(tmp_path, v1):
    v1.set_limits("/a", **LOWERED)
    without = {"memory.limit_in_bytes": "1000", "pids.max": "7", "cpu.cfs_quota_us": "50000"}
    assert written(tmp_path) == without
    (tmp_path / "memory" / "memory.memsw.limit_in_bytes").touch()
    v1.set_limits("/a", **LOWERED)
    together = {"memory.memsw.limit_in_bytes": "1000"}
    assert written(tmp_path / "memory" / "a") == {"memory.limit_in_bytes": "1000"} | together


def test_tcp_is_bounded_with_version_1(tmp_path):
    (tmp_path / "a").mkdir()
    Cgroups({"memory": tmp_path}, None).bound_tcp("/a")
    assert (tmp_path / "a" / "memory.kmem.tcp.limit_in_bytes").read_text() == str(64 * 1024 * 1024)


@pytest.mark.parametrize("is_gone", [True, False])
def test_tcp_that_cannot_be_bounded_is_no_error(tmp_path, caplog, is_gone):
    caplog.set_level("DEBUG", logger="proofbox.cgroups")
    if not is_gone:
        (tmp_path / "a" / "memory.kmem.tcp.limit_in_bytes").mkdir(parents=True)  # a file that refuses to be written
    Cgroups({"memory": tmp_path}, None).bound_tcp("/a")
    assert "TCP sockets of /a are not bounded" in caplog.text


def test_a_group_that_is_gone_cannot_be_given_limits(v1):
    with pytest.raises(FileNotFoundError):
        v1.set_limits("/gone", **LOWERED)


def test_a_group_is_given_the_share_that_one_has_by_default(tmp_path, v1):
    v1.give_full_share("/a")
    assert written(tmp_path) == {"cpu.shares": "1024"}
    (tmp_path / "b").mkdir()
    Cgroups({}, tmp_path).give_full_share("/b")
    assert written(tmp_path / "b") == {"cpu.weight": "100"}
