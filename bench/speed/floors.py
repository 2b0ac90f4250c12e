"""Floors: what starting the program costs without an image engine, on the unpacked image and without any check.

Nobody would offer these as they are: they keep no images, no logs, no limits on time, output or files. They show
how near to the cost of a bare container a call is.
"""

import contextlib
import itertools
import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.speed.docker_run import IMAGE, SECCOMP, output_of
from bench.speed.model import BWRAP, CRUN, RUNC, Job, Side

_MIB = 1024 * 1024
_ENVIRONMENT = ("PATH=/opt/proofbox/venv/bin:/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1")
_PROGRAM = {BWRAP: "bwrap", CRUN: "crun", RUNC: "runc"}
# Where version 2 of control groups is beside version 1, on a machine that has both.
_UNIFIED = Path("/sys/fs/cgroup/unified")
_WITHOUT_UNIFIED = ("unshare", "--mount", "sh", "-c", f'umount --lazy {_UNIFIED} && exec "$0" "$@"')
_NAMESPACES = ("pid", "mount", "ipc", "uts", "network")
_MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/sys/firmware")


@dataclass(slots=True)
class Bubblewrap:
    """Namespaces and a read-only root; no control group, no seccomp filter."""

    rootfs: Path
    name: str = BWRAP
    pause_s: float = 0.0

    async def prepare(self, job: Job) -> None:
        """Nothing: floors do jobs without files."""

    async def run(self, job: Job) -> None:
        """See `Side.run`."""
        environment = [word for pair in _ENVIRONMENT for word in ("--setenv", *pair.split("=", 1))]
        out = await output_of(
            "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--uid", "10001", "--gid", "10001",
            "--ro-bind", str(self.rootfs), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",  # noqa: S108 - in the jail
            "--tmpfs", "/out", "--chdir", "/out", "--clearenv", *environment, "python3", "-c", job.code or "",
        )  # fmt: skip
        job.check(out, {})


@dataclass(slots=True)
class OciRuntime:
    """``crun run`` or ``runc run``: namespaces, a control group with our limits, our seccomp filter.

    Attributes:
        name: `CRUN` or `RUNC`.
        folder: where bundles and the runtime's state lie.
        rootfs: the unpacked image.
        before: what starts the runtime.
    """

    name: str
    folder: Path
    rootfs: Path
    before: tuple[str, ...] = ()
    pause_s: float = 0.0
    _next: Callable[[], int] = field(default_factory=lambda: itertools.count(1).__next__)

    async def prepare(self, job: Job) -> None:
        """Writes the bundle that all calls of the job share."""
        bundle = self._bundle(job)
        bundle.mkdir(exist_ok=True)
        spec = runtime_spec(self.rootfs, ["python3", "-c", job.code or ""])
        (bundle / "config.json").write_text(json.dumps(spec), encoding="utf-8")

    async def run(self, job: Job) -> None:
        """See `Side.run`."""
        name = f"proofbox-bench-{os.getpid()}-{self._next()}"
        state = str(self.folder / f"{self.name}-state")
        bundle = str(self._bundle(job))
        out = await output_of(*self.before, _PROGRAM[self.name], "--root", state, "run", "--bundle", bundle, name)
        job.check(out, {})

    def _bundle(self, job: Job) -> Path:
        return self.folder / f"{self.name}-{job.name}"


def runtime_spec(rootfs: Path, arguments: list[str]) -> dict[str, Any]:
    """A configuration of the OCI runtime specification, hardened as our containers are."""
    owner = ["nosuid", "nodev", "uid=10001", "gid=10001"]
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
        _memory("/dev/shm", 32 * _MIB, ["nosuid", "nodev", "mode=1777"]),  # noqa: S108 - in the container
        _memory("/tmp", 64 * _MIB, owner),  # noqa: S108 - in the container
        _memory("/out", 256 * _MIB, owner),
    ]
    return {
        "ociVersion": "1.0.2",
        "root": {"path": str(rootfs), "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": 10001, "gid": 10001},
            "args": arguments,
            "env": list(_ENVIRONMENT),
            "cwd": "/out",
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": name} for name in _NAMESPACES],
            "maskedPaths": list(_MASKED),
            "readonlyPaths": ["/proc/sys", "/proc/irq", "/proc/bus"],
            "resources": {
                "devices": [{"allow": False, "access": "rwm"}],
                "memory": {"limit": 1024 * _MIB, "swap": 1024 * _MIB},
                "pids": {"limit": 256},
            },
            "seccomp": _seccomp(),
        },
    }


def _memory(path: str, size: int, options: list[str]) -> dict[str, Any]:
    return {"destination": path, "type": "tmpfs", "source": "tmpfs", "options": [*options, f"size={size}"]}


def _seccomp() -> dict[str, Any]:
    """Our profile as a runtime takes it: Docker's form names all architectures, a runtime's the one it is on."""
    profile = json.loads(SECCOMP.read_text(encoding="utf-8"))
    kept = {"names", "action", "errnoRet", "args"}
    machine = platform.machine()
    return {
        "defaultAction": profile["defaultAction"],
        "defaultErrnoRet": profile["defaultErrnoRet"],
        "architectures": ["SCMP_ARCH_AARCH64" if machine in {"aarch64", "arm64"} else "SCMP_ARCH_X86_64"],
        "syscalls": [{key: rule[key] for key in rule.keys() & kept} for rule in profile["syscalls"]],
    }


@contextlib.contextmanager
def floors(remarks: dict[str, str]) -> Iterator[list[Side]]:
    """Those that this machine has; why one is not there, or is not as it should be, goes to ``remarks``."""
    there = [name for name, program in _PROGRAM.items() if os.geteuid() == 0 and shutil.which(program)]
    for name in _PROGRAM.keys() - set(there):
        remarks[name] = "was left out: it is not installed, or this user is not root"
    if not there:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="proofbox-floors-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        rootfs = folder / "rootfs"
        _unpack(rootfs)
        sides: list[Side] = [OciRuntime(one, folder, rootfs) for one in there if one == RUNC]
        if CRUN in there:
            before = _WITHOUT_UNIFIED if _UNIFIED.is_mount() else ()
            if before:
                remarks[CRUN] = "refuses machines with both versions of control groups, so each call hides one"
            sides.append(OciRuntime(CRUN, folder, rootfs, before))
        if BWRAP in there:
            sides.append(Bubblewrap(rootfs))
        yield sides


def _unpack(rootfs: Path) -> None:
    rootfs.mkdir()
    made = subprocess.run(["docker", "create", IMAGE], capture_output=True, text=True, check=True).stdout.strip()
    try:
        with subprocess.Popen(["docker", "export", made], stdout=subprocess.PIPE) as export:
            subprocess.run(["tar", "-x", "-C", str(rootfs)], stdin=export.stdout, check=True)
        if export.returncode:
            raise RuntimeError(f"docker export of {IMAGE} failed with status {export.returncode}")
    finally:
        subprocess.run(["docker", "rm", "--force", made], capture_output=True, check=True)
