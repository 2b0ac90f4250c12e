"""The hardened container, as an OCI runtime takes it: the configuration of its bundle."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofbox.service.sandbox.hardening import (
    CPU_PERIOD_US,
    GROUP_ID,
    HOST_NAME,
    IMPORTING_SHARES,
    MASKED_PATHS,
    PACKAGES_AT,
    READ_ONLY_PATHS,
    RLIMITS,
    SANDBOX_RLIMITS,
    SHM_BYTES,
    TERMINALS,
    own_folders,
)
from proofbox.service.sandbox.limits import CallLimits
from proofbox.service.sandbox.oci.image import UnpackedImage
from proofbox.service.sandbox.preload import PREIMPORTED, PreloadSet
from proofbox.service.sandbox.zygotes.manager import Kind
from proofbox.service.sandbox.zygotes.settings import (
    ZYGOTE_CAPABILITIES,
    ZYGOTE_MEMORY_BYTES,
    ZYGOTE_PIDS,
    ZYGOTE_TMP_BYTES,
    zygote_command,
)

_NAMESPACES = ("pid", "mount", "ipc", "uts", "network", "cgroup")
_CAPABILITY_SETS = ("bounding", "effective", "inheritable", "permitted", "ambient")
_DEVICES = (("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0))
_MOUNTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("/proc", "proc", ("nosuid", "noexec", "nodev")),
    ("/dev", "tmpfs", ("nosuid", "noexec", "strictatime", "mode=755", "size=65536k")),
    (
        "/dev/pts",
        "devpts",
        ("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5", f"max={TERMINALS}"),
    ),
    ("/dev/mqueue", "mqueue", ("nosuid", "noexec", "nodev")),
    ("/dev/shm", "tmpfs", ("nosuid", "noexec", "nodev", "mode=1777", f"size={SHM_BYTES}")),  # noqa: S108
    ("/sys", "sysfs", ("nosuid", "noexec", "nodev", "ro")),
)
_CGROUP = "/sys/fs/cgroup"
_CGROUP_OPTIONS = ("nosuid", "noexec", "nodev", "relatime", "ro")
_PACKAGE_OPTIONS = ("bind", "private", "nosuid", "nodev", "ro")
_ZYGOTE_SETS = ("bounding", "effective", "permitted")


@dataclass(frozen=True, slots=True)
class BundleSettings:
    """What is the same for every container.

    Attributes:
        image: what it runs in.
        seccomp: our profile in the runtime's form.
        counts_swap: whether memory and swap can be bounded together; where not, memory alone is.
        hierarchies: of version 1, the roots of those that a sandbox sees its own group of; none for version 2.
        packages: the folder of packages; None if no call gets packages.
    """

    image: UnpackedImage
    seccomp: dict[str, Any]
    counts_swap: bool
    hierarchies: Mapping[str, Path]
    packages: Path | None = None


def bundle_config(
    settings: BundleSettings, limits: CallLimits, cgroup: str, user_id: int, flavour: PreloadSet = PreloadSet.BARE
) -> dict[str, Any]:
    """The ``config.json`` of a bundle whose container is to be in ``cgroup`` and runs as ``user_id``."""
    image = settings.image
    mounts = [_mount(*mount) for mount in _MOUNTS]
    mounts += _cgroup_mounts(settings.hierarchies, cgroup)
    mounts += [_mount(folder.path, "tmpfs", folder.options(user_id)) for folder in own_folders(limits)]
    if settings.packages is not None:
        mounts.append({**_mount(PACKAGES_AT, "bind", _PACKAGE_OPTIONS), "source": str(settings.packages)})
    return {
        "ociVersion": "1.0.2",
        "hostname": HOST_NAME,
        "root": {"path": str(image.rootfs), "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": user_id, "gid": GROUP_ID, "additionalGids": [GROUP_ID], "umask": 0o022},
            "cwd": image.cwd,
            "args": [*image.args, *PREIMPORTED[flavour]],
            "env": list(image.env),
            "capabilities": {name: [] for name in _CAPABILITY_SETS},
            "noNewPrivileges": True,
            "oomScoreAdj": 0,
            "rlimits": _rlimits(SANDBOX_RLIMITS),
        },
        "mounts": mounts,
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [{"type": kind} for kind in _NAMESPACES],
            "resources": _resources(limits, flavour, counts_swap=settings.counts_swap),
            "seccomp": settings.seccomp,
            "maskedPaths": list(MASKED_PATHS),
            "readonlyPaths": list(READ_ONLY_PATHS),
        },
    }


def zygote_config(settings: BundleSettings, kind: Kind, cgroup: str) -> dict[str, Any]:
    """The ``config.json`` of a zygote: it sees this machine's processes, and may enter namespaces.

    No system call filter: its forks put on that of a sandbox, so that no program can distinguish them.
    """
    image = settings.image
    mounts = [_mount(*mount) for mount in _MOUNTS]
    mounts.append(_mount("/tmp", "tmpfs", ["nosuid", "nodev", "noexec", f"size={ZYGOTE_TMP_BYTES}"]))  # noqa: S108
    return {
        "ociVersion": "1.0.2",
        "hostname": "zygote",
        "root": {"path": str(image.rootfs), "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": 0, "gid": 0, "umask": 0o022},
            "cwd": "/",
            "args": [*image.args, "zygote", zygote_command(kind)],
            "env": list(image.env),
            "capabilities": {
                name: list(ZYGOTE_CAPABILITIES) if name in _ZYGOTE_SETS else [] for name in _CAPABILITY_SETS
            },
            "noNewPrivileges": True,
            "oomScoreAdj": 0,
            "rlimits": _rlimits({name: (most, most) for name, most in RLIMITS.items()}),
        },
        "mounts": mounts,
        "linux": {
            "cgroupsPath": cgroup,
            # Not its own cgroups either, or its forks could be born in no group of another container.
            "namespaces": [{"type": name} for name in _NAMESPACES if name not in {"pid", "cgroup"}],
            "resources": {"memory": {"limit": ZYGOTE_MEMORY_BYTES}, "pids": {"limit": ZYGOTE_PIDS}},
            "maskedPaths": list(MASKED_PATHS),
            "readonlyPaths": list(READ_ONLY_PATHS),
        },
    }


def _rlimits(limits: Mapping[str, tuple[int, int]]) -> list[dict[str, Any]]:
    return [{"type": f"RLIMIT_{name.upper()}", "soft": soft, "hard": hard} for name, (soft, hard) in limits.items()]


def _mount(where: str, kind: str, options: tuple[str, ...] | list[str]) -> dict[str, Any]:
    return {"destination": where, "type": kind, "source": kind, "options": list(options)}


def _cgroup_mounts(hierarchies: Mapping[str, Path], cgroup: str) -> list[dict[str, Any]]:
    """The container's own group, to be read.

    Left to themselves, runtimes mount the hierarchies of version 1 in a folder that crun lets anybody write to.
    """
    if not hierarchies:
        return [_mount(_CGROUP, "cgroup", _CGROUP_OPTIONS)]
    mounts = [_mount(_CGROUP, "tmpfs", ("nosuid", "noexec", "nodev", "mode=755", "size=64k"))]
    for name, root in sorted(hierarchies.items()):
        own = _mount(f"{_CGROUP}/{name}", "bind", ("rbind", *_CGROUP_OPTIONS))
        mounts.append({**own, "source": str(root / cgroup.lstrip("/"))})
    return mounts


def _resources(limits: CallLimits, flavour: PreloadSet, *, counts_swap: bool) -> dict[str, Any]:
    devices: list[dict[str, Any]] = [{"allow": False, "access": "rwm"}]
    devices += [
        {"allow": True, "type": "c", "major": major, "minor": minor, "access": "rw"} for _, major, minor in _DEVICES
    ]
    devices += [
        {"allow": True, "type": "c", "major": 5, "minor": 2, "access": "rw"},
        {"allow": True, "type": "c", "major": 136, "access": "rw"},
    ]
    cpu = {"quota": int(limits.cpus * CPU_PERIOD_US), "period": CPU_PERIOD_US}
    if flavour is not PreloadSet.BARE:
        cpu["shares"] = IMPORTING_SHARES
    memory = {"limit": limits.memory_bytes}
    if counts_swap:
        memory["swap"] = limits.memory_bytes  # of both together
    return {
        "devices": devices,
        "memory": memory,
        "pids": {"limit": limits.pids},
        "cpu": cpu,
    }
