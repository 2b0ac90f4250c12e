"""Podman behind the Docker API: which engine it is, and the container in the form that it takes."""

import json
from pathlib import Path

import pytest

from proofbox.service.sandbox.docker.container_config import ContainerSettings, container_config
from proofbox.service.sandbox.docker.podman import PodmanFiles, is_podman
from proofbox.service.sandbox.hardening import MASKED_PATHS
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.preload import PreloadSet
from proofbox.service.sandbox.service_cgroup import TotalLimits

MIB = 1024 * 1024
LIMITS = CallLimits(60, 1.0, 256 * MIB, 64, 16 * MIB, 1_000, 16 * MIB, 100, 8, MIB, 16 * MIB)
PROFILE = '{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []}'


def config_for(files: Path | None, flavour: PreloadSet = PreloadSet.BARE) -> dict[str, object]:
    totals = TotalLimits(0, 0, 0)
    settings = ContainerSettings("image", "", PROFILE, "/proofbox/x", totals, "x", "boot", podman_files=files)
    host: dict[str, object] = container_config(settings, LIMITS, 1.0, 20_001, flavour)["HostConfig"]
    return host


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ({"Components": [{"Name": "Podman Engine", "Version": "4.3.1"}, {"Name": "Conmon"}]}, True),
        ({"Components": [{"Name": "Engine", "Version": "24.0"}, {"Name": "containerd"}]}, False),
        ({"Version": "19.03"}, False),
        ({"Components": None}, False),
    ],
)
def test_an_engine_names_its_parts(version: dict[str, object], expected: bool) -> None:
    assert is_podman(version) is expected


def test_the_profile_is_a_file_that_the_engine_can_read() -> None:
    files = PodmanFiles()
    folder = files.write(PROFILE)
    try:
        assert files.write(PROFILE) == folder
        assert json.loads((folder / "seccomp.json").read_text()) == json.loads(PROFILE)
        assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == dict.fromkeys(
            ("seccomp.json", "hosts", "resolv.conf"), 0o644
        )
        assert folder.stat().st_mode & 0o777 == 0o755
    finally:
        files.remove()
    assert not folder.exists()
    files.remove()


def test_the_options_have_the_form_of_podman() -> None:
    host = config_for(Path("/run/files"))
    assert host["SecurityOpt"] == [
        "no-new-privileges",
        "seccomp=/run/files/seccomp.json",
        "mask=" + ":".join([*MASKED_PATHS, "/dev/pts/ptmx"]),
    ]
    assert "MaskedPaths" not in host
    assert host["Binds"] == [
        f"/run/files/{name}:/etc/{name}:ro,nosuid,nodev,noexec" for name in ("hosts", "resolv.conf")
    ]
    assert {"Name": "nproc", "Soft": 128, "Hard": 128} in host["Ulimits"]
    tmpfs = host["Tmpfs"]
    assert isinstance(tmpfs, dict)
    assert tmpfs["/out"] == f"rw,nosuid,nodev,exec,size={16 * MIB},U,mode=0755,notmpcopyup"
    assert {path for path, options in tmpfs.items() if options.startswith("ro,")} == {"/run", "/var/tmp"}


def test_docker_gets_the_text_of_the_profile() -> None:
    host = config_for(None)
    assert host["SecurityOpt"] == ["no-new-privileges", f"seccomp={PROFILE}"]
    assert "Binds" not in host


def test_a_container_that_cannot_be_given_more_cpu_later_has_it_from_the_start() -> None:
    assert config_for(None, PreloadSet.DATA)["CpuShares"] == 128
    assert config_for(Path("/run/files"), PreloadSet.DATA)["CpuShares"] == 1024
