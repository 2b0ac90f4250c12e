"""The hardened container, as the Engine API takes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofbox.service.sandbox.docker.gvisor import memory_limit, pids_limit
from proofbox.service.sandbox.docker.podman import podman_form
from proofbox.service.sandbox.hardening import (
    GROUP_ID,
    HOST_NAME,
    IMPORTING_SHARES,
    MASKED_PATHS,
    NEW_TERMINALS,
    PACKAGES_AT,
    READ_ONLY_PATHS,
    RLIMITS,
    SANDBOX_RLIMITS,
    SHM_BYTES,
    own_folders,
)
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.preload import PREIMPORTED, PreloadSet
from proofbox.service.sandbox.service_cgroup import TotalLimits
from proofbox.service.sandbox.zygotes.manager import ImportOnce, Kind
from proofbox.service.sandbox.zygotes.settings import (
    ZYGOTE_CAPABILITIES,
    ZYGOTE_MEMORY_BYTES,
    ZYGOTE_PIDS,
    ZYGOTE_TMP_BYTES,
    zygote_command,
)

LABEL_SERVICE = "proofbox.service"
LABEL_BOOT = "proofbox.boot"
LABEL_DEADLINE = "proofbox.deadline"
LABEL_ZYGOTE = "proofbox.zygote-of"
"""On zygotes, in place of the label of sandboxes: nobody sweeps them for one."""
FULL_SHARES = 1024  # what a container has by default


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What the operator decides for every container.

    Attributes:
        image: name or id of the sandbox image.
        runtime: OCI runtime; empty for the engine's default.
        seccomp_profile: JSON text of our profile.
        cgroup_parent: the control group above those of services; empty for ``proofbox``, where the engine lets us.
        totals: what all sandboxes may use together.
        service_name: two services on one engine each sweep only their own.
        boot_id: this process of the service.
        gvisor: whether the runtime is gVisor's.
        podman_files: the folder of files for Podman; None for Docker.
        import_once: whether libraries are imported outside of containers and forked into them; see the setting.
        packages: the folder of packages on the engine's machine; None if no call gets packages.
    """

    image: str
    runtime: str
    seccomp_profile: str
    cgroup_parent: str
    totals: TotalLimits
    service_name: str
    boot_id: str
    gvisor: bool = False
    podman_files: Path | None = None
    import_once: ImportOnce = "off"
    packages: Path | None = None

    @property
    def updates_limits(self) -> bool:
        """Whether the limits of a started container can be changed: neither gVisor nor Podman 4 does that."""
        return not self.gvisor and self.podman_files is None


def changing_limits(settings: ContainerSettings, limits: CallLimits) -> dict[str, Any]:
    """The limits that a started container can be given anew, as creating and updating take them."""
    pids, memory_bytes = limits.pids, limits.memory_bytes
    if settings.gvisor:
        pids, memory_bytes = pids_limit(pids), memory_limit(memory_bytes)
    return {
        "PidsLimit": pids,
        "Memory": memory_bytes,
        "MemorySwap": memory_bytes,
        "NanoCpus": int(limits.cpus * 1e9),
    }


def zygote_container_config(settings: ContainerSettings, kind: Kind) -> dict[str, Any]:
    """The body of ``POST /containers/create`` for a zygote; the counterpart of the engine oci's bundle of one.

    No system call filter and no profile of AppArmor: its forks put on those of a sandbox.
    """
    host_config = {
        **_common_host_config(settings),
        "PidMode": "host",
        "CgroupnsMode": "host",  # or its forks could be born in no group of another container
        "UsernsMode": "host",
        "CapAdd": list(ZYGOTE_CAPABILITIES),
        "SecurityOpt": ["no-new-privileges", "seccomp=unconfined", "apparmor=unconfined"],
        "Ulimits": [{"Name": name, "Soft": most, "Hard": most} for name, most in RLIMITS.items()],
        "PidsLimit": ZYGOTE_PIDS,
        "Memory": ZYGOTE_MEMORY_BYTES,
        "MemorySwap": ZYGOTE_MEMORY_BYTES,
        "Tmpfs": {"/tmp": f"rw,nosuid,nodev,noexec,size={ZYGOTE_TMP_BYTES}"},  # noqa: S108
    }
    return {
        "Image": settings.image,
        "Cmd": ["zygote", zygote_command(kind)],
        "User": "0:0",
        "WorkingDir": "/",
        "NetworkDisabled": True,
        "Labels": {LABEL_ZYGOTE: settings.service_name, LABEL_BOOT: settings.boot_id},
        "HostConfig": host_config,
    }


def _common_host_config(settings: ContainerSettings) -> dict[str, Any]:
    """What sandboxes and zygotes have in common."""
    host_config: dict[str, Any] = {
        "AutoRemove": True,
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "NetworkMode": "none",
        "IpcMode": "private",
        "CgroupnsMode": "private",
        "LogConfig": {"Type": "none"},
    }
    if settings.runtime:
        host_config["Runtime"] = settings.runtime
    if settings.cgroup_parent:
        host_config["CgroupParent"] = settings.cgroup_parent
    return host_config


def container_config(
    settings: ContainerSettings,
    limits: CallLimits,
    deadline_epoch_s: float,
    user_id: int,
    flavour: PreloadSet = PreloadSet.BARE,
) -> dict[str, Any]:
    """The body of ``POST /containers/create`` for a sandbox whose processes run as ``user_id``."""
    host_config = {
        **_common_host_config(settings),
        "CpuShares": FULL_SHARES if flavour is PreloadSet.BARE or not settings.updates_limits else IMPORTING_SHARES,
        "SecurityOpt": ["no-new-privileges", f"seccomp={settings.seccomp_profile}"],
        # The options of /dev/pts are the engine's.
        "MaskedPaths": [*MASKED_PATHS, NEW_TERMINALS],
        "ReadonlyPaths": list(READ_ONLY_PATHS),
        "Ulimits": [{"Name": name, "Soft": soft, "Hard": hard} for name, (soft, hard) in SANDBOX_RLIMITS.items()],
        "ShmSize": SHM_BYTES,
        **changing_limits(settings, limits),
        "Tmpfs": {folder.path: ",".join(folder.options(user_id)) for folder in own_folders(limits)},
    }
    if settings.packages is not None:
        host_config["Mounts"] = [
            {"Type": "bind", "Source": str(settings.packages), "Target": PACKAGES_AT, "ReadOnly": True}
        ]
    config = {
        "Image": settings.image,
        "Cmd": list(PREIMPORTED[flavour]),
        "Hostname": HOST_NAME,
        "User": f"{user_id}:{GROUP_ID}",
        "NetworkDisabled": True,
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": True,
        # When our stream goes, however we die, standard input ends and with it the runner and the container: until
        # the runner goes on over a socket of ours, whose end it sees as well.
        "StdinOnce": True,
        "Tty": False,
        "Labels": {
            LABEL_SERVICE: settings.service_name,
            LABEL_BOOT: settings.boot_id,
            LABEL_DEADLINE: str(int(deadline_epoch_s)),
        },
        "HostConfig": host_config,
    }
    return config if settings.podman_files is None else podman_form(config, settings.podman_files)
