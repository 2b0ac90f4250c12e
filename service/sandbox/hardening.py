"""What confines a sandbox, whichever engine starts it: one definition, written down in each engine's own form.

Nothing in a request reaches any of this but numbers.
"""

from dataclasses import dataclass

from proofbox.service.sandbox.limits import CallLimits

GROUP_ID = 10001
"""Group of everything that runs in a sandbox. Its user is the container's own, see `SandboxUsers`."""
HOST_NAME = "sandbox"
"""Of every sandbox; the image resolves it to the loopback interface."""
SHM_BYTES = 64 * 1024 * 1024
"""Size of /dev/shm: multiprocessing and numpy share memory there; it counts as memory."""
CPU_PERIOD_US = 100_000
"""The period over which the CPU share of a sandbox is enforced."""
IMPORTING_SHARES = 128
"""Weight for the CPU, in place of 1024, of a container that imports libraries for a later call: those with calls go
first, and where they use every core it is still ready in time."""

PACKAGES_AT = "/packages"
"""Where sandboxes have the packages that calls have asked for, read-only; nothing if no call gets packages."""

_TMP_BYTES = 128 * 1024 * 1024
_TMP_INODES = 10_000
_JOB_BYTES = 72 * 1024 * 1024  # code of 10 MiB, or a document as JSON, which writes a character in up to six bytes
_OPEN_FILES = 1024

RLIMITS = {
    "nofile": _OPEN_FILES,
    "core": 0,
    "memlock": 64 * 1024,
    "nice": 0,
    "rtprio": 0,
    # These are counted for each user of the machine: of containers that share one, together.
    "msgqueue": 0,
    "sigpending": 1024,
}
"""Resource limits of programs, soft and hard the same. What an engine's machine sets is not left to chance, but for
``nproc``: an engine without root cannot raise it, and the limit of processes bounds a container anyway."""
_OPEN_FILES_OF_RUNNER = 4 * _OPEN_FILES
"""The kernel refuses to send descriptors if more of a user's are in flight than the sender may open. What programs
have in flight ends near their own limit, so process 1, with a higher one, can still send."""
SANDBOX_RLIMITS = {name: (most, most) for name, most in RLIMITS.items()} | {
    "nofile": (_OPEN_FILES, _OPEN_FILES_OF_RUNNER)
}
"""Resource limits of process 1 of a sandbox, soft and hard; its children may open as many files as the soft one."""

MASKED_PATHS = (
    # As the newest Docker has them, whichever one starts the container.
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    # And what shows the machine or of its other users, and is no use to a program.
    "/proc/buddyinfo",
    "/proc/cgroups",
    "/proc/cmdline",
    "/proc/config.gz",
    "/proc/diskstats",
    "/proc/iomem",
    "/proc/ioports",
    "/proc/kallsyms",
    "/proc/key-users",
    "/proc/modules",
    "/proc/pressure",
    "/proc/schedstat",
    "/proc/softirqs",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/kernel/pty/nr",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/sys/devices/virtual/dmi",
    "/sys/kernel",
    "/sys/module",
    "/sys/power",
)
"""Files and folders of the kernel that are empty in a sandbox."""
TERMINALS = 16
"""Pseudo-terminals of a sandbox, where the engine can bound them: the machine has some thousands for all."""
NEW_TERMINALS = "/dev/pts/ptmx"
"""What gives a program a pseudo-terminal; masked where their number cannot be bounded."""
READ_ONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""Files and folders of the kernel that nobody in a sandbox can write to."""


@dataclass(frozen=True, slots=True)
class Tmpfs:
    """A folder of the sandbox's own in memory: the only places that a program can write to.

    Attributes:
        path: where.
        size_bytes: how much it holds.
        inodes: how many files and folders.
        runs_programs: whether files in it may be executed.
    """

    path: str
    size_bytes: int
    inodes: int
    runs_programs: bool

    def options(self, user_id: int) -> list[str]:
        """The options as ``mount -o`` takes them, for a folder that belongs to ``user_id``."""
        return [
            "rw",
            "nosuid",
            "nodev",
            "exec" if self.runs_programs else "noexec",
            f"size={self.size_bytes}",
            f"nr_inodes={self.inodes}",
            f"uid={user_id}",
            f"gid={GROUP_ID}",
            "mode=0755",
        ]


def own_folders(limits: CallLimits) -> tuple[Tmpfs, ...]:
    """The folders that a sandbox with these limits has beside its read-only root."""
    return (
        Tmpfs("/out", limits.out_dir_bytes, limits.out_dir_inodes, runs_programs=True),
        Tmpfs("/tmp", _TMP_BYTES, _TMP_INODES, runs_programs=True),  # noqa: S108 - the container's own
        Tmpfs("/job", _JOB_BYTES, 16, runs_programs=False),
    )
