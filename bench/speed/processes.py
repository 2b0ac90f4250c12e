"""CPU time and memory of processes, as Linux tells them."""

import os
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_ENGINE = {"dockerd", "containerd", "containerd-shim", "podman", "conmon"}
_NAME_MAX = 15  # characters that the kernel keeps of a process's name
_PEAK_RESET = "5"


def cpu_s(pids: Iterable[int]) -> float:
    """User and system time of these processes, in seconds; one that has ended counts nothing."""
    return sum((int(stat[11]) + int(stat[12])) / _TICKS for pid in pids if (stat := _stat(pid)))


def family(pid: int) -> set[int]:
    """A process and all below it."""
    parents = {found: int(stat[1]) for found in _pids() if (stat := _stat(found))}
    known = {pid}
    while more := {one for one, parent in parents.items() if parent in known} - known:
        known |= more
    return known


def memory_mb(pid: int) -> float:
    """Resident memory of a process and all below it, in megabytes of 10^6 bytes.

    A process that was just forked, and is to become another program, has its parent's memory and counts nothing.
    """
    ours = _read(pid, "cmdline")
    others = (one for one in family(pid) - {pid} if _read(one, "cmdline") != ours)
    return sum(_status_mb(one, "VmRSS") for one in (pid, *others))


def peak_mb(pid: int) -> float:
    """The most resident memory that this one process has held since `reset_peak`."""
    return _status_mb(pid, "VmHWM")


def reset_peak(pid: int) -> None:
    """Starts the peak anew; needs the right to write to the process's entry."""
    (_PROC / str(pid) / "clear_refs").write_text(_PEAK_RESET, encoding="ascii")


def container_pids(service_name: str) -> set[int]:
    """All processes in the containers of a service: its engine names a container or the service in their group."""
    label = f"label=proofbox.service={service_name}"
    listed = subprocess.run(
        ["docker", "ps", "--quiet", "--no-trunc", "--filter", label], capture_output=True, text=True, check=True
    )
    return in_control_group(service_name, *listed.stdout.split())


def in_control_group(*names: str) -> set[int]:
    """Processes whose control group has one of these in its path."""
    return {pid for pid in _pids() if any(name in _read(pid, "cgroup") for name in names)}


def engine_pids() -> set[int]:
    """The engine's processes, whoever uses it."""
    wanted = {name[:_NAME_MAX] for name in _ENGINE}
    return {pid for pid in _pids() if _read(pid, "comm").strip() in wanted}


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit())


def _stat(pid: int) -> list[str]:
    """The fields after the name, which may hold spaces and brackets itself."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _status_mb(pid: int, name: str) -> float:
    lines = _read(pid, "status").splitlines()
    return sum(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(f"{name}:"))


def _read(pid: int, name: str) -> str:
    try:
        return (_PROC / str(pid) / name).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""  # it has ended, or is not ours
