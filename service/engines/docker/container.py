"""The hardened container, as the Engine API takes it. Nothing in a request reaches any of this but numbers."""

from dataclasses import dataclass
from typing import Any

from service.core.limits import CallLimits

LABEL_SERVICE = "proofbox.service"
LABEL_BOOT = "proofbox.boot"
LABEL_DEADLINE = "proofbox.deadline"

USER_ID = 10001
_TMP_BYTES = 64 * 1024 * 1024
_TMP_INODES = 10_000
_JOB_BYTES = 72 * 1024 * 1024  # code of 10 MiB, or a document as JSON, which writes a character in up to six bytes
_SHM_BYTES = 32 * 1024 * 1024  # multiprocessing and numpy share memory here; it counts as memory
_OPEN_FILES = 1024
_OWN_PROCESSES = 4  # the runner, the inspector and its child, one spare
TMPFS_BYTES_BESIDE_OUT_DIR = _TMP_BYTES + _JOB_BYTES + _SHM_BYTES


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What the operator decides for every container.

    Attributes:
        image: name or id of the sandbox image.
        runtime: OCI runtime; empty for the engine's default.
        seccomp_profile: JSON text of our profile.
        cgroup_parent: one parent for all runs; empty for the engine's default.
        service_name: two services on one engine each sweep only their own.
        boot_id: this life of the service.
    """

    image: str
    runtime: str
    seccomp_profile: str
    cgroup_parent: str
    service_name: str
    boot_id: str


def container_config(settings: ContainerSettings, limits: CallLimits, deadline_epoch_s: float) -> dict[str, Any]:
    """The body of ``POST /containers/create``."""
    owner = f"uid={USER_ID},gid={USER_ID},mode=0755"
    host_config: dict[str, Any] = {
        "AutoRemove": True,
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges", f"seccomp={settings.seccomp_profile}"],
        "NetworkMode": "none",
        "IpcMode": "private",
        "ShmSize": _SHM_BYTES,
        "PidsLimit": limits.pids,
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,
        "NanoCpus": int(limits.cpus * 1e9),
        "Ulimits": [
            {"Name": "nofile", "Soft": _OPEN_FILES, "Hard": _OPEN_FILES},
            {"Name": "core", "Soft": 0, "Hard": 0},
            {"Name": "msgqueue", "Soft": 0, "Hard": 0},  # counted for all containers of our user together
        ],
        "Tmpfs": {
            "/out": f"rw,nosuid,nodev,exec,size={limits.out_dir_bytes},nr_inodes={limits.out_dir_inodes},{owner}",
            "/tmp": f"rw,nosuid,nodev,exec,size={_TMP_BYTES},nr_inodes={_TMP_INODES},{owner}",  # noqa: S108
            "/job": f"rw,nosuid,nodev,noexec,size={_JOB_BYTES},nr_inodes=16,{owner}",
        },
        "LogConfig": {"Type": "none"},
    }
    if settings.runtime:
        host_config["Runtime"] = settings.runtime
    if settings.cgroup_parent:
        host_config["CgroupParent"] = settings.cgroup_parent
    return {
        "Image": settings.image,
        "User": f"{USER_ID}:{USER_ID}",
        "NetworkDisabled": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": True,
        # When our stream goes, however we die, standard input ends and with it the runner and the container.
        "StdinOnce": True,
        "Tty": False,
        "Labels": {
            LABEL_SERVICE: settings.service_name,
            LABEL_BOOT: settings.boot_id,
            LABEL_DEADLINE: str(int(deadline_epoch_s)),
        },
        "HostConfig": host_config,
    }
